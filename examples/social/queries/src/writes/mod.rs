//! The write patterns WP-01 to WP-19, one file for each subject.
//!
//! - The database checks every requirement, in the condition of the write or of another item in its transaction; no
//!   write relies on a read alone. If a requirement cannot be a condition, the method documents what another writer can
//!   do in between, and the result.
//! - A refusal is a [`WriteError`](crate::write_error::WriteError) that names the item.
//! - A write is sent again until its outcome is known, within [limits](pause::TRIES_MAX).
//! - Every item has `CreatedAt` and `UpdatedAt`, and each write of an attribute also writes the index keys that contain
//!   it. Derived attributes are neither written nor lost, because an existing item is changed instead of replaced.

mod attempts;
pub mod comments;
pub mod draft;
pub mod employees;
pub mod files;
pub mod folders;
pub mod follows;
pub mod groups;
pub mod likes;
pub mod order_status;
pub mod orders;
pub mod organizations;
pub mod patterns;
pub mod pause;
pub mod posts;
pub mod products;
pub mod readings;
pub mod reviews;
pub mod subscriptions;
pub mod time;
pub mod users;

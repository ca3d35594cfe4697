//! The write patterns WP-01 to WP-19, a file for each subject.
//!
//! - What must hold is asked of the database, in the condition of the write or of another item in its transaction;
//!   nothing is decided by a read alone. Where a condition cannot ask it, the method says what another writer could do
//!   in between, and what is then the case.
//! - A refusal is a [`WriteError`](crate::write_error::WriteError) that names the item.
//! - A write is sent again until its outcome is known, within [limits](pause::TRIES_MAX).
//! - `CreatedAt` and `UpdatedAt` are written with every item, and every index key together with what it is made of.
//!   Derived attributes are not written, and are not lost either: what is there is changed, not put over.

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
mod patterns;
pub mod pause;
pub mod posts;
pub mod products;
pub mod readings;
pub mod reviews;
pub mod subscriptions;
mod time;
pub mod users;

use crate::pattern::AccessPattern;

/// The patterns WP-01 to WP-19, in order, a line for each method.
#[must_use]
pub fn patterns() -> Vec<AccessPattern> {
    let mut all = patterns::all();
    // By id; those of one id stay in their order.
    all.sort_by_key(|pattern| pattern.id);
    all
}

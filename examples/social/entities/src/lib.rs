//! The shipped table: what its items look like, one declaration per entity.
//!
//! A declaration gives a typed item, a typed key that is built without the item, and the same as data.
//! The [table] lists them with the names of the key attributes and the indexes; that is all the engine ever
//! sees, so a team with a table of its own brings other declarations and changes no code.
//!
//! Items come from foreign clients too.
//! So no attribute has to be there for a reader, unknown attributes are left out of the typed item, and a value of
//! another type than declared makes the typed read fail, not the item.
//! A writer is held to the index keys: an item whose index key cannot be made is refused.
//!
//! ```
//! use entities::{ids::UserId, people::{Follow, FollowKey}};
//! use keys::{entity::Entity, key::Key};
//!
//! let key = FollowKey { follower_id: UserId::from("ada"), followee_id: UserId::from("grace #1") };
//! assert_eq!(Follow::primary_key(&key)?, Key::new("USER#ada", "FOLLOWS#grace %231"));
//! # Ok::<(), keys::error::KeyError>(())
//! ```
//!
//! Keys are stored: a changed template is a migration of data.
//! `tests/offline/keys.rs` holds the key of every entity as it stands in the table.

pub mod carts;
pub mod claim;
pub mod counter;
pub mod emails;
pub mod files;
pub mod groups;
pub mod ids;
pub mod orders;
pub mod organizations;
pub mod people;
pub mod posts;
pub mod products;
pub mod samples;
pub mod sensors;
pub mod subscriptions;
pub mod table;

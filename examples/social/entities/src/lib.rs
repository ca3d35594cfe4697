//! The shipped table: one declaration for each entity.
//!
//! A declaration gives a typed item, a typed key that is built without the item, and both as data. The [table] lists
//! them with the key attributes and the indexes. The engine sees only that data, so a team with its own table brings
//! other declarations and changes no code.
//!
//! Foreign clients write items too. So every attribute is optional for a reader, the typed item leaves out unknown
//! attributes, and a value of another type makes the typed read fail, but not the item. A writer must provide the index
//! keys: an item whose index key cannot be made is refused.
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
//! `tests/offline/keys.rs` checks the stored key of every entity.

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

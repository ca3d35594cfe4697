//! Keys: every key string of a table is built and parsed here, and nowhere else.
//!
//! A key is built from a [template](template::Template), such as `USER#{UserId}` / `POST#{CreatedAt}#{PostId}`.
//! Templates are data: the same value builds a key without the item, parses a key back into its fields, gives the
//! prefix for `begins_with`, and is printed in the design document.
//!
//! What it keeps true: building a key and parsing it again returns the fields, for every string; and two different sets
//! of fields never build the same key. Values that would break this are refused with an [error](error::KeyError) that
//! names the entity, the attribute and the limit.
//!
//! ```
//! use keys::{fields::Fields, template::Template};
//!
//! let template = Template::parse("POST#{CreatedAt}#{PostId}")?;
//! let fields = Fields::from([("CreatedAt", "2024-01-15"), ("PostId", "50% off #1")]);
//! let key = template.build(&fields)?;
//! assert_eq!(key, "POST#2024-01-15#50%25 off %231");
//! assert_eq!(template.parse_key(&key), Some(fields));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate knows no entity of any table.

pub mod backoff;
pub mod counter;
pub mod entity;
pub mod entry;
pub mod error;
pub mod escape;
pub mod fields;
pub mod fnv;
pub mod index_key;
pub mod item;
pub mod job;
pub mod key;
pub mod key_forms;
pub mod layout;
pub mod number;
pub mod shown;
pub mod size;
pub mod tables;
pub mod template;
pub mod value;

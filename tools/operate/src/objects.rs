//! The JSON objects that commands print with `--json`, and that the console serves.
//!
//! One function makes an object for both, and [`schema`] describes each form, so a program may read either.
//! Names and words are stable.

pub mod effect;
pub mod explanation;
pub mod job;
pub mod parked;
pub mod repair;
pub mod schema;
pub mod verification;

use keys::key::Key;
use serde_json::{Value, json};

/// The version of all objects. It rises when a name is removed, or means something else. Stable.
pub const VERSION: u32 = 1;

/// An object with the version.
#[must_use]
pub fn with_version(mut object: Value) -> Value {
    if let Some(names) = object.as_object_mut() {
        names.insert("version".to_owned(), VERSION.into());
    }
    object
}

/// A key as an object.
#[must_use]
pub fn key(key: &Key) -> Value {
    json!({ "pk": key.pk, "sk": key.sk })
}

/// A word of the text as a word of an object: `still parked` is `still_parked`.
#[must_use]
pub fn word(text: &str) -> String {
    text.replace([' ', '-'], "_")
}

//! The objects that commands print with `--json`.

use keys::key::Key;
use serde_json::{Value, json};

use crate::exit::print;

/// The version of all objects. It rises when a name is removed, or means something else. Stable.
pub(crate) const VERSION: u32 = 1;

/// Prints an object with the version.
pub(crate) fn print_json(mut object: Value) {
    if let Some(names) = object.as_object_mut() {
        names.insert("version".to_owned(), VERSION.into());
    }
    print(&object.to_string());
}

/// A key as an object.
pub(crate) fn key(key: &Key) -> Value {
    json!({ "pk": key.pk, "sk": key.sk })
}

/// A word of the text as a word of an object: `still parked` is `still_parked`.
pub(crate) fn word(text: &str) -> String {
    text.replace([' ', '-'], "_")
}

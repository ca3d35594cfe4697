//! The objects that commands print with `--json`.

use serde_json::Value;

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

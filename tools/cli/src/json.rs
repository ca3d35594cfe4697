//! Prints the objects of `--json`.

use operate::objects::with_version;
use serde_json::Value;

use crate::exit::print;

/// Prints an object with the version.
pub(crate) fn print_json(object: Value) {
    print(&with_version(object).to_string());
}

//! Panics of a kind, caught where a record or an item is handled, so that one stops nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a pure computation gives, or in one line how it panicked.
pub(crate) fn caught<T>(what: &str, compute: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing is half changed: what is computed is dropped with the panic.
    catch_unwind(AssertUnwindSafe(compute)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        format!("{what} panicked: {}", text.unwrap_or("without a message"))
    })
}

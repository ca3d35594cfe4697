//! Panics of a kind, caught where a record or an item is handled, so that one stops nobody.
//!
//! A message that was made while it ran may hold a value, as that of a text which is cut within a character does. What is
//! reported of a panic is logged, so only a message that stands in the code is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a pure computation gives, or in one line how it panicked.
///
/// # Errors
///
/// The line.
pub fn caught<T>(what: &str, compute: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing is half changed: what is computed is dropped with the panic.
    catch_unwind(AssertUnwindSafe(compute)).map_err(|panic| {
        let text = panic.downcast_ref::<&'static str>().copied();
        format!("{what} panicked: {}", text.unwrap_or("its message may hold values; the log says where"))
    })
}

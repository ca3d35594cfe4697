//! The query interface: one typed method for every read and every write of the shipped table.
//!
//! A method's documentation begins with the pattern's ID in the table's design. Reads page with an opaque cursor,
//! document their order, and never scan. Writes refuse what the table's design forbids, with typed errors, and never
//! write derived attributes or items.

pub mod cursor;
pub mod page;
pub mod pattern;
pub mod read_error;
pub mod reads;
pub mod write_error;
pub mod writes;

use std::sync::Arc;

use keys::layout::Layout;

use crate::writes::pause::Pause;

/// The reads and writes of the shipped table.
pub struct Queries<S> {
    store: S,
    layout: Layout,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    pause: Pause,
}

impl<S> Queries<S> {
    /// The query interface of a store. `now_ms` returns the time of a write, in milliseconds since the epoch.
    pub fn new(store: S, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { store, layout: entities::table::layout(), now_ms: Arc::new(now_ms), pause: Pause::default() }
    }
}

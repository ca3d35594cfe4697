//! The query interface of the shipped table: a type for every read, which the manifest declares, and a method for every
//! write.
//!
//! The keys and index keys of a write are those that the manifest declares. The documentation of a read or write begins
//! with the pattern's ID in the table's design. Writes refuse what the table's design forbids, with typed errors, and
//! never write derived attributes or items.

pub mod write_error;
pub mod writes;

/// The reads, and the keys and items, as `ripple types --language rust` prints them.
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction, reason = "an application has its own lints")]
pub mod reads {
    include!(concat!(env!("OUT_DIR"), "/reads.rs"));
}

use std::sync::Arc;

use derive::schema::Schema;

use crate::writes::Pause;

/// The writes of the shipped table.
pub struct Queries<S> {
    store: S,
    schema: Schema,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    pause: Pause,
}

impl<S> Queries<S> {
    /// The query interface of a store. `now_ms` returns the time of a write, in milliseconds since the epoch.
    pub fn new(store: S, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { store, schema: catalogue::schema(), now_ms: Arc::new(now_ms), pause: Pause::default() }
    }
}

//! A batch while it is handled: its records, where they come from, and the time that there is.
//!
//! # Caught
//!
//! Panics of a kind, caught where a record or an item is handled, so that one stops nobody.
//!
//! A message that was made while it ran may hold a value, as that of a text which is cut within a character does. What is
//! reported of a panic is logged, so only a message that stands in the code is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

use derive::position::RecordAt;

use crate::{
    backoff::Patience,
    clock::age_ms,
    record::{Decoded, event::Lane},
};

/// A batch while it is handled.
pub(crate) struct Batch<'a> {
    /// Its records, each decoded once.
    pub(crate) records: Vec<Decoded<'a>>,
    /// Where they come from.
    pub(crate) lane: Lane,
    /// The time that there is.
    pub(crate) patience: Patience<'a>,
    /// Why it is handled.
    pub(crate) occasion: Occasion,
}

/// Why a batch is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The stream delivers it, or a replay does.
    Delivery,
    /// It is one record that was parked.
    Redrive,
}

impl<'a> Batch<'a> {
    /// A parked record, which is redriven.
    pub(crate) fn parked(record: Decoded<'a>, lane: &Lane, patience: Patience<'a>) -> Self {
        Self { records: vec![record], lane: lane.clone(), patience, occasion: Occasion::Redrive }
    }

    /// The record at a position.
    pub(crate) fn record(&self, at: RecordAt) -> Option<&Decoded<'a>> {
        self.records.get(at.0)
    }

    /// How long ago its first record's write was made, in milliseconds; `None` if that is not known.
    pub(crate) fn age_ms(&self, now_ms: u64) -> Option<u64> {
        age_ms(self.records.first().and_then(|record| record.head.created_ms), now_ms)
    }
}

// ---- Panics of a kind, caught where a record or an item is handled, so that one stops nobody ----

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

//! A batch while it is handled: its records, their origin, and the time that is left.
//!
//! # Caught
//!
//! Catches panics of a kind where a record or an item is handled, so that one panic blocks no other record.
//!
//! A panic message that was formatted at run time may contain a value, such as a text that was cut within a character.
//! Reported panics are logged, so only a message that is a literal in the code is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

use derive::position::RecordAt;

use crate::{
    backoff::Patience,
    clock::age_ms,
    record::{Decoded, Lane},
};

/// A batch while it is handled.
pub(crate) struct Batch<'a> {
    /// Its records, each decoded once.
    pub(crate) records: Vec<Decoded<'a>>,
    /// The origin of the records.
    pub(crate) lane: Lane,
    /// The time that is left.
    pub(crate) patience: Patience<'a>,
    /// Why it is handled.
    pub(crate) occasion: Occasion,
}

/// Why a batch is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The stream or a replay delivers it.
    Delivery,
    /// It is one parked record.
    Redrive,
}

impl<'a> Batch<'a> {
    /// A parked record for a redrive.
    pub(crate) fn parked(record: Decoded<'a>, lane: &Lane, patience: Patience<'a>) -> Self {
        Self { records: vec![record], lane: lane.clone(), patience, occasion: Occasion::Redrive }
    }

    /// The record at a position.
    pub(crate) fn record(&self, at: RecordAt) -> Option<&Decoded<'a>> {
        self.records.get(at.0)
    }

    /// Age of its first record, in milliseconds; `None` if unknown.
    pub(crate) fn age_ms(&self, now_ms: u64) -> Option<u64> {
        age_ms(self.records.first().and_then(|record| record.head.created_ms), now_ms)
    }
}

// ---- Panics of a kind, caught where a record or an item is handled ----

/// The result of a pure computation, or a line that describes its panic.
///
/// # Errors
///
/// The line.
pub fn caught<T>(what: &str, compute: impl FnOnce() -> T) -> Result<T, String> {
    // No state is half changed: the panic drops everything that was computed.
    catch_unwind(AssertUnwindSafe(compute)).map_err(|panic| {
        let text = panic.downcast_ref::<&'static str>().copied();
        format!("{what} panicked: {}", text.unwrap_or("its message may hold values; the log says where"))
    })
}

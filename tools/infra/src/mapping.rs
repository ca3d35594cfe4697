//! The event source mapping of a function, as the template deploys it with the default of each parameter.
//!
//! The template has its numbers from here.

use derive::family::Family;
use engine::ledger::LedgerKind;
use stream::{
    filter::{FilterError, Filters},
    mapping::{Mapping, OnFailure, StartingPosition},
};

use crate::{NOTHING, filters::Needed};

/// Records of a batch.
pub const BATCH_SIZE: u32 = 500;

/// How long to gather a batch, in seconds.
pub const BATCHING_WINDOW_S: u32 = 5;

/// Length of the tumbling windows under watermarks, in seconds: only events of a tumbling window name their shard.
pub const TUMBLING_WINDOW_S: u32 = 60;

/// Lanes of a shard for a function that counts nothing.
pub const LANES: u32 = 2;

/// Age at which a record is given up, in seconds: 23 hours, one less than a stream keeps its records.
pub(crate) const RECORD_AGE_S: u64 = 82_800;

/// Wait after an empty read, in milliseconds: Lambda reads a shard four times a second.
const LAMBDA_POLL_MS: u64 = 250;

/// The mapping of a function that runs these families.
#[must_use]
pub fn mapping(name: &str, stream_arn: &str, families: &[Family], ledger: LedgerKind, filters: Filters) -> Mapping {
    let counts = families.contains(&Family::Additive);
    // Under watermarks a change that Lambda gives up would be passed by the next batch, and lost.
    let is_kept = counts && ledger == LedgerKind::Watermarks;
    Mapping {
        name: name.to_owned(),
        stream_arn: stream_arn.to_owned(),
        batch_size: usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX),
        batching_window_ms: u64::from(BATCHING_WINDOW_S) * 1_000,
        tumbling_window_seconds: if is_kept { TUMBLING_WINDOW_S.into() } else { 0 },
        // Lanes would cut the batches of a function that counts into pieces, which conflict.
        parallelization_factor: if counts { 1 } else { usize::try_from(LANES).unwrap_or(1) },
        retry_attempts_max: None,
        record_age_ms_max: (!is_kept).then_some(RECORD_AGE_S * 1_000),
        report_batch_item_failures: true,
        filters,
        on_failure: Some(OnFailure::S3),
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: LAMBDA_POLL_MS,
    }
}

/// The filters of a mapping for a function that needs these records.
///
/// # Errors
///
/// [`FilterError`] if Lambda would refuse a pattern.
pub fn filters(needed: &Needed) -> Result<Filters, FilterError> {
    match needed {
        Needed::Nothing => Filters::new([NOTHING]),
        Needed::Matching(patterns) => Filters::new(patterns),
        Needed::Everything => Ok(Filters::default()),
    }
}

//! The settings of one event source mapping, under AWS's names.
//!
//! Every setting of AWS for the delivery from a `DynamoDB` stream is here, except `BisectBatchOnFunctionError`. The
//! batching window and the record age are in milliseconds instead of seconds, because a developer waits for them.

use thiserror::Error;

use crate::filter::Filters;

/// The most records that Lambda takes in one batch. Source: `CreateEventSourceMapping`, `BatchSize`.
pub const BATCH_SIZE_MAX: usize = 10_000;

/// The longest batching window, in milliseconds.
///
/// Source: `CreateEventSourceMapping`, `MaximumBatchingWindowInSeconds` (300).
pub const BATCHING_WINDOW_MS_MAX: u64 = 300_000;

/// The longest tumbling window, in seconds. Source: `CreateEventSourceMapping`, `TumblingWindowInSeconds`.
pub const TUMBLING_WINDOW_SECONDS_MAX: u64 = 900;

/// The most lanes of a shard. Source: `CreateEventSourceMapping`, `ParallelizationFactor`.
pub const PARALLELIZATION_FACTOR_MAX: usize = 10;

/// The most retries that a mapping may set.
pub const RETRY_ATTEMPTS_MAX: u32 = 10_000;

/// The greatest record age that a mapping may set, in milliseconds: a week, although a stream keeps records for a day.
pub const RECORD_AGE_MS_MAX: u64 = 604_800_000;

/// One event source mapping: its stream, its function and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The function's name. It also identifies the mapping: checkpoints and failure records are stored under it.
    pub name: String,
    /// `StreamArn` of the table's stream.
    pub stream_arn: String,
    /// `BatchSize`: the most records in one invocation, 1 to [`BATCH_SIZE_MAX`].
    pub batch_size: usize,
    /// `MaximumBatchingWindowInSeconds`, but in milliseconds. With 0, a batch is what one read returned.
    pub batching_window_ms: u64,
    /// `TumblingWindowInSeconds`, up to [`TUMBLING_WINDOW_SECONDS_MAX`]. 0, AWS's default, means no tumbling windows.
    ///
    /// With windows, each event contains its window and the window's state beside `Records`. Each response must contain
    /// an object `state`; otherwise the invocation has failed. A window that had records ends with a final invocation
    /// without records. The state is in memory only: after a restart, the open window starts again with an empty state.
    ///
    /// A record belongs to the window of its creation time. `DynamoDB` Local rounds creation times down to the minute.
    /// Unless windows are whole minutes, a record there may belong to a window that is already over. That window then
    /// ends at once.
    pub tumbling_window_seconds: u64,
    /// `ParallelizationFactor`: the lanes of each shard, 1 (AWS's default) to [`PARALLELIZATION_FACTOR_MAX`].
    ///
    /// Each lane has its own batches, one at a time, and its own retries. All records of an item take the same lane, so
    /// they stay in order; records of different items may not. A shard has one checkpoint, which follows its slowest
    /// lane.
    ///
    /// More than 1 together with tumbling windows is refused. AWS does not document to which lane the state of a window
    /// would belong, and a local run must not depend on a guess.
    pub parallelization_factor: usize,
    /// `MaximumRetryAttempts`: 3 means up to 4 invocations. `None` (AWS: -1) retries until the record is too old.
    pub retry_attempts_max: Option<u32>,
    /// `MaximumRecordAgeInSeconds`, but in milliseconds. `None` (AWS: -1) discards no record for its age.
    ///
    /// The age counts from the record's creation time, which emulators round down: see [`crate::event`].
    pub record_age_ms_max: Option<u64>,
    /// `FunctionResponseTypes: [ReportBatchItemFailures]`. Without it, the response's body is ignored, except the
    /// `state` of a tumbling window.
    pub report_batch_item_failures: bool,
    /// `FilterCriteria`: which records are delivered.
    pub filters: Filters,
    /// `DestinationConfig.OnFailure`: the type of destination for failure records; `None` writes none.
    pub on_failure: Option<OnFailure>,
    /// `StartingPosition`: where a shard without a checkpoint starts.
    pub starting_position: StartingPosition,
    /// The wait after a read that returned all existing records, in milliseconds. Local only: Lambda reads a shard four
    /// times a second.
    pub idle_poll_ms: u64,
}

/// The wait of Lambda after a read of a shard without records, in milliseconds. Source: AWS Lambda's developer guide, "Using
/// AWS Lambda with Amazon DynamoDB": "at a base rate of 4 times per second".
pub const LAMBDA_POLL_MS: u64 = 250;

/// The type of an on-failure destination, which decides what a failure record contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// A bucket: the failure record with the whole event as its `payload`.
    S3,
    /// A queue: the failure record without the event. Its records must be read from the stream again.
    Sqs,
    /// A topic: the same content as for a queue.
    Sns,
}

/// Where a shard without a checkpoint starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    /// At the oldest record in the stream.
    TrimHorizon,
    /// After the newest record, for shards that exist at the start. Shards that appear later start at their oldest
    /// record.
    ///
    /// A shard has no checkpoint until its first batch is done. A restart before that starts at the newest record
    /// again.
    Latest,
}

/// A setting that Lambda would refuse, or whose meaning AWS does not document. The text says which.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MappingError(String);

impl Mapping {
    /// Refuses what Lambda would refuse, and several lanes with tumbling windows.
    ///
    /// # Errors
    ///
    /// [`MappingError`] for the first setting that is refused.
    pub fn check(&self) -> Result<(), MappingError> {
        let Self { name, batch_size, batching_window_ms, tumbling_window_seconds, parallelization_factor, .. } = self;
        let refused = |why: String| Err(MappingError(why));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return refused(format!("the function name {name:?} must be of letters, digits, '-' and '_'"));
        }
        if !(1..=BATCH_SIZE_MAX).contains(batch_size) {
            return refused(format!("the batch size {batch_size} of {name} is not between 1 and {BATCH_SIZE_MAX}"));
        }
        if *batching_window_ms > BATCHING_WINDOW_MS_MAX {
            return refused(format!(
                "the batching window {batching_window_ms} ms of {name} is longer than {BATCHING_WINDOW_MS_MAX} ms"
            ));
        }
        if *tumbling_window_seconds > TUMBLING_WINDOW_SECONDS_MAX {
            return refused(format!(
                "the tumbling window {tumbling_window_seconds} s of {name} is longer than {TUMBLING_WINDOW_SECONDS_MAX} s"
            ));
        }
        if let Some(retries) = self.retry_attempts_max.filter(|retries| *retries > RETRY_ATTEMPTS_MAX) {
            return refused(format!("the {retries} retry attempts of {name} are more than {RETRY_ATTEMPTS_MAX}"));
        }
        if let Some(age_ms) = self.record_age_ms_max.filter(|age_ms| *age_ms > RECORD_AGE_MS_MAX) {
            return refused(format!("the record age {age_ms} ms of {name} is greater than {RECORD_AGE_MS_MAX} ms"));
        }
        if !(1..=PARALLELIZATION_FACTOR_MAX).contains(parallelization_factor) {
            return refused(format!(
                "the parallelization factor {parallelization_factor} of {name} is not between 1 and \
                 {PARALLELIZATION_FACTOR_MAX}"
            ));
        }
        if *parallelization_factor > 1 && *tumbling_window_seconds > 0 {
            return refused(format!(
                "{name} has tumbling windows and a parallelization factor of {parallelization_factor}: \
                 set one of them to its default, since whose the state of a window is then is documented nowhere"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::mapping;

    /// Source: BC, U3, U6. For the retries, U3 differs from BC, and BC counts.
    #[test]
    fn each_setting_is_in_the_range_that_lambda_takes() {
        type Set = fn(&mut Mapping, u64);
        let sizes: [(Set, [u64; 2]); 2] = [
            (|it, batch_size| it.batch_size = usize::try_from(batch_size).unwrap(), [1, 10_000]),
            (|it, lanes| it.parallelization_factor = usize::try_from(lanes).unwrap(), [1, 10]),
        ];
        let limits: [(Set, u64); 4] = [
            (|it, window_ms| it.batching_window_ms = window_ms, 300_000),
            (|it, seconds| it.tumbling_window_seconds = seconds, 900),
            (|it, attempts| it.retry_attempts_max = Some(u32::try_from(attempts).unwrap()), 10_000),
            (|it, age_ms| it.record_age_ms_max = Some(age_ms), 604_800_000),
        ];
        let is_taken = |set: Set, value: u64| {
            let mut mapping = mapping();
            set(&mut mapping, value);
            mapping.check().is_ok()
        };
        for (set, [least, most]) in sizes.into_iter().chain(limits.map(|(set, most)| (set, [0, most]))) {
            assert!(is_taken(set, least) && is_taken(set, most) && !is_taken(set, most + 1), "{least} to {most}");
            assert!(least == 0 || !is_taken(set, least - 1), "{least} to {most}");
        }
        let error = Mapping { batch_size: 10_001, ..mapping() }.check().unwrap_err().to_string();
        assert_eq!(error, "the batch size 10001 of aggregate is not between 1 and 10000");
    }

    /// Our decision: AWS does not document to which lane the state of a window would belong.
    #[test]
    fn several_lanes_with_tumbling_windows_are_refused() {
        let mapping = Mapping { parallelization_factor: 2, tumbling_window_seconds: 60, ..mapping() };
        let error = mapping.check().unwrap_err().to_string();
        assert!(error.starts_with("aggregate has tumbling windows and a parallelization factor of 2"), "{error}");
    }
}

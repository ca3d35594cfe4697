//! What goes on beside a verification: the records of the table's stream, and how far the functions are with them.

use std::{io, sync::Arc};

use engine::record::event::Lane;
use futures::future::BoxFuture;

/// Records of one stream shard.
#[derive(Clone, Debug, Default)]
pub struct ShardRecords {
    /// The shard and its stream.
    pub lane: Arc<Lane>,
    /// JSON as in an event, in the order of the shard.
    pub records: Vec<String>,
}

/// Follows a table's stream, and knows the functions that read it.
///
/// A moment is in milliseconds since the epoch, by the clock of the engine.
pub trait Following: Send + Sync {
    /// The records that came since the last call, those of one item in their order. What was given by the call before this
    /// one has been taken up, and need not be given again.
    fn records(&self) -> Vec<ShardRecords>;

    /// Was every record given that was made before this moment?
    fn has_given(&self, moment_ms: u64) -> bool;

    /// Have the functions handled every record that was made before this moment? `None` if unknown.
    fn is_handled(&self, moment_ms: u64) -> Option<bool>;

    /// Does [`is_handled`](Self::is_handled) rest on what somebody typed, and not on the functions' own positions? Then
    /// the ledger must prove what is counted.
    fn is_typed(&self) -> bool {
        false
    }

    /// Reads what the stream still holds of the records that were made before this moment.
    fn retained(&self, until_ms: u64) -> Box<dyn Retained + '_>;
}

/// Records that a stream still holds, from the oldest on.
pub trait Retained: Send {
    /// Some records more; `None` when all were given that were made before the moment.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>>;
}

/// A table at rest: nobody writes, and what was written is handled, or never will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtRest;

impl Following for AtRest {
    fn records(&self) -> Vec<ShardRecords> {
        Vec::new()
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        Some(true)
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(Nothing)
    }
}

/// A stream that holds nothing, or of which nothing is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Retained for Nothing {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

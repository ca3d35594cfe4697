//! What a stream still holds, read once more from its oldest record on, beside what follows it.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::clock::{Clock as _, SystemClock};
use futures::future::BoxFuture;
use stream::{
    checkpoint::MemoryCheckpoints,
    function::{FunctionError, LambdaFunction},
    mapping::{Mapping, StartingPosition},
    poller::{EventSourceMapping, StreamError},
    progress::Observer,
    response::FolderDestination,
    shared::Stream,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::{DONE, EMPTY_PAGES_MS, mapping, shard_records};
use crate::{
    tables::{Deployment, TableStream},
    verify::{Retained, ShardRecords},
};

/// How long a stream may say nothing before it counts as one that cannot be read.
const SILENCE: Duration = Duration::from_mins(5);

/// The records that a stream still holds.
pub(crate) struct RetainedRecords {
    records: mpsc::Receiver<ShardRecords>,
    /// Up to when all was given, in milliseconds since the epoch.
    delivered_ms: watch::Receiver<u64>,
    until_ms: u64,
    reading: JoinHandle<Result<(), StreamError>>,
    _stop: watch::Sender<bool>,
}

impl Drop for RetainedRecords {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl RetainedRecords {
    /// Begins to read with a mapping like this, up to all that was made before a moment.
    pub(super) fn read(mapping: Mapping, stream: &Stream, until_ms: u64) -> Self {
        let mapping = Mapping { starting_position: StartingPosition::TrimHorizon, ..mapping };
        // Held back until it is taken, so memory holds one batch of each shard.
        let (give, records) = mpsc::channel(1);
        let (report, delivered_ms) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let mapping = EventSourceMapping::new(
            mapping,
            stream,
            Arc::new(Giving(give)),
            Arc::new(MemoryCheckpoints::new()),
            Arc::new(FolderDestination::new(std::env::temp_dir())),
            Arc::new(Reporting(report)),
        );
        let reading = tokio::spawn(mapping.run(stopped));
        Self { records, delivered_ms, until_ms, reading, _stop: stop }
    }
}

impl RetainedRecords {
    async fn next(&mut self) -> io::Result<Option<ShardRecords>> {
        loop {
            if *self.delivered_ms.borrow_and_update() > self.until_ms {
                // What was given before that is there already.
                return Ok(self.records.try_recv().ok());
            }
            tokio::select! {
                records = self.records.recv() => return Ok(records),
                _ = self.delivered_ms.changed() => {}
                ended = &mut self.reading => {
                    let why = match ended {
                        Ok(Err(error)) => io::Error::other(error),
                        Err(error) => io::Error::other(error),
                        Ok(Ok(())) => io::Error::other("it is read no more"),
                    };
                    return Err(why);
                }
                () = tokio::time::sleep(SILENCE) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the stream gives nothing"));
                }
            }
        }
    }
}

/// The records that the streams of several tables still hold, those of one behind those of another.
pub(crate) struct RetainedStreams(pub(super) Vec<RetainedRecords>);

impl<S> Deployment<S> {
    /// Begins to read all that the streams still hold.
    pub(crate) fn retained(&self) -> RetainedStreams {
        let margin_ms = if self.is_aws { EMPTY_PAGES_MS } else { 0 };
        let until_ms = SystemClock.now_ms().saturating_add(margin_ms);
        let read = |of: &TableStream| RetainedRecords::read(mapping(&of.arn, self.is_aws), &of.stream, until_ms);
        RetainedStreams(self.streams.iter().map(read).collect())
    }
}

impl Retained for RetainedStreams {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(async move {
            while let Some(stream) = self.0.last_mut() {
                if let Some(records) = stream.next().await? {
                    return Ok(Some(records));
                }
                self.0.pop();
            }
            Ok(None)
        })
    }
}

/// Gives the records to whoever reads them.
struct Giving(mpsc::Sender<ShardRecords>);

impl LambdaFunction for Giving {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let unhandled = |message: String| FunctionError::Unhandled { message };
            let records = shard_records(&event).map_err(|error| unhandled(error.to_string()))?;
            self.0.send(records).await.map_err(|_| unhandled("nobody reads any more".to_owned()))?;
            Ok(DONE.to_owned())
        })
    }
}

/// Reports up to when all was given.
struct Reporting(watch::Sender<u64>);

impl Observer for Reporting {
    fn delivered(&self, _mapping: &str, until: Instant) {
        let ago_ms = u64::try_from(until.elapsed().as_millis()).unwrap_or(u64::MAX);
        let until_ms = SystemClock.now_ms().saturating_sub(ago_ms.saturating_add(1));
        self.0.send_if_modified(|held| {
            let is_later = until_ms > *held;
            *held = (*held).max(until_ms);
            is_later
        });
    }

    fn trouble(&self, _mapping: &str, message: &str) {
        tracing::warn!(message, "the table's stream cannot be read again just now");
    }
}

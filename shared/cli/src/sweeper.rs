//! The sweeper of a service on a laptop: lets jobs begin when the mappings are past what was written before them.
//!
//! In Lambda, nobody knows how far every shard is read, and a cascade waits for longer than a stream is kept. Here it is
//! known: a job that was seen at some moment may begin when every mapping has found the stream empty after it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{batch::Engine, job::Job};
use keys::key::Key;
use store::dynamo::DynamoStore;
use tokio::sync::watch;

use crate::service::{Progress, Witness};

/// Time between two sweeps.
const PAUSE: Duration = Duration::from_millis(500);

/// Sweeps until it is stopped.
pub(crate) struct Sweeper {
    engine: Engine<Arc<DynamoStore>>,
    progress: Arc<Progress>,
    witness: Arc<dyn Witness>,
    /// When each job that there is was first seen.
    seen: BTreeMap<Key, Instant>,
}

impl Sweeper {
    /// A sweeper that begins jobs when the mappings of this progress are past them.
    pub(crate) fn new(engine: Engine<Arc<DynamoStore>>, progress: Arc<Progress>, witness: Arc<dyn Witness>) -> Self {
        Self { engine, progress, witness, seen: BTreeMap::new() }
    }

    /// Sweeps again and again, until it is told to stop.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stopped.changed() => return,
                () = tokio::time::sleep(PAUSE) => self.sweep().await,
            }
        }
    }

    async fn sweep(&mut self) {
        let jobs = match self.engine.jobs().await {
            Ok(jobs) => jobs,
            Err(error) => return self.witness.trouble(&format!("the jobs cannot be read: {error}")),
        };
        let now = Instant::now();
        self.seen.retain(|key, _| jobs.iter().any(|job| job.key == *key));
        for job in &jobs {
            self.seen.entry(job.key.clone()).or_insert(now);
        }
        let is_settled = |job: &Job| self.seen.get(&job.key).is_some_and(|seen| self.progress.is_past(*seen));
        if let Err(error) = self.engine.ring_due(&jobs, is_settled).await {
            self.witness.trouble(&format!("a job cannot be begun: {error}"));
        }
    }
}

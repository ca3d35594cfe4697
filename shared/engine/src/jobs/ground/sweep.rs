//! Jobs as a whole: which there are, and which are to begin or to be rung again.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{
    item::Item,
    job::{PARTITIONS, RUNNING, STATE, WAITING, partition},
    layout::Layout,
};
use store::{Store, StoreError};

use crate::{
    attribute::{n, s},
    context::Context,
    jobs::job::{DUE_AT, Job, MOVED_AT, STARTED_AT},
    partition::all,
};

/// A job whose cursor has not moved for so long is rung again, in milliseconds: longer than an invocation may take.
pub const STALLED_MS: u64 = 20 * 60 * 1_000;

/// What a sweep found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Jobs that there are.
    pub n_jobs: usize,
    /// Those that began now.
    pub n_begun: usize,
    /// Those that are due, and wait for parked changes that may concern their owners.
    pub n_held: usize,
    /// Those that ended before they began, since the owner exists again.
    pub n_ended: usize,
    /// Those that stood still and were rung again.
    pub n_rung: usize,
}

/// All jobs, in order of their keys.
///
/// # Errors
///
/// [`StoreError`] when the table cannot be read.
pub async fn jobs<S: Store>(store: &S, layout: &Layout) -> Result<Vec<Job>, StoreError> {
    let mut jobs = Vec::new();
    for number in 0..PARTITIONS {
        let items = all(store, Table::Main, &partition(number)).await?;
        jobs.extend(items.iter().filter_map(|item| Job::of(layout, item)));
    }
    Ok(jobs)
}

/// Starts jobs that are due, and those that stand still.
pub(crate) struct JobSweep<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> JobSweep<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> JobSweep<'_, S> {
    /// Lets jobs begin that are due and settled, and rings those that stand still. Sweeping twice at once does no harm.
    pub(crate) async fn sweep(&self, is_settled: impl Fn(&Job) -> bool) -> Result<Swept, StoreError> {
        self.ring_due(&self.jobs().await?, is_settled).await
    }

    /// All jobs, in order of their keys.
    pub(crate) async fn jobs(&self) -> Result<Vec<Job>, StoreError> {
        jobs(&self.context.store, &self.context.schema.layout).await
    }

    /// What [`sweep`](Self::sweep) does, with jobs that were read before.
    pub(crate) async fn ring_due(&self, jobs: &[Job], is_settled: impl Fn(&Job) -> bool) -> Result<Swept, StoreError> {
        let now_ms = self.context.clock.now_ms();
        let begins = |job: &Job| !job.is_running && !job.is_paused && job.due_at_ms <= now_ms && is_settled(job);
        let held = self.held(&jobs.iter().filter(|job| begins(job)).collect::<Vec<_>>()).await?;
        let mut swept = Swept { n_jobs: jobs.len(), ..Swept::default() };
        for job in jobs.iter().filter(|job| !job.is_paused) {
            let moved_at = (MOVED_AT.to_owned(), n(now_ms));
            if begins(job) {
                if let Some(event_id) = held.get(&job.key) {
                    let owner = job.origin().for_log();
                    tracing::warn!(derivation = %job.derivation, owner, event_id, "a cascade waits for a parked change: redrive it");
                    swept.n_held += 1;
                    continue;
                }
                let owner = std::slice::from_ref(job.origin());
                if !self.context.store.get(Table::Main, owner).await?.is_empty() {
                    self.end_waiting(job).await?;
                    swept.n_ended += 1;
                    continue;
                }
                // It waits twice: a sweep that read it when it waited first must not end the second wait.
                let guard = job.waits_as_read();
                self.ring(job, Item::from([moved_at, (STATE.to_owned(), s(RUNNING))]), guard).await?;
                swept.n_begun += 1;
            } else if job.is_running && now_ms.saturating_sub(job.moved_at_ms) > STALLED_MS {
                self.ring(job, Item::from([moved_at]), Guard::present(Purpose::Update)).await?;
                swept.n_rung += 1;
            }
        }
        Ok(swept)
    }

    async fn end_waiting(&self, job: &Job) -> Result<(), StoreError> {
        tracing::info!(derivation = %job.derivation, owner = job.origin().for_log(), "ended a cascade: its owner exists again");
        let guard = Some(job.waits_as_read());
        let write = Write { table: Table::Main, key: job.key.clone(), action: Action::Delete, guard };
        self.context.store.write(&write).await.map(drop)
    }

    async fn ring(&self, job: &Job, set: Item, guard: Guard) -> Result<(), StoreError> {
        let action = Action::Update(Update::set(set));
        let write = Write { table: Table::Main, key: job.key.clone(), action, guard: Some(guard) };
        self.context.store.write(&write).await.map(drop)
    }
}

impl Job {
    /// It waits, and it is the wait that was read.
    fn waits_as_read(&self) -> Guard {
        let read = [(STATE, s(WAITING)), (STARTED_AT, n(self.started_at_ms)), (DUE_AT, n(self.due_at_ms))];
        Guard::as_read(Purpose::Wait, read.map(|(name, value)| (name, Some(value))))
    }
}

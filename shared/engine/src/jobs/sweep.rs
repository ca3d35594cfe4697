//! The sweep of the jobs: starts those that are due, and wakes stalled ones.
//!
//! *Keeps true*: a cascade begins only when its wait is over, no parked or lost change may concern its owner, and its
//! owner is absent. The sweep only wakes jobs: it writes the job's item, and the function that handles the record of
//! that write does the work.
//!
//! A sweep reads the due entries of the queue of [jobs](crate::job), page by page. It begins at a random partition and
//! reads several at once, so sweeps that end early reach all partitions in turn. Two sweeps at once are harmless.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{
    item::Item,
    job::{PARTITIONS, RUNNING, STATE, WAITING, partition},
    key::Key,
    layout::Layout,
};
use store::{Outcome, Store, StoreError};
use tokio::sync::OnceCell;

use crate::{
    attribute::{all, n, s},
    backoff::{GaveUp, Patience},
    context::Context,
    job::{DUE_AT, DueEntry, Job, MOVED_AT, STALLED_MS, STARTED_AT},
    jobs::blocked::Holds,
};

/// Partitions of the queue that are read at once, and jobs of each that are written at once.
const PARTITIONS_AT_ONCE: usize = 4;
const WAKES_AT_ONCE: usize = 16;

/// The sweep checks a blocked cascade again after an eighth of the time that it has been blocked, and no sooner than
/// this, in milliseconds.
const HELD_MS_MIN: u64 = 1_000;

/// What a sweep found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries of the queue that were due.
    pub n_due: usize,
    /// Jobs that began now.
    pub n_begun: usize,
    /// Due jobs that something [blocks](super::blocked::Blocker).
    pub n_blocked: usize,
    /// Jobs that ended before they began, because the owner exists again.
    pub n_ended: usize,
    /// Stalled jobs that were woken.
    pub n_woken: usize,
    /// True if there was not enough time for all due entries.
    pub is_cut: bool,
}

/// All jobs, in order of their keys.
///
/// # Errors
///
/// [`StoreError`] if the table cannot be read.
pub async fn jobs<S: Store>(store: &S, layout: &Layout) -> Result<Vec<Job>, StoreError> {
    let mut jobs = Vec::new();
    for number in 0..PARTITIONS {
        let items = all(store, Table::Main, &partition(number)).await?;
        jobs.extend(items.iter().filter_map(|item| Job::of(layout, item)));
    }
    Ok(jobs)
}

/// Starts due jobs, and wakes stalled ones.
pub(crate) struct JobSweep<'a, S> {
    pub(crate) context: &'a Context<S>,
    /// True if [heartbeats](crate::jobs::pulse) must prove that all changes from before a job were handled.
    pub(crate) by_pulse: bool,
}

/// What the parts of one sweep share.
struct Sweep<'a, F> {
    patience: Patience<'a>,
    now_ms: u64,
    is_settled: F,
    /// Read when the first cascade is due.
    holds: OnceCell<Holds>,
    swept: Mutex<Swept>,
}

impl<F> Sweep<'_, F> {
    fn note(&self, note: impl FnOnce(&mut Swept)) {
        note(&mut self.swept.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl<'a, S> JobSweep<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context, by_pulse: false }
    }
}

impl<S: Store> JobSweep<'_, S> {
    /// Starts jobs that are due and past their grace period, and wakes stalled ones, until the deadline in milliseconds
    /// since the epoch. The next sweep does the rest.
    pub(crate) async fn sweep(
        &self,
        is_settled: impl Fn(&Job) -> bool + Sync,
        deadline_ms: u64,
    ) -> Result<Swept, GaveUp> {
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        let (now_ms, swept) = (self.context.clock.now_ms(), Mutex::default());
        let sweep = Sweep { patience, now_ms, is_settled, holds: OnceCell::new(), swept };
        let first = u32::try_from(self.context.clock.chance(u64::from(PARTITIONS))).unwrap_or(0);
        let partitions = (first..PARTITIONS).chain(0..first);
        let parts: Vec<BoxFuture<'_, _>> =
            partitions.map(|number| self.sweep_partition(number, &sweep).boxed()).collect();
        let mut parts = stream::iter(parts).buffer_unordered(PARTITIONS_AT_ONCE);
        while let Some(ended) = parts.next().await {
            match ended {
                Ok(()) => {}
                Err(GaveUp::OutOfTime { .. }) => sweep.note(|swept| swept.is_cut = true),
                Err(error @ (GaveUp::Refused(_) | GaveUp::Standing(_))) => return Err(error),
            }
        }
        drop(parts);
        Ok(sweep.swept.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn sweep_partition<F>(&self, number: u32, sweep: &Sweep<'_, F>) -> Result<(), GaveUp>
    where
        F: Fn(&Job) -> bool + Sync,
    {
        let (query, mut after) = (DueEntry::due(number, sweep.now_ms), None);
        loop {
            if sweep.patience.is_over() {
                return Err(GaveUp::OutOfTime { last: None });
            }
            let page = sweep.patience.call(|| self.context.store.query(Table::Ledger, &query, after.clone())).await?;
            let keys = page.items.iter().filter_map(|item| self.context.schema.layout.key(item));
            self.sweep_entries(keys.filter_map(|key| DueEntry::of(&key)).collect(), sweep).await?;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn sweep_entries<F>(&self, entries: Vec<DueEntry>, sweep: &Sweep<'_, F>) -> Result<(), GaveUp>
    where
        F: Fn(&Job) -> bool + Sync,
    {
        if entries.is_empty() {
            return Ok(());
        }
        sweep.note(|swept| swept.n_due += entries.len());
        let jobs = self.jobs_of(&entries, sweep.patience).await?;
        let is_due = |entry: &&DueEntry| jobs.get(&entry.job).is_some_and(|job| job.may_begin(sweep.now_ms));
        let due: Vec<&Job> = entries.iter().filter(is_due).filter_map(|entry| jobs.get(&entry.job)).collect();
        let owners = self.owners_of(&due, sweep.patience).await?;
        let owners = &owners;
        let wakes = entries.iter().map(|entry| {
            let job = jobs.get(&entry.job);
            async move {
                match job {
                    // The entry stays until the job is resumed.
                    Some(job) if job.is_paused => Ok(()),
                    Some(job) if job.is_running => self.watch(job, entry, sweep).await,
                    Some(job) if !job.may_begin(sweep.now_ms) => self.drop_entry(entry, sweep.patience).await,
                    Some(job) if !(sweep.is_settled)(job) => Ok(()),
                    Some(job) if owners.contains(job.origin()) => self.end_waiting(job, entry, sweep).await,
                    Some(job) => self.begin(job, entry, sweep).await,
                    None => self.drop_entry(entry, sweep.patience).await,
                }
            }
            .boxed()
        });
        let wakes: Vec<BoxFuture<'_, Result<(), GaveUp>>> = wakes.collect();
        let mut wakes = stream::iter(wakes).buffer_unordered(WAKES_AT_ONCE);
        while let Some(woken) = wakes.next().await {
            woken?;
        }
        Ok(())
    }

    async fn jobs_of(&self, entries: &[DueEntry], patience: Patience<'_>) -> Result<BTreeMap<Key, Job>, GaveUp> {
        let keys: BTreeSet<Key> = entries.iter().map(|entry| entry.job.clone()).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let items = patience.call(|| self.context.store.get(Table::Main, &keys)).await?;
        let jobs =
            items.into_iter().filter_map(|(key, item)| Some((key, Job::of(&self.context.schema.layout, &item)?)));
        Ok(jobs.collect())
    }

    /// Keys of the owners that exist.
    async fn owners_of(&self, jobs: &[&Job], patience: Patience<'_>) -> Result<BTreeSet<Key>, GaveUp> {
        let owners: BTreeSet<Key> = jobs.iter().map(|job| job.origin().clone()).collect();
        let owners: Vec<Key> = owners.into_iter().collect();
        if owners.is_empty() {
            return Ok(BTreeSet::new());
        }
        let stored = patience.call(|| self.context.store.get(Table::Main, &owners)).await?;
        Ok(stored.into_iter().map(|(key, _)| key).collect())
    }

    /// Starts a job, or postpones it if something blocks it. If another sweep has woken the job since it was read, the
    /// entry may be the other sweep's: it stays for the next sweep.
    async fn begin<F>(&self, job: &Job, entry: &DueEntry, sweep: &Sweep<'_, F>) -> Result<(), GaveUp> {
        let (patience, now_ms) = (sweep.patience, sweep.now_ms);
        let holds = sweep.holds.get_or_try_init(|| self.holds(patience)).await?;
        let blocker = self.blocker(holds, job);
        let (set, later_ms) = if let Some(blocker) = &blocker {
            let (owner, derivation) = (job.origin().for_log(), self.context.catalogue.label_of(&job.derivation));
            tracing::warn!(derivation, owner, "a cascade waits for {blocker}");
            let held_ms = now_ms.saturating_sub(job.moved_at_ms).saturating_sub(self.context.settle_ms);
            let later_ms = now_ms.saturating_add((held_ms / 8).clamp(HELD_MS_MIN, STALLED_MS));
            (Item::from([(DUE_AT.to_owned(), n(later_ms))]), later_ms)
        } else {
            let running = [(MOVED_AT.to_owned(), n(now_ms)), (STATE.to_owned(), s(RUNNING))];
            (Item::from(running), now_ms.saturating_add(STALLED_MS))
        };
        // A cascade waits twice: a sweep that read it during the first wait must not end the second.
        let is_woken = self.request(job, set, job.waits_as_read(), later_ms, patience).await?;
        sweep.note(|swept| swept.n_blocked += usize::from(blocker.is_some()));
        sweep.note(|swept| swept.n_begun += usize::from(blocker.is_none() && is_woken));
        if is_woken { self.drop_entry(entry, patience).await } else { Ok(()) }
    }

    /// Wakes a running job if it has stalled, and writes a later entry for it.
    async fn watch<F>(&self, job: &Job, entry: &DueEntry, sweep: &Sweep<'_, F>) -> Result<(), GaveUp> {
        let (patience, now_ms) = (sweep.patience, sweep.now_ms);
        if now_ms.saturating_sub(job.moved_at_ms) > STALLED_MS {
            let moved_at = Item::from([(MOVED_AT.to_owned(), n(now_ms))]);
            let guard = Guard::present(Purpose::Update);
            let is_woken = self.request(job, moved_at, guard, now_ms.saturating_add(STALLED_MS), patience).await?;
            sweep.note(|swept| swept.n_woken += usize::from(is_woken));
        } else {
            // One millisecond after the stall time, because a job that has not moved for exactly that time has not
            // stalled yet.
            let later = job.entry_at(job.entry().due_at_ms.saturating_add(1)).put(&self.context.schema.layout);
            patience.call(|| self.context.store.write(&later)).await?;
        }
        self.drop_entry(entry, patience).await
    }

    /// Ends a job whose owner exists again. As in [`begin`](Self::begin), the entry stays if the job has changed since
    /// it was read.
    async fn end_waiting<F>(&self, job: &Job, entry: &DueEntry, sweep: &Sweep<'_, F>) -> Result<(), GaveUp> {
        let guard = Some(job.waits_as_read());
        let write = Write { table: Table::Main, key: job.key.clone(), action: Action::Delete, guard };
        if sweep.patience.call(|| self.context.store.write(&write)).await? == Outcome::GuardFailed {
            return Ok(());
        }
        let (owner, derivation) = (job.origin().for_log(), self.context.catalogue.label_of(&job.derivation));
        tracing::info!(derivation, owner, "ended a cascade: its owner exists again");
        sweep.note(|swept| swept.n_ended += 1);
        self.drop_entry(entry, sweep.patience).await
    }

    /// Writes a later entry, and then the job. Returns true if the job had not changed since it was read.
    async fn request(
        &self,
        job: &Job,
        set: Item,
        guard: Guard,
        later_ms: u64,
        patience: Patience<'_>,
    ) -> Result<bool, GaveUp> {
        let later = job.entry_at(later_ms).put(&self.context.schema.layout);
        patience.call(|| self.context.store.write(&later)).await?;
        let action = Action::Update(Update::set(set));
        let write = Write { table: Table::Main, key: job.key.clone(), action, guard: Some(guard) };
        let outcome = patience.call(|| self.context.store.write(&write)).await?;
        Ok(matches!(outcome, Outcome::Done { .. }))
    }

    async fn drop_entry(&self, entry: &DueEntry, patience: Patience<'_>) -> Result<(), GaveUp> {
        let delete = entry.deleted();
        patience.call(|| self.context.store.write(&delete)).await.map(drop)
    }
}

impl Job {
    fn may_begin(&self, now_ms: u64) -> bool {
        !self.is_running && !self.is_paused && self.due_at_ms <= now_ms
    }

    /// The guard that the job still waits, and that it is the same wait.
    fn waits_as_read(&self) -> Guard {
        let read = [(STATE, s(WAITING)), (STARTED_AT, n(self.started_at_ms)), (DUE_AT, n(self.due_at_ms))];
        Guard::as_read(Purpose::Wait, read.map(|(name, value)| (name, Some(value))))
    }
}

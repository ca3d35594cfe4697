//! The progress of the mappings, and what follows from it: is everything handled?

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use stream::{
    counts::MappingCounts,
    progress::{Invocation, Observer},
};
use tokio::sync::Notify;

use super::Witness;

/// The progress of the mappings.
pub(crate) struct Watch {
    pub(super) watched: Mutex<Watched>,
    /// Somebody has waited until everything was handled.
    pub(super) quiet: Notify,
    pub(super) counts: MappingCounts,
    pub(super) witness: Arc<dyn Witness>,
}

pub(super) struct Watched {
    /// Up to when each mapping has handled everything that was in the stream.
    pub(super) delivered: BTreeMap<String, Option<Instant>>,
    /// When a mapping last found records, matching its filters or not.
    pub(super) last_found: Option<Instant>,
    /// When the last invocation of any mapping ended.
    pub(super) last_ended: Option<Instant>,
    /// Up to when everything was handled, jobs included, when that was last found.
    pub(super) last_quiet: Option<Instant>,
}

impl Watched {
    /// Up to when every mapping has handled everything, if that was after the last write of anybody.
    pub(super) fn quiet(&self, since: Instant) -> Option<Instant> {
        let after = self.last_ended.map_or(since, |ended| ended.max(since));
        // A mapping that does not know it yet has None, which is before any moment.
        self.delivered.values().copied().min().flatten().filter(|until| *until > after)
    }
}

impl Watch {
    /// Has every mapping handled everything that was in the stream at this moment?
    pub(crate) fn is_past(&self, moment: Instant) -> bool {
        self.watched().delivered.values().all(|until| until.is_some_and(|until| until > moment))
    }

    /// Has the stream been empty since this moment, and since everybody's last write?
    pub(crate) fn is_quiet(&self, since: Instant) -> bool {
        self.watched().quiet(since).is_some()
    }

    /// Up to when everything is handled, jobs included, as far as that is known. It goes on while no records come: then
    /// there is no new job either.
    pub(crate) fn handled_until(&self) -> Option<Instant> {
        let watched = self.watched();
        let known = watched.last_quiet?;
        let is_still = watched.last_found <= Some(known);
        watched.quiet(known).filter(|_| is_still).or(Some(known))
    }

    /// Notes that no job is left, if the stream is quiet too.
    pub(super) fn becomes_quiet(&self, since: Instant) -> Option<Instant> {
        let mut watched = self.watched();
        watched.last_quiet = watched.quiet(since).or(watched.last_quiet);
        self.quiet.notify_one();
        watched.quiet(since)
    }

    /// Waits until somebody has found that everything is handled.
    pub(crate) async fn next_quiet(&self) {
        self.quiet.notified().await;
    }

    pub(super) fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn invoked(&self, report: &Invocation) {
        {
            let mut watched = self.watched();
            watched.last_ended = watched.last_ended.max(Some(report.ended));
        }
        self.counts.invoked(report);
        self.witness.invoked(report);
    }

    fn polled(&self, mapping: &str, n_records: usize) {
        if n_records > 0 {
            self.watched().last_found = Some(Instant::now());
        }
        self.counts.polled(mapping, n_records);
    }

    fn filtered_out(&self, mapping: &str, n_records: usize) {
        self.counts.filtered_out(mapping, n_records);
    }

    fn delivered(&self, mapping: &str, until: Instant) {
        self.watched().delivered.insert(mapping.to_owned(), Some(until));
    }

    fn discarded(&self, mapping: &str, shard: &str, n_records: usize, key: Option<&str>) {
        self.counts.discarded(mapping, shard, n_records, key);
        let kept = match key {
            Some(key) => format!("their failure record is {key}"),
            None => "they are lost, since the template has no on-failure destination".to_owned(),
        };
        self.witness.trouble(&format!("{mapping} gave up on {n_records} records of {shard}; {kept}"));
    }

    fn trouble(&self, mapping: &str, message: &str) {
        self.witness.trouble(&format!("{mapping}: {message}"));
    }
}

//! A whole verification, from the first page to the last target.
//!
//! # Proven
//!
//! Proof that the changes of a count are in its counters, when the functions' positions cannot be read.
//!
//! *Keeps true*: a count is decided only if each of its changes that the stream still has, and that precedes the read
//! of the counters, is [in the ledger](engine::redrive::waiting). No function will ever deliver changes that have
//! left the stream.
//!
//! All counts are compared once, without proof. Then the stream is read again from its oldest record, and the ledger is
//! queried for each record that concerns a differing count. New records are kept until the ledger proves them. So a
//! table without a difference never needs the second reading of its stream.
//!
//! *Example*: the breaker stops one shard, and the functions handle the others within a second. A post whose like is in
//! that shard seems to lack one. The stream still has the like, and the ledger has no receipt of it. So the count is
//! undecided, and no repair adds what the shard will add when it catches up.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    clock,
    kind::Shape,
    refresh::Look,
    schema::{Image, Seen, Unreadable},
    sources::{Source, Sources},
};
use engine::{
    account::Target,
    backoff::{GaveUp, Patience, describe},
    batch::Engine,
    fan_out::again::DueItem,
    look::listing::ALL_DERIVATIONS,
    protocol::ProtocolStep,
    redrive::waiting::{CountedRecord, CountsOf},
};
use keys::{item::Item, key::Key};
use store::Store;

use crate::verify::{
    CountsAboutNothing, Extent, Finding, Following, Listener, Reached, Scope, ShardRecords, Tallies, Undecided,
    UnreadableItem, VerifyError, VerifyEvent, Why,
    candidates::{Candidate, Touched},
    counts::Proven,
    finding,
    judge::{Judge, SingleFinding},
};

/// Time limit for a call, in milliseconds, before the verification fails.
const CALL_MS_MAX: u64 = 60_000;

/// Number of examples in a report about counts of items that do not exist.
const EXAMPLES: usize = 3;

/// Builds the event about an item.
type ItemEvent = fn(UnreadableItem) -> VerifyEvent;

/// Limits of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments that are read in parallel.
    pub segments: u32,
    /// Wait for the functions, in milliseconds, before a difference is undecided.
    pub wait_ms: u64,
    /// Total size of items that are checked together, in bytes: see [`scan`](super::scan).
    pub window_bytes: usize,
}

/// What a scan leaves for later, because it needs all items of the table.
pub(crate) trait Later: Send + Sync {
    /// The scan read an item of a declared entity.
    fn scanned(&self, image: &Image<'_>) -> io::Result<()>;

    /// Takes out of a refresh the derivations that are compared later.
    fn take(&self, look: &mut Look);
}

/// A verification.
pub struct Verification<'a, S> {
    pub(super) engine: &'a Engine<S>,
    pub(super) following: &'a dyn Following,
    pub(super) scope: Scope,
    pub(super) limits: Limits,
    /// Entity of the targets of each additive derivation.
    pub(super) counted: BTreeMap<String, String>,
    /// Entities of the items that counts are about.
    pub(super) targets: BTreeSet<String>,
    /// Entities of the buckets of roll-ups.
    pub(super) buckets: BTreeSet<String>,
    /// Additive derivations whose changes must all be proven, if the ledger is the proof.
    pub(super) proving: BTreeSet<String>,
    /// True if the changes that come by the passing of time are noted again.
    pub(super) notes_changes: bool,
    /// What is compared later; nothing if `None`.
    pub(super) later: Option<&'a dyn Later>,
    pub(super) state: Mutex<RunState<'a>>,
}

pub(crate) struct RunState<'a> {
    pub(super) tallies: &'a mut dyn Tallies,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) touched: Touched,
    /// What the ledger must prove while counts are compared.
    pub(super) proving: Option<Proving>,
    /// True if an unreadable record arrived, so that its counts are unknown.
    pub(super) is_blind: bool,
    /// An item that is ignored, if one was read.
    pub(super) ignored: Option<Key>,
}

impl<'a, S: Store> Verification<'a, S> {
    /// A verification of an engine's derivations, while following the stream.
    pub fn new(
        engine: &'a Engine<S>,
        following: &'a dyn Following,
        tallies: &'a mut dyn Tallies,
        listener: &'a mut dyn Listener,
        limits: Limits,
        scope: Scope,
    ) -> Self {
        let state =
            RunState { tallies, listener, touched: Touched::default(), proving: None, is_blind: false, ignored: None };
        let (mut counted, mut targets, mut buckets) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for derivation in engine.catalogue().derivations() {
            let (entities, entity) = match derivation.kind.shape() {
                Shape::Count(count) => (&mut targets, &count.target),
                Shape::Rollup(rollup) => (&mut buckets, &rollup.form.entity),
                Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => continue,
            };
            entities.insert(entity.clone());
            counted.insert(derivation.name.clone(), entity.clone());
        }
        let (proving, state) = (BTreeSet::new(), Mutex::new(state));
        Self {
            engine,
            following,
            scope,
            limits,
            counted,
            targets,
            buckets,
            proving,
            notes_changes: false,
            later: None,
            state,
        }
    }

    /// Also proves all changes of these derivations, so that their unreported counts are correct.
    #[must_use]
    pub fn proving(self, derivations: BTreeSet<String>) -> Self {
        Self { proving: derivations, ..self }
    }

    /// Also notes again what changes by the passing of time: after a possible loss, the notes may be missing although
    /// every value is right now.
    #[must_use]
    pub fn noting_changes(self, notes_changes: bool) -> Self {
        Self { notes_changes, ..self }
    }

    /// Leaves a part of the comparisons for later.
    pub(crate) fn leaving(self, later: &'a dyn Later) -> Self {
        Self { later: Some(later), ..self }
    }

    /// Verifies, from where the last run stopped.
    ///
    /// # Errors
    ///
    /// [`VerifyError`]. The tallies keep the progress.
    pub async fn run(&self) -> Result<Extent, VerifyError> {
        // From here on every change is seen, so a record corrects whatever the scan read too early.
        if !self.given().await? {
            self.state().is_blind = true;
        }
        let reached = self.scan().await?;
        let Proven { is_proven, is_handled } = self.counts().await?;
        self.report_about_nothing()?;
        Ok(Extent { is_proven, is_handled, ..added_up(reached) })
    }

    /// Reads the table, and compares everything but counts and what is left for later.
    pub(crate) async fn scan_only(&self) -> Result<Extent, VerifyError> {
        Ok(added_up(self.scan().await?))
    }

    /// An item that it ignored, if it read one.
    pub fn ignored(&self) -> Option<Key> {
        self.state().ignored.clone()
    }

    /// Reports items that the sweep should have brought up to date.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the ledger cannot be read, or the report cannot be stored.
    pub async fn report_overdue(&self) -> Result<(), VerifyError> {
        for DueItem { item, derivations, .. } in self.engine.overdue(self.patience()).await? {
            let overdue = derivations.iter().map(|name| finding(name, &item, None, None));
            for overdue in overdue.filter(|overdue| self.scope.has_finding(overdue)) {
                self.state().listener.report(VerifyEvent::Undecided(overdue, Why::Overdue))?;
            }
        }
        Ok(())
    }

    /// Reports the counts about items that do not exist.
    fn report_about_nothing(&self) -> Result<(), VerifyError> {
        for derivation in self.engine.catalogue().derivations() {
            let mut state = self.state();
            if !matches!(derivation.kind.shape(), Shape::Count(_)) {
                continue;
            }
            let (counts, examples) = state.tallies.about_nothing(&derivation.name, EXAMPLES)?;
            if counts > 0 {
                let examples = examples.into_iter().map(|Key { pk, sk }| (pk, sk)).collect();
                let derivation = derivation.name.clone();
                state.listener.report(VerifyEvent::AboutNothing(CountsAboutNothing {
                    derivation,
                    counts,
                    examples,
                }))?;
            }
        }
        Ok(())
    }

    /// Reports an item that cannot be read, or where a condition compares two types. Returns true if its entity is
    /// undeclared, so that nothing is derived from it.
    pub(super) fn report_unreadable(&self, key: &Key, item: &Item) -> Result<bool, VerifyError> {
        let (mut all, mut unlike): (Vec<(String, Unreadable)>, Vec<_>) = (Vec::new(), Vec::new());
        match self.engine.schema().see(key, item) {
            Seen::Untyped | Seen::Unknown => match clock::flaw(key, item, self.engine.hour()) {
                Some(why) => all.push((ALL_DERIVATIONS.to_owned(), why)),
                None => return Ok(*key != clock::key()),
            },
            Seen::Misfit(why) => all.push((ALL_DERIVATIONS.to_owned(), why)),
            Seen::Known(image) => {
                all.extend(image.long_index_key().map(|why| (ALL_DERIVATIONS.to_owned(), why)));
                for derivation in self.engine.catalogue().derivations() {
                    let why = derivation.unreadable(self.engine.schema(), &image);
                    all.extend(why.map(|why| (derivation.name.clone(), why)));
                    unlike.extend(derivation.unlike(&image).map(|why| (derivation.name.clone(), why)));
                }
            }
        }
        let unreadable =
            all.into_iter().map(|(derivation, why)| (VerifyEvent::Unreadable as ItemEvent, derivation, why));
        let unlike = unlike.into_iter().map(|(derivation, why)| (VerifyEvent::Unlike as ItemEvent, derivation, why));
        let is_asked = |name: &str| self.scope.has_derivation(name) && self.scope.has_item(key);
        for (event, derivation, why) in unreadable.chain(unlike).filter(|(_, name, _)| is_asked(name)) {
            let (pk, sk) = (key.pk.clone(), key.sk.clone());
            self.state().listener.report(event(UnreadableItem { derivation, pk, sk, why: why.to_string() }))?;
        }
        Ok(false)
    }

    /// The findings about an item by itself, if it is in the scope.
    pub(super) async fn single(
        &self,
        key: &Key,
        item: &Item,
        sources: &mut Sources,
    ) -> Result<SingleFinding, VerifyError> {
        let image = self.engine.schema().image(key, item);
        if !image.is_some_and(|image| self.scope.has_entity(&image.definition.name)) {
            return Ok(SingleFinding::default());
        }
        let mut found = match (Judge { engine: self.engine }).single(key, item, sources, self.patience()).await {
            Err(GaveUp::Refused(error)) => {
                self.report_refused(ALL_DERIVATIONS, key, &describe(&error))?;
                SingleFinding::default()
            }
            found => found?,
        };
        found.findings.retain(|finding| self.scope.has_finding(finding));
        Ok(found)
    }

    /// Reports an item that DynamoDB refuses to read, or whose sources it refuses to read.
    pub(super) fn report_refused(&self, derivation: &str, key: &Key, cause: &str) -> Result<(), VerifyError> {
        let (derivation, pk, sk) = (derivation.to_owned(), key.pk.clone(), key.sk.clone());
        let why = format!("what it is decided by cannot be read: {cause}");
        Ok(self.state().listener.report(VerifyEvent::Unreadable(UnreadableItem { derivation, pk, sk, why }))?)
    }

    /// Reports refreshes whose reads DynamoDB refused.
    pub(super) fn report_refused_looks(&self, refused: Vec<(Look, String)>) -> Result<(), VerifyError> {
        for (look, cause) in refused {
            for at in &look.derivations {
                self.report_refused(self.engine.catalogue().name(*at), &look.item, &cause)?;
            }
        }
        Ok(())
    }

    /// Reports a candidate that cannot be checked again.
    pub(super) fn report_unread(&self, candidate: Candidate, cause: &str) -> Result<(), VerifyError> {
        match candidate {
            Candidate::Look(look) => self.report_refused_looks(vec![(look, cause.to_owned())]),
            Candidate::Single(key) => self.report_refused(ALL_DERIVATIONS, &key, cause),
        }
    }

    /// Begins to note writes from now on.
    pub(super) fn watch(&self) -> Result<u64, VerifyError> {
        self.see()?;
        Ok(self.state().touched.watch(self.engine.clock().now_ms()))
    }

    pub(super) fn unwatch(&self, watch: u64) {
        self.state().touched.unwatch(watch);
    }

    pub(super) fn is_touched(&self, watch: u64, read: &BTreeSet<Source>) -> bool {
        self.state().touched.has(watch, read)
    }

    pub(super) fn report_all(
        &self,
        findings: Vec<Finding>,
        event: impl Fn(Finding) -> VerifyEvent,
    ) -> Result<(), VerifyError> {
        findings.into_iter().try_for_each(|finding| Ok(self.state().listener.report(event(finding))?))
    }

    /// Time limit of one call.
    pub(super) fn patience(&self) -> Patience<'_> {
        let deadline_ms = self.engine.clock().now_ms().saturating_add(CALL_MS_MAX);
        Patience::new(self.engine.clock(), deadline_ms)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RunState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The extent of all segments.
fn added_up(reached: Vec<Reached>) -> Extent {
    let sum = |extent: Extent, reached: Reached| Extent {
        n_items: extent.n_items + reached.n_items,
        n_ignored: extent.n_ignored + reached.n_ignored,
        n_selected: extent.n_selected + reached.n_selected,
        ..extent
    };
    reached.into_iter().fold(Extent::default(), sum)
}

// ---- proven ----

/// Counts that are tracked by key; beyond that, all counts of a derivation are. Bounds memory.
const TARGETS_MAX: usize = 100_000;

/// Records that are looked up in the ledger together, and records that may lack a proof. Bound memory.
const RECORDS_AT_ONCE: usize = 1_000;
const RECORDS_MAX: usize = 100_000;

/// The counts to prove, and the records that may not be counted yet.
#[derive(Debug, Default)]
pub(super) struct Proving {
    /// Derivations whose changes must all be counted.
    derivations: BTreeSet<String>,
    /// Counts that differed at first.
    targets: BTreeSet<Target>,
    /// Records that concern these counts, and have no proof yet.
    open: Vec<CountedRecord>,
    /// True if there were more records than can be kept.
    is_over: bool,
}

impl Proving {
    /// True if the changes of this count must be proven.
    pub(super) fn has(&self, target: &Target) -> bool {
        self.derivations.contains(&target.derivation) || self.targets.contains(target)
    }

    /// Adds a record if it concerns a count to prove.
    pub(super) fn add(&mut self, record: CountedRecord) {
        if self.open.len() >= RECORDS_MAX {
            self.is_over = true;
        } else if record.counts().is_any_of(&self.derivations) || record.counts().is_any_at(&self.targets) {
            self.open.push(record);
        }
    }
}

impl<S: Store> Verification<'_, S> {
    /// Finds the counts that differ, and reads the stream again for the records that concern them. Returns `false` if
    /// the functions' positions are known, so that the ledger need not prove anything.
    pub(super) async fn look_back(&self) -> Result<bool, VerifyError> {
        if !self.following.is_typed() {
            return Ok(false);
        }
        self.engine.learn_births(self.patience()).await?;
        let mut proving = Proving { derivations: self.proving.clone(), ..Proving::default() };
        self.each_target(async |targets: Vec<Undecided>| self.compare(targets).await).await?;
        let proven = &mut proving;
        self.each_target(async |targets: Vec<Undecided>| {
            for Undecided { target, compared, .. } in targets {
                if compared.is_some() && proven.targets.len() < TARGETS_MAX {
                    proven.targets.insert(target);
                } else if compared.is_some() {
                    proven.derivations.insert(target.derivation);
                }
            }
            Ok(())
        })
        .await?;
        let is_any = !proving.targets.is_empty() || !proving.derivations.is_empty();
        self.state().proving = Some(proving);
        if !is_any {
            return Ok(true);
        }
        let mut retained = self.following.retained(self.engine.clock().now_ms());
        while let Some(ShardRecords { lane, records }) = retained.next().await.map_err(VerifyError::Stream)? {
            {
                let mut state = self.state();
                let proving = state.proving.get_or_insert_default();
                let counted = records.iter().filter_map(|record| self.engine.counted(record, &lane));
                counted.for_each(|record| proving.add(record));
            }
            if self.n_open() >= RECORDS_AT_ONCE {
                let open = self.take_open();
                let open = self.without_proof(open).await?;
                self.state().proving.get_or_insert_default().open.extend(open);
            }
            self.see()?;
        }
        Ok(true)
    }

    fn take_open(&self) -> Vec<CountedRecord> {
        std::mem::take(&mut self.state().proving.get_or_insert_default().open)
    }

    fn n_open(&self) -> usize {
        self.state().proving.as_ref().map_or(0, |proving| proving.open.len())
    }

    /// Waits until all changes that have arrived are counted, and returns the counts with changes that are not.
    pub(super) async fn not_in(&self) -> Result<CountsOf, VerifyError> {
        let began_ms = self.engine.clock().now_ms();
        if !self.engine.takes(ProtocolStep::ProvenIn) {
            return Ok(CountsOf::default());
        }
        let mut open = self.take_open();
        loop {
            open = self.without_proof(open).await?;
            if open.is_empty() || !self.pause(began_ms).await? {
                break;
            }
        }
        let mut counts = CountsOf::default();
        for record in &open {
            counts.extend(record.counts().clone());
        }
        let mut state = self.state();
        let proving = state.proving.get_or_insert_default();
        proving.open.extend(open);
        if proving.is_over {
            counts.is_any = true;
        }
        Ok(counts)
    }

    /// The records that the ledger does not prove.
    async fn without_proof(&self, mut records: Vec<CountedRecord>) -> Result<Vec<CountedRecord>, VerifyError> {
        let is_asked = |target: &Target| self.state().proving.as_ref().is_some_and(|proving| proving.has(target));
        let mut open = Vec::new();
        while !records.is_empty() {
            let later = records.split_off(records.len().min(RECORDS_AT_ONCE));
            open.extend(self.engine.not_in(records, is_asked, self.patience()).await?);
            records = later;
        }
        Ok(open)
    }
}

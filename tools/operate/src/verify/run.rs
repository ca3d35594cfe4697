//! A verification: the whole of it, from the first page to the last target.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use derive::{
    derivation::Derivation,
    kind::shape::Shape,
    position::DerivationAt,
    refresh::Look,
    schema::{Seen, Unreadable},
    write::Table,
};
use engine::{backoff::Patience, batch::Engine, look::listing::ALL_DERIVATIONS};
use futures::future::try_join_all;
use keys::{item::Item, key::Key};
use store::{Cursor, Segment, Store};

use super::{
    Finding, UnreadableItem,
    candidates::Candidate,
    counts::Proven,
    following::Following,
    proven::Proving,
    report::{Extent, Listener, VerifyError, VerifyEvent},
    scope::Scope,
    tallies::{Reached, Tallies},
    touched::{ReadFrom, Touched},
};

/// Items that are looked at together. Bounds memory.
const ITEMS_AT_ONCE: usize = 250;

/// Candidates of a segment that wait for their second look at most. Bounds memory.
const CANDIDATES_MAX: usize = 2_000;

/// How long a call is tried, in milliseconds, before the verification ends as failed.
const CALL_MS_MAX: u64 = 60_000;

/// How it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments that are read side by side.
    pub segments: u32,
    /// How long is waited for the functions, in milliseconds, before something is undecided.
    pub wait_ms: u64,
}

/// A verification.
pub struct Verification<'a, S> {
    pub(super) engine: &'a Engine<S>,
    pub(super) following: &'a dyn Following,
    pub(super) scope: Scope,
    pub(super) limits: Limits,
    /// Entity of the targets of each additive derivation.
    pub(super) counted: BTreeMap<String, String>,
    /// Additive derivations of which every change is to be proven, where the ledger proves it.
    pub(super) proving: BTreeSet<String>,
    pub(super) state: Mutex<RunState<'a>>,
}

pub(super) struct RunState<'a> {
    pub(super) tallies: &'a mut dyn Tallies,
    listener: &'a mut dyn Listener,
    pub(super) touched: Touched,
    /// What the ledger must prove, as long as counts are compared.
    pub(super) proving: Option<Proving>,
    /// Did a record come that cannot be read, so that what it counts is unknown?
    pub(super) is_blind: bool,
}

impl<'a, S: Store> Verification<'a, S> {
    /// A verification of what an engine keeps in step, beside whoever this follows.
    pub fn new(
        engine: &'a Engine<S>,
        following: &'a dyn Following,
        tallies: &'a mut dyn Tallies,
        listener: &'a mut dyn Listener,
        limits: Limits,
        scope: Scope,
    ) -> Self {
        let state = RunState { tallies, listener, touched: Touched::default(), proving: None, is_blind: false };
        let entity = |derivation: &Derivation| {
            let entity = match derivation.kind.shape() {
                Shape::Count(count) => &count.target,
                Shape::Rollup(rollup) => &rollup.form.entity,
                Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => return None,
            };
            Some((derivation.name.clone(), entity.clone()))
        };
        let counted = engine.catalogue().derivations().filter_map(entity).collect();
        Self { engine, following, scope, limits, counted, proving: BTreeSet::new(), state: Mutex::new(state) }
    }

    /// The same that also proves all changes of these derivations, so that what is not reported of them is right.
    #[must_use]
    pub fn proving(self, derivations: BTreeSet<String>) -> Self {
        Self { proving: derivations, ..self }
    }

    /// Verifies, from where it was reached.
    ///
    /// # Errors
    ///
    /// [`VerifyError`], with what was reached kept in the tallies.
    pub async fn run(&self) -> Result<Extent, VerifyError> {
        // From here on every change is seen, so what a scan reads too early is put right by its record.
        if !self.given().await? {
            self.state().is_blind = true;
        }
        let segments = (0..self.limits.segments.max(1)).map(|number| Box::pin(self.segment(number)));
        let reached = try_join_all(segments).await?;
        let Proven { is_proven, is_handled } = self.counts().await?;
        let sum = |extent: Extent, reached: Reached| Extent {
            n_items: extent.n_items + reached.n_items,
            n_ignored: extent.n_ignored + reached.n_ignored,
            ..extent
        };
        Ok(reached.into_iter().fold(Extent { is_proven, is_handled, ..Extent::default() }, sum))
    }

    async fn segment(&self, number: u32) -> Result<Reached, VerifyError> {
        let segment = Segment { number, of: self.limits.segments.max(1) };
        let layout = &self.engine.schema().layout;
        let mut reached = self.state().tallies.reached(number)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        while !reached.is_end {
            let after = reached.after.as_ref().map(|(pk, sk)| Cursor(layout.key_item(&Key::new(pk, sk))));
            let page = self.patience().call(|| self.engine.store().scan(Table::Main, segment, after.clone())).await?;
            let next = page.next.as_ref().and_then(|next| layout.key(&next.0));
            let mut rest = page.items;
            while !rest.is_empty() {
                let later = rest.split_off(rest.len().min(ITEMS_AT_ONCE));
                let n_items = rest.len();
                reached.n_items += n_items;
                self.first_look(rest, &mut candidates, &mut reached).await?;
                self.see()?;
                self.state().listener.read(n_items);
                rest = later;
            }
            reached.is_end = next.is_none();
            reached.after = next.map(|key| (key.pk, key.sk));
            if candidates.len() >= CANDIDATES_MAX || reached.is_end {
                self.second_look(std::mem::take(&mut candidates)).await?;
            }
            if candidates.is_empty() {
                self.state().tallies.reach(number, &reached)?;
            }
        }
        Ok(reached)
    }

    /// Notes what these items add, and finds those that may differ.
    async fn first_look(
        &self,
        items: Vec<Item>,
        candidates: &mut Vec<Candidate>,
        reached: &mut Reached,
    ) -> Result<(), VerifyError> {
        let mut all = Vec::new();
        for item in items {
            let Some(key) = self.engine.schema().layout.key(&item) else { continue };
            reached.n_ignored += usize::from(self.report_unreadable(&key, &item)?);
            let adds = self.adds(&key, Some(&item));
            if !adds.is_empty() {
                self.state().tallies.scanned(&key, &adds)?;
            }
            self.see_counter(&key, &item)?;
            let single = self.single(&key, &item).await?.findings;
            if single.iter().any(|finding| self.scope.has_finding(finding)) {
                candidates.push(Candidate::Single(key.clone()));
            }
            all.push((key, item));
        }
        let is_asked = |look: &mut Look| {
            let named = |at: &DerivationAt| self.scope.has_derivation(self.engine.catalogue().name(*at));
            look.derivations.retain(named);
            !look.derivations.is_empty() && self.scope.has_item(&look.item) && self.scope.has_entity(&look.entity)
        };
        let differing = self.engine.looks_that_differ(all, is_asked, self.patience()).await?;
        candidates.extend(differing.into_iter().map(Candidate::Look));
        Ok(())
    }

    /// Reports an item that cannot be read; true if nothing is derived of it since nobody declared it.
    fn report_unreadable(&self, key: &Key, item: &Item) -> Result<bool, VerifyError> {
        let mut all: Vec<(String, Unreadable)> = Vec::new();
        match self.engine.schema().see(key, item) {
            Seen::Untyped | Seen::Unknown => return Ok(true),
            Seen::Misfit(why) => all.push((ALL_DERIVATIONS.to_owned(), why)),
            Seen::Known(image) => {
                for derivation in self.engine.catalogue().derivations() {
                    let why = derivation.kind.unreadable(self.engine.schema(), &image);
                    all.extend(why.map(|why| (derivation.name.clone(), why)));
                }
            }
        }
        for (derivation, why) in all.into_iter().filter(|(name, _)| self.scope.has_derivation(name)) {
            let (pk, sk) = (key.pk.clone(), key.sk.clone());
            self.state().listener.report(VerifyEvent::Unreadable(UnreadableItem {
                derivation,
                pk,
                sk,
                why: why.to_string(),
            }))?;
        }
        Ok(false)
    }

    /// Begins to watch what is written from now on.
    pub(super) fn watch(&self) -> Result<u64, VerifyError> {
        self.see()?;
        Ok(self.state().touched.watch(self.engine.clock().now_ms()))
    }

    pub(super) fn unwatch(&self, watch: u64) {
        self.state().touched.unwatch(watch);
    }

    pub(super) fn is_touched(&self, watch: u64, read: &BTreeSet<ReadFrom>) -> bool {
        self.state().touched.has(watch, read)
    }

    pub(super) fn report_all(
        &self,
        findings: Vec<Finding>,
        event: impl Fn(Finding) -> VerifyEvent,
    ) -> Result<(), VerifyError> {
        findings.into_iter().try_for_each(|finding| Ok(self.state().report(event(finding))?))
    }

    /// The time that a call has.
    pub(super) fn patience(&self) -> Patience<'_> {
        let deadline_ms = self.engine.clock().now_ms().saturating_add(CALL_MS_MAX);
        Patience::new(self.engine.clock(), deadline_ms)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RunState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunState<'_> {
    pub(super) fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        self.listener.report(event)
    }
}

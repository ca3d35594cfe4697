//! The sweep of the table: a moving slice of it is verified again, run after run, and counters of zero are collected.
//!
//! *Keeps true*: what is derived, stays out of step and is on nobody's list is reported, at the latest when the slice
//! has come round twice. Nothing derived is written here: a difference is reported, and a person mends it.
//!
//! A run reads on where the last one stopped, and takes each item as if it had just been inserted: what
//! that would request a refresh is refreshed, by the refresh's own step, without its writes. An item that differs may
//! only be on its way, so it is a suspect first. One that differs in the very same way when the waiting time is over,
//! though nothing that is under way would change it, has drifted.
//!
//! A count is compared where its sources stand in the collection of its target (`counts`): any other takes the whole
//! table, and is seen by `verify` and not here. Neither is an item that does not stand where it belongs.
//!
//! Two runs at once do no harm. The place moves only from where it was read, so the second stops; a suspect is noted
//! once; and a counter goes only while it is zero.

mod counts;
pub(crate) mod difference;
pub(crate) mod round;
pub(crate) mod suspects;
mod zero;

use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    plan::plan,
    refresh::{Look, decided_by},
    sources::{Source, Sources},
    write::Table,
};
use keys::{item::Item, key::Key};
use store::{Segment, Store};

use crate::{
    backoff::{GaveUp, Patience},
    context::Context,
    input::caught,
    job::Job,
    look, publishing,
    reading::{self, HeldItems},
    requests::{DecidedLooks, Looked, RefreshRequests, RequestedRefresh},
    sweep::{
        counts::Collections,
        difference::{Differing, difference},
        round::Round,
    },
};

/// Items that a run reads where nothing else is said.
pub const ITEMS_MAX: usize = 5_000;

/// How long an item must have differed in the very same way before it has drifted, in milliseconds, where nothing else
/// is said: 15 minutes, long against the lag of a stream that is read.
pub const DRIFT_WAIT_MS: u64 = 15 * 60 * 1_000;

/// Items that are looked at together. Bounds memory, and the work between two looks at the clock.
const ITEMS_AT_ONCE: usize = 250;

/// How much a run may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most items that it reads of the table, and most suspects that it checks again.
    pub n_items_max: usize,
    /// When it has to end, in milliseconds since the epoch.
    pub deadline_ms: u64,
}

/// What a run found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Items of the table that it read.
    pub n_items: usize,
    /// Counters of zero that it collected.
    pub n_zero_counters: usize,
    /// Items that it noted since they differ, or differ otherwise than before.
    pub n_suspects: usize,
    /// Items that have drifted. Those that nobody mends are reported again by every run that checks them.
    pub drifts: Vec<Drift>,
    /// How long the round took that ended with it, in milliseconds; `None` when none did.
    pub round_ms: Option<u64>,
    /// Items that the round under way has read.
    pub n_round_items: u64,
    /// How long the round under way has taken, in milliseconds.
    pub round_so_far_ms: u64,
}

impl Slice {
    /// How long the round under way will take in all, in milliseconds, for a table of so many items; `None` at its
    /// beginning, when nobody can tell.
    #[must_use]
    pub fn round_expected_ms(&self, n_table_items: u64) -> Option<u64> {
        let n_items = n_table_items.max(self.n_round_items);
        (self.round_so_far_ms.checked_mul(n_items)?).checked_div(self.n_round_items).filter(|ms| *ms > 0)
    }
}

/// An item that is not what the definition says, and that nothing under way corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The item.
    pub item: Key,
    /// Names of the derivations whose part differs.
    pub derivations: Vec<String>,
}

/// What checking items would write.
pub(crate) struct LooksToWrite {
    /// The items that are not in step.
    pub(crate) decided: DecidedLooks,
    /// Those that can never be decided, with the cause: DynamoDB refuses to read what they are decided by, or a kind
    /// panics.
    pub(crate) refused: Vec<(Look, String)>,
    /// What the items hold.
    pub(crate) held: HeldItems,
}

/// Verifies a slice of the table.
pub(crate) struct TableSweep<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> TableSweep<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> TableSweep<'_, S> {
    /// Looks again at suspects that were noted at a moment that `is_past`, then verifies the next slice of the table
    /// and collects its counters of zero.
    ///
    /// A run whose time is over ends with what it has, and the next goes on there. It ends where the table does, too.
    pub(crate) async fn sweep_slice(&self, bounds: Bounds, is_past: impl Fn(u64) -> bool) -> Result<Slice, GaveUp> {
        let patience = Patience::new(self.context.clock.as_ref(), bounds.deadline_ms);
        let mut slice = Slice::default();
        match Box::pin(self.sweep_on(bounds.n_items_max, is_past, patience, &mut slice)).await {
            Ok(()) => {}
            Err(GaveUp::OutOfTime { .. }) => tracing::info!("no time is left; the next sweep goes on here"),
            Err(error @ (GaveUp::Refused(_) | GaveUp::Standing(_))) => return Err(error),
        }
        self.without_unfilled(slice, bounds.deadline_ms).await
    }

    async fn sweep_on(
        &self,
        n_items_max: usize,
        is_past: impl Fn(u64) -> bool,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<(), GaveUp> {
        let mut round = Round::now(self.context, patience).await?;
        let after = round.after_suspect.clone();
        round.after_suspect = self.look_again(after.clone(), n_items_max, is_past, patience, slice).await?;
        if round.after_suspect != after && !round.moved(self.context, patience).await? {
            return Ok(());
        }
        let mut collections = self.collections();
        let outcome = self.sweep_from(&mut round, &mut collections, n_items_max, patience, slice).await;
        let differing = self.counts_now(collections.end(), patience).await?;
        self.note_differing(differing, patience, slice).await?;
        outcome
    }

    /// Verifies on from where the round is.
    async fn sweep_from(
        &self,
        round: &mut Round,
        collections: &mut Collections,
        n_items_max: usize,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<(), GaveUp> {
        while slice.n_items < n_items_max {
            let after = round.cursor(&self.context.schema.layout);
            let page = patience.call(|| self.context.store.scan(Table::Main, Segment::WHOLE, after.clone())).await?;
            let end = page.next.as_ref().and_then(|next| self.context.schema.layout.key(&next.0));
            let mut rest = page.items;
            while !rest.is_empty() && slice.n_items < n_items_max && !patience.is_over() {
                let n_now = rest.len().min(ITEMS_AT_ONCE).min(n_items_max - slice.n_items);
                let later = rest.split_off(n_now);
                let last = rest.last().and_then(|item| self.context.schema.layout.key(item));
                self.verify_again(rest, collections, patience, slice).await?;
                slice.n_items += n_now;
                round.n_items += u64::try_from(n_now).unwrap_or(0);
                round.after = last.or(round.after.take());
                rest = later;
            }
            let ends = rest.is_empty() && page.next.is_none();
            if rest.is_empty() {
                round.after = end.or(round.after.take());
            }
            let round_ms = ends.then(|| round.ends(self.context.clock.now_ms()));
            if !round.moved(self.context, patience).await? {
                return Ok(());
            }
            slice.round_ms = round_ms;
            slice.n_round_items = round.n_items;
            slice.round_so_far_ms = self.context.clock.now_ms().saturating_sub(round.began_at_ms);
            if ends || patience.is_over() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Verifies these items of the table again, and collects the counters of zero among them.
    async fn verify_again(
        &self,
        items: Vec<Item>,
        collections: &mut Collections,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<(), GaveUp> {
        let (mut requests, mut held, mut zeros, mut counted) =
            (RefreshRequests::default(), HeldItems::new(), Vec::new(), Vec::new());
        let now_ms = self.context.clock.now_ms();
        for item in items {
            let Some(key) = self.context.schema.layout.key(&item) else { continue };
            counted.extend(self.add_up(collections, &key, &item));
            if let Some(entry) = Job::lost_entry(&self.context.schema.layout, &item, now_ms) {
                let put = entry.put(&self.context.schema.layout);
                patience.call(|| self.context.store.write(&put)).await?;
            }
            if zero::is_zero_counter(&self.context.schema, &key, &item) {
                zeros.extend(self.collection(&key, &item));
            }
            let item = self.request_as_inserted(key.clone(), item, &mut requests);
            held.insert(key, item);
        }
        let mut differing = self.differing_now(requests, held, patience).await?;
        differing.extend(self.counts_now(counted, patience).await?);
        self.note_differing(differing, patience, slice).await?;
        slice.n_zero_counters += self.collect_counters(zeros, patience).await?;
        Ok(())
    }

    /// Requests what the insert of this item would have refreshed, and gives the item back.
    pub(crate) fn request_as_inserted(&self, key: Key, item: Item, requests: &mut RefreshRequests) -> Option<Item> {
        let (id, sequence_number) = (String::new(), String::new());
        let change = Change { id, sequence_number, created_ms: None, key, images: Images::Inserted(item) };
        // A kind that panics at an item does so at its records, which are parked.
        let planned = caught("planning it", || {
            plan(&self.context.schema, &self.context.catalogue, &[Family::LevelTriggered], &change)
        });
        for (derivation, effect) in planned.map(|planned| planned.effects).unwrap_or_default() {
            if let Effect::Look(request) = effect {
                requests.request(request, derivation, &change.key, None);
            }
        }
        match change.images {
            Images::Inserted(item) => Some(item),
            Images::Modified { .. } | Images::Removed(_) => None,
        }
    }

    /// Those of these items that are not in step, with what they are decided by.
    async fn differing_now(
        &self,
        requests: RefreshRequests,
        held: HeldItems,
        patience: Patience<'_>,
    ) -> Result<Vec<Differing>, GaveUp> {
        let mut sources = Sources::default();
        let LooksToWrite { decided, held, refused } = self.decided_now(requests, held, &mut sources, patience).await?;
        // The record that would refresh such an item is parked.
        for (look, cause) in refused {
            tracing::warn!(item = look.item.for_log(), cause, "an item cannot be looked at");
        }
        let (schema, catalogue) = (&self.context.schema, &self.context.catalogue);
        // An item under a derived item's key is listed, and no drift.
        let differing = decided.differing.into_iter().map(|(RequestedRefresh { look, .. }, (write, derivations))| {
            let held = held.get(&write.key).cloned().flatten();
            let difference = difference(&write, held.as_ref());
            let decided_by = decided_by(schema, catalogue, &look, held.as_ref(), &sources);
            let decided_by = decided_by.into_iter().filter_map(Source::into_item).collect();
            Differing { look, held, decided_by, derivations, difference }
        });
        Ok(differing.collect())
    }

    /// Those of these items that are not in step, and what they hold. What is not known to be `held`, nor among the
    /// sources, is read.
    pub(crate) async fn decided_now(
        &self,
        requests: RefreshRequests,
        mut held: HeldItems,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<LooksToWrite, GaveUp> {
        let requested: Vec<RequestedRefresh> = requests.requested.into_values().collect();
        let unknown: Vec<Key> = requested.iter().map(|requested| requested.look.item.clone()).collect();
        let unknown: Vec<Key> = unknown.into_iter().filter(|item| !held.contains_key(item)).collect();
        let to_read = unknown.iter().cloned().map(Source::Item).filter(|source| !sources.knows(source)).collect();
        let refused = reading::read_each(self.context, to_read, sources, patience).await?;
        held.extend(unknown.into_iter().map(|item| (item.clone(), sources.item(&item).cloned())));
        let mut looked = Looked::default();
        let of_item = |requested: &RequestedRefresh| refused.get(&Source::Item(requested.look.item.clone()));
        let requested = looked.without_refused(requested.into_iter().map(|requested| (of_item(&requested), requested)));
        let decided = look::differing(self.context, requested, &held, sources, patience, &mut looked).await;
        if let Some((_, why)) = looked.undone.into_iter().next() {
            // Without time left it is no fault: the next slice begins where this one ends.
            if !patience.is_over() {
                tracing::warn!(why, "what is looked at cannot be read");
            }
            return Err(GaveUp::OutOfTime { last: None });
        }
        let refused = looked.refused.into_iter().map(|(requested, cause)| (requested.look, cause)).collect();
        Ok(LooksToWrite { decided, refused, held })
    }

    /// What a run found, without what derivations lack that are not filled yet: that is known, and no drift. Reads the
    /// registry if something has drifted.
    async fn without_unfilled(&self, mut slice: Slice, deadline_ms: u64) -> Result<Slice, GaveUp> {
        if slice.drifts.is_empty() {
            return Ok(slice);
        }
        let registry = match publishing::registry(self.context, deadline_ms).await {
            Ok(registry) => registry,
            // They are found again by the next run.
            Err(GaveUp::OutOfTime { .. }) => return Ok(Slice { drifts: Vec::new(), ..slice }),
            Err(error) => return Err(error),
        };
        let catalogue = &self.context.catalogue;
        let is_unfilled =
            |label: &String| catalogue.called(label).is_some_and(|at| registry.is_unfilled(catalogue.name(at)));
        for drift in &mut slice.drifts {
            drift.derivations.retain(|label| !is_unfilled(label));
        }
        slice.drifts.retain(|drift| !drift.derivations.is_empty());
        Ok(slice)
    }
}

//! The sweep of the table: each run verifies the next slice of it, and deletes counters of zero.
//!
//! *Keeps true*: a derived item that stays wrong and is on no list is reported, at the latest after two rounds over the
//! table. The sweep writes nothing derived: it reports a difference, and the operator corrects it.
//!
//! A run continues where the last one stopped, and treats each item as if it had just been inserted: it refreshes the
//! items that the insert would refresh, by the same step but without the writes. An item that differs may be about to
//! change, so it is a suspect first. If it still differs in the same way when the waiting time is over, although no
//! pending work would change it, it has drifted.
//!
//! The sweep compares a count only if its sources are in the collection of its target (`counts`). All other counts need
//! the whole table, so only `verify` checks them. The same applies to an item under a wrong key.
//!
//! Two runs at once are harmless. The position moves only from where it was read, so the second run stops; a suspect is
//! noted once; and a counter is deleted only while it is zero. Every item that stays in the table is read once a round.
//!
//! # Damage
//!
//! Standing damage is what waits for an operator in the ledger now, as numbers.
//!
//! *Keeps true*: a number is 0 only if nothing of its kind is left, so an alarm on it ends when the damage is mended,
//! and not before.

mod counts;
pub(crate) mod suspects;

use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    guard::{Guard, Purpose},
    plan::plan,
    query::{Consistency, Query},
    refresh::{Look, decided_by},
    sources::{Source, Sources},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use store::{Cursor, Outcome, Segment, Store};

use crate::{
    attribute::{n, number, s},
    backoff::{GaveUp, Patience},
    context::Context,
    count::RECOUNT,
    input::caught,
    job::Job,
    ledger::{ledger_item, parked_partition},
    look::{self, listing::UNREADABLE},
    loss::LOSS,
    park::FIRST_PART,
    publishing,
    reading::{self, StoredItems},
    requests::{DecidedLooks, Looked, RefreshRequests, RequestedRefresh},
    sweep::{
        counts::Collections,
        suspects::{Differing, difference},
    },
};

/// Default number of items that a run reads.
pub const ITEMS_MAX: usize = 5_000;

/// Default time that an item must differ in the same way before it has drifted, in milliseconds: 15 minutes, much
/// longer than the usual lag of a stream.
pub const DRIFT_WAIT_MS: u64 = 15 * 60 * 1_000;

/// Items that are checked together. Bounds memory, and the work between two readings of the clock.
const ITEMS_AT_ONCE: usize = 250;

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of items that it reads from the table, and of suspects that it checks again.
    pub n_items_max: usize,
    /// When it must end, in milliseconds since the epoch.
    pub deadline_ms: u64,
}

/// What a run found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Items that it read from the table.
    pub n_items: usize,
    /// Counters of zero that it deleted.
    pub n_zero_counters: usize,
    /// Items that it noted because they differ, or differ in another way than before.
    pub n_suspects: usize,
    /// Items that have drifted. Until an item is corrected, every run that checks it reports it again.
    pub drifts: Vec<Drift>,
    /// True if this run checked every suspect that was due, so that `drifts` is complete.
    pub has_all_suspects: bool,
    /// Duration of the round that ended with this run, in milliseconds; `None` if none ended.
    pub round_ms: Option<u64>,
    /// Items that the current round has read.
    pub n_round_items: u64,
    /// Duration of the current round so far, in milliseconds.
    pub round_so_far_ms: u64,
}

impl Slice {
    /// Expected duration of the current round, in milliseconds, for a table with this many items; `None` at its
    /// beginning, when no estimate is possible.
    #[must_use]
    pub fn round_expected_ms(&self, n_table_items: u64) -> Option<u64> {
        let n_items = n_table_items.max(self.n_round_items);
        (self.round_so_far_ms.checked_mul(n_items)?).checked_div(self.n_round_items).filter(|ms| *ms > 0)
    }
}

/// An item that differs from its definition, and that no pending work corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The item.
    pub item: Key,
    /// Names of the derivations whose part differs.
    pub derivations: Vec<String>,
}

/// The writes that a check of items would send.
pub(crate) struct LooksToWrite {
    /// The items that are not correct.
    pub(crate) decided: DecidedLooks,
    /// The items that can never be decided, with the cause: DynamoDB refuses to read their sources, or a kind panics.
    pub(crate) refused: Vec<(Look, String)>,
    /// The current items.
    pub(crate) stored: StoredItems,
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
    /// Checks again the suspects with a noted time that `is_past`, then verifies the next slice of the table and
    /// deletes its counters of zero.
    ///
    /// A run without time left ends with its results so far, and the next one continues there. A run also ends at the
    /// end of the table.
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
        slice.has_all_suspects = after.is_none() && round.after_suspect.is_none();
        if round.after_suspect != after && !round.moved(self.context, patience).await? {
            return Ok(());
        }
        let mut collections = self.collections();
        let outcome = self.sweep_from(&mut round, &mut collections, n_items_max, patience, slice).await;
        let differing = self.counts_now(collections.end(), patience).await?;
        self.note_differing(differing, patience, slice).await?;
        outcome
    }

    /// Verifies from the round's position on.
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

    /// Verifies these items of the table, and deletes the counters of zero among them.
    async fn verify_again(
        &self,
        items: Vec<Item>,
        collections: &mut Collections,
        patience: Patience<'_>,
        slice: &mut Slice,
    ) -> Result<(), GaveUp> {
        let (mut requests, mut stored, mut zeros, mut counted) =
            (RefreshRequests::default(), StoredItems::new(), Vec::new(), Vec::new());
        let now_ms = self.context.clock.now_ms();
        for item in items {
            let Some(key) = self.context.schema.layout.key(&item) else { continue };
            counted.extend(self.add_up(collections, &key, &item));
            if let Some(entry) = Job::lost_entry(&self.context.schema.layout, &item, now_ms) {
                let put = entry.put(&self.context.schema.layout);
                patience.call(|| self.context.store.write(&put)).await?;
            }
            if counts::is_zero_counter(&self.context.schema, &key, &item) {
                zeros.extend(self.collection(&key, &item));
            }
            let item = self.request_as_inserted(key.clone(), item, &mut requests);
            stored.insert(key, item);
        }
        let mut differing = self.differing_now(requests, stored, patience).await?;
        differing.extend(self.counts_now(counted, patience).await?);
        self.note_differing(differing, patience, slice).await?;
        slice.n_zero_counters += self.collect_counters(zeros, patience).await?;
        Ok(())
    }

    /// Requests the refreshes that the insert of this item would request, and returns the item.
    pub(crate) fn request_as_inserted(&self, key: Key, item: Item, requests: &mut RefreshRequests) -> Option<Item> {
        let (id, sequence_number) = (String::new(), String::new());
        let change = Change { id, sequence_number, created_ms: None, key, images: Images::Inserted(item) };
        // A kind that panics on an item also panics on its records, which are parked.
        let planned = caught("planning it", || {
            plan(&self.context.schema, &self.context.catalogue, &[Family::LevelTriggered], &change)
        });
        for (derivation, effect) in planned.map(|planned| planned.effects).unwrap_or_default() {
            match effect {
                Effect::Look(request) => requests.request(request, derivation, &change.key, None),
                Effect::Later(request, at_ms) => requests.later(request.item, at_ms, derivation, None),
                _ => {}
            }
        }
        match change.images {
            Images::Inserted(item) => Some(item),
            Images::Modified { .. } | Images::Removed(_) | Images::Expired(_) => None,
        }
    }

    /// The items among these that are not correct, with the items that decide them.
    async fn differing_now(
        &self,
        requests: RefreshRequests,
        stored: StoredItems,
        patience: Patience<'_>,
    ) -> Result<Vec<Differing>, GaveUp> {
        let mut sources = Sources::default();
        let LooksToWrite { decided, stored, refused } =
            self.decided_now(requests, stored, &mut sources, patience).await?;
        // The record that would refresh such an item is parked.
        for (look, cause) in refused {
            tracing::warn!(item = look.item.for_log(), cause, "an item cannot be looked at");
        }
        let (schema, catalogue) = (&self.context.schema, &self.context.catalogue);
        // An item under a derived item's key is listed, and is no drift.
        let differing = decided.differing.into_iter().map(|(RequestedRefresh { look, .. }, (write, derivations))| {
            let stored = stored.get(&write.key).cloned().flatten();
            let difference = difference(&write, stored.as_ref());
            let decided_by = decided_by(schema, catalogue, &look, stored.as_ref(), &sources);
            Differing { look, stored, decided_by, derivations, difference }
        });
        Ok(differing.collect())
    }

    /// The items among these that are not correct, with their content. Items that are neither in `stored` nor among the
    /// sources are read.
    pub(crate) async fn decided_now(
        &self,
        requests: RefreshRequests,
        mut stored: StoredItems,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<LooksToWrite, GaveUp> {
        let requested: Vec<RequestedRefresh> = requests.requested.into_values().collect();
        let unknown: Vec<Key> = requested.iter().map(|requested| requested.look.item.clone()).collect();
        let unknown: Vec<Key> = unknown.into_iter().filter(|item| !stored.contains_key(item)).collect();
        let to_read = unknown.iter().cloned().map(Source::Item).filter(|source| !sources.knows(source)).collect();
        let refused = reading::read_each(self.context, to_read, sources, patience).await?;
        stored.extend(unknown.into_iter().map(|item| (item.clone(), sources.item(&item).cloned())));
        let mut looked = Looked::default();
        let of_item = |requested: &RequestedRefresh| refused.get(&Source::Item(requested.look.item.clone()));
        let requested = looked.without_refused(requested.into_iter().map(|requested| (of_item(&requested), requested)));
        let decided = look::differing(self.context, requested, &stored, sources, patience, &mut looked).await;
        if let Some((_, why)) = looked.undone.into_iter().next() {
            // Running out of time is no error: the next slice begins where this one ends.
            if !patience.is_over() {
                tracing::warn!(why, "the sweep cannot read the items that it compares");
            }
            return Err(GaveUp::OutOfTime { last: None });
        }
        let refused = looked.refused.into_iter().map(|(requested, cause)| (requested.look, cause)).collect();
        Ok(LooksToWrite { decided, refused, stored })
    }

    /// The results of a run without the parts that unfilled derivations lack, because those are known and no drift.
    /// Reads the registry if something has drifted.
    async fn without_unfilled(&self, mut slice: Slice, deadline_ms: u64) -> Result<Slice, GaveUp> {
        if slice.drifts.is_empty() {
            return Ok(slice);
        }
        let registry = match publishing::registry(self.context, deadline_ms).await {
            Ok(registry) => registry,
            // The next run finds them again.
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

// ---- The position in the table ----

// Attributes of the position. Stored, so they are stable.
const AFTER_PK: &str = "AfterPK";
const AFTER_SK: &str = "AfterSK";
const AFTER_SUSPECT: &str = "AfterSuspect";
const BEGAN_AT: &str = "BeganAt";
const ITEMS: &str = "Items";
const ROUND_MS: &str = "RoundMs";
const MOVES: &str = "Moves";

/// A round over the table, with its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// The last item that was read; `None` at the beginning.
    pub(crate) after: Option<Key>,
    /// Sort key of the last suspect that was checked; `None` if all were.
    pub(crate) after_suspect: Option<String>,
    /// When it began, in milliseconds since the epoch.
    pub(crate) began_at_ms: u64,
    /// Items that it has read.
    pub(crate) n_items: u64,
    /// Duration of the previous round, in milliseconds.
    pub(crate) last_ms: Option<u64>,
    /// How often the position has moved; `None` if it is not stored yet.
    pub(crate) n_moves: Option<u64>,
}

impl Round {
    /// The round that an item contains.
    fn of(item: &Item) -> Self {
        let after = text(item, AFTER_PK).zip(text(item, AFTER_SK));
        Self {
            after: after.map(|(pk, sk)| Key::new(pk, sk)),
            after_suspect: text(item, AFTER_SUSPECT).map(str::to_owned),
            began_at_ms: number(item, BEGAN_AT).unwrap_or(0),
            n_items: number(item, ITEMS).unwrap_or(0),
            last_ms: number(item, ROUND_MS),
            n_moves: number(item, MOVES),
        }
    }

    /// Start of its next page.
    pub(crate) fn cursor(&self, layout: &Layout) -> Option<Cursor> {
        self.after.as_ref().map(|after| Cursor(layout.key_item(after)))
    }

    /// Begins the next round, at the end of the table. Returns the duration of this one, in milliseconds.
    pub(crate) fn ends(&mut self, now_ms: u64) -> u64 {
        let round_ms = now_ms.saturating_sub(self.began_at_ms);
        (self.after, self.began_at_ms, self.last_ms) = (None, now_ms, Some(round_ms));
        self.n_items = 0;
        round_ms
    }

    /// The write that moves the position from where it was read.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let mut attributes = vec![
            (BEGAN_AT, n(self.began_at_ms)),
            (ITEMS, n(self.n_items)),
            (MOVES, n(self.n_moves.map_or(1, |n| n + 1))),
        ];
        attributes.extend(self.last_ms.map(|last_ms| (ROUND_MS, n(last_ms))));
        attributes.extend(self.after_suspect.as_ref().map(|after| (AFTER_SUSPECT, s(after))));
        if let Some(after) = &self.after {
            attributes.extend([(AFTER_PK, s(&after.pk)), (AFTER_SK, s(&after.sk))]);
        }
        let guard = Guard::as_read(Purpose::SweepRound, [(MOVES, self.n_moves.map(n))]);
        let action = Action::Put(ledger_item(layout, &round_key(), attributes));
        Write { table: Table::Ledger, key: round_key(), action, guard: Some(guard) }
    }
}

impl Round {
    /// The current round; a new one if there is none.
    async fn now<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Self, GaveUp> {
        let item = context.item(Table::Ledger, &round_key(), patience).await?;
        let fresh = || Self { began_at_ms: context.clock.now_ms(), ..Self::default() };
        Ok(item.as_ref().map_or_else(fresh, Self::of))
    }

    /// Moves the position; false if another run did, or a call of this run whose response was lost.
    async fn moved<S: Store>(&mut self, context: &Context<S>, patience: Patience<'_>) -> Result<bool, GaveUp> {
        let write = self.write(&context.schema.layout);
        match patience.call(|| context.store.write(&write)).await? {
            Outcome::Done { .. } => {
                self.n_moves = Some(self.n_moves.map_or(1, |n_moves| n_moves + 1));
                Ok(true)
            }
            Outcome::GuardFailed => Ok(false),
        }
    }
}

/// Key of the position. Stored, so it is stable.
fn round_key() -> Key {
    Key::new("SWEEP", "ROUND")
}

// ---- Standing damage: what waits for an operator, as numbers ----

/// Greatest number that is counted; more are reported as so many.
pub const COUNTED_MAX: usize = 1_000;

/// Maximum number of pages that are read of one kind. Bounds the cost: a page is at most 1 MB, and a parked change has
/// its whole record.
const PAGES_MAX: usize = 8;

/// What waits for an operator. Each number is at most [`COUNTED_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Parked changes.
    pub n_parked: usize,
    /// Entries in the list of counts to recount.
    pub n_to_recount: usize,
    /// Entries in the list of unreadable items.
    pub n_unreadable: usize,
    /// Marks of a possible loss.
    pub n_losses: usize,
}

/// Counts what waits for an operator now.
pub(crate) async fn damage<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Damage, GaveUp> {
    let is_change = |item: &Item| {
        let key = context.schema.layout.key(item);
        key.is_some_and(|key| key.sk.ends_with(FIRST_PART))
    };
    let mut n_parked = 0;
    for family in [Family::Additive, Family::LevelTriggered] {
        n_parked += n_entries(context, parked_partition(family), is_change, patience).await?;
    }
    Ok(Damage {
        n_parked: n_parked.min(COUNTED_MAX),
        n_to_recount: n_entries(context, RECOUNT.to_owned(), |_| true, patience).await?,
        n_unreadable: n_entries(context, UNREADABLE.to_owned(), |_| true, patience).await?,
        n_losses: n_entries(context, LOSS.to_owned(), |_| true, patience).await?,
    })
}

/// The number of such items in a partition of the ledger's table.
async fn n_entries<S: Store>(
    context: &Context<S>,
    partition: String,
    is_counted: impl Fn(&Item) -> bool,
    patience: Patience<'_>,
) -> Result<usize, GaveUp> {
    let limit = u32::try_from(COUNTED_MAX).ok();
    let query = Query { limit, consistency: Consistency::Eventual, ..Query::prefix(None, partition, "") };
    let (mut n, mut after) = (0, None);
    for _ in 0..PAGES_MAX {
        let page = patience.call(|| context.store.query(Table::Ledger, &query, after.clone())).await?;
        n += page.items.iter().filter(|item| is_counted(item)).count();
        after = page.next;
        if after.is_none() || n >= COUNTED_MAX {
            break;
        }
    }
    Ok(n.min(COUNTED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_reads_back_as_it_was_written() {
        let layout = Layout::of("pk", "sk");
        let mut round = Round { began_at_ms: 5, n_items: 9, ..Round::default() };
        for (after, after_suspect) in [(None, None), (Some(Key::new("a", "b")), Some("c".to_owned()))] {
            (round.after, round.after_suspect) = (after, after_suspect);
            let Action::Put(item) = round.write(&layout).action else { panic!("it is put whole") };
            round.n_moves = Some(round.n_moves.map_or(1, |n_moves| n_moves + 1));
            assert_eq!(Round::of(&item), round);
        }
        assert_eq!((round.ends(12), round.after, round.last_ms), (7, None, Some(7)));
        assert_eq!((round.began_at_ms, round.n_items), (12, 0));
    }
}

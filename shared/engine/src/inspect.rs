//! An engine's functions for an operator's tools, which handle no batch, such as finding incorrect items and correcting
//! one.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    clock::HOUR_MS,
    derived::Items,
    guard::{Guard, Purpose},
    kind::{Refresh, RefreshTarget},
    position::DerivationAt,
    refresh::Look,
    schema::{Schema, Unreadable},
    sources::{Source, Sources},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::{Outcome, Store, StoreError};

use crate::{
    account::{Account, Commit, Figures, Target},
    attribute::{all, n, number, s, sort_key},
    backoff::{GaveUp, Patience, describe},
    batch::Engine,
    count::{ALL, RECOUNT},
    fan_out::{
        again::{self, Again, DueItem},
        search,
    },
    job::Job,
    jobs::{
        self, JobOrder, Obeyed,
        blocked::Blocker,
        pulse,
        sweep::{JobSweep, Swept},
    },
    look::{self, listing::UNREADABLE},
    park::ParkedChange,
    publishing::{self, RegistryError},
    reading::{self, RefusedReads, StoredItems},
    redrive::{
        self, Redriven,
        waiting::{self, Waiting},
    },
    registry::{Registry, Standing},
    requests::{LookRequest, RefreshRequests},
    sweep::{Bounds, Damage, LooksToWrite, Slice, TableSweep, damage},
};

/// Overdue items that are read of each partition. Bounds what is listed where no sweep runs.
const OVERDUE_MAX: u32 = 10;

impl<S: Store> Engine<S> {
    /// The engine's schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.context.schema
    }

    /// The engine's catalogue.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.context.catalogue
    }

    /// The tables.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.context.store
    }

    /// Compares the refreshes that the inserts of these items would request, if `is_asked` selects them. Returns those
    /// with a difference or an occupied key, and those that can never be decided, with the cause. Reads only sources
    /// that `sources` lacks, and adds them. Writes nothing.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the sources cannot be read.
    pub async fn looks_that_differ(
        &self,
        items: Vec<(Key, Item)>,
        sources: &mut Sources,
        is_asked: impl Fn(&mut Look) -> bool,
        patience: Patience<'_>,
    ) -> Result<(Vec<Look>, Vec<(Look, String)>), GaveUp> {
        let (sweep, mut requests, mut stored) =
            (TableSweep::new(&self.context), RefreshRequests::default(), StoredItems::new());
        for (key, item) in items {
            stored.insert(key.clone(), sweep.request_as_inserted(key, item, &mut requests));
        }
        requests.requested.retain(|_, requested| is_asked(&mut requested.look));
        let LooksToWrite { decided, refused, .. } = sweep.decided_now(requests, stored, sources, patience).await?;
        Ok((decided.looks().collect(), refused))
    }

    /// Refreshes an item, and writes it if it differs; returns true if it did.
    ///
    /// # Errors
    ///
    /// Why the item cannot be written, or not now.
    pub async fn bring_in_step(&self, look: Look, patience: Patience<'_>) -> Result<bool, String> {
        let Look { item, entity, derivations, named } = look;
        let mut requests = RefreshRequests::default();
        requests.add(item.clone(), entity, named.into_iter().collect(), &derivations, &BTreeSet::new());
        let (mut sources, mut is_written) = (Sources::default(), false);
        for items in requests.parts() {
            let request = LookRequest { items, images: None, patience };
            let looked = Box::pin(look::look_in_time(&self.context, request, &mut sources)).await;
            if let Some((_, why)) = looked.undone.into_iter().next() {
                return Err(why);
            }
            is_written |= !looked.written.is_empty();
        }
        // The records of its sources may be from before the derivation, so that nothing noted when they change it.
        let of_clock = self.of_clock(&item, &derivations, &sources);
        self.note_changes(of_clock, patience).await.map_err(|it| describe(&it))?;
        Ok(is_written)
    }

    /// The sources of an item's parts that depend on the clock, as far as they were read.
    fn of_clock(&self, item: &Key, derivations: &BTreeSet<DerivationAt>, sources: &Sources) -> Vec<(Key, Item)> {
        let schema = &self.context.schema;
        let of = |refresh: &dyn Refresh| -> Vec<Item> {
            let Some(definition) = schema.entity(refresh.target()) else { return Vec::new() };
            let named = BTreeSet::new();
            let target = RefreshTarget { key: item, definition, item: None, named: &named, hour: sources.hour() };
            let wanted = refresh.sources(schema, &target).into_iter();
            let first = wanted.filter_map(|source| match source {
                Source::First(of) => Some(sources.first(schema, &of).into_iter().cloned().collect::<Vec<_>>()),
                Source::Item(_) | Source::Counters(_) => None,
            });
            first.flatten().collect()
        };
        let refreshes = derivations.iter().filter_map(|at| self.context.catalogue.refresh(*at));
        let found = refreshes.filter(|refresh| refresh.reads_clock()).flat_map(of);
        found.filter_map(|item| Some((schema.layout.key(&item)?, item))).collect()
    }

    /// Notes when these items change others by the passing of time, as their inserts would, whose records may be lost.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if a note cannot be written.
    pub async fn note_changes(&self, items: Vec<(Key, Item)>, patience: Patience<'_>) -> Result<(), GaveUp> {
        let (sweep, mut requests) = (TableSweep::new(&self.context), RefreshRequests::default());
        for (key, item) in items {
            sweep.request_as_inserted(key, item, &mut requests);
        }
        let now_ms = self.context.clock.now_ms();
        for ((item, at_ms), (derivations, _)) in requests.later.into_iter().filter(|((_, at_ms), _)| *at_ms > now_ms) {
            let note = search::note_of(&self.context, &item, derivations).at(at_ms);
            patience.call(|| self.context.store.write(&note)).await?;
        }
        Ok(())
    }

    /// Repeats the searches that are due, until this time in milliseconds since the epoch; the next run does the rest.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the notes cannot be read or deleted.
    pub async fn search_again(&self, deadline_ms: u64) -> Result<Again, GaveUp> {
        again::search_again(&self.context, deadline_ms).await
    }

    /// True if the job searches an index. The sweep then [repeats](crate::fan_out::again) the whole search when the
    /// index has had time to catch up, which creates another such job, cancelled or not.
    #[must_use]
    pub fn is_searched_again(&self, job: &Job) -> bool {
        jobs::is_searched_again(&self.context, job)
    }

    /// Carries out an order for a job that was read before.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store gives no outcome before the deadline, in milliseconds since the epoch. The order is then
    /// done or not; repeating it is safe.
    pub async fn order(&self, job: &Job, order: JobOrder, deadline_ms: u64) -> Result<Obeyed, GaveUp> {
        jobs::order(&self.context, job, order, deadline_ms).await
    }

    /// Starts jobs that are due and past their grace period, and wakes stalled ones, until the deadline in milliseconds
    /// since the epoch. Two sweeps at once are harmless.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if a call is refused permanently, or retries do not help. The next sweep does the rest.
    pub async fn sweep(&self, is_settled: impl Fn(&Job) -> bool + Sync, deadline_ms: u64) -> Result<Swept, GaveUp> {
        JobSweep::new(&self.context).sweep(is_settled, deadline_ms).await
    }

    /// Like [`sweep`](Self::sweep), when the functions' progress is unknown: writes a heartbeat ([`pulse`]), and starts
    /// a cascade only if heartbeats show that all earlier changes were handled.
    ///
    /// # Errors
    ///
    /// [`GaveUp`], like [`sweep`](Self::sweep).
    pub async fn sweep_by_pulse(&self, deadline_ms: u64) -> Result<Swept, GaveUp> {
        pulse::beat(&self.context, Patience::new(self.context.clock.as_ref(), deadline_ms)).await?;
        JobSweep { context: &self.context, by_pulse: true }.sweep(|_| true, deadline_ms).await
    }

    /// The jobs among these that something blocks from beginning; heartbeats are considered if `by_pulse` is set.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the parked changes cannot be read before the deadline, in milliseconds since the epoch.
    pub async fn blocked_jobs(
        &self,
        jobs: &[Job],
        by_pulse: bool,
        deadline_ms: u64,
    ) -> Result<BTreeMap<Key, Blocker>, GaveUp> {
        let sweep = JobSweep { context: &self.context, by_pulse };
        let waiting: Vec<&Job> = jobs.iter().filter(|job| !job.is_running).collect();
        if waiting.is_empty() {
            return Ok(BTreeMap::new());
        }
        let holds = sweep.holds(Patience::new(self.context.clock.as_ref(), deadline_ms)).await?;
        Ok(waiting.into_iter().filter_map(|job| Some((job.key.clone(), sweep.blocker(&holds, job)?))).collect())
    }

    /// Applies a parked change, and deletes it.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store gives no outcome before the deadline, in milliseconds since the epoch. The change is
    /// then applied or parked; redriving it again is safe.
    pub async fn redrive(&self, parked: &ParkedChange, deadline_ms: u64) -> Result<Redriven, GaveUp> {
        redrive::redrive(&self.context, parked, deadline_ms).await
    }

    /// The pending work that changes counts: the parked changes of counts.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if that cannot be read.
    pub async fn what_counts_wait_for(&self, patience: Patience<'_>) -> Result<Waiting, GaveUp> {
        waiting::what_counts_wait_for(&self.context, patience).await
    }

    /// The pending work for derived items and counts: parked changes, jobs, and searches of an index that are to be
    /// repeated.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if that cannot be read.
    pub async fn what_is_under_way(&self, patience: Patience<'_>) -> Result<Waiting, GaveUp> {
        waiting::what_is_under_way(&self.context, |_| true, patience).await
    }

    /// Checks again the suspects with a noted time that `is_past`, then verifies the next slice of the table and
    /// deletes its counters of zero. A run ends when its time is over or the table ends; the next one continues there.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if a call is refused permanently, or retries do not help. The next run does the rest.
    pub async fn sweep_slice(&self, bounds: Bounds, is_past: impl Fn(u64) -> bool) -> Result<Slice, GaveUp> {
        TableSweep::new(&self.context).sweep_slice(bounds, is_past).await
    }

    /// Removes derivations that the functions have dropped. Returns their number.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store does not answer, or refuses the call.
    pub async fn forget(&self, names: &BTreeSet<String>, deadline_ms: u64) -> Result<usize, GaveUp> {
        publishing::forget(&self.context, names, deadline_ms).await
    }

    /// Notes that all instances that published something have ended.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store does not answer, or refuses the call.
    pub async fn leave(&self, deadline_ms: u64) -> Result<(), GaveUp> {
        publishing::leave(&self.context, deadline_ms).await
    }

    /// Checks the registry if that is due, and publishes this instance's derivations if they differ. A function does
    /// this before each batch, an operator's command before each change that it handles. Returns the writes.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]; then nothing may be handled.
    pub async fn publish(&self, deadline_ms: u64) -> Result<Vec<Commit>, RegistryError> {
        publishing::publish(&self.context, deadline_ms).await
    }

    /// The registry.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the registry cannot be read.
    pub async fn registry(&self, deadline_ms: u64) -> Result<Registry, GaveUp> {
        publishing::registry(&self.context, deadline_ms).await
    }

    /// How a derivation, by its position, compares with those of the functions. One that is not ready may not be
    /// repaired: it would be measured by one definition and counted by another.
    #[must_use]
    pub fn standing(&self, registry: &Registry, at: DerivationAt) -> Standing {
        publishing::standing(&self.context, registry, at)
    }

    /// Marks derivations as filled that were ready in `read` and have not been republished since: all changes from
    /// before `until_ms` are counted. Parked changes may be missing, so counts are not marked while a change is parked.
    /// Returns the number of marked derivations.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store does not answer, or refuses the call.
    pub async fn mark_filled(
        &self,
        names: &BTreeSet<String>,
        read: &Registry,
        until_ms: u64,
        deadline_ms: u64,
    ) -> Result<usize, GaveUp> {
        publishing::mark_filled(&self.context, names, read, until_ms, deadline_ms).await
    }

    /// Counts what waits for an operator in the ledger, until the deadline in milliseconds since the epoch.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the ledger cannot be read.
    pub async fn damage(&self, deadline_ms: u64) -> Result<Damage, GaveUp> {
        damage(&self.context, Patience::new(self.context.clock.as_ref(), deadline_ms)).await
    }

    /// The numbers of a batch, by the name of the derivation. A derivation with nothing to report is left out.
    #[must_use]
    pub fn figures(&self, account: &Account) -> BTreeMap<String, Figures> {
        account.figures(&self.context.catalogue)
    }
}

// ---- Reads for an operator's tools ----

impl<S: Store> Engine<S> {
    /// The current items under these keys.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if they cannot be read.
    pub async fn stored(&self, keys: Vec<Key>, patience: Patience<'_>) -> Result<StoredItems, GaveUp> {
        reading::stored(&self.context, keys, patience).await
    }

    /// The current items under these keys, and the keys that DynamoDB refuses to read.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if they cannot be read now.
    pub async fn stored_each(
        &self,
        keys: Vec<Key>,
        patience: Patience<'_>,
    ) -> Result<(StoredItems, RefusedReads<Key>), GaveUp> {
        reading::stored_each(&self.context, keys, patience).await
    }

    /// The counters of a target, for all derivations and in all shards.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if they cannot be read.
    pub async fn all_counters_of(&self, target: &Key, patience: Patience<'_>) -> Result<Items, GaveUp> {
        reading::all_counters_of(&self.context, target, patience).await
    }

    /// The current hour, in hours since the epoch.
    #[must_use]
    pub fn hour(&self) -> u64 {
        self.context.clock.now_ms() / HOUR_MS
    }

    /// The first items that the sweep should have searched or refreshed an hour ago; it runs more than once an hour. Without
    /// derivations that read the clock nothing is read.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the ledger cannot be read.
    pub async fn overdue(&self, patience: Patience<'_>) -> Result<Vec<DueItem>, GaveUp> {
        let mut derivations = self.context.catalogue.derivations();
        if !derivations.any(|it| it.kind.refresh().is_some_and(Refresh::reads_clock)) {
            return Ok(Vec::new());
        }
        let until_ms = self.context.clock.now_ms().saturating_sub(HOUR_MS);
        again::due(&self.context, until_ms, Some(OVERDUE_MAX), |_| true, patience).await
    }

    /// The searches that are repeated soon, and the items that are refreshed soon, among those that are asked for.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the ledger cannot be read.
    pub async fn due_soon(
        &self,
        is_asked: impl Fn(&Key) -> bool,
        patience: Patience<'_>,
    ) -> Result<Vec<DueItem>, GaveUp> {
        again::due(&self.context, again::soon(&self.context), None, is_asked, patience).await
    }

    /// Reads these sources, and adds them to `sources`. A clock that is gone shows the current hour.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if they cannot be read.
    pub async fn read(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(), GaveUp> {
        reading::read(&self.context, wanted, sources, patience).await?;
        sources.hour_or(self.hour());
        Ok(())
    }

    /// Reads these sources, adds them to `sources`, and returns those that DynamoDB refuses to read.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if they cannot be read now.
    pub async fn read_each(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<RefusedReads<Source>, GaveUp> {
        let refused = reading::read_each(&self.context, wanted, sources, patience).await?;
        sources.hour_or(self.hour());
        Ok(refused)
    }
}

// ---- The ledger's lists, for the operator ----
//
// Nothing here decides anything: a listed count may be right, which `verify` decides.

/// A count that needs a recount, because a change of it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToRecount {
    /// The count; `None` if the refused change cannot be read, so that any count may be affected.
    pub target: Option<Target>,
    /// Id of the last refused event.
    pub event_id: String,
    /// Why it was refused.
    pub why: String,
    /// When it was listed, in milliseconds since the epoch.
    pub listed_at_ms: u64,
}

impl ToRecount {
    /// Replaces the derivation's stored name with its label.
    pub fn relabel(&mut self, catalogue: &Catalogue) {
        if let Some(target) = &mut self.target {
            catalogue.relabel(&mut target.derivation);
        }
    }

    /// Takes the count off the list, unless it was listed again since this was read. Returns true if it did.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the ledger cannot be written.
    pub async fn take_off<S: Store>(&self, store: &S) -> Result<bool, StoreError> {
        let sk = self.target.as_ref().map(|Target { derivation, item }| sort_key(derivation, item));
        let key = Key::new(RECOUNT, sk.unwrap_or_else(|| format!("{ALL}#{}", self.event_id)));
        let read = [("EventId", s(&self.event_id)), ("ListedAt", n(self.listed_at_ms))];
        let guard = Some(Guard::as_read(Purpose::LossMark, read.map(|(name, value)| (name, Some(value)))));
        let write = Write { table: Table::Ledger, key, action: Action::Delete, guard };
        Ok(matches!(store.write(&write).await?, Outcome::Done { .. }))
    }
}

/// All counts that need a recount, by derivation and item.
///
/// # Errors
///
/// [`StoreError`] if the ledger cannot be read.
pub async fn to_recount<S: Store>(store: &S) -> Result<Vec<ToRecount>, StoreError> {
    Ok(all(store, Table::Ledger, RECOUNT).await?.iter().map(listed).collect())
}

/// An item that a derivation cannot interpret, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUnreadable {
    /// The derivation, by its stored name; [`ALL_DERIVATIONS`](crate::look::listing::ALL_DERIVATIONS) if none can.
    pub derivation: String,
    /// The item.
    pub item: Key,
    /// The attribute at fault, and why.
    pub why: Unreadable,
}

/// All items that cannot be interpreted: one entry for each item and derivation.
///
/// # Errors
///
/// [`StoreError`] if the ledger cannot be read.
pub async fn unreadable<S: Store>(store: &S) -> Result<Vec<ListedUnreadable>, StoreError> {
    let entry = |item: &Item| {
        let field = |name: &str| text(item, name).unwrap_or_default().to_owned();
        let why = Unreadable { attribute: field("Attribute"), why: field("Why") };
        ListedUnreadable { derivation: field("Derivation"), item: Key::new(field("ItemPK"), field("ItemSK")), why }
    };
    Ok(all(store, Table::Ledger, UNREADABLE).await?.iter().map(entry).collect())
}

fn listed(item: &Item) -> ToRecount {
    let field = |name: &str| text(item, name).unwrap_or_default().to_owned();
    let derivation = field("Derivation");
    let listed_at_ms = number(item, "ListedAt").unwrap_or(0);
    let target = (derivation != ALL).then(|| Target { derivation, item: Key::new(field("ItemPK"), field("ItemSK")) });
    ToRecount { target, event_id: field("EventId"), why: field("Why"), listed_at_ms }
}

#[cfg(test)]
mod tests {
    use derive::{coalesce::Counted, position::RecordAt};
    use serde_dynamo::AttributeValue;
    use store::memory::MemoryStore;

    use super::*;
    use crate::{count, fixture::layout, ledger::ledger_item, look::listing};

    #[tokio::test]
    async fn both_lists_are_read() {
        let layout = layout();
        let store = MemoryStore::new(layout.clone());
        assert_eq!((to_recount(&store).await.unwrap(), unreadable(&store).await.unwrap()), (Vec::new(), Vec::new()));

        let why = Unreadable { attribute: "Value".to_owned(), why: "is not of type N".to_owned() };
        let item = Key::new("USER#ada", "PROFILE");
        for derivation in ["one", "other"] {
            store.write(&listing::listed(&layout, derivation, &item, Some(&why), 7)).await.unwrap();
        }
        for derivation in [ALL, "follower-count"] {
            let key = Key::new(RECOUNT, derivation);
            let text = |text: &str| AttributeValue::S(text.to_owned());
            let attributes = [
                ("Derivation", text(derivation)),
                ("ItemPK", text(&item.pk)),
                ("ItemSK", text(&item.sk)),
                ("EventId", text("e1")),
                ("Why", text("it is old")),
                ("ListedAt", AttributeValue::N("8".to_owned())),
            ];
            let action = Action::Put(ledger_item(&layout, &key, attributes));
            store.write(&Write { table: Table::Ledger, key, action, guard: None }).await.unwrap();
        }
        let listed = to_recount(&store).await.unwrap();
        let target = Target { derivation: "follower-count".to_owned(), item: item.clone() };
        assert_eq!(listed.iter().map(|entry| &entry.target).collect::<Vec<_>>(), [&None, &Some(target)]);
        assert!(listed.iter().all(|entry| (entry.event_id.as_str(), entry.listed_at_ms) == ("e1", 8)), "{listed:?}");
        let of = |name: &str| ListedUnreadable { derivation: name.to_owned(), item: item.clone(), why: why.clone() };
        assert_eq!(unreadable(&store).await.unwrap(), ["one", "other"].map(of));
    }

    #[tokio::test]
    async fn a_count_is_taken_off_the_list_only_as_it_was_read() {
        let store = MemoryStore::new(layout());
        let count = Target { derivation: "follower-count".to_owned(), item: Key::new("USER#ada", "PROFILE") };
        let list = async |id: &str, targets: &[Target], now_ms| {
            let (id, sequence_number) = (id.to_owned(), String::new());
            let change = Counted { position: RecordAt(0), id, sequence_number, amounts: Vec::new() };
            for write in count::listed(&layout(), &change, targets, "it is old", now_ms) {
                store.write(&write).await.unwrap();
            }
        };
        list("e1", std::slice::from_ref(&count), 7).await;
        list("e2", &[], 8).await;
        let [any, read] = <[ToRecount; 2]>::try_from(to_recount(&store).await.unwrap()).unwrap();
        assert_eq!((&any.target, &read.target), (&None, &Some(count.clone())));
        list("e3", &[count], 9).await;
        assert!(any.take_off(&store).await.unwrap());
        assert!(!read.take_off(&store).await.unwrap(), "another change of it was refused meanwhile");
        let [again] = <[ToRecount; 1]>::try_from(to_recount(&store).await.unwrap()).unwrap();
        assert!(again.take_off(&store).await.unwrap());
        assert_eq!(to_recount(&store).await.unwrap(), []);
    }
}

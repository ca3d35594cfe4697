//! Under watermarks: one update for each counter and batch, which adds and moves the watermark.
//!
//! The engine updates all counters of a batch at once, because their order does not matter. An update whose condition
//! fails returns the item: the engine drops the changes that its watermark has passed, and sends the rest again. If a
//! counter refuses an update, the engine sends its changes one by one, in their order, and parks the one at fault for
//! this counter alone.
//!
//! A counter may [spread](crate::ledger): the engine finds the item on which the batch's stream shard counts, and makes
//! a home spread.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    bucket::StoredBuckets,
    coalesce::{Adds, Amount, item_write},
    guard::{Ask, Guard, Purpose},
    position::RecordAt,
    write::{Action, Table, Update, Write},
};
use futures::{StreamExt, stream};
use keys::{
    counter::{CounterKey, REVISION, SHOWN, SPREAD},
    item::Item,
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;
use store::{Store, Units, Updated};

use crate::{
    account::{Account, Commit, undone},
    attribute::{checksum, n},
    backoff::{GaveUp, Patience, Tries, describe},
    context::Context,
    count::{Counter, CounterTodo, ShardSession, Todo, UPDATES_AT_ONCE},
    input::Batch,
    ledger::{
        satellite,
        watermarks::{HORIZON_MS, KEPT_MS, has_passed, mark_of, marks, older_than},
    },
    limits::SpreadLimits,
    plan::CountEntry,
    protocol::ProtocolStep,
};

/// The result of a batch's additions to a counter.
#[derive(Debug, Default)]
pub(super) struct CounterOutcome {
    pub(super) account: Account,
    /// Changes that the watermark had passed.
    pub(super) dropped: BTreeSet<RecordAt>,
    /// Changes that are applied or parked.
    pub(super) done: BTreeSet<RecordAt>,
    /// Why it stopped before all was done.
    stopped: Option<(Key, String)>,
}

/// The next step for a counter.
enum Next {
    /// Send the remaining changes.
    Send,
    /// Wait, then send the remaining changes; the reason is reported if there is no time.
    Again(String),
    /// Send the remaining changes one by one, or park the first one if it is alone.
    Refused(String),
    /// Park the remaining changes: another item has the counter's key.
    Foreign(String),
    /// Stop, because nothing more can be done now.
    Stop(String),
}

impl<S: Store> Counter<'_, S> {
    /// Applies the additions of a batch, with a watermark on each counter.
    pub(crate) async fn add_marked(
        &self,
        entries: Vec<CountEntry>,
        shard: &mut ShardSession,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        if let Some(why) = &shard.stopped {
            return undone(account, entries.iter().map(|entry| entry.change.position), why);
        }
        let (entries, unlisted) =
            self.admitted(entries, |change| shard.exceptions.excepts(&change.id, None), batch, account).await;
        shard.stopped = unlisted;
        let mut todo = BTreeMap::new();
        for mut entry in entries {
            let position = entry.change.position;
            if shard.stopped.is_none()
                && let Err(cause) = self.sort_out(&mut entry, shard, &mut todo)
            {
                shard.stopped = self.except(&entry, &cause, shard, batch, account).await.err();
            }
            if let Some(why) = &shard.stopped {
                undone(account, [position], why);
            }
        }
        if let Some(why) = &shard.stopped {
            let positions = todo.values().flat_map(|counter: &CounterTodo| &counter.todo).map(|todo| todo.position);
            return undone(account, positions.collect::<BTreeSet<_>>(), why);
        }
        self.update_all(todo.into_values().collect(), shard, batch, account).await;
    }

    /// Updates all counters of a batch, several at once.
    async fn update_all(
        &self,
        mut counters: Vec<CounterTodo>,
        shard: &mut ShardSession,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        for counter in &mut counters {
            counter.todo.sort_by_key(|todo| todo.sequence);
        }
        let mut stored = match self.buckets_of(&counters, batch).await {
            Ok(stored) => stored,
            Err(why) => {
                let positions = counters.iter().flat_map(|counter| &counter.todo).map(|todo| todo.position);
                undone(account, positions.collect::<BTreeSet<_>>(), &why);
                return shard.stopped = Some(why);
            }
        };
        for counter in &mut counters {
            counter.stored = stored.remove(&counter.at);
        }
        let (mut dropped, mut done) = (BTreeSet::new(), BTreeSet::new());
        let updates = counters.into_iter().map(|counter| self.update_counter(counter, shard, batch));
        let mut updates = stream::iter(updates).buffer_unordered(UPDATES_AT_ONCE);
        let mut stopped = Vec::new();
        while let Some(outcome) = updates.next().await {
            account.add(outcome.account);
            dropped.extend(outcome.dropped);
            done.extend(outcome.done);
            stopped.extend(outcome.stopped);
        }
        drop(updates);
        shard.stopped_counters.extend(stopped);
        account.n_duplicates +=
            dropped.iter().filter(|at| !done.contains(at) && !account.undone.contains_key(at)).count();
    }

    /// The stored buckets among these counters.
    async fn buckets_of(&self, counters: &[CounterTodo], batch: &Batch<'_>) -> Result<StoredBuckets, String> {
        let is_bucket = |counter: &&CounterTodo| {
            counter.todo.iter().flat_map(|todo| &todo.adds).any(|adds| matches!(adds, Adds::Value(..)))
        };
        let keys: Vec<Key> = counters.iter().filter(is_bucket).map(|counter| counter.at.clone()).collect();
        batch.patience.call(|| self.stored_buckets(&keys)).await.map_err(|error| describe(&error))
    }

    /// Applies all changes of a counter, then writes its display.
    async fn update_counter(
        &self,
        mut counter: CounterTodo,
        shard: &ShardSession,
        batch: &Batch<'_>,
    ) -> CounterOutcome {
        let mut outcome = CounterOutcome::default();
        counter.is_hot = self.is_hot(&counter);
        if let Err(why) = self.bring(&mut counter, shard, batch, &mut outcome).await {
            undone(&mut outcome.account, counter.todo.iter().map(|todo| todo.position), &why);
            outcome.stopped = Some((counter.key.clone(), why));
        }
        self.show(&counter, batch, &mut outcome).await;
        outcome
    }

    /// Sends the batch's additions to a counter until none is left, or returns why some are left.
    async fn bring(
        &self,
        counter: &mut CounterTodo,
        shard: &ShardSession,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) -> Result<(), String> {
        let (mut tries, mut is_singly) = (Tries::default(), false);
        let mut next = match shard.stopped_counters.get(&counter.key) {
            Some(why) => Next::Stop(why.clone()),
            None => Next::Send,
        };
        loop {
            match next {
                Next::Send => {}
                Next::Again(why) => {
                    outcome.account.sends_again([counter.derivation]);
                    if !batch.patience.wait(&mut tries).await {
                        return Err(why);
                    }
                }
                Next::Refused(_) if !is_singly && counter.todo.len() > 1 => is_singly = true,
                Next::Refused(cause) => self.park_first(counter, &cause, shard, batch, outcome).await?,
                Next::Foreign(cause) => {
                    while !counter.todo.is_empty() {
                        self.except_first(counter, &cause, shard, batch, outcome).await?;
                    }
                }
                Next::Stop(why) => return Err(why),
            }
            if counter.todo.is_empty() {
                return Ok(());
            }
            next = if batch.patience.is_over() {
                Next::Stop("no time is left for it".to_owned())
            } else {
                let n_part = if is_singly { 1 } else { counter.todo.len() };
                self.send_part(counter, n_part, &shard.mark, batch, outcome).await
            };
        }
    }

    /// Sends the first changes of a counter.
    async fn send_part(
        &self,
        counter: &mut CounterTodo,
        n_part: usize,
        mark: &str,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) -> Next {
        let Some(write) = self.marked_write(counter, n_part, mark) else {
            // A mutant sends nothing for additions that cancel out.
            outcome.done.extend(counter.todo.drain(..n_part).map(|todo| todo.position));
            return Next::Send;
        };
        match batch.patience.in_time(self.context.store.update(&write)).await {
            Ok(Updated::Done { units, item }) => {
                let causes: BTreeSet<RecordAt> = counter.todo.drain(..n_part).map(|todo| todo.position).collect();
                outcome.done.extend(&causes);
                counter.may_begin = has_begun(&write, &item);
                self.commit_counter(counter, Some(write.action), units, causes.clone(), &mut outcome.account);
                self.prune(counter, &item, causes.clone(), batch, &mut outcome.account).await;
                self.spread(counter, &item, mark, causes, batch, &mut outcome.account).await;
                counter.stored = Some(item);
                Next::Send
            }
            Ok(Updated::GuardFailed { item }) => self.after_failure(counter, item, &write, mark, outcome),
            Err(error) if error.is_standing() => Next::Stop(describe(&error)),
            Err(error) if error.is_retry() => {
                let name = self.context.catalogue.label(counter.derivation);
                error.busy().into_iter().for_each(|busy| outcome.account.contention.met(Some(name), busy));
                Next::Again(describe(&error))
            }
            Err(error) => Next::Refused(describe(&error)),
        }
    }

    /// The next step after the condition failed.
    fn after_failure(
        &self,
        counter: &mut CounterTodo,
        item: Option<Item>,
        write: &Write,
        mark: &str,
        outcome: &mut CounterOutcome,
    ) -> Next {
        let stored = item.unwrap_or_default();
        let passed = mark_of(&stored, mark);
        let is_passed = |todo: &Todo| passed.is_some_and(|passed| has_passed(passed, todo.sequence));
        if counter.todo.first().is_some_and(is_passed) {
            let n_passed = if self.context.takes(ProtocolStep::DropPassed) {
                counter.todo.iter().take_while(|todo| is_passed(todo)).count()
            } else {
                counter.todo.len()
            };
            outcome.dropped.extend(counter.todo.drain(..n_passed).map(|todo| todo.position));
            counter.stored = Some(stored);
            return Next::Send;
        }
        if let Some(why) = self.has_its_key(write, &stored) {
            return Next::Foreign(why);
        }
        if self.goes_to_satellite(counter, &stored, mark) {
            return Next::Send;
        }
        counter.stored = Some(stored);
        Next::Again("its bucket was changed by others all the time".to_owned())
    }

    pub(super) fn commit_counter(
        &self,
        counter: &CounterTodo,
        action: Option<Action>,
        units: Units,
        causes: BTreeSet<RecordAt>,
        account: &mut Account,
    ) {
        account.commits.push(Commit {
            key: counter.at.clone(),
            table: Table::Main,
            action,
            at_ms: self.context.clock.now_ms(),
            units,
            derivations: vec![self.context.catalogue.label(counter.derivation).to_owned()],
            causes,
            is_correction: false,
        });
    }
}

/// True if this update, which returned this item, created the counter.
fn has_begun(write: &Write, item: &Item) -> bool {
    let Action::Update(update) = &write.action else { return false };
    let first = update.count_from.get(REVISION).and_then(whole_number).and_then(|from| from.checked_add(1));
    first.is_some() && item.get(REVISION).and_then(whole_number) == first
}

// ---- update ----

impl<S: Store> Counter<'_, S> {
    /// The update of a counter that adds its first changes and moves the watermark to the last of them.
    fn marked_write(&self, counter: &CounterTodo, n_part: usize, mark: &str) -> Option<Write> {
        let part = counter.todo.get(..n_part)?;
        let (first, last) = (part.first()?, part.last()?);
        let amounts = part.iter().flat_map(|todo| &todo.adds);
        let mut write = item_write(&self.context.schema, &counter.at, amounts, counter.stored.as_ref())?;
        let Action::Update(update) = &mut write.action else { return None };
        let is_nothing = update.add.values().all(keys::value::is_zero);
        if is_nothing && !self.context.takes(ProtocolStep::NetZeroProof) {
            return None;
        }
        let bound = first.sequence.bound(self.context.takes(ProtocolStep::BelowFirst));
        let mut asks = vec![may_mark(&counter.at, mark, bound)];
        asks.extend(write.guard.into_iter().flat_map(|guard| guard.asks));
        update.set.insert(mark.to_owned(), last.sequence.mark(self.context.clock.now_ms()));
        // A recreated counter starts above the revisions that were displayed before.
        update.count_from.insert(REVISION.to_owned(), n(self.context.clock.now_ms()));
        if counter.is_hot {
            update.remove.insert(SHOWN.to_owned());
        } else if self.shows_itself(counter) {
            update.set.insert(SHOWN.to_owned(), AttributeValue::Bool(true));
        }
        write.guard = Some(Guard { purpose: Purpose::Watermark, asks });
        Some(write)
    }

    /// Removes watermarks that are too old to be needed.
    async fn prune(
        &self,
        counter: &CounterTodo,
        item: &Item,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let age_ms = if self.context.takes(ProtocolStep::PruneLate) { KEPT_MS } else { HORIZON_MS / 1_000 };
        let Some(write) = pruning(&counter.at, item, age_ms, self.context.clock.now_ms()) else { return };
        // Watermarks that are not removed now are removed after the next update.
        if let Ok(Updated::Done { units, .. }) = batch.patience.in_time(self.context.store.update(&write)).await {
            self.commit_counter(counter, None, units, causes, account);
        }
    }
}

/// The write that removes a counter's watermarks of this age, in milliseconds; `None` if there are none.
pub(crate) fn pruning(key: &Key, item: &Item, age_ms: u64, now_ms: u64) -> Option<Write> {
    let old: BTreeSet<String> = older_than(item, age_ms, now_ms).into_iter().map(str::to_owned).collect();
    if old.is_empty() {
        return None;
    }
    let seen = old.iter().map(|name| (name.clone(), item.get(name).cloned()));
    let guard = Some(Guard::as_read(Purpose::OldWatermark, seen));
    let action = Action::Update(Update { remove: old, ..Update::default() });
    Some(Write { table: Table::Main, key: key.clone(), action, guard })
}

// ---- Counters that spread ----

/// The test that the watermark on an item is below a bound, or may be set.
pub(super) fn may_mark(at: &Key, mark: &str, bound: AttributeValue) -> Ask {
    if CounterKey::is_home(at) {
        return Ask::BelowOrLacksBoth(mark.to_owned(), bound, SPREAD.to_owned());
    }
    Ask::LacksOrBelow(mark.to_owned(), bound)
}

impl<S: Store> Counter<'_, S> {
    /// The item on which this stream shard counts, as far as this engine knows: the home or bucket, or a satellite.
    pub(crate) fn counted_at(&self, amount: &Amount, shard: &ShardSession) -> Key {
        let remembered = self.context.spread.remembered(&amount.item, self.remembered_by(&shard.mark));
        let name = self.context.catalogue.name(amount.derivation);
        remembered.unwrap_or_else(|| shard.item.counts_at(amount.item.clone(), name, &shard.lane))
    }

    fn remembered_by<'a>(&self, mark: &'a str) -> &'a str {
        // A mutant takes what it saw of one stream shard for all.
        if self.context.takes(ProtocolStep::SatelliteByShard) { mark } else { "" }
    }

    /// Sends a counter's changes to the satellite if the home, which a failed update returned, has spread without the
    /// watermark. False if they count at home.
    fn goes_to_satellite(&self, counter: &mut CounterTodo, stored: &Item, mark: &str) -> bool {
        let Some(satellite) = satellite(&counter.at, stored, mark) else { return false };
        self.context.spread.remember(&counter.key, self.remembered_by(mark), satellite.clone());
        (counter.at, counter.stored) = (satellite, None);
        true
    }

    /// Makes a home spread if it has as many watermarks as it may. A home that does not spread now does after a later
    /// update.
    pub(super) async fn spread(
        &self,
        counter: &CounterTodo,
        item: &Item,
        mark: &str,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let SpreadLimits { marks_max, n_satellites } = self.context.spread.limits;
        let n_marks = marks(item).count();
        if n_marks < marks_max || item.contains_key(SPREAD) || !CounterKey::is_home(&counter.at) {
            return;
        }
        if n_marks - older_than(item, KEPT_MS, self.context.clock.now_ms()).len() < marks_max {
            return;
        }
        let write = self.spreading(&counter.at);
        if !self.context.takes(ProtocolStep::SeenToHaveSpread) {
            let other = CounterKey {
                satellite: 1 + checksum(mark) % n_satellites,
                ..CounterKey::parse(&counter.at).unwrap_or_default()
            };
            other.key().into_iter().for_each(|key| self.context.spread.remember(&counter.key, mark, key));
        }
        if let Ok(Updated::Done { units, .. }) = batch.patience.in_time(self.context.store.update(&write)).await {
            self.commit_counter(counter, None, units, causes, account);
        }
    }

    /// The write that makes a home spread. Without its `Shown` flag, its record requests a refresh of the display.
    pub(super) fn spreading(&self, home: &Key) -> Write {
        let requests = self.context.takes(ProtocolStep::SpreadingRequests);
        let update = Update {
            set: Item::from([(SPREAD.to_owned(), n(self.context.spread.limits.n_satellites.into()))]),
            remove: requests.then(|| SHOWN.to_owned()).into_iter().collect(),
            ..Update::default()
        };
        let asks = vec![Ask::Present, Ask::Lacks(SPREAD.to_owned())];
        let guard = Some(Guard { purpose: Purpose::Spread, asks });
        Write { table: Table::Main, key: home.clone(), action: Action::Update(update), guard }
    }

    /// Another item of a busy counter, under receipts: there any item may count, because the receipt proves the change.
    pub(super) fn beside(&self, key: &Key, id: &str) -> Key {
        let Some(counter) = CounterKey::parse(key) else { return key.clone() };
        let home = CounterKey { satellite: 0, ..counter.clone() };
        let n_satellites = self.context.spread.limits.n_satellites;
        let beside = CounterKey { satellite: 1 + checksum(&format!("{id}{}", key.sk)) % n_satellites, ..counter };
        let (Ok(home), Ok(beside)) = (home.key(), beside.key()) else { return key.clone() };
        self.context.spread.remember(&home, "", beside.clone());
        beside
    }
}

/// The items of counters and buckets on which these watermarks are, or would be set, by key and watermark.
pub(crate) async fn marked<S: Store>(
    context: &Context<S>,
    of: BTreeSet<(Key, String)>,
    patience: Patience<'_>,
) -> Result<BTreeMap<(Key, String), Item>, GaveUp> {
    let counter = Counter::new(context);
    let read = async |keys: BTreeSet<Key>| -> Result<StoredBuckets, GaveUp> {
        let keys: Vec<Key> = keys.into_iter().collect();
        patience.call(|| counter.stored_buckets(&keys)).await
    };
    let homes = read(of.iter().map(|(key, _)| key.clone()).collect()).await?;
    let at = |(key, mark): &(Key, String)| homes.get(key).and_then(|stored| satellite(key, stored, mark));
    let satellites = read(of.iter().filter_map(at).collect()).await?;
    let item = |of: (Key, String)| {
        let stored = match at(&of) {
            Some(satellite) => satellites.get(&satellite),
            None => homes.get(&of.0),
        };
        Some((of, stored?.clone()))
    };
    Ok(of.into_iter().filter_map(item).collect())
}

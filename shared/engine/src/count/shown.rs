//! Displays written by the counting function: after it updates a counter, it writes the displays of the counter's
//! target from the item that the update returned.
//!
//! *Keeps true*: a batch is done only if each target of its counters displays their count, or a later revision, or does
//! not exist. The update of the counter states that its count is displayed ([`SHOWN`](keys::counter::SHOWN)), so its
//! record refreshes no target. An invocation that ends between the two writes leaves the batch undone. After redelivery
//! the counter's watermark has passed the batch, and the failed update returns the counter, whose count is then
//! displayed.
//!
//! The write needs no read: the revision number keeps an older count from replacing a newer one. The engine clears the
//! counter's `Shown` flag if that number does not decide, because the counter has several items or was recreated, or if
//! the write is refused. The counter's stream record then refreshes the target, and is parked if that is refused. The
//! engine also clears the flag for a counter's first revision if the target already displays a count: that count may
//! come from other items, which were counted without a revision. A counter that has [spread](crate::ledger) is displayed
//! by the refresh that its records request, and so is a [hot](crate::context::Context::hot) one.
//!
//! A batch whose display kills each invocation is not redelivered to be displayed: its change is parked. The redrive of
//! the change clears the counter's `Shown` flag.
//!
//! *Example*: a follow raises `USER#bob / PROFILE#COUNT#follower-count#00` to 12, revision 40. `USER#bob / PROFILE`
//! gets `FollowerCount` 12 and `FollowerCount:rev` 40, unless it displays revision 40 or a later one.

use std::collections::BTreeSet;

use derive::{
    guard::{Ask, Guard, Purpose},
    kind::{Computed, Refresh, RefreshTarget},
    position::{DerivationAt, RecordAt},
    sources::Sources,
    write::{Action, Table, Update, Wanted, Write},
};
use keys::{
    counter::{CounterKey, SHOWN, SPREAD},
    item::Item,
    key::Key,
    shown::is_revision,
};
use serde_dynamo::AttributeValue;
use store::{Store, Units, Updated};

use crate::{
    account::{Commit, Target, undone},
    backoff::{GaveUp, Patience, Tries, describe},
    count::{Counter, CounterTodo, marked::CounterOutcome},
    input::Batch,
    protocol::ProtocolStep,
    reading,
};

/// The wanted displays of a counter's target.
struct Showing {
    target: Key,
    entity: String,
    displays: BTreeSet<DerivationAt>,
    wanted: Vec<Wanted>,
}

impl Showing {
    /// True if an item has these displays.
    fn is_held_by(&self, item: &Item) -> bool {
        self.wanted.iter().all(|wanted| wanted.is_held_by(Some(item)))
    }
}

impl<S: Store> Counter<'_, S> {
    /// True if this counter's count is displayed on some item.
    fn is_shown(&self, counter: &CounterTodo) -> bool {
        let catalogue = &self.context.catalogue;
        catalogue.displays(catalogue.name(counter.derivation)).next().is_some()
    }

    /// True if the counting function writes the display, unless the counter is hot. It does not for a counter that has
    /// spread, whose satellites are not read here.
    pub(super) fn shows_itself(&self, counter: &CounterTodo) -> bool {
        CounterKey::is_home(&counter.at) && self.is_shown(counter)
    }

    /// True if this counter is hot, which a batch counts now.
    pub(super) fn is_hot(&self, counter: &CounterTodo) -> bool {
        let (hot, now_ms) = (&self.context.hot, self.context.clock.now_ms());
        let is_hot = hot.has(&counter.key, now_ms);
        if self.shows_itself(counter) {
            hot.note(counter.key.clone(), now_ms);
        }
        is_hot
    }

    /// Displays a counter's count, if this batch changed the counter or found it changed.
    pub(super) async fn show(&self, counter: &CounterTodo, batch: &Batch<'_>, outcome: &mut CounterOutcome) {
        let causes: BTreeSet<RecordAt> = outcome.done.union(&outcome.dropped).copied().collect();
        let Some(stored) = counter.stored.as_ref().filter(|_| !causes.is_empty()) else { return };
        // A hot counter with the flag was counted by an invocation that ended before it wrote the display.
        let has_flag = stored.contains_key(SHOWN) && self.context.takes(ProtocolStep::HotWithFlag);
        let is_left_to_its_record = stored.contains_key(SPREAD) || (counter.is_hot && !has_flag);
        if !self.shows_itself(counter) || is_left_to_its_record {
            return;
        }
        let Some(showing) = self.showing(counter, [stored]) else { return };
        let mut has_several = false;
        if let Some(write) = self.shown(&showing, counter.may_begin) {
            match self.sent(&write, &showing.displays, batch, outcome).await {
                Ok(Some(Updated::Done { units, .. })) => {
                    outcome.account.commits.push(self.shown_commit(&showing, write, units, causes));
                    return;
                }
                Ok(Some(Updated::GuardFailed { item })) => {
                    let Some(item) = item.filter(|item| self.is_of(&showing.entity, item)) else { return };
                    if showing.is_held_by(&item) {
                        return;
                    }
                    match self.shows_all(&item, counter, batch).await {
                        Ok((true, _)) => return,
                        Ok((false, several)) => has_several = several,
                        Err(error) => return undone(&mut outcome.account, causes, &describe(&error)),
                    }
                }
                Ok(None) => {}
                Err(why) => return undone(&mut outcome.account, causes, &why),
            }
        }
        self.leave_to_its_record(counter, has_several, causes, batch, outcome).await;
    }

    /// Clears the counter's `Shown` flag. A home with other items beside it spreads, so that nobody displays it alone again.
    async fn leave_to_its_record(
        &self,
        counter: &CounterTodo,
        has_several: bool,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) {
        let not_shown = if has_several { self.spreading(&counter.at) } else { not_shown(&counter.at) };
        match self.sent(&not_shown, &BTreeSet::from([counter.derivation]), batch, outcome).await {
            Ok(Some(Updated::Done { units, .. })) => {
                self.commit_counter(counter, Some(not_shown.action), units, causes, &mut outcome.account);
            }
            Ok(Some(Updated::GuardFailed { .. })) => {}
            Ok(None) => undone(&mut outcome.account, causes, "its counter refuses to say that it is not shown"),
            Err(why) => undone(&mut outcome.account, causes, &why),
        }
    }

    /// Clears the `Shown` flag of these counters, if it is set. An invocation that may have counted there has died,
    /// perhaps before it wrote the display.
    pub(crate) async fn leave_to_their_records(&self, counters: &[Item], patience: Patience<'_>) -> Result<(), GaveUp> {
        let says_so = |counter: &&Item| counter.get(SHOWN) == Some(&AttributeValue::Bool(true));
        for key in counters.iter().filter(says_so).filter_map(|counter| self.context.schema.layout.key(counter)) {
            let write = not_shown(&key);
            patience.call(|| self.context.store.write(&write)).await?;
        }
        Ok(())
    }

    /// Sends a write until it has an outcome; `None` if it is refused. The error is why it has no outcome now.
    async fn sent(
        &self,
        write: &Write,
        derivations: &BTreeSet<DerivationAt>,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) -> Result<Option<Updated>, String> {
        let mut tries = Tries::default();
        loop {
            match batch.patience.in_time(self.context.store.update(write)).await {
                Ok(updated) => return Ok(Some(updated)),
                Err(error) if error.is_standing() => return Err(describe(&error)),
                Err(error) if error.is_retry() => {
                    let first = derivations.first().map(|at| self.context.catalogue.label(*at));
                    error.busy().into_iter().for_each(|busy| outcome.account.contention.met(first, busy));
                    outcome.account.sends_again(derivations.iter().copied());
                    if !batch.patience.wait(&mut tries).await {
                        return Err(describe(&error));
                    }
                }
                Err(_) => return Ok(None),
            }
        }
    }

    /// True if the target displays the current sum over all items of the counter; and true if these are several.
    async fn shows_all(&self, item: &Item, counter: &CounterTodo, batch: &Batch<'_>) -> Result<(bool, bool), GaveUp> {
        let Some(CounterKey { target, derivation, .. }) = CounterKey::parse(&counter.at) else {
            return Ok((true, false));
        };
        let target = Target { derivation, item: target };
        let counters = reading::counters_of(self.context, &target, batch.patience).await?;
        let is_shown = self.showing(counter, counters.values()).is_some_and(|showing| showing.is_held_by(item));
        Ok((is_shown, counters.len() > 1))
    }

    fn is_of(&self, entity: &str, item: &Item) -> bool {
        let schema = &self.context.schema;
        schema.entity(entity).is_some_and(|entity| schema.layout.names(entity, item))
    }

    /// The wanted displays of the target, from these items of the counter.
    fn showing<'a>(&self, counter: &CounterTodo, items: impl IntoIterator<Item = &'a Item>) -> Option<Showing> {
        let (schema, catalogue) = (&self.context.schema, &self.context.catalogue);
        let target = CounterKey::parse(&counter.key)?.target;
        let mut sources = Sources::default();
        sources.add_counters(schema, target.clone(), items);
        let (mut entity, mut displays, mut wanted) = (None, BTreeSet::new(), Vec::new());
        for (at, display) in catalogue.displays(catalogue.name(counter.derivation)) {
            let definition = schema.entity(Refresh::target(display)).filter(|it| it.key.parse_key(&target).is_some());
            let Some(definition) = definition else { continue };
            let item = RefreshTarget { key: &target, definition, item: None, named: &BTreeSet::new(), hour: None };
            if let Computed::Attributes(attributes) = display.compute(schema, &item, &sources) {
                // All targets of a count are of one entity.
                entity.get_or_insert_with(|| definition.name.clone());
                displays.insert(at);
                wanted.extend(attributes);
            }
        }
        Some(Showing { target, entity: entity?, displays, wanted })
    }

    /// The write of the displays; `None` if the revision is unknown. The count of a counter that this batch may have
    /// created replaces no other count.
    fn shown(&self, showing: &Showing, may_begin: bool) -> Option<Write> {
        let mut update = Update::default();
        let its_type = self.context.schema.mark_of(&showing.entity);
        let its_type = its_type.map(|(name, value)| Ask::Equal(name, value));
        let mut asks: Vec<Ask> = std::iter::once(Ask::Present).chain(its_type).collect();
        let mut has_revision = false;
        for Wanted { name, value, .. } in &showing.wanted {
            match value {
                Some(value) => drop(update.set.insert(name.clone(), value.clone())),
                None => drop(update.remove.insert(name.clone())),
            }
            if let Some(revision) = value.as_ref().filter(|_| is_revision(name)) {
                has_revision = true;
                asks.push(Ask::LacksOrBelow(name.clone(), revision.clone()));
            }
        }
        let shown = showing.wanted.iter().filter(|wanted| may_begin && !is_revision(&wanted.name));
        asks.extend(shown.map(|wanted| Ask::Lacks(wanted.name.clone())));
        has_revision.then(|| Write {
            table: Table::Main,
            key: showing.target.clone(),
            action: Action::Update(update),
            guard: Some(Guard { purpose: Purpose::Shown, asks }),
        })
    }

    fn shown_commit(&self, showing: &Showing, write: Write, units: Units, causes: BTreeSet<RecordAt>) -> Commit {
        let name = |at: &DerivationAt| self.context.catalogue.label(*at).to_owned();
        Commit {
            key: write.key,
            table: write.table,
            action: Some(write.action),
            at_ms: self.context.clock.now_ms(),
            units,
            derivations: showing.displays.iter().map(name).collect(),
            causes,
            is_correction: false,
        }
    }
}

/// Clears the counter's `Shown` flag; its stream record then refreshes the target.
fn not_shown(counter: &Key) -> Write {
    let update = Update { remove: BTreeSet::from([SHOWN.to_owned()]), ..Update::default() };
    let (action, guard) = (Action::Update(update), Some(Guard::present(Purpose::Update)));
    Write { table: Table::Main, key: counter.clone(), action, guard }
}

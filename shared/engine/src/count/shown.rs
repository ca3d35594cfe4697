//! Showing a count where it is counted: the function that updates a counter writes the displays of its target with what
//! the update returned.
//!
//! *Keeps true*: a batch is done only if each target of its counters shows what they came to, or a later revision of
//! them, or does not exist. The update of the counter says that its count is shown ([`SHOWN`](keys::counter::SHOWN)),
//! so its record asks nobody to refresh the target. An invocation that ends between the two writes leaves the batch
//! undone; when it comes again, the counter's watermark has passed it, and the counter that comes back is shown.
//!
//! The write needs no reading: the number of the revision keeps an older count from replacing a newer one. Where that
//! number does not decide, since the counter has several items or began anew, and where the write is refused, the
//! counter says no more that its count is shown. Its stream record then refreshes the target, and is parked if that is
//! refused. The same goes for a batch that comes again to a version of the functions that declares several items, and
//! for a counter's first revision where something is shown already: that may be of other items, which were counted
//! without a revision.
//!
//! A batch that kills each invocation as it shows a count does not come again to be shown: its change is parked. Its
//! redrive has the counter say no more that its count is shown.
//!
//! *Example*: a follow brings `USER#bob / PROFILE#COUNT#follower-count#00` to 12, revision 40. `USER#bob / PROFILE`
//! gets `FollowerCount` 12 and `FollowerCount:rev` 40, if it shows no revision from 40 on.

use std::collections::BTreeSet;

use derive::{
    guard::{Ask, Guard, Purpose},
    kind::{Computed, Refresh, RefreshTarget, Shape},
    position::{DerivationAt, RecordAt},
    sources::{Source, Sources},
    write::{Action, Table, Update, Wanted, Write},
};
use keys::{
    counter::{CounterKey, SHOWN},
    item::Item,
    key::Key,
    shown::is_revision,
};
use serde_dynamo::AttributeValue;
use store::{Store, Units, Updated};

use crate::{
    account::{Commit, undone},
    backoff::{GaveUp, Patience, Tries, describe},
    count::{Counter, CounterTodo, marked::CounterOutcome},
    counters::Target,
    input::Batch,
    reading,
};

/// What the target of a counter is to show.
struct Showing {
    target: Key,
    entity: String,
    displays: BTreeSet<DerivationAt>,
    wanted: Vec<Wanted>,
}

impl Showing {
    /// Does an item show it?
    fn is_held_by(&self, item: &Item) -> bool {
        self.wanted.iter().all(|wanted| wanted.is_held_by(Some(item)))
    }
}

impl<S: Store> Counter<'_, S> {
    /// Is this counter's count shown somewhere?
    pub(super) fn is_shown(&self, counter: &CounterTodo) -> bool {
        let catalogue = &self.context.catalogue;
        catalogue.displays(catalogue.name(counter.derivation)).next().is_some()
    }

    /// Does the function that counts it show it? Not if it has several items, which are not read here.
    pub(super) fn shows_itself(&self, counter: &CounterTodo) -> bool {
        let derivation = self.context.catalogue.derivation(counter.derivation);
        let is_whole =
            derivation.is_some_and(|it| matches!(it.kind.shape(), Shape::Count(count) if count.n_shards == 1));
        is_whole && CounterKey::parse(&counter.key).is_some_and(|key| key.shard == 0) && self.is_shown(counter)
    }

    /// Shows what a counter came to, as far as this batch has moved it or found it moved.
    pub(super) async fn show(&self, counter: &CounterTodo, batch: &Batch<'_>, outcome: &mut CounterOutcome) {
        let causes: BTreeSet<RecordAt> = outcome.done.union(&outcome.dropped).copied().collect();
        let Some(held) = counter.held.as_ref().filter(|_| !causes.is_empty()) else { return };
        if !self.shows_itself(counter) {
            // Another version of the functions counted it, and may have ended before it was shown.
            if held.get(SHOWN) == Some(&AttributeValue::Bool(true)) {
                match self.is_shown_right(counter, held, batch).await {
                    Ok(true) => {}
                    Ok(false) => self.leave_to_its_record(counter, causes, batch, outcome).await,
                    Err(error) => undone(&mut outcome.account, causes, &describe(&error)),
                }
            }
            return;
        }
        let Some(showing) = self.showing(counter, [held]) else { return };
        if let Some(write) = self.shown(&showing, counter.may_begin) {
            match self.sent(&write, &showing.displays, batch, outcome).await {
                Ok(Some(Updated::Done { units, .. })) => {
                    outcome.account.commits.push(self.shown_commit(&showing, write, units, causes));
                    return;
                }
                Ok(Some(Updated::GuardFailed { item })) => {
                    let Some(item) = item.filter(|item| self.is_of(&showing.entity, item)) else { return };
                    match self.is_right(&item, counter, &showing, batch).await {
                        Ok(true) => return,
                        Ok(false) => {}
                        Err(error) => return undone(&mut outcome.account, causes, &describe(&error)),
                    }
                }
                Ok(None) => {}
                Err(why) => return undone(&mut outcome.account, causes, &why),
            }
        }
        self.leave_to_its_record(counter, causes, batch, outcome).await;
    }

    /// Has the counter say no more that its count is shown.
    async fn leave_to_its_record(
        &self,
        counter: &CounterTodo,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        outcome: &mut CounterOutcome,
    ) {
        let not_shown = not_shown(&counter.key);
        match self.sent(&not_shown, &BTreeSet::from([counter.derivation]), batch, outcome).await {
            Ok(Some(Updated::Done { units, .. })) => {
                self.commit_counter(counter, Some(not_shown.action), units, causes, &mut outcome.account);
            }
            Ok(Some(Updated::GuardFailed { .. })) => {}
            Ok(None) => undone(&mut outcome.account, causes, "its counter refuses to say that it is not shown"),
            Err(why) => undone(&mut outcome.account, causes, &why),
        }
    }

    /// Has these counters say no more that their counts are shown, where they say so. An invocation that may have
    /// counted there has died, and may have done so before it showed the count.
    pub(crate) async fn leave_to_their_records(&self, counters: &[Item], patience: Patience<'_>) -> Result<(), GaveUp> {
        let says_so = |counter: &&Item| counter.get(SHOWN) == Some(&AttributeValue::Bool(true));
        for key in counters.iter().filter(says_so).filter_map(|counter| self.context.schema.layout.key(counter)) {
            let write = not_shown(&key);
            patience.call(|| self.context.store.write(&write)).await?;
        }
        Ok(())
    }

    /// Sends a write until it has an outcome; `None` if it is refused, and why there is none now, if there is none.
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

    /// Does the target show what the counter came to, or what all its items come to by now?
    async fn is_right(
        &self,
        item: &Item,
        counter: &CounterTodo,
        showing: &Showing,
        batch: &Batch<'_>,
    ) -> Result<bool, GaveUp> {
        Ok(showing.is_held_by(item) || self.shows_all(item, counter, showing, batch).await?)
    }

    /// Does the target show what all items of the counter come to, or is there none?
    async fn is_shown_right(&self, counter: &CounterTodo, held: &Item, batch: &Batch<'_>) -> Result<bool, GaveUp> {
        let Some(showing) = self.showing(counter, [held]) else { return Ok(true) };
        let mut sources = Sources::default();
        let target = BTreeSet::from([Source::Item(showing.target.clone())]);
        reading::read(self.context, target, &mut sources, batch.patience).await?;
        let item = sources.item(&showing.target).filter(|item| self.is_of(&showing.entity, item));
        let Some(item) = item else { return Ok(true) };
        self.shows_all(item, counter, &showing, batch).await
    }

    /// Does the target show what all items of the counter come to by now?
    async fn shows_all(
        &self,
        item: &Item,
        counter: &CounterTodo,
        showing: &Showing,
        batch: &Batch<'_>,
    ) -> Result<bool, GaveUp> {
        let derivation = self.context.catalogue.name(counter.derivation).to_owned();
        let target = Target { derivation, item: showing.target.clone() };
        let counters = reading::counters_of(self.context, &target, batch.patience).await?;
        Ok(self.showing(counter, counters.values()).is_some_and(|showing| showing.is_held_by(item)))
    }

    fn is_of(&self, entity: &str, item: &Item) -> bool {
        let schema = &self.context.schema;
        schema.entity(entity).is_some_and(|entity| schema.layout.names(entity, item))
    }

    /// What the target is to show of a counter of these items.
    fn showing<'a>(&self, counter: &CounterTodo, items: impl IntoIterator<Item = &'a Item>) -> Option<Showing> {
        let (schema, catalogue) = (&self.context.schema, &self.context.catalogue);
        let target = CounterKey::parse(&counter.key)?.target;
        let mut sources = Sources::default();
        sources.add_counters(schema, target.clone(), items);
        let (mut entity, mut displays, mut wanted) = (None, BTreeSet::new(), Vec::new());
        for (at, display) in catalogue.displays(catalogue.name(counter.derivation)) {
            let definition = schema.entity(Refresh::target(display)).filter(|it| it.key.parse_key(&target).is_some());
            let Some(definition) = definition else { continue };
            let item = RefreshTarget { key: &target, definition, item: None, named: &BTreeSet::new() };
            if let Computed::Attributes(attributes) = display.compute(schema, &item, &sources) {
                // The targets of a count are of one entity.
                entity.get_or_insert_with(|| definition.name.clone());
                displays.insert(at);
                wanted.extend(attributes);
            }
        }
        Some(Showing { target, entity: entity?, displays, wanted })
    }

    /// The write that shows it; `None` where the revision is not known. What a counter that may have begun with this
    /// batch came to takes the place of no other count.
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

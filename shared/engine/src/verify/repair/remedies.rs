//! The remedies, each done once however often it is tried.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    guard::Guard,
    kinds::mirror::claims,
    tally::Tally,
    value::same,
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{
    counter::{COUNTER, SUM, VALUE},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome};

use super::{REPAIR, RIGHT, RUN, Repaired, repair_receipt};
use crate::{
    account::Account,
    attribute::s,
    backoff::{GaveUp, Patience, Tries},
    batch::{Batch, Engine, Occasion},
    bells::Bells,
    event::Lane,
    ground::{Stop, Touch, Work},
    own_image::OwnImages,
    protocol::ProtocolStep,
    registry::telling::read,
    verify::Finding,
};

/// What stands where looking names the record that rang: no record did.
const NO_RECORD: usize = 0;

fn no_records(patience: Patience<'_>) -> Batch<'_> {
    Batch { records: Vec::new(), lane: Lane::default(), patience, occasion: Occasion::Again }
}

impl<S: Store> Engine<S> {
    pub(super) async fn refresh(
        &self,
        key: &Key,
        finding: &Finding,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let held = self.held(vec![key.clone()], patience).await?.into_iter().next().and_then(|(_, item)| item);
        let derived = finding.derived.as_ref();
        let mut known = [held.as_ref(), derived].into_iter().flatten();
        let entity = known.find_map(|item| self.schema.image(key, item));
        let Some(entity) = entity.map(|image| image.definition.name.clone()) else { return Ok(Repaired::NotNeeded) };
        let named = derived.map(|item| claims(&self.schema, item)).unwrap_or_default();
        let derivations: BTreeSet<usize> = self.catalogue.refreshing(&entity).collect();
        let (mut bells, mut account) = (Bells::default(), Account::default());
        bells.add(key.clone(), entity, named, &derivations, &BTreeSet::from([NO_RECORD]));
        let batch = no_records(patience);
        Box::pin(self.look_at_rung(bells, &OwnImages::of(std::iter::empty(), false), &batch, &mut account)).await;
        Ok(match account.undone.into_values().next() {
            Some(why) => Repaired::Refused { why },
            None if account.commits.is_empty() => Repaired::NotNeeded,
            None => Repaired::Done,
        })
    }

    /// Adds what is missing of a count, once a run.
    pub(super) async fn add_once(
        &self,
        counter: &Key,
        finding: &Finding,
        missing: &Tally,
        run: &str,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let layout = &self.schema.layout;
        let has_right = Guard::Unmoved { attribute: RUN.to_owned(), value: Some(s(run)) };
        let right = Key::new(REPAIR, RIGHT);
        let check = Write { table: Table::Ledger, key: right, action: Action::Check, guard: Some(has_right) };
        let receipt = repair_receipt(layout, run, &finding.derivation, counter, self.clock.now_ms());
        let mut add = Item::from([(VALUE.to_owned(), AttributeValue::N(missing.count.to_string()))]);
        if !missing.sum.is_zero() {
            add.insert(SUM.to_owned(), missing.sum.to_value());
        }
        let set = layout.type_of(COUNTER).into_iter().collect();
        let action = Action::Update(Update { set, add, ..Update::default() });
        let update = Write { table: Table::Main, key: counter.clone(), action, guard: None };
        let mut writes = vec![update];
        if self.takes(ProtocolStep::RightToRepair) {
            writes.push(check);
        }
        if self.takes(ProtocolStep::RepairOnce) {
            writes.push(receipt);
        }
        let refused = |why: String| Ok(Repaired::Refused { why });
        let transaction = match Transaction::new(writes) {
            Ok(transaction) => transaction,
            Err(error) => return refused(error.to_string()),
        };
        let mut tries = Tries::default();
        loop {
            let reasons = match patience.call(|| self.store.transact(&transaction)).await? {
                TransactOutcome::Done { .. } => return Ok(Repaired::Done),
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            match (reasons.get(1), reasons.get(2)) {
                (Some(Reason::GuardFailed), _) => return Ok(Repaired::Overtaken),
                // This run has done it before.
                (_, Some(Reason::GuardFailed)) => return Ok(Repaired::Done),
                _ => {}
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return refused(why.clone());
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }

    /// Sets the keys of indexes that an item's writer makes, if the item is still as it was read.
    pub(super) async fn set_index_keys(&self, key: &Key, patience: Patience<'_>) -> Result<Repaired, GaveUp> {
        let mut tries = Tries::default();
        loop {
            let held = self.held(vec![key.clone()], patience).await?.into_iter().next();
            let Some((_, Some(item))) = held else { return Ok(Repaired::NotNeeded) };
            let Some(image) = self.schema.image(key, &item) else { return Ok(Repaired::NotNeeded) };
            let Some(fields) = image.definition.fields(key, &item) else { return Ok(Repaired::NotNeeded) };
            let wanted = image.definition.index_attributes(&self.schema.layout, &fields);
            let as_read = item.iter().map(|(name, value)| (name.to_owned(), Some(value.clone())));
            let (mut update, mut read): (Update, BTreeMap<String, _>) = (Update::default(), as_read.collect());
            for (name, value) in wanted {
                if same(item.get(&name), value.as_ref()) {
                    continue;
                }
                read.entry(name.clone()).or_insert(None);
                match value {
                    Some(value) => drop(update.set.insert(name, value)),
                    None => drop(update.remove.insert(name)),
                }
            }
            if update.set.is_empty() && update.remove.is_empty() {
                return Ok(Repaired::NotNeeded);
            }
            let guard = Some(Guard::SourceAsRead(read));
            let write = Write { table: Table::Main, key: key.clone(), action: Action::Update(update), guard };
            match patience.call(|| self.store.write(&write)).await? {
                Outcome::Done { .. } => return Ok(Repaired::Done),
                Outcome::GuardFailed if patience.wait(&mut tries).await => {}
                Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
            }
        }
    }

    /// Deletes a counter of a derivation that is not declared, if it is as it was read, and no function has the
    /// derivation: the registry says so, and the transaction checks that it still does.
    pub(super) async fn delete_unexplained(
        &self,
        key: &Key,
        derivation: &str,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let registry = patience.call(|| read(&self.store)).await?;
        if registry.is_live(derivation) {
            let why = format!("the functions have {derivation}, which this catalogue lacks: it may be right");
            return Ok(Repaired::Refused { why });
        }
        let held = self.held(vec![key.clone()], patience).await?.into_iter().next();
        let Some((_, Some(item))) = held else { return Ok(Repaired::NotNeeded) };
        let as_read = [VALUE, SUM].map(|name| (name.to_owned(), item.get(name).cloned())).into();
        let guard = Some(Guard::SourceAsRead(as_read));
        let delete = Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard };
        let transaction = match Transaction::new([delete].into_iter().chain(registry.unchanged()).collect()) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Repaired::Refused { why: error.to_string() }),
        };
        let mut tries = Tries::default();
        loop {
            let reasons = match patience.call(|| self.store.transact(&transaction)).await? {
                TransactOutcome::Done { .. } => return Ok(Repaired::Done),
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
            match (reasons.first(), reasons.iter().skip(1).any(|reason| matches!(reason, Reason::GuardFailed))) {
                (Some(Reason::GuardFailed), _) => {
                    return refused(
                        "it is written to: an instance that still has its derivation runs, or somebody else counts in it",
                    );
                }
                (_, true) => return refused("the functions have another catalogue since: repair once more"),
                _ => {}
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return refused(why);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }

    /// Moves an item to where it belongs.
    pub(super) async fn move_there(
        &self,
        key: &Key,
        finding: &Finding,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let position = self.catalogue.position(&finding.derivation);
        let rekey = position.and_then(|at| Some((at, self.catalogue.derivation(at)?.kind.rekey()?)));
        let Some((derivation, rekey)) = rekey else { return Ok(Repaired::NotNeeded) };
        let touch = Touch { position: NO_RECORD, derivation, effect: derive::effect::Ground::Place(key.clone()) };
        let batch = no_records(patience);
        let mut work = Work { touch: &touch, batch: &batch, is_alone: false, account: Account::default() };
        Ok(match self.place(key, rekey, &mut work).await {
            Ok(awaits) if awaits.is_empty() && work.account.commits.is_empty() => Repaired::NotNeeded,
            Ok(awaits) if awaits.is_empty() => Repaired::Done,
            Ok(_) => Repaired::Refused { why: "its place is taken, or its parent is not there".to_owned() },
            Err(Stop::NotNow(why) | Stop::Refused(why)) => Repaired::Refused { why },
        })
    }
}

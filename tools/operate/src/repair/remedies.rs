//! The remedies. Each is done once, however often it is tried.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    claims::claims,
    guard::{Guard, Purpose},
    position::DerivationAt,
    refresh::Look,
    tally::Tally,
    write::{Action, Table, Transaction, Update, Write},
};
use engine::{
    backoff::{GaveUp, Patience, Tries},
    ledger::repairs,
    protocol::ProtocolStep,
    registry::{Registry, absence::Absence, publishing::read},
};
use keys::{
    counter::{COUNTER, SUM, VALUE},
    item::Item,
    key::Key,
    value::same,
};
use serde_dynamo::AttributeValue;
use store::{Reason, Store, TransactOutcome, unheld};

use super::{Repaired, Repairing};
use crate::verify::Finding;

/// Why a repair is refused in whose transaction the registry is not as it was read.
const ANOTHER_CATALOGUE: &str = "the functions have another catalogue or release now: repair again";

impl<S: Store> Repairing<'_, S> {
    pub(super) async fn refresh(
        &self,
        key: &Key,
        finding: &Finding,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let (derived, catalogue) = (finding.derived.as_ref(), self.engine.catalogue());
        // A finding of single attributes does not name the entity, and the item may be gone.
        let refresh = catalogue.position(&finding.derivation).and_then(|at| catalogue.refresh(at));
        let Some(refresh) = refresh else { return Ok(Repaired::NotNeeded) };
        let entity = refresh.target().to_owned();
        let named = derived.map(|item| claims(self.engine.schema(), item)).unwrap_or_default();
        let derivations: BTreeSet<DerivationAt> = catalogue.refreshing(&entity).collect();
        let look = Look { item: key.clone(), entity, derivations, named: named.into_iter().collect() };
        Ok(match self.engine.bring_in_step(look, patience).await {
            Err(why) => Repaired::Refused { why },
            Ok(false) => Repaired::NotNeeded,
            Ok(true) => Repaired::Done,
        })
    }

    /// Adds the difference to a count, once a run. An item that is no counter stays as it is.
    pub(super) async fn add_once(
        &self,
        counter: &Key,
        finding: &Finding,
        missing: &Tally,
        (run, registry): (&str, &Registry),
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let layout = &self.engine.schema().layout;
        let its_type = layout.type_of(COUNTER);
        let (check, unchanged) = (repairs::has_right(run), registry.unchanged());
        let receipt = repairs::repair_receipt(layout, run, &finding.derivation, counter, self.engine.clock().now_ms());
        let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
        let mut tries = Tries::default();
        loop {
            let held = self.engine.held(vec![counter.clone()], patience).await?.into_iter().find_map(|(_, item)| item);
            let is_type = |item: &Item| its_type.iter().all(|(name, value)| same(item.get(name), Some(value)));
            if held.as_ref().is_some_and(|item| !is_type(item)) {
                return refused("an item that is no counter is under the counter's key: move it, and repair again");
            }
            let guard = Guard::same_type(Purpose::CounterType, layout, held.as_ref());
            let action = Action::Update(addition(its_type.clone(), missing));
            let mut writes =
                vec![Write { table: Table::Main, key: counter.clone(), action, guard: Some(guard) }, check.clone()];
            if self.engine.takes(ProtocolStep::RepairOnce) {
                writes.push(receipt.clone());
            }
            writes.extend(unchanged.clone());
            let transaction = match Transaction::new(writes) {
                Ok(transaction) => transaction,
                Err(error) => return refused(&error.to_string()),
            };
            let reasons = match patience.call(|| self.engine.store().transact(&transaction)).await? {
                TransactOutcome::Done { .. } => return Ok(Repaired::Done),
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            let failed = |key: &Key| unheld(&transaction, &reasons).any(|write| write.key == *key);
            if failed(&check.key) {
                return Ok(Repaired::Overtaken);
            }
            // This run has added it before.
            if failed(&receipt.key) {
                return Ok(Repaired::Done);
            }
            if unchanged.iter().any(|check| failed(&check.key)) {
                return refused(ANOTHER_CATALOGUE);
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return refused(why);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }

    /// Sets the index keys of an item, if they, what they are made of, and the registry are unchanged since they were read.
    /// The other attributes are not compared: they may be more than a condition can hold.
    pub(super) async fn set_index_keys(
        &self,
        key: &Key,
        registry: &Registry,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
        let mut tries = Tries::default();
        loop {
            let held = self.engine.held(vec![key.clone()], patience).await?.into_iter().next();
            let Some((_, Some(item))) = held else { return Ok(Repaired::NotNeeded) };
            let Some(image) = self.engine.schema().image(key, &item) else { return Ok(Repaired::NotNeeded) };
            let Some(fields) = image.definition.fields(key, &item) else { return Ok(Repaired::NotNeeded) };
            let wanted = image.definition.index_attributes(&self.engine.schema().layout, &fields);
            let layout = &self.engine.schema().layout;
            let decides = image.definition.index_fields().chain(layout.entity_type.as_deref()).chain([&*layout.pk]);
            let decides = decides.map(str::to_owned).chain(wanted.iter().map(|(name, _)| name.clone()));
            let read: BTreeMap<String, _> = decides.map(|name| (name.clone(), item.get(&name).cloned())).collect();
            let mut update = Update::default();
            for (name, value) in wanted {
                if same(item.get(&name), value.as_ref()) {
                    continue;
                }
                match value {
                    Some(value) => drop(update.set.insert(name, value)),
                    None => drop(update.remove.insert(name)),
                }
            }
            if update.set.is_empty() && update.remove.is_empty() {
                return Ok(Repaired::NotNeeded);
            }
            let guard = Some(Guard::as_read(Purpose::IndexKeys, read));
            let write = Write { table: Table::Main, key: key.clone(), action: Action::Update(update), guard };
            let transaction = match Transaction::new([write].into_iter().chain(registry.unchanged()).collect()) {
                Ok(transaction) => transaction,
                Err(error) => return refused(&error.to_string()),
            };
            let reasons = match patience.call(|| self.engine.store().transact(&transaction)).await? {
                TransactOutcome::Done { .. } => return Ok(Repaired::Done),
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            if unheld(&transaction, &reasons).any(|write| write.table == Table::Ledger) {
                return refused(ANOTHER_CATALOGUE);
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return refused(why);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }

    /// Deletes a counter of an undeclared derivation, if it is unchanged since it was read and no function has the
    /// derivation any more. The registry shows that, and the transaction checks that it is still so. A counter of a
    /// derivation that no function ever registered may be an application's own.
    pub(super) async fn delete_unexplained(
        &self,
        key: &Key,
        derivation: &str,
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
        let store = self.engine.store();
        let registry = patience.call(|| read(store)).await?;
        let now_ms = self.engine.clock().now_ms();
        let why = match registry.absence(derivation, now_ms) {
            Absence::Gone => None,
            Absence::Live => {
                Some(format!("the functions have {derivation}, which this catalogue lacks: it may be right"))
            }
            Absence::Ending { gone_ms } => {
                let seconds = gone_ms.saturating_sub(now_ms).div_ceil(1_000);
                Some(format!(
                    "an instance that has {derivation} may run for another {seconds} s: repair again after that"
                ))
            }
            Absence::Unknown => Some(format!(
                "no function has registered {derivation}, so nobody knows who counts there: delete it by hand if nobody does"
            )),
        };
        if let Some(why) = why {
            return refused(&why);
        }
        let held = self.engine.held(vec![key.clone()], patience).await?.into_iter().next();
        let Some((_, Some(item))) = held else { return Ok(Repaired::NotNeeded) };
        let as_read = [VALUE, SUM].map(|name| (name, item.get(name).cloned()));
        let guard = Some(Guard::as_read(Purpose::DroppedCounter, as_read));
        let delete = Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard };
        let transaction = match Transaction::new([delete].into_iter().chain(registry.unchanged()).collect()) {
            Ok(transaction) => transaction,
            Err(error) => return refused(&error.to_string()),
        };
        let mut tries = Tries::default();
        loop {
            let reasons = match patience.call(|| store.transact(&transaction)).await? {
                TransactOutcome::Done { .. } => return Ok(Repaired::Done),
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            match unheld(&transaction, &reasons).next().map(|write| write.table) {
                Some(Table::Main) => {
                    return refused(
                        "somebody writes it: an instance with its derivation still runs, or another client counts in it",
                    );
                }
                Some(Table::Ledger) => return refused(ANOTHER_CATALOGUE),
                None => {}
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return refused(why);
            }
            if !patience.wait(&mut tries).await {
                return Err(GaveUp::OutOfTime { last: None });
            }
        }
    }
}

/// The update that adds to a counter, and makes it if there is none.
fn addition(its_type: Option<(String, AttributeValue)>, missing: &Tally) -> Update {
    let mut add = Item::from([(VALUE.to_owned(), AttributeValue::N(missing.count.to_string()))]);
    if !missing.sum.is_zero() {
        add.insert(SUM.to_owned(), missing.sum.to_value());
    }
    Update { set: its_type.into_iter().collect(), add, ..Update::default() }
}

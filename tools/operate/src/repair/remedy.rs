//! Repair: corrects the findings of a verification, while writes continue.
//!
//! *Keeps true*: no correct value becomes wrong, and a repair that was killed can continue.
//!
//! *Level-triggered*: the repair refreshes the item as a stream record would, and writes it if it still differs. A
//! second refresh does no harm.
//!
//! *Counts*: the difference between the total of a target's sources and its counters stays the same while every change
//! counts once. So the repair adds that difference, and the count is correct from then on. It must add it only once:
//! each repair of a target writes a receipt of its run in the same transaction. No other run may add in between: a run
//! takes the [right to repair](Repairing::begin_repair) *before* it verifies, each transaction checks that right, and
//! an earlier run can add no more.
//!
//! *Example*: a post has 12 likes, and its counter is 9, so the repair must add three. If two more likes arrive first,
//! there are 14 likes, and the counter goes from 9 to 11; the three make it 14.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    claims::claims,
    guard::{Guard, Purpose},
    position::DerivationAt,
    refresh::Look,
    tally::{Sum, Tally},
    write::{Action, Table, Transaction, Update, Write},
};
use engine::{
    backoff::{GaveUp, Patience, Tries},
    batch::Engine,
    ledger,
    protocol::ProtocolStep,
    publishing::read,
    registry::{Absence, Registry, Standing},
};
use keys::{
    counter::{COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::{same, whole_number},
};
use serde_dynamo::AttributeValue;
use store::{Reason, Store, TransactOutcome, unheld};

use crate::verify::{Finding, judge::INDEX_KEYS};

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// The finding is corrected.
    Done,
    /// There was nothing left to correct.
    NotNeeded,
    /// An operator must decide.
    Refused {
        /// The reason.
        why: String,
    },
    /// Another run has the right to repair counts now, so this run's findings can no longer be trusted.
    Overtaken,
}

/// The action for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Refreshes the item, and writes it if it differs.
    Refresh,
    /// Adds to a counter.
    Add {
        /// The number to add to the count.
        count: i64,
        /// The number to add to the sum.
        sum: Sum,
    },
    /// Sets index keys to the values that the item's other attributes give.
    SetIndexKeys,
    /// Deletes a counter of an undeclared derivation, unless the functions have that derivation.
    Delete,
    /// Nothing: an operator must decide.
    None {
        /// The reason.
        why: String,
    },
}

/// Repairs with an engine, which computes the correct item.
pub struct Repairing<'a, S> {
    engine: &'a Engine<S>,
}

impl<'a, S: Store> Repairing<'a, S> {
    /// Repairs with this engine.
    pub fn new(engine: &'a Engine<S>) -> Self {
        Self { engine }
    }

    /// Takes the right to repair counts for a run. Its name must be unique. No other run can add to a count from now
    /// on.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the right cannot be taken.
    pub async fn begin_repair(&self, run: &str, deadline_ms: u64) -> Result<(), GaveUp> {
        let patience = Patience::new(self.engine.clock(), deadline_ms);
        let write = ledger::right(&self.engine.schema().layout, run, self.engine.clock().now_ms());
        patience.call(|| self.engine.store().write(&write)).await.map(drop)
    }

    /// True if this run has the right to repair counts.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the right cannot be read.
    pub async fn may_repair(&self, run: &str, deadline_ms: u64) -> Result<bool, GaveUp> {
        let patience = Patience::new(self.engine.clock(), deadline_ms);
        ledger::may_repair(self.engine.store(), run, patience).await
    }

    /// The action for a finding.
    #[must_use]
    pub fn remedy(&self, finding: &Finding) -> Remedy {
        let key = Key::new(&finding.pk, &finding.sk);
        if let Some(why) = &finding.flaw {
            return Remedy::None { why: why.clone() };
        }
        if finding.derivation == INDEX_KEYS {
            return Remedy::SetIndexKeys;
        }
        let position = self.engine.catalogue().position(&finding.derivation);
        let Some(derivation) = position.and_then(|at| self.engine.catalogue().derivation(at)) else {
            return Remedy::Delete;
        };
        let kind = &derivation.kind;
        if kind.is_history() {
            let why = "the table no longer contains everything that it counts, so its right value is unknown";
            return Remedy::None { why: why.to_owned() };
        }
        if CounterKey::parse(&key).is_none_or(|counter| counter.derivation != finding.derivation) {
            return Remedy::Refresh;
        }
        match (tally(finding.stored.as_ref()), tally(finding.derived.as_ref())) {
            (Some(stored), Some(mut derived)) => {
                derived.subtract(&stored);
                Remedy::Add { count: derived.count, sum: derived.sum }
            }
            _ => Remedy::None {
                why: format!("{VALUE} or {SUM} of the counter is not a number: delete the attribute, and repair again"),
            },
        }
    }

    /// The registry if the functions have the same version of a finding's derivation as this catalogue; else the
    /// reason. A count that was measured by one definition and is counted by another would become wrong.
    async fn agreed(&self, finding: &Finding, patience: Patience<'_>) -> Result<Result<Registry, String>, GaveUp> {
        let registry = self.engine.registry(patience.deadline_ms).await?;
        let name = &finding.derivation;
        let standing = self.engine.catalogue().position(name).map(|at| self.engine.standing(&registry, at));
        let why = standing
            .filter(|_| !registry.is_empty())
            .and_then(|standing| disagreement(self.engine.catalogue().label_of(name), standing));
        Ok(why.map_or(Ok(registry), Err))
    }

    /// The registry if the functions have no other derivations or versions than this catalogue, and the index keys of
    /// this schema; else the reason.
    async fn agreed_on_all(&self, patience: Patience<'_>) -> Result<Result<Registry, String>, GaveUp> {
        let registry = self.engine.registry(patience.deadline_ms).await?;
        if registry.is_empty() {
            return Ok(Ok(registry));
        }
        if let Some(name) = registry.live_beside(self.engine.catalogue()).first() {
            return Ok(Err(format!(
                "the functions have {name}, which this catalogue lacks: repair with their version and manifest"
            )));
        }
        if let Some(entity) = registry.index_keys_beside(self.engine.schema()).first() {
            return Ok(Err(format!(
                "the functions have other index keys of {entity}: repair with their version and manifest"
            )));
        }
        let standings =
            self.engine.catalogue().positioned().map(|(at, it)| (&it.name, self.engine.standing(&registry, at)));
        let why = standings.into_iter().find_map(|(name, standing)| disagreement(name, standing));
        Ok(why.map_or(Ok(registry), Err))
    }

    /// Corrects a finding, for a run with the right to repair.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the database refuses the call or does not respond. The repair may have been done, and can be
    /// retried.
    pub async fn repair(&self, finding: &Finding, run: &str, deadline_ms: u64) -> Result<Repaired, GaveUp> {
        let patience = Patience::new(self.engine.clock(), deadline_ms);
        let key = Key::new(&finding.pk, &finding.sk);
        match self.remedy(finding) {
            Remedy::None { why } => Ok(Repaired::Refused { why }),
            Remedy::Refresh => match self.agreed(finding, patience).await? {
                Ok(_) => self.refresh(&key, finding, patience).await,
                Err(why) => Ok(Repaired::Refused { why }),
            },
            Remedy::Add { count, sum } => match self.agreed(finding, patience).await? {
                Ok(registry) => self.add_once(&key, finding, &Tally { count, sum }, (run, &registry), patience).await,
                Err(why) => Ok(Repaired::Refused { why }),
            },
            Remedy::SetIndexKeys => match self.agreed_on_all(patience).await? {
                Ok(registry) => self.set_index_keys(&key, &registry, patience).await,
                Err(why) => Ok(Repaired::Refused { why }),
            },
            Remedy::Delete => self.delete_unexplained(&key, &finding.derivation, patience).await,
        }
    }
}

/// Why a derivation differs, or may still differ, from that of the functions; `None` if it is the same.
fn disagreement(name: &str, standing: Standing) -> Option<String> {
    match standing {
        Standing::Otherwise { theirs } => {
            Some(format!("the functions have {name} as {theirs}: repair with their version and manifest"))
        }
        Standing::Young { .. } => {
            Some(format!("an instance that has {name} otherwise may still run: repair again in a while"))
        }
        Standing::Ready | Standing::Missing => None,
    }
}

/// The content of a finding's counter; `None` if it is unreadable.
fn tally(item: Option<&Item>) -> Option<Tally> {
    let Some(item) = item else { return Some(Tally::default()) };
    let count = item.get(VALUE).map_or(Some(0), whole_number)?;
    let sum = item.get(SUM).map_or_else(|| Some(Sum::default()), Sum::of)?;
    Some(Tally { count, sum })
}

// ---- The remedies. Each takes effect once, however often it is tried ----

/// Reason for a refused repair: the registry changed between its read and the transaction.
const ANOTHER_CATALOGUE: &str = "the functions have another catalogue or release now: repair again";

impl<S: Store> Repairing<'_, S> {
    async fn refresh(&self, key: &Key, finding: &Finding, patience: Patience<'_>) -> Result<Repaired, GaveUp> {
        let (derived, catalogue) = (finding.derived.as_ref(), self.engine.catalogue());
        // A finding about single attributes does not name the entity, and the item may be gone.
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

    /// Adds the difference to a count, once per run. Leaves an item that is not a counter as it is.
    async fn add_once(
        &self,
        counter: &Key,
        finding: &Finding,
        missing: &Tally,
        (run, registry): (&str, &Registry),
        patience: Patience<'_>,
    ) -> Result<Repaired, GaveUp> {
        let layout = &self.engine.schema().layout;
        let its_type = layout.type_of(COUNTER);
        let (check, unchanged) = (ledger::has_right(run), registry.unchanged());
        let receipt = ledger::repair_receipt(layout, run, &finding.derivation, counter, self.engine.clock().now_ms());
        let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
        let mut tries = Tries::default();
        loop {
            let stored =
                self.engine.stored(vec![counter.clone()], patience).await?.into_iter().find_map(|(_, item)| item);
            let is_type = |item: &Item| its_type.iter().all(|(name, value)| same(item.get(name), Some(value)));
            if stored.as_ref().is_some_and(|item| !is_type(item)) {
                return refused("an item that is no counter is under the counter's key: move it, and repair again");
            }
            let guard = Guard::same_type(Purpose::CounterType, layout, stored.as_ref());
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
            // This run has already added it.
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

    /// Sets the index keys of an item, if they, the attributes they are built from, and the registry are unchanged
    /// since the read. The other attributes are not compared: they may exceed the size of a condition.
    async fn set_index_keys(&self, key: &Key, registry: &Registry, patience: Patience<'_>) -> Result<Repaired, GaveUp> {
        let refused = |why: &str| Ok(Repaired::Refused { why: why.to_owned() });
        let mut tries = Tries::default();
        loop {
            let stored = self.engine.stored(vec![key.clone()], patience).await?.into_iter().next();
            let Some((_, Some(item))) = stored else { return Ok(Repaired::NotNeeded) };
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

    /// Deletes a counter of an undeclared derivation, if it is unchanged since the read and no function has the
    /// derivation any more. The registry shows that, and the transaction checks that it is still so. A counter of a
    /// derivation that no function ever registered may belong to the application.
    async fn delete_unexplained(
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
        let stored = self.engine.stored(vec![key.clone()], patience).await?.into_iter().next();
        let Some((_, Some(item))) = stored else { return Ok(Repaired::NotNeeded) };
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

/// The update that adds to a counter, and creates it if it does not exist.
fn addition(its_type: Option<(String, AttributeValue)>, missing: &Tally) -> Update {
    let mut add = Item::from([(VALUE.to_owned(), AttributeValue::N(missing.count.to_string()))]);
    if !missing.sum.is_zero() {
        add.insert(SUM.to_owned(), missing.sum.to_value());
    }
    Update { set: its_type.into_iter().collect(), add, ..Update::default() }
}

#[cfg(test)]
mod tests {
    use serde_dynamo::AttributeValue;

    use super::*;

    #[test]
    fn what_is_missing_is_the_difference_with_its_sign() {
        let item = |value: &str| Item::from([(VALUE.to_owned(), AttributeValue::N(value.to_owned()))]);
        assert_eq!(tally(Some(&item("-3"))), Some(Tally::of(-3)));
        assert_eq!(tally(None), Some(Tally::default()));
        let broken = Item::from([(VALUE.to_owned(), AttributeValue::S("three".to_owned()))]);
        assert_eq!(tally(Some(&broken)), None);
    }
}

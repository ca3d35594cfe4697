//! Repair: corrects the findings of a verification, while writes go on.
//!
//! *Keeps true*: no right value becomes wrong, and a repair that was killed can continue.
//!
//! *Level-triggered*: the repair looks at the item as a record of it would, and writes it if it still differs. A second
//! time does no harm.
//!
//! *Counts*: the difference between the total of a target's sources and its counters stays the same while every change
//! counts once. So the repair adds that difference, and the count is right from then on. It must add it only once: each
//! repair of a target writes a receipt of its run in the same transaction. No other run may add in between: a run takes
//! the [right to repair](Repairing::begin_repair) *before* it verifies, each transaction checks that right, and an
//! earlier run can add no more.
//!
//! *Example*: a post has 12 likes, and its counter says 9, so three are added. If two more likes come in meanwhile, the
//! sources are 14, and the counter goes from 9 to 11; with the three it ends at 14.

mod remedies;

use derive::tally::{Sum, Tally};
use engine::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    ledger::repairs,
    registry::{Registry, Standing},
};
use keys::{
    counter::{CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::whole_number,
};
use store::Store;

use crate::verify::{Finding, single::INDEX_KEYS};

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
    /// Looks at the item, and writes it if it differs.
    Refresh,
    /// Adds to a counter.
    Add {
        /// The number to add to the count.
        count: i64,
        /// The number to add to the sum.
        sum: Sum,
    },
    /// Sets index keys to what the item's other attributes give.
    SetIndexKeys,
    /// Deletes a counter of an undeclared derivation, unless the functions have that derivation.
    Delete,
    /// Nothing: an operator must decide.
    None {
        /// The reason.
        why: String,
    },
}

/// Repairs with an engine, which computes what an item should be.
pub struct Repairing<'a, S> {
    engine: &'a Engine<S>,
}

impl<'a, S: Store> Repairing<'a, S> {
    /// Repairs with this engine.
    pub fn new(engine: &'a Engine<S>) -> Self {
        Self { engine }
    }

    /// Takes the right to repair counts for a run, under a name that no other run has. No other run can add to a count
    /// from now on.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the right cannot be taken.
    pub async fn begin_repair(&self, run: &str, deadline_ms: u64) -> Result<(), GaveUp> {
        let patience = Patience::new(self.engine.clock(), deadline_ms);
        let write = repairs::right(&self.engine.schema().layout, run, self.engine.clock().now_ms());
        patience.call(|| self.engine.store().write(&write)).await.map(drop)
    }

    /// Does this run have the right to repair counts?
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if that cannot be read.
    pub async fn may_repair(&self, run: &str, deadline_ms: u64) -> Result<bool, GaveUp> {
        let patience = Patience::new(self.engine.clock(), deadline_ms);
        repairs::may_repair(self.engine.store(), run, patience).await
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

    /// The registry, if the functions have the derivation of a finding as this catalogue has it; else why not. What is
    /// measured by one definition and counted by another would be made wrong.
    async fn agreed(&self, finding: &Finding, patience: Patience<'_>) -> Result<Result<Registry, String>, GaveUp> {
        let registry = self.engine.registry(patience.deadline_ms).await?;
        let name = &finding.derivation;
        let standing = self.engine.catalogue().position(name).map(|at| self.engine.standing(&registry, at));
        let why = standing
            .filter(|_| !registry.is_empty())
            .and_then(|standing| disagreement(self.engine.catalogue().label_of(name), standing));
        Ok(why.map_or(Ok(registry), Err))
    }

    /// The registry, if the functions have no derivation that this catalogue lacks or has otherwise, and the index keys of
    /// this schema; else why not.
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
    /// [`GaveUp`] if the database refuses the call or does not respond. The repair may be done then, and can be
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

/// Why a derivation is not, or not yet surely, as the functions have it; `None` if it is.
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

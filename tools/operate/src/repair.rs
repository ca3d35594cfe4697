//! Repair: what a verification found is mended, while writes go on.
//!
//! *Keeps true*: no right value is made wrong, and a repair that is killed goes on.
//!
//! *Level-triggered*: the item is looked at as a record of it would have it looked at, and written if it still differs.
//! Twice is harmless.
//!
//! *Counts*: what a target's sources come to, less what its counters hold, stays the same while every change is counted
//! once, whatever goes on. So that difference, once it is known, is added, and the count is right from then on. It must be
//! added once: each repair of a target takes a receipt of its run, in the same transaction. And nobody else may mend it in
//! between: a run that begins takes the [right to repair](Repairing::begin_repair) *before* it verifies, each transaction
//! checks that it still has it, and what an earlier run found can be added no more.
//!
//! *Example*: a post has 12 likes, and its counter says 9. Three are added. Had two more likes come in meanwhile, the
//! sources would be 14, the counters 9, 10 or 11 and soon 11; with the three they end at 14.

mod remedies;

use derive::tally::{Sum, Tally};
use engine::{
    backoff::{GaveUp, Patience},
    batch::Engine,
    ledger::repairs,
};
use keys::{
    counter::{CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::whole_number,
};
use store::Store;

use crate::verify::{Finding, single::INDEX_KEYS};

/// How a repair ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// It is mended.
    Done,
    /// There was nothing to mend any more.
    NotNeeded,
    /// A person has to see to it.
    Refused {
        /// Why.
        why: String,
    },
    /// Another run has the right to repair counts now: what this one found is not to be relied on.
    Overtaken,
}

/// What would be done about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The item is looked at, and written if it differs.
    Refresh,
    /// This is added to a counter.
    Add {
        /// To the count.
        count: i64,
        /// To the sum.
        sum: Sum,
    },
    /// Keys of indexes are set to what the item's other attributes give.
    SetIndexKeys,
    /// A counter that nothing explains is deleted, unless the functions have its derivation.
    Delete,
    /// Nothing: a person has to see to it.
    None {
        /// Why.
        why: String,
    },
}

/// Repairs by an engine, which finds what an item should be.
pub struct Repairing<'a, S> {
    engine: &'a Engine<S>,
}

impl<'a, S: Store> Repairing<'a, S> {
    /// Repairs by this engine.
    pub fn new(engine: &'a Engine<S>) -> Self {
        Self { engine }
    }

    /// Takes the right to repair counts for a run, by a name that no other run has. From now on no other adds to a count.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when it cannot be taken.
    pub async fn begin_repair(&self, run: &str, deadline_ms: u64) -> Result<(), GaveUp> {
        let patience = Patience { clock: self.engine.clock(), deadline_ms };
        let write = repairs::right(&self.engine.schema().layout, run, self.engine.clock().now_ms());
        patience.call(|| self.engine.store().write(&write)).await.map(drop)
    }

    /// Has this run the right to repair counts?
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when that cannot be read.
    pub async fn may_repair(&self, run: &str, deadline_ms: u64) -> Result<bool, GaveUp> {
        let patience = Patience { clock: self.engine.clock(), deadline_ms };
        repairs::may_repair(self.engine.store(), run, patience).await
    }

    /// What would be done about a finding.
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
            let why = "what it counts is not all in the table any more, so nobody can tell what it should be";
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
                why: format!(
                    "{VALUE} or {SUM} of the counter is no number: delete the attribute, and repair once more"
                ),
            },
        }
    }

    /// Mends what was found, by a run that has the right to.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the database does not answer, or refuses it. It may be done then, and can be tried again.
    pub async fn repair(&self, finding: &Finding, run: &str, deadline_ms: u64) -> Result<Repaired, GaveUp> {
        let patience = Patience { clock: self.engine.clock(), deadline_ms };
        let key = Key::new(&finding.pk, &finding.sk);
        match self.remedy(finding) {
            Remedy::None { why } => Ok(Repaired::Refused { why }),
            Remedy::Refresh => self.refresh(&key, finding, patience).await,
            Remedy::Add { count, sum } => self.add_once(&key, finding, &Tally { count, sum }, run, patience).await,
            Remedy::SetIndexKeys => self.set_index_keys(&key, patience).await,
            Remedy::Delete => self.delete_unexplained(&key, &finding.derivation, patience).await,
        }
    }
}

/// What a finding's counter says; `None` where it cannot be read.
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

//! Counts against the totals of their sources, once all sources are read.
//!
//! Counts are compared in rounds. Each round waits until the functions have handled everything written before it, so
//! the counters contain it; if the functions' positions are unknown, the [ledger proves](super::run) it. A target is
//! decided if none of its sources changed from then to the end of the comparison; the others are compared again in the
//! next round. A target without a source and a counter before the first round is left out: the functions have counted
//! all of it, and a table with constant writes always has one more.
//!
//! A counter need not be read to be found correct. The scan read it, and the stream shows each later write. So once the
//! stream is read up to a moment after the proof, the last value seen is the counter's value after the proof. A counter
//! that differs from its sources is read, since it may have been written again.
//!
//! # Counted
//!
//! Counters and buckets against what the definition counts.
//!
//! Shards are added up, and a missing counter equals one of zero. A count with history is only checked against a lower
//! bound: it may exceed its remaining sources, because DynamoDB expires them, and later changes of them do not count.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derived::{Derived, Items},
    effect::BucketForm,
    kind::{Kind, Shape},
    schema::Schema,
    tally::{Sum, Tally},
};
use engine::{
    account::{Target, added_up},
    backoff::{GaveUp, describe},
    protocol::ProtocolStep,
    reading::CALLS_AT_ONCE,
    redrive::waiting::{CountsOf, PendingWork, Waiting},
};
use futures::{StreamExt, stream};
use keys::{
    counter::{self, COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::verify::{
    Belief, Finding, Undecided, VerifyError, VerifyEvent, Why, finding, judge::Judge, run::Verification,
};

/// Comparisons of a target before it is undecided.
const ROUNDS_MAX: usize = 6;

/// Targets that are compared together. Bounds memory.
const TARGETS_AT_ONCE: usize = 1_000;

/// True if everything written before was handled.
pub(super) struct Proven {
    /// For counts.
    pub(super) is_proven: bool,
    /// For all other values.
    pub(super) is_handled: bool,
}

#[derive(Default)]
struct CountRound {
    /// When it began, in milliseconds since the epoch.
    began_ms: u64,
    is_last: bool,
    /// Why nothing can be decided; `None` if it can.
    why: Option<Why>,
    /// Counts with changes that the ledger does not prove.
    not_in: CountsOf,
    waiting: Waiting,
}

impl<S: Store> Verification<'_, S> {
    /// Compares all targets. Returns whether everything written before is handled: then equal counts are correct, and
    /// so are targets without any source or counter.
    pub(super) async fn counts(&self) -> Result<Proven, VerifyError> {
        let mut round =
            CountRound { why: if self.given().await? { None } else { Some(Why::Behind) }, ..CountRound::default() };
        self.state().tallies.close();
        let is_by_ledger = self.look_back().await?;
        // The ledger proves counts only, not refreshed values.
        let handled = if is_by_ledger { self.handled().await? } else { None };
        let mut is_proven = true;
        for n_rounds in 1..=ROUNDS_MAX {
            round.is_last = n_rounds == ROUNDS_MAX;
            round.began_ms = self.engine.clock().now_ms();
            if is_by_ledger {
                let is_given = self.given().await?;
                round.why = round.why.or((!is_given).then_some(Why::Behind));
                round.not_in = self.not_in().await?;
                is_proven &= n_rounds > 1 || !round.not_in.is_any_of(&self.proving);
            } else {
                round.why = round.why.or(self.handled().await?);
            }
            // The functions' writes from before must be seen too, not only the changes that they had to handle.
            if !self.given().await? {
                round.why = round.why.or(Some(Why::Behind));
            }
            round.waiting = self.engine.what_counts_wait_for(self.patience()).await?;
            self.each_target(async |targets: Vec<Undecided>| self.compare(targets).await).await?;
            if !self.given().await? {
                round.why = round.why.or(Some(Why::Behind));
            }
            if self.state().is_blind {
                round.why = round.why.or(Some(Why::Unreadable));
            }
            if self.state().tallies.undecided(None, 1)?.is_empty() {
                break;
            }
            let until_ms = self.engine.clock().now_ms();
            self.each_target(async |targets: Vec<Undecided>| self.decide(targets, &round, until_ms)).await?;
        }
        let is_proven = is_proven && round.why.is_none();
        let is_handled = round.why.is_none() && handled.is_none();
        Ok(Proven { is_proven, is_handled })
    }

    /// Decides these targets, except those that are left for the next round.
    fn decide(&self, targets: Vec<Undecided>, round: &CountRound, until_ms: u64) -> Result<(), VerifyError> {
        let CountRound { began_ms, is_last, why, not_in, waiting } = round;
        let belief = Belief { handled_ms: *began_ms, until_ms };
        for Undecided { target, touched_at_ms, compared, .. } in targets {
            let is_changing = touched_at_ms >= *began_ms && self.engine.takes(ProtocolStep::UntouchedSince);
            // A count that began to differ after the stream was reread: its earlier changes were not kept.
            let is_new = compared.is_some() && self.state().proving.as_ref().is_some_and(|it| !it.has(&target));
            let why = why.or_else(|| (is_new || not_in.has(&target)).then_some(Why::NotIn));
            let event = match (compared, why) {
                (Some(finding), Some(why)) => Some(VerifyEvent::Undecided(finding, why)),
                (Some(finding), None) if waiting.has_target(&target) => {
                    Some(VerifyEvent::Waiting(finding, PendingWork::Parked))
                }
                (Some(finding), None) if is_changing && *is_last => {
                    Some(VerifyEvent::Undecided(finding, Why::Changing))
                }
                (_, None) if is_changing && !is_last => continue,
                (Some(finding), None) => {
                    let finding = Finding { flaw: waiting.doubt(), ..finding };
                    Some(VerifyEvent::Finding(finding, belief))
                }
                (None, Some(_)) => Some(VerifyEvent::Unproven(target.clone())),
                (None, None) if is_changing || waiting.has_target(&target) => {
                    Some(VerifyEvent::Unproven(target.clone()))
                }
                (None, None) => None,
            };
            let mut state = self.state();
            if let Some(event) = event {
                state.listener.report(event)?;
            }
            state.tallies.decided(&target)?;
        }
        Ok(())
    }

    /// Goes over all undecided targets in batches.
    pub(super) async fn each_target(
        &self,
        mut act: impl AsyncFnMut(Vec<Undecided>) -> Result<(), VerifyError>,
    ) -> Result<(), VerifyError> {
        let mut after = None;
        loop {
            let targets = self.state().tallies.undecided(after.as_ref(), TARGETS_AT_ONCE)?;
            let Some(last) = targets.last() else { return Ok(()) };
            after = Some(last.target.clone());
            act(targets).await?;
            self.see()?;
        }
    }

    /// Compares these targets with their counters, and stores the differences. Reads only the counters that differ from
    /// their last seen value.
    pub(super) async fn compare(&self, targets: Vec<Undecided>) -> Result<(), VerifyError> {
        self.state().listener.counted(targets.len());
        let mut unequal: BTreeMap<Key, Vec<Undecided>> = BTreeMap::new();
        for undecided in targets {
            if self.is_seen_equal(&undecided)? {
                self.state().tallies.compared(&undecided.target, None)?;
            } else {
                unequal.entry(undecided.target.item.clone()).or_default().push(undecided);
            }
        }
        let read = unequal.into_iter().map(|(item, targets)| async move {
            let is_bucket = |it: &Undecided| self.has_buckets(&it.target);
            let reading = async {
                let mut stored = Items::new();
                if targets.iter().any(is_bucket) {
                    let bucket = self.engine.stored(vec![item.clone()], self.patience()).await?;
                    stored.extend(bucket.into_iter().filter_map(|(key, bucket)| Some((key, bucket?))));
                }
                if !targets.iter().all(is_bucket) {
                    stored.extend(self.engine.all_counters_of(&item, self.patience()).await?);
                }
                Ok(stored)
            };
            match reading.await {
                Ok(stored) => Ok((targets, Ok(stored))),
                Err(GaveUp::Refused(error)) => Ok((targets, Err(error))),
                Err(error) => Err(VerifyError::from(error)),
            }
        });
        let mut read = stream::iter(read).buffer_unordered(CALLS_AT_ONCE);
        while let Some(read) = read.next().await {
            let (targets, stored) = read?;
            for undecided in targets {
                let target = &undecided.target;
                let finding = match &stored {
                    Ok(stored) => self.difference(&undecided, stored),
                    Err(error) => {
                        self.report_refused(&target.derivation, &target.item, &describe(error))?;
                        None
                    }
                };
                self.state().tallies.compared(target, finding.as_ref())?;
            }
        }
        Ok(())
    }

    /// True if a target equals its counters as they were last seen. An unreadable record hides changes.
    fn is_seen_equal(&self, undecided: &Undecided) -> Result<bool, VerifyError> {
        let Target { derivation, item } = &undecided.target;
        let mut state = self.state();
        if state.is_blind {
            return Ok(false);
        }
        let prefix = if self.has_buckets(&undecided.target) {
            item.sk.clone()
        } else {
            counter::derivation_prefix(item, derivation)
        };
        let seen = state.tallies.counters(&item.pk, &prefix)?;
        Ok(self.difference(undecided, &seen).is_none())
    }

    fn has_buckets(&self, target: &Target) -> bool {
        let kind = Judge { engine: self.engine }.kind(&target.derivation);
        matches!(kind.map(Kind::shape), Some(Shape::Rollup(_)))
    }

    fn difference(&self, undecided: &Undecided, stored: &Items) -> Option<Finding> {
        Judge { engine: self.engine }.count(&undecided.target, &undecided.tally, stored)
    }
}

// ---- Counters and buckets against the definition ----

/// Counters that differ from their sources.
pub(super) fn counters_compared(
    schema: &Schema,
    kind: Option<&dyn Kind>,
    derivation: &str,
    derived: &[Derived],
    items: &Items,
) -> Vec<Finding> {
    let mut counters: BTreeMap<Key, Items> = BTreeMap::new();
    for (key, item) in items {
        let counter = CounterKey::parse(key).filter(|counter| counter.derivation == derivation);
        if let Some(counter) = counter.filter(|_| schema.image(key, item).is_some_and(|image| image.is(COUNTER))) {
            counters.entry(counter.target).or_default().insert(key.clone(), item.clone());
        }
    }
    let tallies: BTreeMap<&Key, &Tally> = derived
        .iter()
        .filter_map(|part| match part {
            Derived::Count { target, tally, .. } => Some((target, tally)),
            _ => None,
        })
        .collect();
    let (none, no_shards) = (Tally::default(), Items::new());
    let targets: BTreeSet<&Key> = counters.keys().chain(tallies.keys().copied()).collect();
    let compared = |item: &Key| {
        let shards = counters.get(item).unwrap_or(&no_shards);
        let target = Target { derivation: derivation.to_owned(), item: item.clone() };
        counter_compared(schema, kind?, &target, shards, tallies.get(item).copied().unwrap_or(&none))
    };
    targets.into_iter().filter_map(compared).collect()
}

/// The finding for a target's counter, with its shards added up, if it differs from its sources.
pub(super) fn counter_compared(
    schema: &Schema,
    kind: &dyn Kind,
    target: &Target,
    shards: &Items,
    derived: &Tally,
) -> Option<Finding> {
    let stored = added_up(schema, shards);
    if stored == *derived || (kind.is_history() && stored.count >= derived.count) {
        return None;
    }
    let has_sum = matches!(kind.shape(), Shape::Count(count) if count.sum.is_some());
    // An unreadable counter is reported as it is stored; otherwise the sum of the shards.
    let (key, stored) = match (shards.iter().find(|(_, item)| is_broken(item)), shards.first_key_value()) {
        (Some((key, item)), _) => (key.clone(), Some(only(item, &[VALUE, SUM]))),
        (None, Some((key, _))) => (key.clone(), Some(attributes(&stored, has_sum))),
        (None, None) => {
            let first = CounterKey::home(target.item.clone(), &target.derivation);
            (first.key().ok()?, None)
        }
    };
    Some(finding(&target.derivation, &key, stored, Some(attributes(derived, has_sum))))
}

/// True if its count or its sum cannot be read.
pub(crate) fn is_broken(counter: &Item) -> bool {
    counter.get(VALUE).and_then(whole_number).is_none() || counter.get(SUM).is_some_and(|sum| Sum::of(sum).is_none())
}

/// A tally as the attributes of a counter.
pub(crate) fn attributes(tally: &Tally, has_sum: bool) -> Item {
    let mut item = Item::from([(VALUE.to_owned(), AttributeValue::N(tally.count.to_string()))]);
    item.extend(has_sum.then(|| (SUM.to_owned(), tally.sum.to_value())));
    item
}

/// The given attributes of an item that it has.
pub(crate) fn only(item: &Item, names: &[&str]) -> Item {
    names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone()))).collect()
}

/// Buckets below what their sources give: in count, or without a sum or bounds.
pub(super) fn buckets_compared(derivation: &str, derived: &[Derived], items: &Items) -> Vec<Finding> {
    let compared = |part: &Derived| {
        let Derived::Bucket { key, bucket, form } = part else { return None };
        let finding = bucket_compared(derivation, key, &bucket.tally, form, items.get(key))?;
        Some(Finding { derived: Some(bucket.attributes(form)), ..finding })
    };
    derived.iter().filter_map(compared).collect()
}

/// The finding about a bucket below what its sources give; it names the count.
pub(super) fn bucket_compared(
    derivation: &str,
    key: &Key,
    derived: &Tally,
    form: &BucketForm,
    stored: Option<&Item>,
) -> Option<Finding> {
    let count = AttributeValue::N(derived.count.to_string());
    let wanted = Some(Item::from([(form.count.clone(), count)]));
    let Some(stored) = stored else { return Some(finding(derivation, key, None, wanted)) };
    let count = stored.get(&form.count).and_then(whole_number);
    if count.is_some_and(|count| count >= derived.count) && !is_broken_bucket(form, stored) {
        return None;
    }
    Some(finding(derivation, key, Some(only(stored, &numbers_of(form))), wanted))
}

/// The names of a bucket's numbers.
fn numbers_of(form: &BucketForm) -> [&str; 4] {
    [&form.count, &form.sum, &form.min, &form.max].map(String::as_str)
}

/// True if an item has some of a bucket's numbers, and not all four.
pub(super) fn is_broken_bucket(form: &BucketForm, stored: &Item) -> bool {
    let names = numbers_of(form);
    let n_numbers = names.iter().filter(|name| stored.get(name).is_some_and(|it| Sum::of(it).is_some())).count();
    n_numbers < names.len() && names.iter().any(|name| stored.contains_key(name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derive::{bucket::Bucket, effect::BucketForm};

    use super::*;

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    fn item(pairs: &[(&str, &str)]) -> Item {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), n(text))).collect()
    }

    #[test]
    fn a_bucket_is_held_to_its_count_and_to_having_a_sum_and_bounds() {
        let [count, sum, min, max] = ["Count", "Sum", "Min", "Max"].map(str::to_owned);
        let form = Arc::new(BucketForm { entity: "Rollup".to_owned(), count, sum, min, max });
        let key = Key::new("SENSOR#s", "DAY#2024-01-15");
        let derived = [Derived::Bucket { key: key.clone(), bucket: Bucket::of(&Sum::of(&n("5")).unwrap()), form }];
        let n_findings = |stored: Option<Item>| {
            let items: Items = stored.map(|stored| (key.clone(), stored)).into_iter().collect();
            buckets_compared("readings", &derived, &items).len()
        };
        assert_eq!(n_findings(None), 1);
        let whole = [("Count", "1"), ("Sum", "9"), ("Min", "9"), ("Max", "9")];
        assert_eq!(n_findings(Some(item(&whole))), 0, "the reading was changed later");
        assert_eq!(n_findings(Some(item(&[("Count", "0"), ("Sum", "9"), ("Min", "9"), ("Max", "9")]))), 1);
        assert_eq!(n_findings(Some(item(&[("Count", "2"), ("Sum", "9"), ("Min", "4"), ("Max", "5")]))), 0);
        assert_eq!(n_findings(Some(item(&whole[..3]))), 1);
        let mut text = item(&whole);
        text.insert("Min".to_owned(), AttributeValue::S("9".to_owned()));
        assert_eq!(n_findings(Some(text)), 1);
    }
}

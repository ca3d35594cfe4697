//! Coalescing: the additive effects of a whole batch in few writes.
//!
//! All effects on one counter or bucket become one write. With the receipts ledger, a batch is cut in stream order into
//! transactions; each contains the writes and the receipts of their changes.
//!
//! Example: 100 changes of one counter become 99 receipts and one update, then one receipt and one update.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use keys::{counter, item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    bucket::{Bucket, StoredBuckets},
    effect::BucketForm,
    guard::{Ask, Guard, Purpose},
    position::{DerivationAt, RecordAt},
    schema::Schema,
    tally::{Sum, Tally},
    write::{Action, TRANSACT_ACTIONS_MAX, Table, Update, Write},
};

/// A change and what it adds. Changes are kept apart: +1 and -1 on one counter are two changes, not none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Position of the change in its batch.
    pub position: RecordAt,
    /// Id of the event.
    pub id: String,
    /// Sequence number of its record.
    pub sequence_number: String,
    /// What it adds.
    pub amounts: Vec<Amount>,
}

/// What one change adds to one counter or bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The counter or bucket.
    pub item: Key,
    /// Position of the derivation in the catalogue.
    pub derivation: DerivationAt,
    /// What is added.
    pub adds: Adds,
}

/// What is added to a counter or bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adds {
    /// An amount, to a counter.
    Tally(Tally),
    /// A value, to a bucket of this form.
    Value(Arc<BucketForm>, Sum),
}

/// Cuts a batch into transactions of at most 100 actions: a receipt for each change, and one action for each counter
/// and each bucket.
#[must_use]
pub fn chunks(changes: Vec<Counted>) -> Vec<Vec<Counted>> {
    let (mut lengths, mut n_changes) = (Vec::new(), 0);
    let mut items: BTreeSet<&Key> = BTreeSet::new();
    for change in &changes {
        let touched = || change.amounts.iter().map(|amount| &amount.item);
        items.extend(touched());
        if n_changes > 0 && n_changes + 1 + items.len() > TRANSACT_ACTIONS_MAX {
            lengths.push(n_changes);
            n_changes = 0;
            items = touched().collect();
        }
        n_changes += 1;
    }
    lengths.extend((n_changes > 0).then_some(n_changes));
    let mut rest = changes.into_iter();
    lengths.into_iter().map(|n_changes| rest.by_ref().take(n_changes).collect()).collect()
}

/// What a transaction adds to one item.
enum Added {
    Tally(Tally),
    Bucket(Arc<BucketForm>, Bucket),
}

impl Added {
    fn of(adds: &Adds) -> Self {
        match adds {
            Adds::Tally(tally) => Self::Tally(tally.clone()),
            Adds::Value(form, value) => Self::Bucket(Arc::clone(form), Bucket::of(value)),
        }
    }

    fn add(&mut self, adds: &Adds) {
        match (self, adds) {
            (Self::Tally(sum), Adds::Tally(tally)) => sum.add(tally),
            (Self::Bucket(_, bucket), Adds::Value(_, value)) => bucket.add(&Bucket::of(value)),
            // The key of a counter is never the key of a bucket.
            (Self::Tally(_), Adds::Value(..)) | (Self::Bucket(..), Adds::Tally(_)) => {}
        }
    }
}

/// The buckets that a transaction adds to, which must be read before it is sent.
#[must_use]
pub fn buckets(chunk: &[Counted]) -> Vec<Key> {
    let amounts = chunk.iter().flat_map(|change| &change.amounts);
    let keys: BTreeSet<&Key> =
        amounts.filter(|amount| matches!(amount.adds, Adds::Value(..))).map(|amount| &amount.item).collect();
    keys.into_iter().cloned().collect()
}

/// The writes that add the amounts of a transaction, each with its derivation: one for each counter whose amounts do
/// not cancel out, and one for each bucket, based on its read.
#[must_use]
pub fn amount_writes(schema: &Schema, chunk: &[Counted], stored: &StoredBuckets) -> Vec<(Write, DerivationAt)> {
    let mut sums: BTreeMap<&Key, (Added, DerivationAt)> = BTreeMap::new();
    for Amount { item, derivation, adds } in chunk.iter().flat_map(|change| &change.amounts) {
        match sums.entry(item) {
            Entry::Vacant(entry) => drop(entry.insert((Added::of(adds), *derivation))),
            Entry::Occupied(mut entry) => entry.get_mut().0.add(adds),
        }
    }
    let written = |(key, (added, derivation)): (&Key, (Added, DerivationAt))| {
        let write = match added {
            Added::Tally(tally) if tally.is_zero() => return None,
            Added::Tally(tally) => counter_write(schema, key, &tally),
            Added::Bucket(form, bucket) => bucket.write(schema, key, &form, stored.get(key)),
        };
        Some((write, derivation))
    };
    sums.into_iter().filter_map(written).collect()
}

/// The write that adds these amounts to one counter, or to one bucket based on its read. Amounts that cancel out
/// produce a write too. `None` without an amount.
#[must_use]
pub fn item_write<'a>(
    schema: &Schema,
    key: &Key,
    amounts: impl IntoIterator<Item = &'a Adds>,
    stored: Option<&Item>,
) -> Option<Write> {
    let mut amounts = amounts.into_iter();
    let mut added = Added::of(amounts.next()?);
    amounts.for_each(|adds| added.add(adds));
    Some(match added {
        Added::Tally(tally) => counter_write(schema, key, &tally),
        Added::Bucket(form, bucket) => bucket.write(schema, key, &form, stored),
    })
}

/// Every counter gets a value, so that it is readable even if only its sum changed.
fn counter_write(schema: &Schema, key: &Key, tally: &Tally) -> Write {
    let kind = schema.layout.type_of(counter::COUNTER);
    let mut add = Item::from([(counter::VALUE.to_owned(), AttributeValue::N(tally.count.to_string()))]);
    if !tally.sum.is_zero() {
        add.insert(counter::SUM.to_owned(), tally.sum.to_value());
    }
    Write {
        table: Table::Main,
        key: key.clone(),
        action: Action::Update(Update { set: kind.clone().into_iter().collect(), add, ..Update::default() }),
        guard: kind
            .map(|(name, value)| Guard { purpose: Purpose::CounterType, asks: vec![Ask::LacksOrEqual(name, value)] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::n;

    fn counted(position: usize, counters: &[&str]) -> Counted {
        let adds = Adds::Tally(Tally::of(1));
        let amount =
            |counter: &&str| Amount { item: Key::new(*counter, "C"), derivation: DerivationAt(0), adds: adds.clone() };
        let id = position.to_string();
        Counted {
            position: RecordAt(position),
            id: id.clone(),
            sequence_number: id,
            amounts: counters.iter().map(amount).collect(),
        }
    }

    #[test]
    fn a_chunk_holds_99_changes_of_one_counter() {
        let chunks = chunks((0..100).map(|at| counted(at, &["a"])).collect());
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [99, 1]);
    }

    #[test]
    fn a_chunk_holds_50_changes_of_50_counters() {
        let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let changes = names.iter().enumerate().map(|(at, name)| counted(at, &[name.as_str()])).collect();
        assert_eq!(chunks(changes).iter().map(Vec::len).collect::<Vec<_>>(), [50, 50]);
    }

    #[test]
    fn chunks_follow_stream_order_and_lose_nothing() {
        let changes: Vec<Counted> = (0..250).map(|at| counted(at, &["a", ["b", "c", "d"][at % 3]])).collect();
        let positions: Vec<usize> = chunks(changes).into_iter().flatten().map(|change| change.position.0).collect();
        assert_eq!(positions, (0..250).collect::<Vec<_>>());
    }

    fn schema() -> Schema {
        let layout =
            keys::layout::Layout { entity_type: Some("EntityType".into()), ..keys::layout::Layout::of("PK", "SK") };
        Schema::new(layout, [])
    }

    fn sum(text: &str) -> Sum {
        Sum::of(&n(text)).unwrap()
    }

    /// A change that adds this amount to the counter `a`.
    fn tallied(position: usize, count: i64, text: &str) -> Counted {
        let mut change = counted(position, &["a"]);
        change.amounts[0].adds = Adds::Tally(Tally { count, sum: sum(text) });
        change
    }

    fn added(chunk: &[Counted]) -> Vec<Item> {
        let added = |(write, _): (Write, DerivationAt)| match write.action {
            Action::Update(update) => update.add,
            other => panic!("{other:?}"),
        };
        amount_writes(&schema(), chunk, &StoredBuckets::new()).into_iter().map(added).collect()
    }

    #[test]
    fn amounts_on_one_counter_become_one_write_and_a_zero_sum_none() {
        let writes = amount_writes(
            &schema(),
            &[counted(0, &["a"]), counted(1, &["b"]), tallied(2, -1, "0")],
            &StoredBuckets::new(),
        );
        let keys: Vec<&str> = writes.iter().map(|(write, _)| write.key.pk.as_str()).collect();
        assert_eq!(keys, ["b"]);
    }

    #[test]
    fn what_is_nothing_in_count_and_something_in_sum_is_written_and_the_other_way_round() {
        let item = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).to_owned(), n(text))).collect();
        let zero = tallied(0, 1, "19.90");
        assert_eq!(added(&[zero.clone(), tallied(1, -1, "-20")]), [item(&[("Value", "0"), ("Sum", "-0.1")])]);
        assert_eq!(added(&[zero.clone(), tallied(1, 1, "-1.99E1")]), [item(&[("Value", "2")])]);
        assert_eq!(added(&[zero, tallied(1, -1, "-19.9")]), Vec::<Item>::new());
    }

    #[test]
    fn values_of_one_bucket_become_one_write_that_sets_what_widens() {
        let form = Arc::new(BucketForm {
            entity: "Rollup".into(),
            count: "Count".into(),
            sum: "Sum".into(),
            min: "Min".into(),
            max: "Max".into(),
        });
        let measured = |position, text| {
            let mut change = counted(position, &["a"]);
            change.amounts[0].adds = Adds::Value(Arc::clone(&form), sum(text));
            change
        };
        let chunk = [measured(0, "1"), measured(1, "4.0")];
        let key = Key::new("a", "C");
        assert_eq!(buckets(&chunk), std::slice::from_ref(&key));
        let stored: Item = [("Min", n("2")), ("Max", n("5"))].map(|(name, value)| (name.to_owned(), value)).into();
        for (stored, set, [min, max]) in [
            (None, vec![("Max", "4"), ("Min", "1")], [None, None]),
            (Some(stored), vec![("Min", "1")], [Some(n("2")), Some(n("5"))]),
        ] {
            let stored: StoredBuckets = stored.map(|item| (key.clone(), item)).into_iter().collect();
            let writes = amount_writes(&schema(), &chunk, &stored);
            let [(Write { action: Action::Update(update), guard: Some(found), .. }, DerivationAt(0))] =
                writes.as_slice()
            else {
                panic!("{writes:?}");
            };
            let mut wanted: Item = set.into_iter().map(|(name, text)| (name.to_owned(), n(text))).collect();
            wanted.insert("EntityType".to_owned(), AttributeValue::S("Rollup".to_owned()));
            assert_eq!(
                (&update.set, update.add.get("Count"), update.add.get("Sum")),
                (&wanted, Some(&n("2")), Some(&n("5")))
            );
            let mut guard = Guard::as_read(Purpose::Bucket, [("Min", min), ("Max", max)]);
            guard.asks.push(Ask::LacksOrEqual("EntityType".to_owned(), AttributeValue::S("Rollup".to_owned())));
            assert_eq!(*found, guard);
        }
    }
}

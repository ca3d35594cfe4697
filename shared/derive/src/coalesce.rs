//! Coalescing: the additive effects of a whole batch, as few writes.
//!
//! All effects on one counter, or on one bucket, become one write. A batch is cut, in stream order, into chunks that each fit in one
//! transaction together with what the ledger writes for their changes.
//!
//! Example: 100 changes of one counter are 99 receipts and one update, then one receipt and one update.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use keys::{counter, item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    bucket::{Bucket, Held},
    effect::BucketForm,
    schema::Schema,
    tally::{Sum, Tally},
    write::{Action, TRANSACT_ACTIONS_MAX, Table, Update, Write},
};

/// A change with what it adds, change by change: +1 and -1 on one counter are two changes, not none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Position of the change in its batch.
    pub position: usize,
    /// Id of the event.
    pub id: String,
    /// Sequence number of its record.
    pub sequence_number: String,
    /// What it adds.
    pub amounts: Vec<Amount>,
}

/// What one change adds to one item of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The counter, or the bucket.
    pub item: Key,
    /// Position of the derivation in the catalogue.
    pub derivation: usize,
    /// What is added.
    pub adds: Adds,
}

/// What is added to an item of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adds {
    /// So much, to a counter.
    Tally(Tally),
    /// A value, to a bucket of this form.
    Value(Arc<BucketForm>, Sum),
}

/// What proves, in the transaction of a chunk, that its changes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An action for each change.
    EachChange,
    /// One action for all of them.
    EachChunk,
}

impl Proof {
    /// Actions that it takes for so many changes.
    #[must_use]
    pub fn n_actions(self, n_changes: usize) -> usize {
        match self {
            Self::EachChange => n_changes,
            Self::EachChunk => 1,
        }
    }
}

/// Cuts a batch into chunks of at most 100 actions: those of the proof, and one for each counter and each bucket.
#[must_use]
pub fn chunks(changes: Vec<Counted>, proof: Proof) -> Vec<Vec<Counted>> {
    let (mut lengths, mut n_changes) = (Vec::new(), 0);
    let mut items: BTreeSet<&Key> = BTreeSet::new();
    for change in &changes {
        let touched = || change.amounts.iter().map(|amount| &amount.item);
        items.extend(touched());
        if n_changes > 0 && proof.n_actions(n_changes + 1) + items.len() > TRANSACT_ACTIONS_MAX {
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

/// What a chunk adds to one item.
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
            // A key of a counter is none of a bucket.
            (Self::Tally(_), Adds::Value(..)) | (Self::Bucket(..), Adds::Tally(_)) => {}
        }
    }
}

/// The buckets that a chunk adds to, which must be read before it is sent.
#[must_use]
pub fn buckets(chunk: &[Counted]) -> Vec<Key> {
    let amounts = chunk.iter().flat_map(|change| &change.amounts);
    let keys: BTreeSet<&Key> =
        amounts.filter(|amount| matches!(amount.adds, Adds::Value(..))).map(|amount| &amount.item).collect();
    keys.into_iter().cloned().collect()
}

/// The writes that add a chunk's amounts, with the derivation each is of: one for each counter to which they do not add
/// up to nothing, and one for each bucket, as it was read.
#[must_use]
pub fn amount_writes(schema: &Schema, chunk: &[Counted], held: &Held) -> Vec<(Write, usize)> {
    let mut sums: BTreeMap<&Key, (Added, usize)> = BTreeMap::new();
    for Amount { item, derivation, adds } in chunk.iter().flat_map(|change| &change.amounts) {
        match sums.entry(item) {
            Entry::Vacant(entry) => drop(entry.insert((Added::of(adds), *derivation))),
            Entry::Occupied(mut entry) => entry.get_mut().0.add(adds),
        }
    }
    let written = |(key, (added, derivation)): (&Key, (Added, usize))| {
        let write = match added {
            Added::Tally(tally) if tally.is_zero() => return None,
            Added::Tally(tally) => counter_write(schema, key, &tally),
            Added::Bucket(form, bucket) => bucket.write(schema, key, &form, held.get(key)),
        };
        Some((write, derivation))
    };
    sums.into_iter().filter_map(written).collect()
}

/// Every counter has a value, so that one of which only the sum changed can be read too.
fn counter_write(schema: &Schema, key: &Key, tally: &Tally) -> Write {
    let mut add = Item::from([(counter::VALUE.to_owned(), AttributeValue::N(tally.count.to_string()))]);
    if !tally.sum.is_zero() {
        add.insert(counter::SUM.to_owned(), tally.sum.to_value());
    }
    Write {
        table: Table::Main,
        key: key.clone(),
        action: Action::Update(Update {
            set: schema.layout.type_of(counter::COUNTER).into_iter().collect(),
            add,
            ..Update::default()
        }),
        guard: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Guard, Purpose};

    fn counted(position: usize, counters: &[&str]) -> Counted {
        let adds = Adds::Tally(Tally::of(1));
        let amount = |counter: &&str| Amount { item: Key::new(*counter, "C"), derivation: 0, adds: adds.clone() };
        let id = position.to_string();
        Counted { position, id: id.clone(), sequence_number: id, amounts: counters.iter().map(amount).collect() }
    }

    #[test]
    fn a_chunk_holds_99_changes_of_one_counter() {
        let chunks = chunks((0..100).map(|at| counted(at, &["a"])).collect(), Proof::EachChange);
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [99, 1]);
    }

    #[test]
    fn a_chunk_holds_50_changes_of_50_counters() {
        let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let changes = names.iter().enumerate().map(|(at, name)| counted(at, &[name.as_str()])).collect();
        assert_eq!(chunks(changes, Proof::EachChange).iter().map(Vec::len).collect::<Vec<_>>(), [50, 50]);
    }

    #[test]
    fn a_chunk_with_one_proof_holds_any_number_of_changes_of_99_counters() {
        let chunks = chunks((0..1_000).map(|at| counted(at, &["a"])).collect(), Proof::EachChunk);
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [1_000]);
        let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let changes = names.iter().enumerate().map(|(at, name)| counted(at, &[name.as_str()])).collect();
        assert_eq!(super::chunks(changes, Proof::EachChunk).iter().map(Vec::len).collect::<Vec<_>>(), [99, 1]);
    }

    #[test]
    fn chunks_follow_stream_order_and_lose_nothing() {
        let changes: Vec<Counted> = (0..250).map(|at| counted(at, &["a", ["b", "c", "d"][at % 3]])).collect();
        let positions: Vec<usize> =
            chunks(changes, Proof::EachChange).into_iter().flatten().map(|change| change.position).collect();
        assert_eq!(positions, (0..250).collect::<Vec<_>>());
    }

    fn schema() -> Schema {
        let layout = keys::layout::Layout {
            pk: "PK".into(),
            sk: "SK".into(),
            entity_type: Some("EntityType".into()),
            time_to_live: None,
            indexes: Vec::new(),
        };
        Schema::new(layout, [])
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    fn sum(text: &str) -> Sum {
        Sum::of(&n(text)).unwrap()
    }

    /// A change that adds so much to the counter `a`.
    fn tallied(position: usize, count: i64, text: &str) -> Counted {
        let mut change = counted(position, &["a"]);
        change.amounts[0].adds = Adds::Tally(Tally { count, sum: sum(text) });
        change
    }

    fn added(chunk: &[Counted]) -> Vec<Item> {
        let added = |(write, _): (Write, usize)| match write.action {
            Action::Update(update) => update.add,
            other => panic!("{other:?}"),
        };
        amount_writes(&schema(), chunk, &Held::new()).into_iter().map(added).collect()
    }

    #[test]
    fn amounts_on_one_counter_become_one_write_and_a_zero_sum_none() {
        let writes =
            amount_writes(&schema(), &[counted(0, &["a"]), counted(1, &["b"]), tallied(2, -1, "0")], &Held::new());
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
        let held: Item = [("Min", n("2")), ("Max", n("5"))].map(|(name, value)| (name.to_owned(), value)).into();
        for (held, set, [min, max]) in [
            (None, vec![("Max", "4"), ("Min", "1")], [None, None]),
            (Some(held), vec![("Min", "1")], [Some(n("2")), Some(n("5"))]),
        ] {
            let held: Held = held.map(|item| (key.clone(), item)).into_iter().collect();
            let writes = amount_writes(&schema(), &chunk, &held);
            let [(Write { action: Action::Update(update), guard: Some(found), .. }, 0)] = writes.as_slice() else {
                panic!("{writes:?}");
            };
            let mut wanted: Item = set.into_iter().map(|(name, text)| (name.to_owned(), n(text))).collect();
            wanted.insert("EntityType".to_owned(), AttributeValue::S("Rollup".to_owned()));
            assert_eq!(
                (&update.set, update.add.get("Count"), update.add.get("Sum")),
                (&wanted, Some(&n("2")), Some(&n("5")))
            );
            assert_eq!(*found, Guard::as_read(Purpose::Bucket, [("Min", min), ("Max", max)]));
        }
    }
}

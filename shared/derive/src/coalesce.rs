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
    bucket::{Bucket, HeldBuckets},
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
pub fn amount_writes(schema: &Schema, chunk: &[Counted], held: &HeldBuckets) -> Vec<(Write, DerivationAt)> {
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
            Added::Bucket(form, bucket) => bucket.write(schema, key, &form, held.get(key)),
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
    held: Option<&Item>,
) -> Option<Write> {
    let mut amounts = amounts.into_iter();
    let mut added = Added::of(amounts.next()?);
    amounts.for_each(|adds| added.add(adds));
    Some(match added {
        Added::Tally(tally) => counter_write(schema, key, &tally),
        Added::Bucket(form, bucket) => bucket.write(schema, key, &form, held),
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
mod tests;

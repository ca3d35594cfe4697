//! Coalescing: the additive effects of a whole batch, as few writes.
//!
//! All effects on one counter become one write. A batch is cut, in stream order, into chunks that each fit in one
//! transaction together with what the ledger writes for their changes.
//!
//! Example: 100 changes of one counter are 99 receipts and one update, then one receipt and one update.

use std::collections::{BTreeMap, BTreeSet};

use keys::{counter, item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    schema::Schema,
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

/// What one change adds to one counter item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The counter item.
    pub counter: Key,
    /// Position of the derivation in the catalogue.
    pub derivation: usize,
    /// What is added.
    pub amount: i64,
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

/// Cuts a batch into chunks of at most 100 actions: those of the proof, and one for each counter.
#[must_use]
pub fn chunks(changes: Vec<Counted>, proof: Proof) -> Vec<Vec<Counted>> {
    let (mut lengths, mut n_changes) = (Vec::new(), 0);
    let mut counters: BTreeSet<&Key> = BTreeSet::new();
    for change in &changes {
        let touched = || change.amounts.iter().map(|amount| &amount.counter);
        counters.extend(touched());
        if n_changes > 0 && proof.n_actions(n_changes + 1) + counters.len() > TRANSACT_ACTIONS_MAX {
            lengths.push(n_changes);
            n_changes = 0;
            counters = touched().collect();
        }
        n_changes += 1;
    }
    lengths.extend((n_changes > 0).then_some(n_changes));
    let mut rest = changes.into_iter();
    lengths.into_iter().map(|n_changes| rest.by_ref().take(n_changes).collect()).collect()
}

/// The writes that add a chunk's amounts: one for each counter whose sum is not zero, with the derivation it is of.
#[must_use]
pub fn counter_writes(schema: &Schema, chunk: &[Counted]) -> Vec<(Write, usize)> {
    let mut sums: BTreeMap<&Key, (i64, usize)> = BTreeMap::new();
    for amount in chunk.iter().flat_map(|change| &change.amounts) {
        sums.entry(&amount.counter).or_insert((0, amount.derivation)).0 += amount.amount;
    }
    let entity_type: Item = schema.layout.type_of(counter::COUNTER).into_iter().collect();
    let write = |key: &Key, amount: i64| Write {
        table: Table::Main,
        key: key.clone(),
        action: Action::Update(Update {
            set: entity_type.clone(),
            add: Item::from([(counter::VALUE.to_owned(), AttributeValue::N(amount.to_string()))]),
            ..Update::default()
        }),
        guard: None,
    };
    let differing = sums.into_iter().filter(|(_, (amount, _))| *amount != 0);
    differing.map(|(key, (amount, derivation))| (write(key, amount), derivation)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(position: usize, counters: &[&str]) -> Counted {
        let amount = |counter: &&str| Amount { counter: Key::new(*counter, "C"), derivation: 0, amount: 1 };
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

    #[test]
    fn amounts_on_one_counter_become_one_write_and_a_zero_sum_none() {
        let schema = Schema::new(
            keys::layout::Layout {
                pk: "PK".into(),
                sk: "SK".into(),
                entity_type: Some("EntityType".into()),
                time_to_live: None,
                indexes: Vec::new(),
            },
            [],
        );
        let mut down = counted(2, &["a"]);
        down.amounts[0].amount = -1;
        let writes = counter_writes(&schema, &[counted(0, &["a"]), counted(1, &["b"]), down]);
        let keys: Vec<&str> = writes.iter().map(|(write, _)| write.key.pk.as_str()).collect();
        assert_eq!(keys, ["b"]);
    }
}

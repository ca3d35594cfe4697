//! The record of what was hot: an item for each derivation, target and minute.

use std::collections::BTreeSet;

use derive::{
    query::{Query, SortKeys},
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Store, StoreError};

use super::{Hot, Measured};
use crate::{
    attribute::{n, number, s},
    ledger::EXPIRES_AT,
    listing::fitted,
    lists::all_of,
};

/// What a measure is summed up over, in milliseconds: long enough that a hot target is written a few times in it, short
/// enough that a peak shows.
pub const MINUTE_MS: u64 = 60_000;

/// How long the record is kept, in seconds: a week, so that its busiest hour is in it.
pub const KEPT_S: u64 = 7 * 24 * 3600;

// Attributes and key of the record. Stored, so they are stable.
const HEAT: &str = "HEAT#";
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const MINUTE: &str = "Minute";
const EFFECTS: &str = "Effects";
const TRANSACTIONS: &str = "Transactions";
const CONFLICTS: &str = "Conflicts";
const THROTTLES: &str = "Throttles";
const SHARDS: &str = "Shards";

/// What was measured of a target in a minute, by all functions together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heated {
    /// What was hot.
    pub hot: Hot,
    /// When the minute began, in milliseconds since the epoch.
    pub minute_ms: u64,
    /// What was measured.
    pub measured: Measured,
}

/// The write that adds a measure to the record of its minute.
#[must_use]
pub fn added(hot: &Hot, measured: &Measured, now_ms: u64) -> Write {
    let minute = now_ms / MINUTE_MS;
    let counts = [
        (EFFECTS, measured.n_effects),
        (TRANSACTIONS, measured.n_transactions),
        (CONFLICTS, measured.n_conflicts),
        (THROTTLES, measured.n_throttles),
    ];
    let counts = counts.into_iter().filter(|(_, number)| *number > 0);
    let mut add: Item = counts.map(|(name, number)| (name.to_owned(), n(number))).collect();
    if !measured.shards.is_empty() {
        let shards = measured.shards.iter().map(u32::to_string).collect();
        add.insert(SHARDS.to_owned(), AttributeValue::Ns(shards));
    }
    let Key { pk, sk } = &hot.target;
    let set =
        [(ITEM_PK, s(pk)), (ITEM_SK, s(sk)), (MINUTE, n(minute * MINUTE_MS)), (EXPIRES_AT, n(now_ms / 1000 + KEPT_S))];
    let key = Key::new(partition(&hot.derivation), fitted(format!("{}#{pk}#{sk}", padded(minute))));
    let set = set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Write { table: Table::Ledger, key, action: Action::Update(Update { set, add, ..Update::default() }), guard: None }
}

/// What was hot of these derivations from one time to another, in milliseconds since the epoch: a minute is in it when
/// any of it is.
///
/// # Errors
///
/// [`StoreError`] when the ledger cannot be read.
pub async fn heated<S: Store>(
    store: &S,
    derivations: impl IntoIterator<Item = &str>,
    (from_ms, to_ms): (u64, u64),
) -> Result<Vec<Heated>, StoreError> {
    let minutes = (padded(from_ms / MINUTE_MS), padded(to_ms / MINUTE_MS + 1));
    let mut heated = Vec::new();
    for derivation in derivations {
        let minutes = SortKeys::Between(minutes.0.clone(), minutes.1.clone());
        let query = Query::of(None, partition(derivation), minutes);
        let items = all_of(store, Table::Ledger, &query).await?;
        heated.extend(items.iter().filter_map(|item| read(derivation, item)));
    }
    Ok(heated)
}

fn read(derivation: &str, item: &Item) -> Option<Heated> {
    let count = |name: &str| number(item, name);
    let shards = match item.get(SHARDS) {
        Some(AttributeValue::Ns(shards)) => shards.iter().filter_map(|shard| shard.parse().ok()).collect(),
        _ => BTreeSet::new(),
    };
    let measured = Measured {
        n_effects: count(EFFECTS).unwrap_or(0),
        n_transactions: count(TRANSACTIONS).unwrap_or(0),
        n_conflicts: count(CONFLICTS).unwrap_or(0),
        n_throttles: count(THROTTLES).unwrap_or(0),
        shards,
    };
    let target = Key::new(text(item, ITEM_PK)?, text(item, ITEM_SK)?);
    let hot = Hot { derivation: derivation.to_owned(), target };
    Some(Heated { hot, minute_ms: count(MINUTE)?, measured })
}

fn partition(derivation: &str) -> String {
    format!("{HEAT}{derivation}")
}

/// Minutes since the epoch, as they stand in a sort key.
fn padded(minute: u64) -> String {
    format!("{minute:010}")
}

#[cfg(test)]
mod tests {
    use store::memory::MemoryStore;

    use super::*;
    use crate::fixture::layout;

    #[tokio::test]
    async fn measures_of_a_minute_add_up_and_are_read_by_time() {
        let layout = layout();
        let store = MemoryStore::new(layout);
        let hot = |derivation: &str| Hot { derivation: derivation.to_owned(), target: Key::new("POST#p", "METADATA") };
        let measured =
            |shard: u32| Measured { n_effects: 600, n_conflicts: 2, shards: [shard].into(), ..Measured::default() };
        for (derivation, shard, now_ms) in [("a", 0, 59_999), ("a", 1, 60_000), ("a", 7, 119_999), ("b", 1, 60_001)] {
            store.write(&added(&hot(derivation), &measured(shard), now_ms)).await.unwrap();
        }
        let of = |minute_ms, n: u64, shards: &[u32]| {
            let shards = shards.iter().copied().collect();
            let measured = Measured { n_effects: 600 * n, n_conflicts: 2 * n, shards, ..Measured::default() };
            Heated { hot: hot("a"), minute_ms, measured }
        };
        let (first, second) = (of(0, 1, &[0]), of(60_000, 2, &[1, 7]));
        let read = async |from_ms, to_ms| heated(&store, ["a"], (from_ms, to_ms)).await.unwrap();
        assert_eq!(read(0, 600_000).await, [first.clone(), second.clone()]);
        assert_eq!(read(59_999, 59_999).await, [first]);
        assert_eq!(read(60_000, 600_000).await, [second]);
        assert_eq!(read(120_000, 600_000).await, []);
        assert_eq!(heated(&store, ["a", "b"], (0, 600_000)).await.unwrap().len(), 3);
    }
}

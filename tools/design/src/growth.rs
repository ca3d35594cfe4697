//! How far a table may grow until an update of a counter costs more than one write unit, under watermarks.
//!
//! A counter holds a watermark for each stream shard that fed it lately, and the stream has a shard for each partition of the
//! table. With several items, each stream shard feeds one of them, so each item holds a part of the watermarks.

use std::collections::BTreeMap;

use derive::{declaration::Count, kind::Shape};
use engine::ledger::watermarks::{ENTRY_BYTES, GENERATIONS};
use keys::{
    counter::{COUNTER, CounterKey, REVISION, SHOWN, SUM, VALUE},
    item::Item,
    size::item_bytes,
};
use serde_dynamo::AttributeValue;
use store::WRITE_UNIT_BYTES;

use crate::Design;

/// Counts whose counters grow alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Number of items of each counter (`shards`).
    pub n_items: u32,
    /// Most partitions of the table with which an update costs one write unit. With several items it is an average,
    /// because a hash spreads the stream shards over the items.
    pub partitions_max: u64,
    /// Names of the derivations.
    pub derivations: Vec<String>,
}

/// The growth of the counters of all counts, by the number of their items.
#[must_use]
pub fn growth(design: &Design) -> Vec<CounterGrowth> {
    let mut groups: BTreeMap<(u32, u64), Vec<String>> = BTreeMap::new();
    for derivation in design.catalogue.derivations() {
        let Shape::Count(count) = derivation.kind.shape() else { continue };
        let Some(counter) = counter(design, &derivation.name, count) else { continue };
        let group = (count.n_shards, partitions_max(item_bytes(&counter), count.n_shards));
        groups.entry(group).or_default().push(derivation.label().to_owned());
    }
    let grouped = |((n_items, partitions_max), derivations)| CounterGrowth { n_items, partitions_max, derivations };
    groups.into_iter().map(grouped).collect()
}

/// Most partitions that leave room in a write unit, for items of this many bytes without their watermarks.
fn partitions_max(bytes: usize, n_items: u32) -> u64 {
    let n_entries = WRITE_UNIT_BYTES.saturating_sub(bytes) / ENTRY_BYTES;
    u64::try_from(n_entries).unwrap_or(u64::MAX).saturating_mul(n_items.into()) / GENERATIONS
}

/// A count of ten digits.
const COUNTED: &str = "1234567890";

/// A revision, which begins with the time in milliseconds.
const FIRST_REVISION: &str = "1705315200001";

/// A counter of the sample of its target, without watermarks; `None` if the target has no sample.
fn counter(design: &Design, derivation: &str, count: &Count) -> Option<Item> {
    let layout = &design.schema.layout;
    let target = layout.key(design.samples.item(&count.target)?)?;
    let key = CounterKey { target, derivation: derivation.to_owned(), shard: 0 }.key().ok()?;
    let mut item = layout.key_item(&key);
    item.extend(layout.type_of(COUNTER));
    let numbers = [VALUE].into_iter().chain(count.sum.as_ref().map(|_| SUM)).map(|name| (name, COUNTED));
    let numbers = numbers.chain([(REVISION, FIRST_REVISION)]);
    item.extend(numbers.map(|(name, number)| (name.to_owned(), AttributeValue::N(number.to_owned()))));
    item.insert(SHOWN.to_owned(), AttributeValue::Bool(true));
    Some(item)
}

//! Sources: what is read to look at an item, and what was found there.

use std::collections::BTreeMap;

use keys::{
    counter::{self, CounterKey},
    item::Item,
    key::Key,
    value::whole_number,
};
use serde_dynamo::AttributeValue;

use crate::{
    schema::Schema,
    tally::{Sum, Tally},
};

/// Something that must be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An item.
    Item(Key),
    /// All counters of a target.
    Counters(Key),
}

/// What was read. What was read and is not there is known too.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    items: BTreeMap<Key, Option<Item>>,
    counts: BTreeMap<Key, BTreeMap<String, Tally>>,
    revisions: BTreeMap<Key, BTreeMap<String, Revision>>,
}

/// How often a counter's watermarks have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// So often, where the counter is one item.
    Of(String),
    /// A number does not say it, since the counter has several items, which nobody reads at one moment.
    Sharded,
}

impl Sources {
    /// Adds an item that was read, or that is not there.
    pub fn add_item(&mut self, key: Key, item: Option<Item>) {
        self.items.insert(key, item);
    }

    /// Adds the counters of a target: all items that its query gave.
    pub fn add_counters<'a>(&mut self, schema: &Schema, target: Key, items: impl IntoIterator<Item = &'a Item>) {
        let items: Vec<&Item> = items.into_iter().collect();
        let counts = sums(schema, items.iter().copied()).into_iter().filter(|((of, _), _)| *of == target);
        let counts = counts.map(|((_, derivation), sum)| (derivation, sum)).collect();
        let counters = items.into_iter().filter_map(|item| Some((CounterKey::parse(&schema.layout.key(item)?)?, item)));
        let mut revisions = BTreeMap::new();
        for (counter, item) in counters.filter(|(counter, _)| counter.target == target) {
            let Some(AttributeValue::N(revision)) = item.get(counter::REVISION) else { continue };
            let is_whole = counter.shard == 0 && !revisions.contains_key(&counter.derivation);
            let revision = if is_whole { Revision::Of(revision.clone()) } else { Revision::Sharded };
            revisions.insert(counter.derivation, revision);
        }
        self.revisions.insert(target.clone(), revisions);
        self.counts.insert(target, counts);
    }

    /// Has this been read?
    #[must_use]
    pub fn knows(&self, source: &Source) -> bool {
        match source {
            Source::Item(key) => self.items.contains_key(key),
            Source::Counters(target) => self.counts.contains_key(target),
        }
    }

    /// An item that was read.
    #[must_use]
    pub fn item(&self, key: &Key) -> Option<&Item> {
        self.items.get(key)?.as_ref()
    }

    /// The revision of a target's counter; `None` where nothing is counted by watermarks.
    #[must_use]
    pub fn revision(&self, target: &Key, derivation: &str) -> Option<&Revision> {
        self.revisions.get(target)?.get(derivation)
    }

    /// A tally of a target, over all shards; `None` where there is none.
    #[must_use]
    pub fn tally(&self, target: &Key, derivation: &str) -> Option<&Tally> {
        self.counts.get(target)?.get(derivation)
    }
}

/// Tallies by target and derivation, shards added up. A part of a counter that cannot be read is left out.
#[must_use]
pub fn sums<'a>(schema: &Schema, items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<(Key, String), Tally> {
    let mut sums: BTreeMap<_, Tally> = BTreeMap::new();
    for item in items {
        let is_counter = |attribute: &String| keys::item::text(item, attribute) == Some(counter::COUNTER);
        let typed = schema.layout.entity_type.as_ref().is_none_or(is_counter);
        let counter = schema.layout.key(item).as_ref().and_then(CounterKey::parse).filter(|_| typed);
        if let (Some(counter), Some(tally)) = (counter, tally(item)) {
            sums.entry((counter.target, counter.derivation)).or_default().add(&tally);
        }
    }
    sums
}

/// What a counter holds; `None` where neither its count nor its sum can be read.
pub(crate) fn tally(counter: &Item) -> Option<Tally> {
    let (count, sum) =
        (counter.get(counter::VALUE).and_then(whole_number), counter.get(counter::SUM).and_then(Sum::of));
    let is_read = count.is_some() || sum.is_some();
    is_read.then(|| Tally { count: count.unwrap_or(0), sum: sum.unwrap_or_default() })
}

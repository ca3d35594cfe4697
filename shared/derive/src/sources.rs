//! Sources: what a refresh reads, and the results.

use std::{collections::BTreeMap, sync::Arc};

use keys::{
    counter::{self, CounterKey},
    item::Item,
    key::Key,
    size::item_bytes,
    value::whole_number,
};
use serde_dynamo::AttributeValue;

use crate::{
    clock,
    query::{Order, Query, SortKeys},
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
    /// The first items of a query.
    First(FirstOf),
}

/// The first items of an entity that a query finds in its order: as many as its limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstOf {
    /// A query of the table itself.
    pub query: Query,
    /// The entity.
    pub entity: String,
    /// True if only their number matters, so that of each only its key and its type are kept.
    pub is_counted: bool,
}

impl Source {
    /// True if it is the item with this key, or a query that may find it.
    #[must_use]
    pub fn may_be(&self, key: &Key) -> bool {
        match self {
            Self::Item(item) => item == key,
            Self::Counters(_) => false,
            Self::First(of) => of.may_be(key),
        }
    }
}

/// Read results. A missing item is a known result too.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    items: BTreeMap<Key, Option<Item>>,
    counts: BTreeMap<Key, BTreeMap<String, CounterState>>,
    firsts: BTreeMap<FirstOf, Vec<Item>>,
    /// True if sources that are not here are known not to exist.
    is_whole: bool,
    /// Earlier read results, which are valid too.
    below: Option<Arc<Sources>>,
}

/// The total of a counter over its home and its satellites, and the number of these items.
#[derive(Clone, Debug, Default)]
struct CounterState {
    tally: Tally,
    n_items: usize,
    revision: Option<Revision>,
}

/// How often a counter's watermarks have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The number, if the counter is one item.
    Of(String),
    /// Its home has spread, or it has several items, which are not read at one moment: no number describes the counter.
    Spread,
}

impl Sources {
    /// An empty layer on top of earlier results.
    #[must_use]
    pub fn on(below: Arc<Self>) -> Self {
        Self { below: Some(below), ..Self::default() }
    }

    /// Declares that all items of a table were added: missing items do not exist, and the counters are included.
    pub fn close(&mut self, schema: &Schema) {
        self.is_whole = true;
        for ((target, derivation), state) in counter_states(schema, self.items.values().flatten()) {
            self.counts.entry(target).or_default().insert(derivation, state);
        }
    }

    /// The size of the added items, in bytes, without earlier results.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.items.values().flatten().chain(self.firsts.values().flatten()).map(item_bytes).sum()
    }

    /// Adds an item that was read; `None` if it does not exist.
    pub fn add_item(&mut self, key: Key, item: Option<Item>) {
        self.items.insert(key, item);
    }

    /// Adds the counters of a target: all items that its query found.
    pub fn add_counters<'a>(&mut self, schema: &Schema, target: Key, items: impl IntoIterator<Item = &'a Item>) {
        let counts = counter_states(schema, items).into_iter().filter(|((of, _), _)| *of == target);
        let counts = counts.map(|((_, derivation), state)| (derivation, state)).collect();
        self.counts.insert(target, counts);
    }

    /// Adds the first items of a query.
    pub fn add_first(&mut self, of: FirstOf, items: Vec<Item>) {
        self.firsts.insert(of, items);
    }

    /// Adds the result for a source from `others`; false if they do not have it.
    pub fn add_known(&mut self, schema: &Schema, source: &Source, others: &Self) -> bool {
        let is_known = others.knows(source);
        match source {
            _ if !is_known => {}
            Source::Item(key) => self.add_item(key.clone(), others.item(key).cloned()),
            Source::Counters(target) => {
                self.counts.insert(target.clone(), others.counts_of(target).cloned().unwrap_or_default());
            }
            Source::First(of) => self.add_first(of.clone(), others.first(schema, of).into_iter().cloned().collect()),
        }
        is_known
    }

    /// True if this was read.
    #[must_use]
    pub fn knows(&self, source: &Source) -> bool {
        let is_here = match source {
            Source::Item(key) => self.items.contains_key(key),
            Source::Counters(target) => self.counts.contains_key(target),
            Source::First(of) => self.firsts.contains_key(of),
        };
        is_here || self.is_whole || self.below.as_ref().is_some_and(|below| below.knows(source))
    }

    /// An item that was read.
    #[must_use]
    pub fn item(&self, key: &Key) -> Option<&Item> {
        match self.items.get(key) {
            Some(stored) => stored.as_ref(),
            None => self.below.as_ref()?.item(key),
        }
    }

    /// The hour that the clock shows, if it was read.
    #[must_use]
    pub fn hour(&self) -> Option<u64> {
        self.item(&clock::key()).and_then(clock::hour)
    }

    /// Lets the clock show this hour if it was read and shows none.
    pub fn hour_or(&mut self, hour: u64) {
        if hour > 0 && self.hour().is_none() && self.knows(&Source::Item(clock::key())) {
            self.add_item(clock::key(), Some(clock::showing(hour)));
        }
    }

    /// The first items of a query that was read.
    #[must_use]
    pub fn first(&self, schema: &Schema, of: &FirstOf) -> Vec<&Item> {
        match self.firsts.get(of) {
            Some(first) => first.iter().collect(),
            None if self.is_whole => first_of(
                schema,
                of,
                self.items.range(of.begin()..).filter_map(|(key, item)| Some((key, item.as_ref()?))),
            ),
            None => self.below.as_ref().map_or_else(Vec::new, |below| below.first(schema, of)),
        }
    }

    /// The revision of a target's counter; `None` if no counter of the target has one, as with receipts.
    #[must_use]
    pub fn revision(&self, target: &Key, derivation: &str) -> Option<&Revision> {
        self.counts_of(target)?.get(derivation)?.revision.as_ref()
    }

    /// A tally of a target, over home and satellites; `None` if there is none.
    #[must_use]
    pub fn tally(&self, target: &Key, derivation: &str) -> Option<&Tally> {
        self.counts_of(target)?.get(derivation).map(|state| &state.tally)
    }

    fn counts_of(&self, target: &Key) -> Option<&BTreeMap<String, CounterState>> {
        self.counts.get(target).or_else(|| self.below.as_ref()?.counts_of(target))
    }
}

impl FirstOf {
    /// The number of items to find.
    #[must_use]
    pub fn length(&self) -> usize {
        self.query.limit.map_or(1, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// The least possible key of an item that the query finds.
    #[must_use]
    pub fn begin(&self) -> Key {
        let behind = if matches!(self.query.sk, SortKeys::After(_)) { "\0" } else { "" };
        Key::new(&self.query.pk, [self.query.sk.first(), behind].concat())
    }

    /// True if the query may find an item with this key.
    #[must_use]
    pub fn may_be(&self, key: &Key) -> bool {
        key.pk == self.query.pk && self.query.sk.holds(&key.sk)
    }
}

/// The first items of a query, in its order, from items in key order that start at the beginning of its range.
#[must_use]
pub fn first_of<'a>(
    schema: &Schema,
    of: &FirstOf,
    items: impl IntoIterator<Item = (&'a Key, &'a Item)>,
) -> Vec<&'a Item> {
    let in_range = items.into_iter().take_while(|(key, _)| of.may_be(key));
    let found = in_range.filter(|(key, item)| schema.image(key, item).is_some_and(|image| image.is(&of.entity)));
    let found = found.map(|(_, item)| item);
    match of.query.order {
        Order::Ascending => found.take(of.length()).collect(),
        Order::Descending => {
            let all: Vec<&Item> = found.collect();
            all.into_iter().rev().take(of.length()).collect()
        }
    }
}

/// Tallies by target and derivation, with homes and satellites added up. Unreadable parts of a counter are left out.
#[must_use]
pub fn sums<'a>(schema: &Schema, items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<(Key, String), Tally> {
    counter_states(schema, items).into_iter().map(|(of, state)| (of, state.tally)).collect()
}

fn counter_states<'a>(
    schema: &Schema,
    items: impl IntoIterator<Item = &'a Item>,
) -> BTreeMap<(Key, String), CounterState> {
    let mut counter_states: BTreeMap<_, CounterState> = BTreeMap::new();
    for item in items {
        let is_counter = |attribute: &String| keys::item::text(item, attribute) == Some(counter::COUNTER);
        let typed = schema.layout.entity_type.as_ref().is_none_or(is_counter);
        let counter = schema.layout.key(item).as_ref().and_then(CounterKey::parse).filter(|_| typed);
        if let (Some(CounterKey { target, derivation, satellite }), Some(tally)) = (counter, tally(item)) {
            let state = counter_states.entry((target, derivation)).or_default();
            state.tally.add(&tally);
            state.n_items += 1;
            let revision = match item.get(counter::REVISION) {
                Some(AttributeValue::N(revision)) => Some(revision),
                _ => None,
            };
            let is_whole = state.n_items == 1 && satellite == 0 && !item.contains_key(counter::SPREAD);
            state.revision = match (revision, state.revision.take()) {
                (Some(revision), _) if is_whole => Some(Revision::Of(revision.clone())),
                (None, None) => None,
                _ => Some(Revision::Spread),
            };
        }
    }
    counter_states
}

/// The content of a counter; `None` if neither its count nor its sum can be read.
pub(crate) fn tally(counter: &Item) -> Option<Tally> {
    let (count, sum) =
        (counter.get(counter::VALUE).and_then(whole_number), counter.get(counter::SUM).and_then(Sum::of));
    let is_read = count.is_some() || sum.is_some();
    is_read.then(|| Tally { count: count.unwrap_or(0), sum: sum.unwrap_or_default() })
}

/// Why an attribute of a counter cannot be read; a missing sum is a sum of zero.
pub(crate) fn unreadable(name: &str, stored: Option<&AttributeValue>) -> Option<&'static str> {
    match name {
        counter::VALUE if stored.is_none() => Some("is missing"),
        counter::VALUE if stored.and_then(whole_number).is_none() => Some("is not a whole number of type N"),
        counter::SUM if stored.is_some_and(|stored| Sum::of(stored).is_none()) => Some("is no number of type N"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use keys::layout::Layout;

    use super::*;

    #[test]
    fn a_counter_has_a_revision_if_it_is_one_item_that_has_not_spread() {
        let layout = Layout::of("PK", "SK");
        let schema = Schema::new(layout, Vec::new());
        let target = Key::new("USER#ann", "PROFILE");
        let n = |number: u32| AttributeValue::N(number.to_string());
        let item = |(satellite, revision): &(u32, Option<u32>)| {
            let key =
                CounterKey { target: target.clone(), derivation: "n".to_owned(), satellite: *satellite }.key().unwrap();
            let mut item = schema.layout.key_item(&key);
            item.insert(counter::VALUE.to_owned(), n(1));
            item.extend(revision.map(|revision| (counter::REVISION.to_owned(), n(revision))));
            item
        };
        let (of, spread) = (Some(Revision::Of("7".to_owned())), Some(Revision::Spread));
        for (items, wanted) in [
            (&[(0, Some(7))][..], of),
            (&[(0, None)], None),
            (&[(3, Some(7))], spread.clone()),
            (&[(0, Some(7)), (3, None)], spread.clone()),
            (&[(0, None), (3, Some(7))], spread),
            (&[(0, None), (3, None)], None),
        ] {
            let mut sources = Sources::default();
            let items: Vec<Item> = items.iter().map(item).collect();
            sources.add_counters(&schema, target.clone(), &items);
            assert_eq!(sources.revision(&target, "n"), wanted.as_ref(), "{items:?}");
        }
        let mut home = item(&(0, Some(7)));
        home.insert(counter::SPREAD.to_owned(), n(64));
        let mut sources = Sources::default();
        sources.add_counters(&schema, target.clone(), [&home]);
        assert_eq!(sources.revision(&target, "n"), Some(&Revision::Spread), "a satellite may come at any moment");
    }

    #[test]
    fn what_a_whole_table_does_not_hold_is_not_there_and_what_is_read_later_wins() {
        let layout = Layout::of("PK", "SK");
        let schema = Schema::new(layout, Vec::new());
        let (ann, bob) = (Key::new("USER#ann", "PROFILE"), Key::new("USER#bob", "PROFILE"));
        let counter = CounterKey { target: ann.clone(), derivation: "n".to_owned(), satellite: 1 }.key().unwrap();
        let mut counted = schema.layout.key_item(&counter);
        counted.insert(counter::VALUE.to_owned(), AttributeValue::N("3".to_owned()));
        let mut table = Sources::default();
        table.add_item(counter, Some(counted));
        table.add_item(ann.clone(), Some(schema.layout.key_item(&ann)));
        let asked = [Source::Item(bob.clone()), Source::Counters(ann.clone())];
        assert!(!asked.iter().any(|source| table.knows(source)), "a part of a table proves no absence");
        table.close(&schema);
        let mut later = Sources::on(Arc::new(table));
        assert!(asked.iter().all(|source| later.knows(source)) && later.item(&bob).is_none());
        assert_eq!(later.tally(&ann, "n").map(|tally| tally.count), Some(3));
        assert!(later.item(&ann).is_some() && later.bytes() == 0);
        later.add_item(ann.clone(), None);
        later.add_counters(&schema, ann.clone(), []);
        assert!(later.item(&ann).is_none() && later.tally(&ann, "n").is_none());
    }
}

//! The refresh: how an item is looked at.
//!
//! From a [look](Look), what the item holds and what its sources hold, to a [verdict](Verdict): it is in step, or one
//! write brings it there. The engine fetches what a [step](step) asks for until the verdict is there.
//!
//! Why it is right under repeats and reordering: a verdict depends on what was read, never on the change that rang the
//! bell. A write that was decided on something old makes a record when it lands; that record rings the item's own
//! bell, and looking again corrects it. Looking ends when nothing differs, and computing after writing differs from
//! nothing.
//!
//! Example: a Follow of Bob by Ann is inserted. Its bell names the Follower item `USER#bob / FOLLOWER#ann`. Step one
//! asks for the Follow itself, since the Follower is its mirror; step two for Ann, whose name the Follower carries.
//! The item is not there, so the verdict is to put it, whole. Its INSERT record rings once more; now nothing differs.

use std::collections::{BTreeMap, BTreeSet};

use keys::{
    counter::{self, CounterKey},
    entity::Definition,
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::Catalogue,
    derivation::Refresh,
    guard::Guard,
    kinds::mirror::CLAIMS,
    schema::{Image, Schema},
    value::{is_zero, same, whole_number},
    write::{Action, Table, Wanted, Write},
};

/// An item to look at, and on whose behalf. Looks at one item are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Positions in the catalogue of the derivations that are concerned.
    pub derivations: BTreeSet<usize>,
    /// Sources that changes named.
    pub named: BTreeSet<Key>,
}

/// The item that a kind computes its part of.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// Its key.
    pub key: &'a Key,
    /// What items of its entity look like.
    pub definition: &'a Definition,
    /// Its attributes, as far as they are known; `None` when it does not exist.
    pub item: Option<&'a Item>,
    /// Sources that changes named.
    pub named: &'a BTreeSet<Key>,
}

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
    counts: BTreeMap<Key, BTreeMap<String, i64>>,
}

/// A derivation's part of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// Some attributes.
    Attributes(Vec<Wanted>),
    /// The whole item but for the attributes of other derivations; `None` when it should not exist.
    Item(Option<Item>),
}

/// What comes next in looking at an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// These must be read first.
    Read(Vec<Source>),
    /// It is decided.
    Decided(Verdict),
}

/// The outcome of looking at an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing is to be done.
    InStep,
    /// This write brings it in step.
    Write {
        /// The write.
        write: Box<Write>,
        /// Positions in the catalogue of the derivations whose part differed.
        derivations: Vec<usize>,
    },
}

impl<'a> Target<'a> {
    /// The item as the schema sees it, when it is of the target's entity.
    #[must_use]
    pub fn image(&self, schema: &'a Schema) -> Option<Image<'a>> {
        schema.image(self.key, self.item?).filter(|image| image.definition.name == self.definition.name)
    }
}

impl Sources {
    /// Adds an item that was read, or that is not there.
    pub fn add_item(&mut self, key: Key, item: Option<Item>) {
        self.items.insert(key, item);
    }

    /// Adds the counters of a target: all items that its query gave.
    pub fn add_counters<'a>(&mut self, schema: &Schema, target: Key, items: impl IntoIterator<Item = &'a Item>) {
        let counts = sums(schema, items).into_iter().filter(|((of, _), _)| *of == target);
        let counts = counts.map(|((_, derivation), sum)| (derivation, sum)).collect();
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

    /// A count of a target, over all shards; 0 where there is none.
    #[must_use]
    pub fn count(&self, target: &Key, derivation: &str) -> i64 {
        self.counts.get(target).and_then(|counts| counts.get(derivation)).copied().unwrap_or(0)
    }
}

/// Counter values by target and derivation, shards added up. What is no readable counter is left out.
#[must_use]
pub fn sums<'a>(schema: &Schema, items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<(Key, String), i64> {
    let mut sums = BTreeMap::new();
    for item in items {
        let typed = keys::item::text(item, &schema.layout.entity_type) == Some(counter::COUNTER);
        let counter = schema.layout.key(item).as_ref().and_then(CounterKey::parse).filter(|_| typed);
        let value = item.get(counter::VALUE).and_then(whole_number);
        if let (Some(counter), Some(value)) = (counter, value) {
            let sum: &mut i64 = sums.entry((counter.target, counter.derivation)).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    sums
}

/// Looks at an item that holds `held`, as far as `sources` are known.
#[must_use]
pub fn step(schema: &Schema, catalogue: &Catalogue, look: &Look, held: Option<&Item>, sources: &Sources) -> Step {
    let Some(definition) = schema.entity(&look.entity) else { return Step::Decided(Verdict::InStep) };
    let target = |item| Target { key: &look.item, definition, item, named: &look.named };
    let parts: Vec<usize> = catalogue.refreshing(&look.entity).collect();
    let maker = parts.iter().copied().find(|&at| catalogue.refresh(at).is_some_and(Refresh::makes_item));

    let made = match maker.filter(|at| look.derivations.contains(at)).and_then(|at| catalogue.refresh(at)) {
        None => None,
        Some(mirror) => match unknown(mirror.sources(schema, &target(held)), sources) {
            missing if !missing.is_empty() => return Step::Read(missing),
            _ => match mirror.compute(schema, &target(held), sources) {
                Computed::Item(item) => Some(item),
                Computed::Attributes(_) => None,
            },
        },
    };
    let is_held = held.is_some_and(|item| schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity)));
    let (base, whole) = match (&made, held) {
        (Some(None), _) => return Step::Decided(removal(look, definition, held, maker)),
        (Some(Some(item)), held) => (item, held.is_none()),
        (None, Some(item)) if is_held => (item, false),
        (None, _) => return Step::Decided(Verdict::InStep),
    };

    let concerned = parts.iter().copied().filter(|at| Some(*at) != maker && (whole || look.derivations.contains(at)));
    let concerned: Vec<_> = concerned.filter_map(|at| Some((at, catalogue.refresh(at)?))).collect();
    let wanted = concerned.iter().flat_map(|(_, part)| part.sources(schema, &target(Some(base)))).collect();
    let missing = unknown(wanted, sources);
    if !missing.is_empty() {
        return Step::Read(missing);
    }
    let mut difference = Difference::default();
    if let (Some(at), Some(Some(item))) = (maker, &made) {
        difference.add(at, held, owned(definition, item, held));
    }
    for (at, part) in concerned {
        if let Computed::Attributes(wanted) = part.compute(schema, &target(Some(base)), sources) {
            difference.add(at, held, wanted);
        }
    }
    Step::Decided(difference.verdict(look, whole))
}

fn unknown(wanted: Vec<Source>, sources: &Sources) -> Vec<Source> {
    let wanted: BTreeSet<Source> = wanted.into_iter().filter(|source| !sources.knows(source)).collect();
    wanted.into_iter().collect()
}

/// A mirror without a living source goes; one that lists its claims only while it still holds that list.
fn removal(look: &Look, definition: &Definition, held: Option<&Item>, maker: Option<usize>) -> Verdict {
    let Some(held) = held else { return Verdict::InStep };
    let lists_claims = definition.derived_attributes.iter().any(|name| name == CLAIMS);
    let guard =
        lists_claims.then(|| Guard::Unchanged { attribute: CLAIMS.to_owned(), value: held.get(CLAIMS).cloned() });
    Verdict::Write {
        write: Box::new(Write { table: Table::Main, key: look.item.clone(), action: Action::Delete, guard }),
        derivations: maker.into_iter().collect(),
    }
}

/// What a mirror wants of all attributes that are not other derivations': what it computed, and nothing else.
#[must_use]
pub fn owned(definition: &Definition, item: &Item, held: Option<&Item>) -> Vec<Wanted> {
    let others = |name: &String| definition.derived_attributes.contains(name) && !item.contains_key(name);
    let gone = held.into_iter().flat_map(Item::keys).filter(|name| !item.contains_key(*name) && !others(name));
    let gone = gone.map(|name| Wanted { name: name.clone(), value: None, zero_is_absent: false });
    let there = item.iter().map(|(name, value)| Wanted {
        name: name.clone(),
        value: Some(value.clone()),
        zero_is_absent: false,
    });
    gone.chain(there).collect()
}

/// The attributes that differ from what an item holds.
#[derive(Default)]
struct Difference {
    set: Item,
    remove: BTreeSet<String>,
    derivations: Vec<usize>,
}

impl Difference {
    fn add(&mut self, derivation: usize, held: Option<&Item>, wanted: Vec<Wanted>) {
        let mut differs = false;
        for wanted in wanted {
            if wanted.is_held_by(held) {
                continue;
            }
            differs = true;
            match wanted.value {
                Some(value) => drop(self.set.insert(wanted.name, value)),
                None => drop(self.remove.insert(wanted.name)),
            }
        }
        if differs {
            self.derivations.push(derivation);
        }
    }

    fn verdict(self, look: &Look, whole: bool) -> Verdict {
        if self.derivations.is_empty() {
            return Verdict::InStep;
        }
        let (action, guard) = if whole {
            (Action::Put(self.set), None)
        } else {
            (Action::Update { set: self.set, remove: self.remove, add: BTreeMap::new() }, Some(Guard::Exists))
        };
        let write = Write { table: Table::Main, key: look.item.clone(), action, guard };
        Verdict::Write { write: Box::new(write), derivations: self.derivations }
    }
}

impl Wanted {
    /// Does the item hold the attribute as it is wanted?
    #[must_use]
    pub fn is_held_by(&self, held: Option<&Item>) -> bool {
        let stored = held.and_then(|item| item.get(&self.name));
        same(stored, self.value.as_ref())
            || (self.zero_is_absent && self.value.is_none() && stored.is_some_and(is_zero))
    }
}

/// The number of a count as an attribute: a count of zero is written as no attribute.
#[must_use]
pub fn display_value(count: i64) -> Option<AttributeValue> {
    (count != 0).then(|| AttributeValue::N(count.to_string()))
}

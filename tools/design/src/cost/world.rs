//! The items of a sample run, made from the design's samples: items of the application, and the items that they name. A
//! [`cast`] is one item with all of those and everything derived from them: a small data set for examples.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{
    kind::{Computed, Refresh, RefreshTarget, Shape},
    sources::Sources,
};
use engine::ledger::LedgerKind;
use keys::{entity::Definition, fields::Fields, index_key::OnlyIf, item::Item, key::Key, template::form::Width};
use serde_dynamo::AttributeValue;
use store::memory::MemoryStore;

use super::{Load, spread, usage::named};
use crate::{Design, price::made};

/// Makes the items of a sample run.
pub(super) struct World<'a> {
    design: &'a Design,
    /// Number of values of a field, by entity and field. Without an entry, each item has its own value.
    n_values: BTreeMap<(&'a str, &'a str), u64>,
}

impl<'a> World<'a> {
    pub(super) fn new(design: &'a Design, load: &Load) -> Self {
        let mut n_values = BTreeMap::new();
        for derivation in design.catalogue.derivations() {
            if let (Some((source, link)), Some(n)) = (spread(derivation), load.targets.get(derivation.label())) {
                n_values.extend(link.from_fields().map(|field| ((source, field), u64::from(*n))));
            }
        }
        Self { design, n_values }
    }

    /// An item of an entity, by its number.
    pub(super) fn item(&self, entity: &str, n: u64) -> Option<Item> {
        let definition = self.design.schema.entity(entity)?;
        let (sample, mut fields) = self.sample(definition)?;
        for name in self.numbered(definition, &sample) {
            let value = fields.get(name)?;
            let n_values = self.n_values.get(&(definition.name.as_str(), name));
            let number = n_values.map_or(n, |n_values| scattered(n) % n_values);
            // The items of larger numbers differ in their other fields.
            let number = largest(definition, name).map_or(number, |largest| number % (largest + 1));
            let value = numbered(value, number, n);
            fields.insert(name, value);
        }
        self.filled(definition, sample, &fields)
    }

    /// The item of the application that results in an item with this key: the item itself, or the source of its mirror.
    pub(super) fn at(&self, key: &Key) -> Option<Item> {
        let schema = &self.design.schema;
        let fitting = schema.entities().filter_map(|definition| Some((definition, definition.key.parse_key(key)?)));
        let (definition, found) = fitting.min_by_key(|(definition, _)| definition.derived)?;
        if !definition.derived {
            let (mut sample, mut fields) = self.sample(definition)?;
            // The item is put at the top of its tree, so that it needs no other item of its entity.
            for name in self.parents(definition, &sample) {
                sample.remove(&name);
                fields = fields.iter().filter(|(other, _)| *other != name).collect();
            }
            found.iter().for_each(|(name, value)| drop(fields.insert(name, value)));
            return self.filled(definition, sample, &fields);
        }
        let mirrors = self.design.catalogue.derivations().filter_map(|derivation| match derivation.kind.shape() {
            Shape::Mirror(mirror) => Some(mirror),
            _ => None,
        });
        let mirror = mirrors.into_iter().find(|mirror| mirror.target == definition.name)?;
        let source = schema.entity(&mirror.source).filter(|source| !source.derived)?;
        let (sample, mut fields) = self.sample(source)?;
        for (to, from) in &mirror.link.0 {
            if let Some(from) = from.name() {
                fields.insert(from, found.get(to)?);
            }
        }
        self.filled(source, sample, &fields)
    }

    /// The sample of an entity as the application creates it, with its fields.
    fn sample(&self, definition: &Definition) -> Option<(Item, Fields)> {
        let sample = made(self.design, definition)?;
        let key = self.design.schema.layout.key(&sample)?;
        let fields = definition.fields(&key, &sample)?;
        Some((sample, fields))
    }

    fn filled(&self, definition: &Definition, mut item: Item, fields: &Fields) -> Option<Item> {
        let layout = &self.design.schema.layout;
        for (name, value) in fields.iter() {
            if let Some(AttributeValue::S(text)) = item.get_mut(name) {
                value.clone_into(text);
            }
        }
        item.extend(layout.key_item(&definition.build(fields).ok()?));
        for (name, value) in definition.index_attributes(layout, fields) {
            match value {
                Some(value) => drop(item.insert(name, value)),
                None => drop(item.remove(&name)),
            }
        }
        Some(item)
    }

    /// The fields in which items of an entity differ: those of the key, and those of an index that name another item.
    fn numbered<'d>(&self, definition: &'d Definition, sample: &Item) -> Vec<&'d str> {
        let names_item = |name: &str| self.design.schema.entities().any(|entity| entity.key.holds(name));
        let decides = |name: &str| {
            definition.indexes.iter().any(|index| index.only_if.as_ref().map(OnlyIf::attribute) == Some(name))
        };
        let of_indexes = definition.indexes.iter().filter(|index| !index.derived).flat_map(|index| {
            let names = index.key.field_names().into_iter();
            names.filter(|name| names_item(name) && !decides(name) && !index.key.holds_number(name))
        });
        // What a manifest alone says of an attribute is its name. So each item has its own value, as it has its own key:
        // with one value, all items would have one target.
        let is_made_up = |name: &&str| match sample.get(name) {
            Some(AttributeValue::S(text)) => {
                text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) == Some(*name)
            }
            _ => false,
        };
        let made_up = definition.attributes.iter().map(String::as_str).filter(is_made_up);
        let all: BTreeSet<&str> = definition.key.field_names().into_iter().chain(of_indexes).chain(made_up).collect();
        all.into_iter().collect()
    }

    /// The fields by which an item names a parent of its own entity, if its derived part builds on the parent's.
    /// Without the field, the item is at the top of its tree, and its derived part needs no parent.
    fn parents(&self, definition: &Definition, sample: &Item) -> Vec<String> {
        let schema = &self.design.schema;
        let recurring = self.design.catalogue.derivations().filter_map(|derivation| derivation.kind.refresh());
        let recurring: Vec<&dyn Refresh> =
            recurring.filter(|it| it.recurs() && it.target() == definition.name).collect();
        let Some(key) = schema.layout.key(sample) else { return Vec::new() };
        let is_whole_without = |name: &str| {
            let others = sample.iter().filter(|(other, _)| *other != name);
            let item: Item = others.map(|(name, value)| (name, value.clone())).collect();
            let target =
                RefreshTarget { key: &key, definition, item: Some(&item), named: &BTreeSet::new(), hour: None };
            let computed = recurring.iter().map(|it| it.compute(schema, &target, &Sources::default()));
            computed.into_iter().any(|computed| match computed {
                Computed::Attributes(wanted) => wanted.iter().any(|wanted| wanted.value.is_some()),
                Computed::Item(_) => false,
            })
        };
        let names = definition.attributes.iter().filter(|name| sample.contains_key(name) && is_whole_without(name));
        names.cloned().collect()
    }
}

/// The largest whole number that fits into a field of an item's keys; `None` if it is no number of a fixed width.
fn largest(definition: &Definition, field: &str) -> Option<u64> {
    let of_indexes = definition.indexes.iter().flat_map(|index| [&index.key.pk, &index.key.sk]);
    let written = [&definition.key.pk, &definition.key.sk].into_iter().chain(of_indexes);
    let widths = written.filter_map(|template| template.width(field));
    let n_digits = widths.map(|Width { digits, places }| u32::try_from(digits).unwrap_or(u32::MAX) - places).min()?;
    10_u64.checked_pow(n_digits).map(|above| above.saturating_sub(1))
}

/// A value with a number, in whose order the values are. A time keeps its form and its hour, and takes the rest from the
/// item's number.
fn numbered(value: &str, number: u64, item: u64) -> String {
    let is_date = value.get(4..5) == Some("-") && value.bytes().take(4).all(|byte| byte.is_ascii_digit());
    let clock = |second: u64| format!("{:02}:{:02}", second / 60 % 60, second % 60);
    match (value.get(..14), value.get(14..)) {
        (Some(hour), Some(rest)) if is_date && rest.ends_with('Z') => match rest.len() {
            6 => format!("{hour}{}Z", clock(item)),
            10 => format!("{hour}{}.{:03}Z", clock(item / 1_000), item % 1_000),
            _ => value.to_owned(),
        },
        _ if is_date => value.to_owned(),
        _ if value.bytes().all(|byte| byte.is_ascii_digit()) => number.to_string(),
        _ => format!("{value}-{number:06}"),
    }
}

/// A number that seems random, and is the same for the same item: `SplitMix64`.
pub(super) fn scattered(n: u64) -> u64 {
    let mut mixed = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// An item with the items that it names.
pub struct Cast {
    /// The item, as the application creates it.
    pub item: Item,
    /// The items that it names, as the application creates them.
    pub named: BTreeMap<Key, Item>,
    /// The model with all of these items and everything derived from them.
    pub store: Arc<MemoryStore>,
}

/// An item of an entity that the application writes, by its number, with the items that it names. `None` if no sample
/// of the entity can be made, or if the chain of named items does not end.
pub async fn cast(design: &Design, entity: &str, n: u64) -> Option<Cast> {
    let load = Load {
        rates: BTreeMap::new(),
        targets: BTreeMap::new(),
        fan_outs: BTreeMap::new(),
        reads: BTreeMap::new(),
        ledger: LedgerKind::default(),
        n_shards: 1,
        window_seconds: 0.0,
        n_batch_max: 1,
        n_lanes: 1,
        memory_mb: 0,
        call_ms: 0.0,
    };
    let world = World::new(design, &load);
    let item = world.item(entity, n)?;
    let (named, store) = named(design, &world, &load, std::slice::from_ref(&item)).await?;
    let own = design.schema.layout.key(&item);
    let named = named.into_iter().filter(|(key, _)| Some(key) != own.as_ref()).collect();
    Some(Cast { item, named, store })
}

#[cfg(test)]
mod tests {
    use derive::write::Table;

    use super::*;

    #[tokio::test]
    async fn an_item_comes_with_the_items_that_it_names_and_what_follows() {
        let schema = catalogue::schema();
        let design = Design::declared(schema.clone(), catalogue::catalogue(&schema).unwrap());
        let Cast { item, named, store } = cast(&design, "Follow", 7).await.unwrap();
        let key = design.schema.layout.key(&item).unwrap();
        assert!(!named.contains_key(&key));
        let entity = |(key, item): (&Key, &Item)| design.schema.image(key, item).unwrap().definition.name.clone();
        assert_eq!(named.iter().map(entity).collect::<Vec<_>>(), ["User", "User"]);
        store.view(Table::Main, |items| {
            let of = |name: &str| items.values().filter(|item| item.contains_key(name)).count();
            assert_eq!((of("FollowerCount"), of("FolloweeName"), of("FollowerName")), (1, 1, 1), "{items:?}");
        });
        assert!(cast(&design, "Follower", 7).await.is_none(), "Ripple writes it");
    }

    #[tokio::test]
    async fn a_number_of_few_digits_in_a_key_ends_no_series_of_items() {
        let text = "[table]\npartition-key = \"PK\"\nsort-key = \"SK\"\n[entity.Lot]\npartition-key = \"T#{t}\"\nsort-key = \
                    \"LOT#{no:3}#{price:4.2}\"\n";
        let (schema, catalogue) = manifest::load(text).unwrap();
        let design = Design::declared(schema, catalogue);
        for n in [7, 99, 100, 999, 1_000, 123_456] {
            assert!(cast(&design, "Lot", n).await.is_some(), "{n}");
        }
    }
}

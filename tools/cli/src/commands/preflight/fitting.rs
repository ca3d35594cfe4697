//! Which items fit, which do not, and which items the derivations would write.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    change::{Change, Images},
    effect::Effect,
    family::Family,
    plan::{RecordKind, plan},
    position::DerivationAt,
    schema::Schema,
};
use engine::{batch::caught::caught, look::listing::ALL_DERIVATIONS};
use keys::{counter::CounterKey, item::Item, key::Key};

/// Number of keys to keep as examples of a group.
const EXAMPLES: usize = 3;

/// Items with the same result.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Group {
    pub(in crate::commands) n_items: u64,
    /// Keys of some of the items.
    pub(in crate::commands) examples: Vec<Key>,
}

impl Group {
    fn add(&mut self, key: &Key) {
        self.n_items += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(key.clone());
        }
    }
}

/// The results for the items of a sample.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Fitting {
    pub(in crate::commands) n_items: u64,
    /// Items by entity.
    pub(in crate::commands) entities: BTreeMap<String, u64>,
    /// Items without an entity type.
    pub(in crate::commands) untyped: Group,
    /// Items with an undeclared entity, or with a key of an undeclared form.
    pub(in crate::commands) unknown: Group,
    /// Items that a derivation cannot interpret, by derivation and reason.
    pub(in crate::commands) unreadable: BTreeMap<(String, String), Group>,
    /// Items that derivations would write, by derivation: those that inserts of the sampled items would look at or add
    /// to.
    pub(in crate::commands) derived: BTreeMap<DerivationAt, BTreeSet<Key>>,
    /// One item of each entity.
    pub(in crate::commands) samples: BTreeMap<String, Item>,
}

impl Fitting {
    /// Adds an item of the sample; `None` is one without an address.
    pub(in crate::commands) fn add(&mut self, schema: &Schema, catalogue: &Catalogue, item: Option<Item>) {
        self.n_items += 1;
        let addressed = item.and_then(|item| Some((schema.layout.key(&item)?, item)));
        let Some((key, item)) = addressed else { return self.untyped.add(&Key::new("", "")) };
        let (id, sequence_number) = (String::new(), String::new());
        let change = Change { id, sequence_number, created_ms: None, key, images: Images::Inserted(item) };
        let families = [Family::Additive, Family::LevelTriggered];
        let planned = match caught("planning it", || plan(schema, catalogue, &families, &change)) {
            Ok(planned) => planned,
            Err(why) => return self.unreadable(ALL_DERIVATIONS, why, &change.key),
        };
        if let Some(why) = planned.misfit {
            self.unreadable(ALL_DERIVATIONS, why.to_string(), &change.key);
            if change.new_image().and_then(|item| schema.image(&change.key, item)).is_none() {
                return;
            }
        }
        match planned.record {
            RecordKind::Untyped => return self.untyped.add(&change.key),
            RecordKind::Unknown => return self.unknown.add(&change.key),
            RecordKind::Change | RecordKind::Echo => {}
        }
        for (at, effect) in planned.effects {
            if let Effect::List { unreadable: Some(why) } = &effect {
                self.unreadable(catalogue.label(at), why.to_string(), &change.key);
            }
            self.derived.entry(at).or_default().extend(written(catalogue.name(at), effect));
        }
        let Images::Inserted(item) = change.images else { return };
        if let Some(image) = schema.image(&change.key, &item) {
            let entity = image.definition.name.clone();
            *self.entities.entry(entity.clone()).or_default() += 1;
            self.samples.entry(entity).or_insert(item);
        }
    }

    fn unreadable(&mut self, derivation: &str, why: String, key: &Key) {
        self.unreadable.entry((derivation.to_owned(), why)).or_default().add(key);
    }

    /// Number of items of a declared entity.
    pub(in crate::commands) fn n_fitting(&self) -> u64 {
        self.entities.values().sum()
    }
}

/// The item that an effect would write. The items of a search are skipped: their own inserts lead to them.
fn written(derivation: &str, effect: Effect) -> Option<Key> {
    match effect {
        // The shard differs from batch to batch; a backfill uses one.
        Effect::Add(add) => CounterKey { target: add.target, derivation: derivation.to_owned(), shard: 0 }.key().ok(),
        Effect::Measure(measure) => Some(measure.bucket),
        Effect::Look(bell) | Effect::Vacated(bell) => Some(bell.item),
        Effect::Ground(_) | Effect::Find(_) | Effect::Late | Effect::List { .. } => None,
    }
}

//! No filter drops a record that a function needs.
//!
//! Every image that a record can have is compared with planning itself: samples of all entities, each with any of its
//! attributes missing or of another type, under its own key and under those of all others, inserted, changed and
//! removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use derive::{
    catalogue::Catalogue,
    change::{Change, Images},
    plan::{Planned, plan},
    schema::Schema,
    write::Table,
};
use design::samples::Samples;
use engine::bookkeeping::kept;
use expect_test::expect;
use functions::handler::Function;
use infra::mapping::{Needed, StreamTable, needed};
use keys::{
    counter::{COUNTER, CounterKey},
    fields::Fields,
    item::{Item, text},
    job::{JOB, JobKey, RUNNING, STATE},
    key::Key,
    layout::Layout,
    tables::Place,
};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use support::record::{passes, read};

use crate::infra::{READERS, shipped};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");

const SEVERAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/chat/ripple.toml");

/// A table with samples for its filters, or several.
struct World {
    schema: Schema,
    catalogue: Catalogue,
    /// A sample of each entity, with its key.
    samples: Vec<(Key, Item)>,
    /// Counters of every target, and jobs.
    own: Vec<(Key, Item)>,
}

impl World {
    fn shipped() -> Self {
        let (schema, catalogue) = shipped();
        let samples = Samples::of(&schema, table_design::samples().unwrap());
        Self::of(schema, catalogue, &samples)
    }

    fn declared(manifest: &str) -> Self {
        let (schema, catalogue) = manifest::read(Path::new(manifest)).unwrap();
        let samples = Samples::made_up(&schema);
        Self::of(schema, catalogue, &samples)
    }

    fn of(schema: Schema, catalogue: Catalogue, samples: &Samples) -> Self {
        let sample = |name: &str| {
            let item = samples.item(name)?.clone();
            Some((schema.layout.key(&item)?, item))
        };
        let samples: Vec<(Key, Item)> = schema.entities().filter_map(|entity| sample(&entity.name)).collect();
        let mut own = Vec::new();
        for derivation in catalogue.derivations() {
            own.extend(samples.iter().map(|(target, _)| counter(&schema.layout, target, &derivation.name)));
            own.push(job(&schema.layout, &derivation.name));
        }
        Self { schema, catalogue, samples, own }
    }

    fn patterns(&self, function: Function) -> Vec<Value> {
        let table = StreamTable::all(&self.schema).next().unwrap();
        match needed(table, &self.catalogue, &function.families()) {
            Needed::Matching(patterns) => read(&patterns),
            other => panic!("{other:?}"),
        }
    }

    /// The entities that a function's derivations read.
    fn entities(&self, function: Function) -> BTreeSet<&str> {
        let families = function.families();
        let ours = self.catalogue.derivations().filter(|it| families.contains(&it.kind.family()));
        ours.flat_map(|derivation| derivation.kind.entities()).collect()
    }

    /// Every change to check.
    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let samples = self.samples.iter().map(|sample| (sample, self.samples.as_slice()));
        for ((key, item), strangers) in samples.chain(self.own.iter().map(|sample| (sample, &[][..]))) {
            let mut others = self.variants(item);
            others.push(self.without_type(item));
            // The same key with an item of another entity.
            others.extend(strangers.iter().map(|(_, stranger)| self.under(key, stranger)));
            for other in others {
                let (new, old) = (other.clone(), item.clone());
                changes.push(change(key, Images::Inserted(other.clone())));
                changes.push(change(key, Images::Removed(other.clone())));
                changes.push(change(key, Images::Modified { old, new }));
                changes.push(change(key, Images::Modified { old: other, new: item.clone() }));
            }
        }
        changes
    }

    /// The item with each of its attributes missing, or of each of some other types.
    fn variants(&self, item: &Item) -> Vec<Item> {
        let mut variants = vec![item.clone()];
        let names = item.iter().map(|(name, _)| name.to_owned());
        for name in names.filter(|name| !self.is_primary(name)) {
            let mut without = item.clone();
            without.remove(&name);
            variants.push(without);
            for value in [
                AttributeValue::S("another".to_owned()),
                AttributeValue::N("7".to_owned()),
                AttributeValue::Bool(true),
                AttributeValue::Null(true),
                AttributeValue::L(Vec::new()),
            ] {
                let mut with = item.clone();
                with.insert(name.clone(), value);
                variants.push(with);
            }
        }
        variants
    }

    fn is_primary(&self, name: &str) -> bool {
        name == self.schema.layout.pk || name == self.schema.layout.sk
    }

    fn under(&self, key: &Key, item: &Item) -> Item {
        let mut item = item.clone();
        item.extend(self.schema.layout.key_item(key));
        item
    }

    fn without_type(&self, item: &Item) -> Item {
        let mut item = item.clone();
        if let Some(name) = &self.schema.layout.entity_type {
            item.remove(name);
        }
        item
    }

    /// Does planning need the change for this function's derivations, or is the item one that they cannot read?
    fn asks(&self, planned: &Planned, change: &Change, entities: &BTreeSet<&str>) -> bool {
        let images = || [change.old_image(), change.new_image()].into_iter().flatten();
        let of_ours = || {
            let attribute = self.schema.layout.entity_type.as_ref();
            attribute.is_some_and(|name| images().filter_map(|item| text(item, name)).any(|it| entities.contains(it)))
        };
        !planned.effects.is_empty() || ((planned.misfit.is_some() || planned.mended) && of_ours())
    }

    /// What the mappings of a function let through, by the name of the table where there are several.
    fn needed(&self, function: Function) -> BTreeMap<Option<&str>, NeededPatterns> {
        let of_table = |table: StreamTable<'_>| match needed(table, &self.catalogue, &function.families()) {
            Needed::Nothing => NeededPatterns::Nothing,
            Needed::Everything => NeededPatterns::Everything,
            Needed::Matching(patterns) => NeededPatterns::Matching(read(&patterns)),
        };
        let tables = StreamTable::all(&self.schema);
        tables.map(|table| (table.form().map(|form| form.name.as_str()), of_table(table))).collect()
    }

    /// The record of a change, with the table whose stream has it; `None` where no item of that table can be so.
    fn stored(&self, change: &Change) -> Option<(Option<&str>, Value)> {
        let layout = &self.schema.layout;
        let form = match layout.forms.as_ref().map(|forms| forms.place(&change.key)) {
            None => return Some((None, record(layout, change))),
            Some(Place::Own) => {
                // Only Ripple writes there.
                let types = [change.old_image(), change.new_image()].into_iter().flatten();
                let mut types = types.filter_map(|item| text(item, layout.entity_type.as_ref()?));
                let is_ours = types.all(|name| [COUNTER, JOB].contains(&name));
                return is_ours.then(|| (None, record(layout, change)));
            }
            Some(Place::Table(form)) => form,
        };
        let mut dynamodb = json!({ "Keys": form.key_item(&change.key)? });
        for (name, image) in [("NewImage", change.new_image()), ("OldImage", change.old_image())] {
            if let Some(image) = image {
                // An item of another entity cannot be in a table of one.
                let stored = form.outward(image).filter(|it| form.inward(it.clone()).as_ref() == Some(image))?;
                dynamodb[name] = json!(stored);
            }
        }
        Some((Some(&form.name), json!({ "dynamodb": dynamodb })))
    }

    /// Compares all changes with a function's filters, and returns the derivations that needed one.
    fn check(&self, function: Function, changes: &[Change]) -> BTreeSet<&str> {
        let (needed, entities) = (self.needed(function), self.entities(function));
        let mut asked = BTreeSet::new();
        for change in changes {
            let planned = plan(&self.schema, &self.catalogue, &function.families(), change);
            let Some((table, record)) = self.stored(change) else { continue };
            asked.extend(planned.effects.iter().map(|(at, _)| self.catalogue.name(*at)));
            if self.asks(&planned, change, &entities) {
                let is_let_through = match &needed[&table] {
                    NeededPatterns::Nothing => false,
                    NeededPatterns::Everything => true,
                    NeededPatterns::Matching(patterns) => passes(patterns, &record),
                };
                assert!(is_let_through, "{function} would not get {record} of {table:?}");
            }
        }
        asked
    }
}

/// What a mapping lets through.
enum NeededPatterns {
    Nothing,
    Everything,
    Matching(Vec<Value>),
}

fn change(key: &Key, images: Images) -> Change {
    Change { id: "e1".to_owned(), sequence_number: "1".to_owned(), created_ms: None, key: key.clone(), images }
}

fn counter(layout: &Layout, target: &Key, derivation: &str) -> (Key, Item) {
    let key = CounterKey::home(target.clone(), derivation).key().unwrap();
    let mut item = layout.key_item(&key);
    item.extend(layout.type_of(COUNTER));
    item.insert("Value", AttributeValue::N("3".to_owned()));
    (key, item)
}

fn job(layout: &Layout, derivation: &str) -> (Key, Item) {
    let key = JobKey { derivation: derivation.to_owned(), id: "e1".to_owned() }.key();
    let mut item = layout.key_item(&key);
    item.extend(layout.type_of(JOB));
    item.insert(STATE, AttributeValue::S(RUNNING.to_owned()));
    (key, item)
}

/// A record as Lambda compares it with patterns.
fn record(layout: &Layout, change: &Change) -> Value {
    let mut dynamodb = json!({ "Keys": layout.key_item(&change.key) });
    if let Some(new) = change.new_image() {
        dynamodb["NewImage"] = json!(new);
    }
    if let Some(old) = change.old_image() {
        dynamodb["OldImage"] = json!(old);
    }
    json!({ "dynamodb": dynamodb })
}

#[test]
fn every_record_of_which_planning_asks_something_passes() {
    for world in [World::shipped(), World::declared(EXAMPLE), World::declared(SEVERAL)] {
        let changes = world.changes();
        for (_, function) in READERS {
            let asked = world.check(function, &changes);
            let families = function.families();
            let mut ours = world.catalogue.derivations().filter(|it| families.contains(&it.kind.family()));
            let idle = ours.find(|derivation| !asked.contains(derivation.name.as_str()));
            assert!(idle.is_none(), "{function}: nothing is asked of {idle:?}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn a_record_passes_whatever_the_fields_of_its_key_hold(texts in proptest::collection::vec("[A-Za-z0-9#%/ ]{1,12}", 6)) {
        for world in [World::shipped(), World::declared(EXAMPLE)] {
            let mut changes = Vec::new();
            for (_, item) in &world.samples {
                let Some(name) = world.schema.layout.entity_type.as_ref().and_then(|it| text(item, it)) else { continue };
                let Some(definition) = world.schema.entity(name) else { continue };
                let names = definition.key.field_names();
                let value = |(name, text): (&&str, &String)| {
                    let is_number = definition.key.holds_number(name);
                    ((*name).to_owned(), if is_number { "7".to_owned() } else { text.clone() })
                };
                let fields: Fields = names.iter().zip(texts.iter().cycle()).map(value).collect();
                let Ok(key) = definition.build(&fields) else { continue };
                let item = world.under(&key, item);
                changes.extend([change(&key, Images::Inserted(item.clone())), change(&key, Images::Removed(item))]);
            }
            proptest::prop_assert!(changes.len() > 6);
            for (_, function) in READERS {
                world.check(function, &changes);
            }
        }
    }
}

#[test]
fn a_record_that_does_not_decode_passes_by_its_key() {
    let world = World::shipped();
    let broken = json!({ "dynamodb": {
        "Keys": { "PK": { "S": "USER#ann" }, "SK": { "S": "FOLLOWS#bob" } },
        "NewImage": { "EntityType": { "N": "1" }, "Since": { "Q": "?" } },
    }});
    let bare = json!({ "dynamodb": { "Keys": { "PK": { "S": "USER#ann" }, "SK": { "S": "FOLLOWS#bob" } } } });
    for (_, function) in READERS {
        let patterns = world.patterns(function);
        assert!(passes(&patterns, &broken) && passes(&patterns, &bare), "{function}");
    }
}

#[test]
fn what_nobody_reads_is_kept_out() {
    let world = World::shipped();
    let mut dropped = String::new();
    for (_, function) in READERS {
        let patterns = world.patterns(function);
        let is_out = |(key, item): &&(Key, Item)| {
            !passes(&patterns, &record(&world.schema.layout, &change(key, Images::Inserted(item.clone()))))
        };
        let out =
            world.samples.iter().chain(&world.own).filter(is_out).filter_map(|(_, item)| text(item, "EntityType"));
        let names: BTreeSet<&str> = out.collect();
        dropped.extend([format!("{function}: {}\n", names.into_iter().collect::<Vec<_>>().join(" "))]);
    }
    expect![[r#"
        aggregate: Counter EmailClaim FileDetail Folder Follower Group GroupMember Job OrderDetail OrgChart Organization PostDetail Product Subscription User
        propagate: CartItem EmailClaim Like OrderItem Reading Rollup Subscription Team View
        combined: EmailClaim Subscription
    "#]].assert_eq(&dropped);
}

#[test]
fn items_of_nobodys_are_kept_out() {
    let world = World::shipped();
    for (pk, sk) in [("SESSION#1", "DATA"), ("USER#ann", "SETTINGS"), ("ORDER#o1", "INVOICE#1"), ("AUDIT", "JOBS#00")] {
        let key = Key::new(pk, sk);
        let mut item = world.schema.layout.key_item(&key);
        item.extend(world.schema.layout.type_of("Foreign"));
        for images in [Images::Inserted(item.clone()), Images::Removed(item)] {
            let record = record(&world.schema.layout, &change(&key, images));
            for (_, function) in READERS {
                assert!(!passes(&world.patterns(function), &record), "{function} gets {pk} / {sk}");
            }
        }
    }
}

#[test]
fn a_ledger_in_the_same_table_is_kept_out() {
    for world in [World::shipped(), World::declared(EXAMPLE)] {
        let layout = &world.schema.layout;
        let ours: Vec<_> = kept(layout).into_iter().filter(|kept| kept.table == Table::Ledger).collect();
        assert!(ours.len() > 10);
        for kept in ours {
            let mut item = kept.attributes.clone();
            item.extend(layout.key_item(&kept.key));
            for images in [Images::Inserted(item.clone()), Images::Removed(item)] {
                let record = record(layout, &change(&kept.key, images));
                for (_, function) in READERS {
                    assert!(!passes(&world.patterns(function), &record), "{function} gets the {}", kept.name);
                }
            }
        }
    }
}

//! Manifests that are drawn: a seed draws a whole `ripple.toml` first, then an application of it and the platform's faults.
//!
//! The `generator` draws a description, plain data that is never read back from the product; `toml` writes it as a user
//! would, and the crate `manifest` reads that. The functions, the platform and its faults, the operators and the checks are
//! those of every run; the application here writes items of the drawn entities, and the oracle recounts every derived value
//! by the description alone.

pub(crate) mod application;
pub(crate) mod description;
mod generator;
pub(crate) mod oracle;
mod toml;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{catalogue::Catalogue, family::Family, guard::Purpose, schema::Schema, write::Table};
use engine::{ledger::LedgerKind, protocol::ProtocolStep};
use keys::{counter::CounterKey, entry::is_entry, job::PARTITION, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    DRAWN,
    chance::Chance,
    checks::{is_way_taken, plain_item},
    deployed::{refused_unread, to_recount},
    drawn::{
        description::{CLAIMS, CopyRule, Description, Found, KeyOf, Rule, Shown, What},
        oracle::{Difference, DrawnChange, Rows, recount},
        values::{Lead, Place, Row, lead, refused},
    },
    items::s,
    mutant::Mutant,
    platform::stream::{Author, Stream},
    scene::Scene,
    seeds::{Config, first_failure},
    trace::Failure,
    world::World,
};

/// A drawn manifest, as it was drawn and as the product has read it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) description: Description,
    pub(crate) text: String,
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    /// Was the same manifest with keys that meet refused?
    has_meeting: bool,
}

/// Draws a manifest, and reads it. An error is a fault of the generator or of the reader, which must refuse the same manifest
/// with two derived entities whose keys meet.
pub(crate) fn drawn(chance: &Chance) -> Result<Drawn, String> {
    let description = generator::draw(chance);
    let meeting = generator::with_meeting_keys(&description);
    let meeting = meeting.map(|description| toml::written(&description));
    if let Some(text) = meeting.as_ref().filter(|text| !is_refused_for_its_keys(text)) {
        return Err(format!("two derived entities of the manifest have keys in common, and it is taken\n{text}"));
    }
    let has_meeting = meeting.is_some();
    let text = toml::written(&description);
    match manifest::load(&text) {
        Ok((schema, catalogue)) => {
            Ok(Drawn { description, text, schema: Arc::new(schema), catalogue: Arc::new(catalogue), has_meeting })
        }
        Err(error) => Err(format!("the manifest is refused: {error}\n{text}")),
    }
}

fn is_refused_for_its_keys(text: &str) -> bool {
    manifest::load(text).is_err_and(|error| error.what.contains("can have the same key"))
}

impl Drawn {
    /// Counts what the manifest has.
    pub(crate) fn count(&self, scene: &Scene) {
        let of = &self.description;
        scene.count_all("keys that meet", usize::from(self.has_meeting));
        match (of.is_one_table(), of.tables.len()) {
            (true, _) => {
                scene.count("[table]");
                scene.count_all("[table] untyped", usize::from(of.tables[0].type_attribute.is_none()));
            }
            (false, 1) => scene.count("[tables] of one"),
            (false, _) => scene.count("[tables] of several"),
        }
        for (at, table) in of.tables.iter().enumerate().filter(|_| !of.is_one_table()) {
            scene.count(if table.has_forms { "tables of forms" } else { "tables of values" });
            scene.count_all("no sort key", usize::from(table.sk.is_none()));
            let n_entities = of.entities.iter().filter(|entity| entity.table == at).count();
            scene.count_all("shared tables", usize::from(!table.has_forms && n_entities > 1));
            for part in [Some(&table.pk), table.sk.as_ref()].into_iter().flatten() {
                scene.count(match part.of {
                    KeyOf::S => "key S",
                    KeyOf::N => "key N",
                    KeyOf::B => "key B",
                });
            }
        }
        for index in of.tables.iter().flat_map(|table| &table.indexes) {
            scene.count(if index.has_forms { "indexes of forms" } else { "indexes of values" });
            scene.count_all("indexes of several", usize::from(index.pk.len() + index.sk.len() > 2));
        }
        let claims = of.entities.iter().filter(|entity| entity.derives(CLAIMS)).count();
        scene.count_all("claims", claims);
        of.rules.iter().for_each(|rule| self.count_rule(scene, &rule.what));
    }

    fn count_rule(&self, scene: &Scene, what: &What) {
        let of = &self.description;
        let is_mirror = |entity: usize| usize::from(of.entities[entity].is_derived);
        let derived = |entity: usize, name: &str| of.entities[entity].derived.iter().find(|it| it.name == name);
        match what {
            What::Count(count) => {
                let creates = |it: &Rule| matches!(&it.what, What::Count(one) if one.creates && one.to == count.from);
                scene.count_all("counts of values", usize::from(of.rules.iter().any(creates)));
                scene.count_all("counts of mirrors", is_mirror(count.from));
                scene.count_all("counts into mirrors", is_mirror(count.to));
                scene.count_all("counts of members", usize::from(count.each.is_some()));
                let sum = count.sum.as_ref().and_then(|sum| derived(count.from, sum));
                scene.count_all("sums of counts", usize::from(sum.is_some()));
                scene.count_all("where", usize::from(count.condition.is_some()));
                scene.count_all("zero absent", usize::from(count.zero == "absent"));
                scene.count_all("zero always", usize::from(count.zero == "always"));
                for (shown, _) in &count.shows {
                    match shown {
                        Shown::Average => scene.count("average"),
                        Shown::Exists => scene.count("exists"),
                        Shown::Count | Shown::Sum => {}
                    }
                }
            }
            What::Copy(CopyRule { from, pairs, condition, found, .. }) => {
                scene.count_all("copies of some", usize::from(condition.is_some()));
                for copied in pairs.iter().filter_map(|(name, _)| derived(*from, name)) {
                    scene.count(if copied.is_number { "copies of counts" } else { "copies of copies" });
                }
                scene.count(match found {
                    Found::Partition => "found by partition",
                    Found::Index(_) => "found by index",
                    Found::Through(_) => "found through",
                });
            }
            What::Latest(latest) => {
                scene.count_all("latest of mirrors", is_mirror(latest.from));
                scene.count_all("latest by a value", usize::from(latest.by.is_some()));
                scene.count_all("latest of some", usize::from(latest.condition.is_some()));
            }
            What::Mirror(mirror) => {
                scene.count_all("mirrors of mirrors", is_mirror(mirror.from));
                scene.count_all("mirrors of some", usize::from(mirror.condition.is_some()));
                scene.count_all("mirrors of members", usize::from(mirror.each.is_some()));
            }
            What::RollUp(roll_up) => scene.count_all("roll-ups of some", usize::from(roll_up.condition.is_some())),
            What::Cascade { .. } => scene.count_all("cascades of tables", usize::from(!of.is_one_table())),
            What::Extreme { .. }
            | What::Unread(_)
            | What::Path { .. }
            | What::IndexKey { .. }
            | What::Window(_)
            | What::Calculated { .. } => {}
        }
    }

    /// Does it count what only comes?
    pub(crate) fn has_history(&self) -> bool {
        self.description.rules.iter().any(|rule| matches!(&rule.what, What::Count(count) if count.is_history))
    }

    /// An item that may be deadly: any of the application, or a mirror.
    pub(crate) fn deadly_item(&self, chance: &Chance) -> Option<Key> {
        let entity = chance.below(self.description.entities.len());
        let item = application::new_item(chance, &self.description, entity);
        self.inside(self.description.entities[entity].table, item).map(|(key, _)| key)
    }
}

// ---- What must be true of a run of a drawn manifest when the stream is quiet ----

/// The second oracle agrees, only a cascade deletes what is the application's, and what goes out of a table comes in the same.
pub(crate) fn is_right(scene: &Scene, drawn: &Drawn, stream: &Stream) -> Result<(), Failure> {
    let of = &drawn.description;
    let items = scene.database.memory().snapshot(Table::Main);
    for (key, item) in &items {
        let Some((table, stored)) = drawn.outside(key, item) else { continue };
        if let Some(name) = refused(&of.tables[table], &plain_item(&stored)) {
            return Err(Failure::new("refused", format!("DynamoDB would refuse {key} for its {name}: {item:?}")));
        }
        let again = drawn.inside(table, stored);
        if again.as_ref() != Some(&(key.clone(), item.clone())) {
            return Err(Failure::new("form", format!("{key} is {item:?}, and read again it is {again:?}")));
        }
    }
    let rows = Rows::new(of, items.iter().filter_map(|(key, item)| drawn.outside(key, item)).map(plain));
    let row = |key: &Key, item: &Option<keys::item::Item>| drawn.row(key, item.as_ref()?);
    let changes: Vec<DrawnChange> = stream
        .made
        .iter()
        .map(|made| DrawnChange { old: row(&made.key, &made.old), new: row(&made.key, &made.new) })
        .collect();
    // What was lost of a history, or is listed for a recount, nobody can count any more.
    let lost = stream.lost.concerned(scene, &stream.made).counts;
    let listed: BTreeSet<String> =
        to_recount(scene).into_iter().chain(lost).map(|(derivation, _)| derivation).collect();
    let is_refused = !refused_unread(scene).is_empty();
    let hour = items.get(&Key::new("JOBS#CLOCK", "CLOCK")).and_then(|clock| match clock.get("Hour") {
        Some(AttributeValue::N(hour)) => hour.parse().ok(),
        _ => None,
    });
    let compared = recount(of, &rows, &changes, hour, |name| is_refused || listed.contains(name));
    for (kind, (n, n_there)) in &compared.n {
        scene.count_all(kind, *n);
        scene.count_all("drawn values", *n_there);
    }
    // Under the place of an item are all derivations whose way to it another item has taken.
    let is_left = |found: &&Difference| {
        let of = items.iter().find(|(key, item)| drawn.row(key, item).is_some_and(|row| row.place == found.at));
        !of.is_some_and(|(key, _)| is_way_taken(scene, &items, &found.rule, key))
    };
    let differences: Vec<&Difference> = compared.differences.iter().filter(is_left).collect();
    if let Some(first) = differences.first() {
        let text = format!("{} differences, the first: {first}", differences.len());
        return Err(Failure::new("recount", text));
    }
    only_cascades_delete(scene, of, stream, &changes)?;
    nothing_is_left(of, stream, &rows, &changes)
}

fn plain((table, item): (usize, keys::item::Item)) -> (usize, crate::oracle::table::PlainItem) {
    (table, plain_item(&item))
}

/// The owners that an item hangs on.
fn owners(of: &Description, row: &Row) -> Vec<(usize, Place)> {
    let mut owners = Vec::new();
    for rule in &of.rules {
        let What::Cascade { owner, hanging } = &rule.what else { continue };
        for it in hanging.iter().filter(|it| it.entity == row.entity) {
            if let Lead::To(place) = lead(of, row, *owner, &it.by) {
                owners.push((*owner, place));
            }
        }
    }
    owners
}

/// The service makes, changes and deletes nothing of the application, but what hangs on an owner that was removed long ago
/// and is not there.
fn only_cascades_delete(
    scene: &Scene,
    of: &Description,
    stream: &Stream,
    changes: &[DrawnChange],
) -> Result<(), Failure> {
    let mut standing: BTreeSet<&Key> = BTreeSet::new();
    let mut gone: BTreeMap<Place, (&Key, u64)> = BTreeMap::new();
    for (made, change) in stream.made.iter().zip(changes) {
        if made.author == Author::Service {
            let is_beside = CounterKey::parse(&made.key).is_some() || is_entry(&made.key);
            let is_own = is_beside || made.key.pk.starts_with(PARTITION);
            if made.old.is_some() && change.old.is_none() && !is_own {
                let text = format!("the service changed or deleted what is none of its items: {}", made.key);
                return Err(Failure::new("strict", text));
            }
            let wrong = |what: &str| Err(Failure::new("strict", format!("the service {what} {}", made.key)));
            let is_ground = |row: &&Row| !of.entities[row.entity].is_derived;
            let (old, new) = (change.old.as_ref().filter(is_ground), change.new.as_ref().filter(is_ground));
            match (old, new) {
                (None, Some(_)) => return wrong("made an item of the application:"),
                (Some(old), Some(new)) => {
                    let entity = &of.entities[old.entity];
                    let indexes = entity.index_keys.iter().filter(|key| key.is_derived);
                    let indexes = indexes.map(|key| &of.tables[entity.table].indexes[key.index]);
                    let keys: Vec<&String> =
                        indexes.flat_map(|it| it.pk.iter().chain(&it.sk)).map(|part| &part.name).collect();
                    // A late write finds an item of another entity under a key that both may have.
                    let of_table = of.entities.iter().filter(|other| other.table == entity.table);
                    let is_derived = |name: &str| of_table.clone().any(|other| other.derives(name));
                    let is_own = |name: &&String| !is_derived(name) && !name.ends_with(":rev") && !keys.contains(name);
                    let names: BTreeSet<&String> = old.item.keys().chain(new.item.keys()).filter(is_own).collect();
                    if names.iter().any(|name| old.item.get(*name) != new.item.get(*name)) {
                        return wrong("changed what is the application's of");
                    }
                }
                (Some(old), None) => {
                    let is_gone = |(_, place): &(usize, Place)| {
                        gone.get(place).is_some_and(|(key, at_ms)| {
                            !standing.contains(*key) && at_ms + scene.settle_ms() <= made.at_ms
                        })
                    };
                    if !owners(of, old).iter().any(is_gone) {
                        return wrong("deleted an item of the application whose owner is not gone:");
                    }
                    scene.count("drawn cascades");
                }
                (None, None) => {}
            }
        }
        if let (Some(old), None) = (&change.old, &made.new) {
            gone.entry(old.place.clone()).or_insert((&made.key, made.at_ms));
        }
        if made.new.is_some() {
            standing.insert(&made.key);
        } else {
            standing.remove(&made.key);
        }
    }
    Ok(())
}

/// Nothing is left that hung on an owner when that was removed for good, by a change whose record was not lost.
fn nothing_is_left(of: &Description, stream: &Stream, rows: &Rows, changes: &[DrawnChange]) -> Result<(), Failure> {
    let mut removed: BTreeMap<Place, (&Key, usize)> = BTreeMap::new();
    let mut touched: BTreeMap<Place, usize> = BTreeMap::new();
    for (at, (made, change)) in stream.made.iter().zip(changes).enumerate() {
        match (&change.old, &made.new) {
            (Some(old), None) if !stream.lost.has(at, Family::LevelTriggered) => {
                removed.insert(old.place.clone(), (&made.key, at));
            }
            // Whatever is there, or was there later, ends a cascade.
            _ => removed.retain(|_, (key, _)| **key != made.key),
        }
        if let Some(row) = change.new.as_ref().filter(|_| made.author != Author::Service) {
            touched.insert(row.place.clone(), at);
        }
    }
    for entity in 0..of.entities.len() {
        for row in rows.each(entity) {
            for (owner, place) in owners(of, row) {
                let Some((_, removed)) = removed.get(&place).filter(|_| rows.get(owner, &place).is_none()) else {
                    continue;
                };
                if touched.get(&row.place).is_some_and(|at| at < removed) {
                    let text = format!("{row:?} is left, though {place:?} is gone since change {removed}");
                    return Err(Failure::new("left", text));
                }
            }
        }
    }
    Ok(())
}

// ---- What is drawn is taken by the reader, and the drawn runs can fail ----

/// Manifests that are only read.
const MANIFESTS: u64 = 2_000;

/// Seeds within which a drawn run notices what is left out.
const MUTANT_SEEDS: u64 = 300;

/// Seeds at whose end each value is altered.
const ALTERED_SEEDS: u64 = 16;

#[test]
fn what_is_drawn_is_taken() {
    let mut refused = BTreeMap::<String, (usize, u64)>::new();
    for seed in 0..MANIFESTS {
        if let Err(error) = drawn(&Chance::of_seed(seed)) {
            let line = error.lines().next().unwrap_or_default().to_owned();
            refused.entry(line).or_insert((0, seed)).0 += 1;
        }
    }
    assert!(refused.is_empty(), "of {MANIFESTS} manifests, with the number and the first seed of each: {refused:#?}");
}

#[test]
fn drawn_runs_notice_what_is_left_out() {
    let [receipts, watermarks] = DRAWN;
    for (config, mutant) in [
        (receipts, Mutant::Unguarded(Purpose::Receipt)),
        (watermarks, Mutant::Unguarded(Purpose::Watermark)),
        (receipts, Mutant::Without(ProtocolStep::OwnRequest)),
        (receipts, Mutant::Without(ProtocolStep::ConsistentRead)),
    ] {
        let (failed, _) = first_failure(Config { mutant: Some(mutant), ..config }, 0..MUTANT_SEEDS);
        let (seed, failure) = failed.unwrap_or_else(|| panic!("nothing needs {mutant:?}"));
        println!("{:<32} {seed:>4} {}", format!("{mutant:?}"), failure.category);
    }
}

#[test]
fn the_oracle_of_drawn_manifests_names_each_value_that_is_altered() {
    let mut n_altered = 0;
    for seed in 0..ALTERED_SEEDS {
        let chance = Chance::of_seed(seed);
        let scene = Scene::of_drawn(drawn(&chance).unwrap(), chance, DRAWN[0], false);
        if scene.is_lossy {
            continue;
        }
        let mut world = World::new(&scene, LedgerKind::Receipts);
        world.run_until_quiet().unwrap();
        // What a replay refuses may be missing in a history or in a bucket.
        if !refused_unread(&scene).is_empty() {
            continue;
        }
        let (drawn, memory) = (scene.drawn.as_ref().unwrap(), scene.database.memory());
        is_right(&scene, drawn, &world.stream).unwrap();
        let items = memory.snapshot(Table::Main);
        let is_left = |key: &Key| scene.catalogue.derivations().any(|it| is_way_taken(&scene, &items, &it.name, key));
        // What an application's item hides may be old, so nothing is said of it.
        for (key, item) in items.iter().filter(|(key, _)| !is_left(key)) {
            let Some(row) = drawn.row(key, item) else { continue };
            let derived = &drawn.description.entities[row.entity].derived;
            for name in derived.iter().map(|it| &it.name).filter(|name| item.contains_key(name) && *name != CLAIMS) {
                let mut altered = item.clone();
                altered.insert(name.clone(), s("altered"));
                memory.put_raw(Table::Main, altered).unwrap();
                let failure =
                    is_right(&scene, drawn, &world.stream).expect_err(&format!("seed {seed}: {name} of {key}"));
                assert_eq!(failure.category, "recount", "{name} of {key}: {failure}");
                n_altered += 1;
            }
            memory.put_raw(Table::Main, item.clone()).unwrap();
        }
    }
    assert!(n_altered > 100, "{n_altered} values were altered");
}

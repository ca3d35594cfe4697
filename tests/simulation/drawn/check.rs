//! What must be true of a run of a drawn manifest when the stream is quiet.

use std::collections::{BTreeMap, BTreeSet};

use derive::{family::Family, write::Table};
use keys::{counter::CounterKey, entry::is_entry, job::PARTITION, key::Key};

use serde_dynamo::AttributeValue;

use crate::{
    checks::{is_way_taken, plain_item},
    drawn::{
        Drawn,
        description::{Description, What},
        oracle::{Difference, DrawnChange, Rows, recount},
        values::{Lead, Place, Row, lead, refused},
    },
    platform::stream::{Author, Stream},
    scene::Scene,
    stored::{refused_unread, to_recount},
    trace::Failure,
};

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

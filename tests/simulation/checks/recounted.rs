//! The second oracle, at the end of a run.

use derive::{family::Family, write::Table};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    checks::is_way_taken,
    failure::Failure,
    oracle::{
        Difference, PlainChange, Recount, history, recount,
        table::{Address, Plain, PlainItem, PlainTable, millionths},
    },
    platform::stream::{Author, Stream},
    scene::Scene,
};

/// Everything that is derived is what the second oracle derives.
pub(crate) fn is_recounted(scene: &Scene, stream: &Stream) -> Result<(), Failure> {
    let recounted = recount(&plain_table(scene), &plain_changes(stream));
    let Recount { mut differences, n_compared, n_unreadable, n_late, n_not_found } = recounted;
    scene.count_all("recounted", n_compared);
    scene.count_all("unreadable", n_unreadable);
    scene.count_all("late readings", n_late);
    scene.count_all("not found by it", n_not_found);
    // What was lost of a history, or is listed for a recount, nobody can count any more: `audit` has its bounds.
    let lost = stream.lost.concerned(scene, &stream.made).counts;
    let is_lost = |found: &Difference| lost.iter().any(|(_, item)| address(item) == found.at);
    differences.retain(|found| !(history::COVERED.contains(&found.derivation) && is_lost(found)));
    let items = scene.database.memory().snapshot(Table::Main);
    differences.retain(|found| !is_way_taken(scene, &items, found.derivation, &Key::new(&found.at.0, &found.at.1)));
    match differences.first() {
        Some(first) => {
            let text = format!("{} differences, the first: {first:#?}", differences.len());
            Err(Failure::new("recount", text))
        }
        None => Ok(()),
    }
}

/// The table as the oracle reads it.
pub(crate) fn plain_table(scene: &Scene) -> PlainTable {
    let items = scene.database.memory().snapshot(Table::Main);
    PlainTable(items.iter().map(|(key, item)| (address(key), plain_item(item))).collect())
}

/// Everything that was written to the table.
pub(crate) fn plain_changes(stream: &Stream) -> Vec<PlainChange> {
    let changes = stream.made.iter().enumerate().map(|(at, made)| PlainChange {
        at: address(&made.key),
        old: made.old.as_ref().map(plain_item),
        new: made.new.as_ref().map(plain_item),
        is_ours: made.author == Author::Service,
        is_lost: stream.lost.has(at, Family::LevelTriggered),
    });
    changes.collect()
}

fn address(key: &Key) -> Address {
    (key.pk.clone(), key.sk.clone())
}

pub(crate) fn plain_item(item: &Item) -> PlainItem {
    item.iter().map(|(name, value)| (name.to_owned(), plain(value))).collect()
}

fn plain(value: &AttributeValue) -> Plain {
    let set = |mut values: Vec<Plain>| {
        values.sort();
        Plain::Set(values)
    };
    match value {
        AttributeValue::S(text) => Plain::Text(text.clone()),
        AttributeValue::N(text) => Plain::Number(millionths(text)),
        AttributeValue::Bool(value) => Plain::Bool(*value),
        AttributeValue::B(bytes) => Plain::Bytes(bytes.clone()),
        AttributeValue::L(values) => Plain::List(values.iter().map(plain).collect()),
        AttributeValue::M(map) => Plain::Map(map.iter().map(|(name, value)| (name.clone(), plain(value))).collect()),
        AttributeValue::Ss(texts) => set(texts.iter().cloned().map(Plain::Text).collect()),
        AttributeValue::Ns(texts) => set(texts.iter().map(|text| Plain::Number(millionths(text))).collect()),
        other => Plain::Other(format!("{other:?}")),
    }
}

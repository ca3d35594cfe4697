//! What must be true of every move: nobody is there twice or not at all, and nothing of them is lost.

use std::collections::BTreeMap;

use derive::value::same;
use keys::{item::Item, key::Key, path::Path};

use crate::{
    failure::Failure,
    scene::Scene,
    stream::{Author, Made, Stream},
};

/// What was added to an item while it moved, and where the item is now.
struct Added {
    key: Key,
    attributes: Item,
}

/// An item that moved, as it left its key and as it stands at the other.
struct Move<'a> {
    old: &'a Key,
    new: &'a Key,
    left: &'a Item,
    put: &'a Item,
}

/// Looks at all moves.
pub(crate) fn moves_are_whole(scene: &Scene, stream: &Stream) -> Result<(), Failure> {
    let mut pending: Vec<Added> = Vec::new();
    for step in stream.made.chunk_by(|a, b| a.step == b.step) {
        let ours = step.iter().all(|made| made.author == Author::Service);
        let moves = if ours { moves(scene, step)? } else { Vec::new() };
        for made in step {
            let moved = moves.iter().find(|moved| *moved.old == made.key);
            match (made.author, moved) {
                (Author::Service, Some(moved)) => {
                    pending.iter_mut().filter(|a| a.key == made.key).for_each(|added| added.key = moved.new.clone());
                    let attributes = added(scene, moved)?;
                    if !attributes.is_empty() {
                        scene.count("added while it moved");
                        pending.push(Added { key: moved.new.clone(), attributes });
                    }
                }
                (Author::Service, None) => {}
                // What the application did to it is its own affair.
                _ => pending.retain(|added| added.key != made.key),
            }
        }
        scene.count_all("moved", moves.len());
    }
    let items = scene.database.memory().snapshot(derive::write::Table::Main);
    for Added { key, attributes } in pending {
        let lacking = attributes.iter().find(|(name, _)| items.get(&key).is_none_or(|item| item.get(name).is_none()));
        if let Some((name, _)) = lacking {
            return Err(Failure::new("merge", format!("{key} lacks {name}, which was added while it moved")));
        }
    }
    Ok(())
}

/// Partition and id of an employee, where the item is one.
fn who(scene: &Scene, key: &Key, item: &Item) -> Option<(String, String)> {
    let image = scene.schema.image(key, item).filter(|image| image.is("Employee"))?;
    let path: Path = image.key_fields().get("Path")?.parse().ok()?;
    Some((key.pk.clone(), path.segments().last()?.clone()))
}

/// The moves of a step, in which each employee is there as often as before.
fn moves<'a>(scene: &Scene, step: &'a [Made]) -> Result<Vec<Move<'a>>, Failure> {
    let mut counts: BTreeMap<(String, String), i32> = BTreeMap::new();
    let (mut left, mut put) = (Vec::new(), Vec::new());
    for made in step {
        let old = made.old.as_ref().and_then(|old| Some((who(scene, &made.key, old)?, old)));
        let new = made.new.as_ref().and_then(|new| Some((who(scene, &made.key, new)?, new)));
        for (who, by) in old.iter().map(|(who, _)| (who, -1)).chain(new.iter().map(|(who, _)| (who, 1))) {
            *counts.entry(who.clone()).or_default() += by;
        }
        match (old, new) {
            (Some((who, old)), None) => left.push((who, &made.key, old)),
            (None, Some((who, new))) => put.push((who, &made.key, new)),
            _ => {}
        }
    }
    if let Some((who, by)) = counts.iter().find(|(_, by)| **by != 0) {
        return Err(Failure::new("move", format!("{who:?} is there {by:+} times after a move")));
    }
    let mut moves = Vec::new();
    for (who, old, left) in left {
        let Some(at) = put.iter().position(|(other, ..)| *other == who) else {
            return Err(Failure::new("move", format!("{old} left, and went nowhere")));
        };
        let (_, new, put) = put.remove(at);
        moves.push(Move { old, new, left, put });
    }
    Ok(moves)
}

/// What the old item held in the end and the new one does not; everything else must be as it was.
fn added(scene: &Scene, moved: &Move<'_>) -> Result<Item, Failure> {
    let layout = &scene.schema.layout;
    let mut added = Item::new();
    for (name, value) in moved.left.iter().filter(|(name, _)| !layout.is_key(name)) {
        match moved.put.get(name) {
            None => drop(added.insert(name.to_owned(), value.clone())),
            Some(put) if same(Some(put), Some(value)) => {}
            Some(_) => {
                return Err(Failure::new("move", format!("{} has another {name} than {} had", moved.new, moved.old)));
            }
        }
    }
    match moved.put.keys().find(|name| moved.left.get(name).is_none()) {
        Some(name) => Err(Failure::new("move", format!("{} has {name}, which {} had not", moved.new, moved.old))),
        None => Ok(added),
    }
}

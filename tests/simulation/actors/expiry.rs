//! Items that are removed by their time to live.

use derive::write::{Action, Table, Write};
use engine::clock::Clock as _;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::Store as _;

use crate::{executor::now, scene::Scene};

/// Removes one expired item of the main table; false when there is none.
pub(crate) fn expire_ground(scene: &Scene) -> bool {
    let is_expired = expire(scene, Table::Main);
    if is_expired {
        scene.count("expired");
    }
    is_expired
}

/// Removes one expired item of the ledger; false when there is none.
pub(crate) fn expire_ledger(scene: &Scene) -> bool {
    expire(scene, Table::Ledger)
}

fn expire(scene: &Scene, table: Table) -> bool {
    let now_s = scene.clock.now_ms() / 1000;
    let is_past = |(_, item): &(&Key, &Item)| match item.get("ExpiresAt") {
        Some(AttributeValue::N(text)) => text.parse::<u64>().is_ok_and(|at_s| at_s <= now_s),
        _ => false,
    };
    let key = scene.database.memory().view(table, |items| {
        let place = scene.chance.below(items.len());
        let past = items.iter().skip(place).chain(items.iter().take(place)).find(is_past);
        past.map(|(key, _)| key.clone())
    });
    let Some(key) = key else { return false };
    scene.trace.note(|| format!("{table:?} expires {key}"));
    now(scene.database.memory().write(&Write { table, key, action: Action::Delete, guard: None })).unwrap();
    true
}

//! What the service has stored beside derived values: parked records, jobs, and notes of searches to repeat.

use std::collections::BTreeSet;

use derive::write::Table;
use engine::{clock::Clock as _, count::recount::RECOUNT, job::Job};
use keys::{item::Item, job::JobKey, key::Key};

use crate::scene::Scene;

/// Prefix of the partition keys of notes.
const NOTES: &str = "AGAIN#";

pub(crate) struct Parked {
    pub(crate) key: Key,
    /// Id of the event.
    pub(crate) id: String,
    /// Why it is parked.
    pub(crate) cause: String,
}

/// Counts that are listed for a recount: the derivation, and the item that the count is about.
pub(crate) type ToRecount = BTreeSet<(String, Key)>;

pub(crate) fn to_recount(scene: &Scene) -> ToRecount {
    let field = |item: &Item, name: &str| keys::item::text(item, name).unwrap_or_default().to_owned();
    scene.database.memory().view(Table::Ledger, |items| {
        let listed = items.iter().filter(|(key, _)| key.pk == RECOUNT);
        let target = |item: &Item| (field(item, "Derivation"), Key::new(field(item, "ItemPK"), field(item, "ItemSK")));
        listed.map(|(_, item)| target(item)).collect()
    })
}

/// Ids of the records that are refused without being read.
pub(crate) fn refused_unread(scene: &Scene) -> BTreeSet<String> {
    scene.database.memory().view(Table::Ledger, |items| {
        let listed = items.keys().filter(|key| key.pk == RECOUNT);
        listed.filter_map(|key| key.sk.strip_prefix("*#").map(str::to_owned)).collect()
    })
}

pub(crate) fn parked(scene: &Scene) -> Vec<Parked> {
    let field = |item: &Item, name: &str| keys::item::text(item, name).unwrap_or_default().to_owned();
    scene.database.memory().view(Table::Ledger, |items| {
        let parked = items.iter().filter(|(key, _)| key.pk.starts_with("PARKED#"));
        let parked = parked.map(|(key, item)| Parked {
            key: key.clone(),
            id: field(item, "EventId"),
            cause: field(item, "Cause"),
        });
        parked.collect()
    })
}

pub(crate) fn jobs(scene: &Scene) -> Vec<Job> {
    let layout = &scene.schema.layout;
    let is_job = |(key, _): &(&Key, &Item)| JobKey::parse(key).is_some();
    scene
        .database
        .memory()
        .view(Table::Main, |items| items.iter().filter(is_job).filter_map(|(_, item)| Job::of(layout, item)).collect())
}

/// Is there a mark of a possible loss that holds cascades?
pub(crate) fn may_have_lost(scene: &Scene) -> bool {
    scene
        .database
        .memory()
        .view(Table::Ledger, |items| items.keys().any(|key| key.pk == "LOSS" && key.sk.starts_with("level-triggered#")))
}

/// How long a run waits for a note at its end, in milliseconds. Notes of days that leave a window stay.
const NOTED_MS: u64 = 3_600 * 1_000;

/// The times at which noted searches are due, in milliseconds since the epoch.
pub(crate) fn notes(scene: &Scene) -> Vec<u64> {
    let until_ms = scene.clock.now_ms() + NOTED_MS;
    let due_ms = |key: &Key| {
        let (due_ms, _) = key.sk.split_once('#').filter(|_| key.pk.starts_with(NOTES))?;
        due_ms.parse().ok().filter(|due_ms| *due_ms <= until_ms)
    };
    scene.database.memory().view(Table::Ledger, |items| items.keys().filter_map(due_ms).collect())
}

//! A stream shard's item in the ledger's table: what a batch must know about its shard before it counts.
//!
//! *Pins*: the number of shards of each counter when the stream shard was first seen. A redelivered change must reach
//! the same counter item, whatever is deployed meanwhile.
//!
//! The item also states whether the shard has [exceptions](crate::count::exceptions), so a batch reads them only then.

use std::collections::BTreeMap;

use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    attribute::{n, number},
    ledger::{EXPIRES_AT, PROOF_KEPT_S, expires_at, watermarks::label},
    record::event::Lane,
};

/// Attribute that states that the shard has exceptions. Stored, so it is stable.
const HAS_EXCEPTIONS: &str = "HasExceptions";

/// Prefix of the attributes with the pinned numbers, followed by the derivation's name. Stored, so it is stable.
const PIN: &str = "Shards:";

/// An item that expires in less than this time, in seconds, is renewed.
const RENEWED_S: u64 = PROOF_KEPT_S / 2;

/// What a batch knows about its stream shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardItem {
    pins: BTreeMap<String, u32>,
    has_exceptions: bool,
    expires_at_s: u64,
}

impl ShardItem {
    /// The contents of the item; empty if there is none.
    pub(crate) fn of(item: Option<&Item>) -> Self {
        let Some(item) = item else { return Self::default() };
        let pins = item.keys().filter_map(|name| {
            let derivation = name.strip_prefix(PIN)?;
            Some((derivation.to_owned(), u32::try_from(number(item, name)?).ok()?))
        });
        let has_exceptions = item.get(HAS_EXCEPTIONS) == Some(&AttributeValue::Bool(true));
        Self { pins: pins.collect(), has_exceptions, expires_at_s: number(item, EXPIRES_AT).unwrap_or(0) }
    }

    /// The pinned number of shards of a derivation's counters.
    pub(crate) fn n_shards(&self, derivation: &str) -> Option<u32> {
        self.pins.get(derivation).copied()
    }

    /// True if the shard has exceptions.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.has_exceptions
    }

    /// Drops the pinned numbers, for a mutant.
    pub(crate) fn without_pins(self) -> Self {
        Self { pins: BTreeMap::new(), ..self }
    }

    /// The write that pins these numbers; `None` if all are pinned.
    pub(crate) fn pinning(&self, key: &Key, wanted: &BTreeMap<&str, u32>, now_ms: u64) -> Option<Write> {
        let missing: Vec<(String, u32)> = wanted
            .iter()
            .filter(|(derivation, _)| !self.pins.contains_key(**derivation))
            .map(|(derivation, n_shards)| (format!("{PIN}{derivation}"), *n_shards))
            .collect();
        if missing.is_empty() {
            return None;
        }
        let asks = missing.iter().map(|(name, _)| Ask::Lacks(name.clone())).collect();
        let pins = missing.into_iter().map(|(name, n_shards)| (name, n(u64::from(n_shards))));
        let set = pins.chain([(EXPIRES_AT.to_owned(), expires_at(now_ms))]).collect();
        Some(update(key, Update::set(set), Some(Guard { purpose: Purpose::Pin, asks })))
    }

    /// The write that renews an item before it expires, while records of its shard arrive.
    pub(crate) fn renewing(&self, key: &Key, now_ms: u64) -> Option<Write> {
        let is_due = self.expires_at_s < (now_ms / 1000).saturating_add(RENEWED_S);
        let set = || Item::from([(EXPIRES_AT.to_owned(), expires_at(now_ms))]);
        is_due.then(|| update(key, Update::set(set()), None))
    }
}

/// Key of a stream shard's item; `None` if the shard is unknown.
pub(crate) fn shard_key(lane: &Lane) -> Option<Key> {
    let shard = lane.shard.as_deref()?;
    Some(Key::new(format!("SHARD#{}#{shard}", label(lane)), "SHARD"))
}

/// The write that sets the item's attribute for exceptions, in the transaction of an exception.
pub(crate) fn announcing(key: &Key, now_ms: u64) -> Write {
    let says = (HAS_EXCEPTIONS.to_owned(), AttributeValue::Bool(true));
    update(key, Update::set(Item::from([says, (EXPIRES_AT.to_owned(), expires_at(now_ms))])), None)
}

fn update(key: &Key, update: Update, guard: Option<Guard>) -> Write {
    Write { table: Table::Ledger, key: key.clone(), action: Action::Update(update), guard }
}

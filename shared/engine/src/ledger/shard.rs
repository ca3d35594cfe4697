//! A stream shard's item in the ledger's table: what a batch must know about its shard before it counts.
//!
//! It states whether the shard has [exceptions](crate::count::exceptions), so a batch reads them only then. No change of
//! a stream shard is counted before this item exists.
//!
//! *Fixed satellites*: in tables in which the manifest once said `shards`, the item also has the number of items that
//! shared each counter. The stream shard goes on counting on one of them, so a redelivered change finds its watermark.

use std::collections::BTreeMap;

use derive::write::{Action, Table, Update, Write};
use keys::{counter::CounterKey, item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    attribute::{checksum, number},
    ledger::{EXPIRES_AT, PROOF_KEPT_S, expires_at, watermarks::label},
    record::event::Lane,
};

/// Attribute that states that the shard has exceptions. Stored, so it is stable.
const HAS_EXCEPTIONS: &str = "HasExceptions";

/// Prefix of the attributes with the numbers of items of each counter, followed by the derivation's name. Stored.
const N_ITEMS: &str = "Shards:";

/// An item that expires in less than this time, in seconds, is renewed.
const RENEWED_S: u64 = PROOF_KEPT_S / 2;

/// What a batch knows about its stream shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardItem {
    /// How many items shared a counter, by derivation; empty unless the manifest once said so.
    n_items: BTreeMap<String, u32>,
    has_exceptions: bool,
    expires_at_s: u64,
}

impl ShardItem {
    /// The contents of the item; empty if there is none.
    pub(crate) fn of(item: Option<&Item>) -> Self {
        let Some(item) = item else { return Self::default() };
        let n_items = item.keys().filter_map(|name| {
            let derivation = name.strip_prefix(N_ITEMS)?;
            Some((derivation.to_owned(), u32::try_from(number(item, name)?).ok()?))
        });
        let has_exceptions = item.get(HAS_EXCEPTIONS) == Some(&AttributeValue::Bool(true));
        Self { n_items: n_items.collect(), has_exceptions, expires_at_s: number(item, EXPIRES_AT).unwrap_or(0) }
    }

    /// The item on which this stream shard counts: the home, unless the derivation's counters once had shards.
    pub(crate) fn counts_at(&self, home: Key, derivation: &str, lane: &Lane) -> Key {
        let fixed = || {
            let n_items = self.n_items.get(derivation)?;
            let satellite = checksum(lane.shard.as_deref()?) % n_items.clamp(&1, &100);
            CounterKey { satellite, ..CounterKey::parse(&home)? }.key().ok()
        };
        fixed().unwrap_or(home)
    }

    /// True if the shard has exceptions.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.has_exceptions
    }

    /// The write that renews an item before it expires, while records of its shard arrive.
    pub(crate) fn renewing(&self, key: &Key, now_ms: u64) -> Option<Write> {
        let is_due = self.expires_at_s < (now_ms / 1000).saturating_add(RENEWED_S);
        let set = || Item::from([(EXPIRES_AT.to_owned(), expires_at(now_ms))]);
        is_due.then(|| update(key, Update::set(set())))
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
    update(key, Update::set(Item::from([says, (EXPIRES_AT.to_owned(), expires_at(now_ms))])))
}

fn update(key: &Key, update: Update) -> Write {
    Write { table: Table::Ledger, key: key.clone(), action: Action::Update(update), guard: None }
}

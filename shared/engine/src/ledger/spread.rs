//! Counters that spread: where a stream shard counts.
//!
//! A counter begins as one item, its *home*. Each stream shard that counts there has a watermark on it, so a counter that
//! many shards feed becomes large, and each update expensive. When its home has
//! [as many watermarks as it may](crate::limits::SpreadLimits), it *spreads*: the home gets the attribute
//! [`Spread`](SPREAD) with the number of satellites, once. From then on the home gets no new watermarks. A stream shard
//! that has none there counts in a *satellite*, an item beside the home that a hash selects.
//!
//! *Keeps true*: a stream shard has its watermark on one item of a counter at most, so the condition on that item decides
//! whether a change is counted. Which item it is follows from the home alone: home, if it has the shard's watermark or
//! has not spread; otherwise the satellite. The home of a counter that has spread is never deleted and never loses the
//! attribute.
//!
//! *Example*: 24 stream shards have counted likes of a post. The 24th update returns 24 watermarks, and the home gets
//! `Spread` 64. The 25th shard's update of the home fails, and the failure returns the home without a watermark of that
//! shard. The engine updates satellite 17, and remembers this.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use keys::{
    counter::{CounterKey, SPREAD},
    item::Item,
    key::Key,
};

use crate::{
    attribute::{checksum, number},
    ledger::watermarks::mark_of,
    limits::SpreadLimits,
};

/// Most satellites that an engine remembers, before it forgets all of them. Bounds memory.
const REMEMBERED_MAX: usize = 10_000;

/// When counters spread, and which satellites an engine has seen stream shards count in. What it forgets, it sees again
/// in a failed update.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    pub(crate) limits: SpreadLimits,
    /// The satellites by the name of the watermark, and by home. Under receipts the name is empty.
    satellites: Mutex<BTreeMap<String, BTreeMap<Key, Key>>>,
}

impl Spread {
    pub(crate) fn new(limits: SpreadLimits) -> Self {
        Self { limits, satellites: Mutex::default() }
    }

    pub(crate) fn remember(&self, home: &Key, mark: &str, satellite: Key) {
        let mut satellites = self.satellites.lock().unwrap_or_else(PoisonError::into_inner);
        if satellites.values().map(BTreeMap::len).sum::<usize>() >= REMEMBERED_MAX {
            satellites.clear();
        }
        satellites.entry(mark.to_owned()).or_default().insert(home.clone(), satellite);
    }

    pub(crate) fn remembered(&self, home: &Key, mark: &str) -> Option<Key> {
        self.satellites.lock().unwrap_or_else(PoisonError::into_inner).get(mark)?.get(home).cloned()
    }
}

/// The satellite of a home in which the changes with this watermark count; `None` if they count at home.
pub(crate) fn satellite(home: &Key, held: &Item, mark: &str) -> Option<Key> {
    let counter = CounterKey::parse(home).filter(|counter| counter.satellite == 0)?;
    let n_satellites = u32::try_from(number(held, SPREAD)?).ok().filter(|_| mark_of(held, mark).is_none())?;
    CounterKey { satellite: 1 + checksum(mark) % n_satellites.clamp(1, 99), ..counter }.key().ok()
}

//! Items that are written back and forth, by derivations that disagree or by two deployments.
//!
//! *Keeps true*: an item that derivations disagree about is not written without end.
//!
//! Refreshing ends because an item that was written is correct. If that were ever wrong, each write's record would lead
//! to the next write; and if two deployments decide about one item, each undoes the other's writes. So a process
//! remembers the corrections that only an item's own record requested. A correction is a *step back* if the process
//! made the same write before, and a different one since; or if it equals the last one, and the record changed only
//! what the write writes. A source that changes, or a client that overwrites the item with an older version, does not
//! create a series of steps back: the next value is a new one, or the record changed something else too, or records of
//! other items request it. Each of these ends the series.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use derive::{
    position::DerivationAt,
    write::{Action, Write},
};
use keys::{fnv::hash_64, item::Item, key::Key};

use crate::requests::{RequestedRefresh, WrittenItem};

/// Maximum steps back in a row before an item is no longer written. A few may come from a source that changes back and
/// forth while another process handles its records; each further one is half as likely.
pub(crate) const STEPS_BACK_MAX: usize = 16;

/// Different writes of an item that are remembered: those of two writers, and a few more.
const WRITES_MAX: usize = 4;

/// Maximum number of items that are remembered, to bound memory. The item with the oldest correction is dropped first.
const ITEMS_MAX: usize = 1_000;

/// How long a correction is remembered, in milliseconds. A write's record arrives within seconds, unless a mapping
/// retries.
const REMEMBERED_MS: u64 = 10 * 60 * 1_000;

/// The remembered corrections of a process, by item.
#[derive(Debug, Default)]
pub(crate) struct Corrections(Mutex<BTreeMap<Key, Series>>);

/// The corrections of an item.
#[derive(Debug, Default)]
struct Series {
    /// Different writes, the newest last: a digest of each, and its derivations.
    writes: Vec<(u64, Vec<DerivationAt>)>,
    /// Steps back in a row.
    n_back: usize,
    /// Time of the newest write, in milliseconds since the epoch.
    at_ms: u64,
}

impl Corrections {
    /// Notes a write, and whether it only undoes changes by other writers. The series ends unless only the item's own
    /// record requested the write.
    pub(crate) fn note(&self, written: &WrittenItem, only_undoes: bool) {
        let WrittenItem { requested, write, derivations, at_ms, .. } = written;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !requested.is_own {
            all.remove(&write.key);
            return;
        }
        all.retain(|_, series| at_ms.saturating_sub(series.at_ms) < REMEMBERED_MS);
        if all.len() >= ITEMS_MAX && !all.contains_key(&write.key) {
            let oldest = all.iter().min_by_key(|(_, series)| series.at_ms).map(|(key, _)| key.clone());
            drop(oldest.and_then(|key| all.remove(&key)));
        }
        let series = all.entry(write.key.clone()).or_default();
        series.at_ms = *at_ms;
        series.add(digest(&write.action), only_undoes, derivations);
    }

    /// The derivations that disagree about an item, if this write would be one step back too many.
    pub(crate) fn disagree(
        &self,
        requested: &RequestedRefresh,
        write: &Write,
        now_ms: u64,
    ) -> Option<Vec<DerivationAt>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series = all.get(&write.key).filter(|_| requested.is_own)?;
        let is_over = series.n_back >= STEPS_BACK_MAX && now_ms.saturating_sub(series.at_ms) < REMEMBERED_MS;
        let is_back = is_over && series.has(digest(&write.action));
        is_back.then(|| {
            let mut derivations: Vec<DerivationAt> = series.writes.iter().flat_map(|(_, of)| of).copied().collect();
            derivations.sort_unstable();
            derivations.dedup();
            derivations
        })
    }
}

impl Series {
    fn has(&self, digest: u64) -> bool {
        self.writes.iter().any(|(other, _)| *other == digest)
    }

    fn add(&mut self, digest: u64, only_undoes: bool, derivations: &[DerivationAt]) {
        let is_last = self.writes.last().is_some_and(|(last, _)| *last == digest);
        self.n_back = if self.has(digest) && (only_undoes || !is_last) { self.n_back + 1 } else { 0 };
        self.writes.retain(|(other, _)| *other != digest);
        self.writes.push((digest, derivations.to_vec()));
        let n_more = self.writes.len().saturating_sub(WRITES_MAX);
        self.writes.drain(..n_more);
    }
}

/// A digest of a write's effect on its item, as JSON, because its maps are ordered.
fn digest(action: &Action) -> u64 {
    let text = |item: &Item| serde_json::to_value(item).unwrap_or_default().to_string();
    let text = match action {
        Action::Put(item) => format!("put {}", text(item)),
        Action::Update(update) => format!("set {} remove {:?}", text(&update.set), update.remove),
        Action::Delete => "delete".to_owned(),
        Action::Check => String::new(),
    };
    hash_64(text.bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use derive::{refresh::Look, write::Table};
    use serde_dynamo::AttributeValue;

    use super::*;

    fn written(key: &str, value: &str, is_own: bool, at_ms: u64) -> WrittenItem {
        let key = Key::new(key, "ITEM");
        let look =
            Look { item: key.clone(), entity: "Item".to_owned(), derivations: BTreeSet::new(), named: BTreeSet::new() };
        let item = Item::from([("value".to_owned(), AttributeValue::S(value.to_owned()))]);
        WrittenItem {
            requested: RequestedRefresh { look, causes: BTreeSet::new(), is_own, vacated_for: None },
            write: Write { table: Table::Main, key, action: Action::Put(item), guard: None },
            derivations: vec![DerivationAt(value.len())],
            at_ms,
            units: 1.0,
        }
    }

    /// Sends these writes of an item, and returns the position of the first that is stopped.
    fn stopped_at(writes: impl IntoIterator<Item = WrittenItem>) -> Option<usize> {
        let corrections = Corrections::default();
        writes.into_iter().position(|written| {
            let stopped = corrections.disagree(&written.requested, &written.write, written.at_ms).is_some();
            corrections.note(&written, false);
            stopped
        })
    }

    #[test]
    fn what_is_written_back_and_forth_is_stopped_and_both_writers_are_named() {
        let turns = |n: usize| ["a", "bb", "ccc"].into_iter().take(n).cycle().take(100);
        for n in [2, 3] {
            let writes = turns(n).map(|value| written("X", value, true, 5));
            assert_eq!(stopped_at(writes), Some(n + STEPS_BACK_MAX));
        }
        let corrections = Corrections::default();
        for value in turns(2) {
            corrections.note(&written("X", value, true, 5), false);
        }
        let next = written("X", "a", true, 6);
        let [one, other] = [1, 2].map(DerivationAt);
        assert_eq!(corrections.disagree(&next.requested, &next.write, 6), Some(vec![one, other]));
        assert_eq!(corrections.disagree(&next.requested, &next.write, 5 + REMEMBERED_MS), None, "it is forgotten");
    }

    #[test]
    fn what_others_change_is_never_stopped() {
        // A client overwrites the item with its old version a thousand times, and it is corrected each time.
        assert_eq!(stopped_at((0..1_000).map(|_| written("X", "right", true, 1))), None);
        // The client changes more than the derived part, then only the derived part, in turns.
        let corrections = Corrections::default();
        let right = written("X", "right", true, 1);
        for n in 0..1_000 {
            assert_eq!(corrections.disagree(&right.requested, &right.write, 1), None);
            corrections.note(&right, n % 16 > 0);
        }
        // A counter rises, and each correction displays a later number.
        assert_eq!(stopped_at((0..1_000).map(|n| written("X", &n.to_string(), true, 1))), None);
        // A source changes back and forth, and from time to time its own record arrives.
        let turns = ["a", "b"].into_iter().cycle().enumerate().take(1_000);
        assert_eq!(stopped_at(turns.map(|(n, value)| written("X", value, n % 15 > 0, 1))), None);
        // Each item has its own series.
        let items = (0..1_000).map(|n| written(&format!("X{}", n / 2), ["a", "b"][n % 2], true, 1));
        assert_eq!(stopped_at(items), None);
    }

    #[test]
    fn a_write_that_another_writer_undoes_again_and_again_is_stopped() {
        let (corrections, right) = (Corrections::default(), written("X", "right", true, 1));
        let n_noted = (0..100).take_while(|_| {
            let is_stopped = corrections.disagree(&right.requested, &right.write, 1).is_some();
            corrections.note(&right, true);
            !is_stopped
        });
        assert_eq!(n_noted.count(), STEPS_BACK_MAX + 1);
    }

    #[test]
    fn so_many_items_are_remembered() {
        let corrections = Corrections::default();
        for n in 0..2_000 {
            corrections.note(&written(&format!("X{n}"), "a", true, n), false);
        }
        let all = corrections.0.lock().unwrap();
        assert_eq!(all.len(), ITEMS_MAX);
        assert!(all.contains_key(&Key::new("X1999", "ITEM")));
    }
}

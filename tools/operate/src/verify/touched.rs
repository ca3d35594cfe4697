//! What was written lately, so that a difference that may be on its way is known from one that is not.

use std::collections::BTreeMap;

use derive::sources::{FirstOf, Source};
use keys::{counter::CounterKey, key::Key};

/// What something was decided by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadFrom {
    /// An item.
    Item(Key),
    /// All counters of a target.
    Counters(Key),
    /// The first item of a query.
    First(FirstOf),
}

impl ReadFrom {
    /// The item, where it is one.
    pub(super) fn item(&self) -> Option<&Key> {
        match self {
            Self::Item(key) => Some(key),
            Self::Counters(_) | Self::First(_) => None,
        }
    }
}

impl From<Source> for ReadFrom {
    fn from(source: Source) -> Self {
        match source {
            Source::Item(key) => Self::Item(key),
            Source::Counters(target) => Self::Counters(target),
            Source::First(of) => Self::First(of),
        }
    }
}

/// When items were last seen to be written, as long as somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct Touched {
    at_ms: BTreeMap<ReadFrom, u64>,
    /// When a record came that does not say of which item it is.
    any_at_ms: Option<u64>,
    /// Since when each of those wants to know who looks at something.
    watches: BTreeMap<u64, u64>,
    n_watches: u64,
}

impl Touched {
    /// Somebody wants to know of all that is seen from now on, until [`unwatch`](Self::unwatch).
    pub(super) fn watch(&mut self, now_ms: u64) -> u64 {
        self.n_watches += 1;
        self.watches.insert(self.n_watches, now_ms);
        self.n_watches
    }

    pub(super) fn unwatch(&mut self, watch: u64) {
        self.watches.remove(&watch);
        match self.watches.values().min() {
            Some(first_ms) => self.at_ms.retain(|_, at_ms| *at_ms >= *first_ms),
            None => self.at_ms.clear(),
        }
    }

    /// A record of this item was seen; of any item where it does not say of which.
    pub(super) fn touch(&mut self, key: Option<&Key>, now_ms: u64) {
        let Some(key) = key else {
            self.any_at_ms = Some(now_ms);
            return;
        };
        if self.watches.is_empty() {
            return;
        }
        self.at_ms.insert(ReadFrom::Item(key.clone()), now_ms);
        if let Some(counter) = CounterKey::parse(key) {
            self.at_ms.insert(ReadFrom::Counters(counter.target), now_ms);
        }
    }

    /// Was any of these written, as far as was seen since a watch began?
    pub(super) fn has<'a>(&self, watch: u64, read: impl IntoIterator<Item = &'a ReadFrom>) -> bool {
        let Some(since_ms) = self.watches.get(&watch) else { return true };
        let is_since = |at_ms: &u64| at_ms >= since_ms;
        self.any_at_ms.as_ref().is_some_and(is_since)
            || read.into_iter().any(|read| match read {
                ReadFrom::First(of) => self.in_range(of).any(is_since),
                read => self.at_ms.get(read).is_some_and(is_since),
            })
    }

    /// When each item was seen that a query may find.
    fn in_range<'a>(&'a self, of: &'a FirstOf) -> impl Iterator<Item = &'a u64> {
        let items = self.at_ms.range(ReadFrom::Item(of.begin())..);
        items.take_while(|(read, _)| read.item().is_some_and(|key| of.may_be(key))).map(|(_, at_ms)| at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_while_somebody_watches_is_known_by_item_and_target() {
        let mut touched = Touched::default();
        let (item, other) = (Key::new("USER#ann", "PROFILE"), Key::new("USER#bob", "PROFILE"));
        touched.touch(Some(&item), 5);
        let watch = touched.watch(5);
        assert!(!touched.has(watch, &[ReadFrom::Item(item.clone())]), "it came before");
        let counter = CounterKey { target: item.clone(), derivation: "n".to_owned(), shard: 0 }.key().unwrap();
        touched.touch(Some(&counter), 6);
        assert!(touched.has(watch, &[ReadFrom::Counters(item.clone())]));
        assert!(!touched.has(watch, &[ReadFrom::Item(item.clone()), ReadFrom::Counters(other.clone())]));
        let later = touched.watch(7);
        assert!(!touched.has(later, &[ReadFrom::Counters(item.clone())]));
        touched.touch(None, 8);
        assert!(touched.has(later, &[ReadFrom::Item(other)]), "it may be of any");
        touched.unwatch(watch);
        touched.unwatch(later);
        assert!(touched.at_ms.is_empty() && touched.has(later, &[ReadFrom::Item(item)]), "nobody knows any more");
    }
}

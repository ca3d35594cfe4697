//! What the flow says of each derivation: changes a second, lag, conflicts, and the items that it writes most.
//!
//! *Its own lag* is the time from the start of a function's batch to the answer of the write; *the whole lag* begins with the
//! application's write, or with the write that the record shows. The stream's times are whole seconds, rounded down, on the
//! embedded database, so the whole lag is up to a second too long.

use std::collections::BTreeMap;

use keys::key::Key;

use super::entry::FlowEntry;

/// Time over which changes are counted, in milliseconds.
const WINDOW_MS: u64 = 60_000;

/// Targets that are named.
const HOTTEST: usize = 3;

/// Figures of a derivation, of the changes that the flow keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct DerivationFigures {
    /// Changes of the last minute that asked for it.
    n_changes: u32,
    own_ms: Vec<u64>,
    whole_ms: Vec<u64>,
    targets: BTreeMap<Key, usize>,
}

impl DerivationFigures {
    /// The figures of each derivation.
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a FlowEntry>, now_ms: u64) -> BTreeMap<String, Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        for entry in entries {
            let is_recent = entry.came_ms.saturating_add(WINDOW_MS) > now_ms;
            for (derivation, _) in entry.asked.iter().filter(|_| is_recent) {
                all.entry(derivation.clone()).or_default().n_changes += 1;
            }
            for delivery in &entry.deliveries {
                for write in &delivery.writes {
                    for (derivation, _) in &write.effects {
                        let figures = all.entry(derivation.clone()).or_default();
                        figures.own_ms.push(write.at_ms.saturating_sub(delivery.began_ms));
                        figures.whole_ms.extend(entry.created_ms.map(|created| write.at_ms.saturating_sub(created)));
                        *figures.targets.entry(write.item.clone()).or_default() += 1;
                    }
                }
            }
        }
        for figures in all.values_mut() {
            figures.own_ms.sort_unstable();
            figures.whole_ms.sort_unstable();
        }
        all
    }

    /// Changes a second, of the last minute.
    pub(crate) fn changes_a_second(&self) -> f64 {
        f64::from(self.n_changes) / 60.0
    }

    /// The median of its own lag, in milliseconds.
    pub(crate) fn own_ms(&self) -> Option<u64> {
        self.own_ms.get(self.own_ms.len() / 2).copied()
    }

    /// The median of the whole lag, in milliseconds.
    pub(crate) fn whole_ms(&self) -> Option<u64> {
        self.whole_ms.get(self.whole_ms.len() / 2).copied()
    }

    /// The items that it wrote most often, with how often; none that it wrote once.
    pub(crate) fn hottest(&self) -> Vec<(&Key, usize)> {
        let mut targets: Vec<(&Key, usize)> = self.targets.iter().map(|(key, n)| (key, *n)).collect();
        targets.retain(|(_, n)| *n > 1);
        targets.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        targets.truncate(HOTTEST);
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_and_the_hottest_items_are_of_what_was_written() {
        let key = |name: &str| Key::new(name, "S");
        let targets = [("a", 1), ("b", 5), ("c", 3), ("d", 2), ("e", 9)].map(|(name, n)| (key(name), n));
        let figures =
            DerivationFigures { n_changes: 30, own_ms: vec![1, 4, 9], whole_ms: Vec::new(), targets: targets.into() };
        assert_eq!((figures.own_ms(), figures.whole_ms()), (Some(4), None));
        assert!((figures.changes_a_second() - 0.5).abs() < f64::EPSILON);
        let hottest: Vec<(&str, usize)> = figures.hottest().iter().map(|(key, n)| (key.pk.as_str(), *n)).collect();
        assert_eq!(hottest, [("e", 9), ("b", 5), ("c", 3)]);
    }
}

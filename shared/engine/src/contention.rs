//! Contention: how often a sending met another writer or a throttle, by derivation.
//!
//! Every invocation counts it for its log and its metrics. Nothing is stored, and no count hangs on it. Which keys are
//! hot is not measured here: CloudWatch Contributor Insights for DynamoDB reports that.
//!
//! An item that is refreshed counts under the first derivation of its write. A throttle is one that is left when the
//! SDK has tried again by itself.

use std::collections::BTreeMap;

use store::Busy;

/// What the sendings of an invocation met.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    derivations: BTreeMap<String, Conflicts>,
    /// Where no item of a derivation's own was busy: the ledger's items, and calls that were refused as a whole.
    elsewhere: Conflicts,
}

/// How often something was met.
#[derive(Clone, Copy, Debug, Default)]
struct Conflicts {
    n_conflicts: u64,
    n_throttles: u64,
}

impl Conflicts {
    fn count(&mut self, busy: Busy) {
        match busy {
            Busy::Conflict => self.n_conflicts += 1,
            Busy::Throttled => self.n_throttles += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.n_conflicts += other.n_conflicts;
        self.n_throttles += other.n_throttles;
    }
}

impl Contention {
    /// A sending found an item of this derivation busy; one of no derivation where there is none.
    pub(crate) fn met(&mut self, derivation: Option<&str>, busy: Busy) {
        match derivation {
            Some(derivation) => self.derivations.entry(derivation.to_owned()).or_default().count(busy),
            None => self.elsewhere.count(busy),
        }
    }

    /// Adds what another counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (derivation, met) in &other.derivations {
            self.derivations.entry(derivation.clone()).or_default().add(*met);
        }
        self.elsewhere.add(other.elsewhere);
    }

    /// Sendings that met another writer, wherever.
    #[must_use]
    pub fn n_conflicts(&self) -> u64 {
        self.all().map(|met| met.n_conflicts).sum()
    }

    /// Sendings that were throttled, wherever.
    #[must_use]
    pub fn n_throttles(&self) -> u64 {
        self.all().map(|met| met.n_throttles).sum()
    }

    /// How often each derivation met another writer, and how often it was throttled.
    pub fn by_derivation(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.derivations.iter().map(|(derivation, met)| (derivation.as_str(), met.n_conflicts, met.n_throttles))
    }

    /// How often each derivation met somebody, for a log: `like-count 3, view-count 1`; `None` where none did.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        let met = |(derivation, n_conflicts, n_throttles): (&str, u64, u64)| {
            format!("{derivation} {}", n_conflicts + n_throttles)
        };
        let met: Vec<String> = self.by_derivation().map(met).collect();
        (!met.is_empty()).then(|| met.join(", "))
    }

    fn all(&self) -> impl Iterator<Item = &Conflicts> {
        self.derivations.values().chain([&self.elsewhere])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_and_throttles_are_counted_by_derivation_and_all_together() {
        let (mut contention, mut other) = (Contention::default(), Contention::default());
        contention.met(Some("like-count"), Busy::Throttled);
        contention.met(Some("like-count"), Busy::Conflict);
        contention.met(Some("post-detail"), Busy::Conflict);
        contention.met(None, Busy::Conflict);
        other.met(Some("like-count"), Busy::Conflict);
        other.met(None, Busy::Throttled);
        contention.add(&other);
        assert_eq!((contention.n_conflicts(), contention.n_throttles()), (4, 2));
        assert_eq!(contention.busy().as_deref(), Some("like-count 3, post-detail 1"));
        let by_derivation: Vec<_> = contention.by_derivation().collect();
        assert_eq!(by_derivation, [("like-count", 2, 1), ("post-detail", 1, 0)]);
        assert_eq!(Contention::default().busy(), None);
    }
}

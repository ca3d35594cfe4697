//! Contention: the numbers of conflicts and throttles, by derivation.
//!
//! Every invocation counts them for its log and its metrics. They are not stored, and no derived count depends on them.
//! They do not show which keys are hot: CloudWatch Contributor Insights for DynamoDB reports that.
//!
//! A refreshed item counts under the first derivation of its write. A throttle counts only if it remains after the
//! SDK's own retries.

use std::collections::BTreeMap;

use store::Busy;

/// The conflicts and throttles of an invocation.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    derivations: BTreeMap<String, Conflicts>,
    /// Conflicts and throttles outside of derivations: on the ledger's items, and of calls that were refused as a
    /// whole.
    elsewhere: Conflicts,
}

/// Numbers of conflicts and throttles.
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
    /// Counts a call that found an item of this derivation busy; `None` if the item belongs to no derivation.
    pub(crate) fn met(&mut self, derivation: Option<&str>, busy: Busy) {
        match derivation {
            Some(derivation) => self.derivations.entry(derivation.to_owned()).or_default().count(busy),
            None => self.elsewhere.count(busy),
        }
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        for (derivation, met) in &other.derivations {
            self.derivations.entry(derivation.clone()).or_default().add(*met);
        }
        self.elsewhere.add(other.elsewhere);
    }

    /// All calls that conflicted with another writer.
    #[must_use]
    pub fn n_conflicts(&self) -> u64 {
        self.all().map(|met| met.n_conflicts).sum()
    }

    /// All calls that were throttled.
    #[must_use]
    pub fn n_throttles(&self) -> u64 {
        self.all().map(|met| met.n_throttles).sum()
    }

    /// For each derivation, the numbers of conflicts and of throttles.
    pub fn by_derivation(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.derivations.iter().map(|(derivation, met)| (derivation.as_str(), met.n_conflicts, met.n_throttles))
    }

    /// The number of conflicts and throttles of each derivation, for a log: `like-count 3, view-count 1`; `None` if
    /// there are none.
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

//! The figures of a batch by derivation, and its lag, for whoever watches the service.
//!
//! *Keeps true*: every write of the account is in the figures of the derivations on whose behalf it was made, in equal
//! parts of its units; and no lag is left out, however many records a batch has.
//!
//! *Lag* is the time from a record's creation to the last write that follows from it in the invocation. It is that of
//! one step: a display follows from the record of its counter, which follows from the application's. DynamoDB Streams
//! has whole seconds, rounded down, so a lag is up to a second too great.

use std::collections::BTreeMap;

use derive::{catalogue::Catalogue, position::RecordAt, write::Table};
use store::Units;

use crate::account::Account;

/// What was asked of a derivation, and what stood in its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Changes that asked something of it.
    pub n_changes: usize,
    /// What records asked of it: to add, to look at an item, to search.
    pub n_effects: usize,
    /// Sendings again, of a transaction those of all that is in it.
    pub n_retries: usize,
    /// Records that were parked on its behalf.
    pub n_parked: usize,
}

/// What happened on behalf of one derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// What was asked of it.
    pub share: Share,
    /// Items that were written.
    pub n_writes: usize,
    /// Write units: of a write for several derivations an equal part.
    pub units: Units,
    /// Writes that put right what somebody had made of an item.
    pub n_corrections: usize,
    /// Sendings that met another writer.
    pub n_conflicts: u64,
    /// Sendings that were throttled.
    pub n_throttles: u64,
    /// The greatest lag, in milliseconds; `None` where nothing was written.
    pub lag_ms_max: Option<u64>,
}

impl Share {
    /// Adds another share of the same.
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_changes += other.n_changes;
        self.n_effects += other.n_effects;
        self.n_retries += other.n_retries;
        self.n_parked += other.n_parked;
    }
}

impl Account {
    /// The lag of each record that something follows from, in milliseconds, in no order.
    #[must_use]
    pub fn lags_ms(&self) -> Vec<u64> {
        let mut lags_ms = BTreeMap::<RecordAt, u64>::new();
        for commit in self.commits.iter().filter(|commit| commit.table == Table::Main) {
            for position in &commit.causes {
                if let Some(lag_ms) = self.lag_ms(*position, commit.at_ms) {
                    let greatest_ms = lags_ms.entry(*position).or_default();
                    *greatest_ms = lag_ms.max(*greatest_ms);
                }
            }
        }
        lags_ms.into_values().collect()
    }

    /// Writes that put right what somebody had made of an item.
    #[must_use]
    pub fn n_corrections(&self) -> usize {
        self.commits.iter().filter(|commit| commit.is_correction).count()
    }

    fn lag_ms(&self, position: RecordAt, at_ms: u64) -> Option<u64> {
        let created_ms = self.created_ms.get(position.0).copied().flatten()?;
        Some(at_ms.saturating_sub(created_ms))
    }
}

impl Account {
    /// What a batch came to, by the name of the derivation. A derivation with nothing to report is left out.
    pub(crate) fn figures(&self, catalogue: &Catalogue) -> BTreeMap<String, Figures> {
        let mut figures = BTreeMap::<String, Figures>::new();
        for (derivation, share) in &self.shares {
            figures.entry(catalogue.label(*derivation).to_owned()).or_default().share = *share;
        }
        for commit in &self.commits {
            let lag_ms = commit.causes.iter().filter_map(|at| self.lag_ms(*at, commit.at_ms)).max();
            let n_derivations = u32::try_from(commit.derivations.len()).unwrap_or(u32::MAX);
            for name in &commit.derivations {
                let figures = figures.entry(name.clone()).or_default();
                figures.n_writes += 1;
                figures.units += commit.units / f64::from(n_derivations);
                figures.n_corrections += usize::from(commit.is_correction);
                figures.lag_ms_max = figures.lag_ms_max.max(lag_ms);
            }
        }
        for (name, n_conflicts, n_throttles) in self.contention.by_derivation() {
            let figures = figures.entry(name.to_owned()).or_default();
            figures.n_conflicts += n_conflicts;
            figures.n_throttles += n_throttles;
        }
        figures
    }
}

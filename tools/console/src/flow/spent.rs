//! Write units over time: what the functions wrote, and what plain code would have written for the same changes.
//!
//! *By hand* is a function with plain `ADD`, `PUT` and `SET`: for each change one `ADD` of one write unit on the item that
//! shows a count, and of all other derivations the same writes as here. It has no counters, no displays of them, and no
//! proof that a change is counted once; so it is cheaper, and counts again when a batch comes again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, schema::Schema};
use engine::{account::Commit, contention::Contention};
use keys::counter::COUNTER;
use store::Units;

use super::share;

/// Length of a slot, in milliseconds.
pub(crate) const SLOT_MS: u64 = 10_000;

/// Slots that are kept: ten minutes.
pub(crate) const SLOTS: usize = 60;

/// Write units of an `ADD` by hand, on an item of up to 1 KB.
const ADD_UNITS: Units = 1.0;

/// What a derivation has written since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteTotal {
    /// Its writes.
    pub(crate) n_writes: usize,
    /// Its write units: of a write for several derivations, an equal part.
    pub(crate) units: Units,
}

/// Write units of the same changes, by Ripple and by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SpentUnits {
    pub(crate) ripple: Units,
    pub(crate) by_hand: Units,
}

/// Write units since the start, and of each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpentWrites {
    /// By derivation.
    pub(crate) totals: BTreeMap<String, WriteTotal>,
    /// Conflicts and throttles by derivation.
    pub(crate) conflicts: BTreeMap<String, u64>,
    /// Of the ledger's own items.
    pub(crate) ledger: WriteTotal,
    /// Everything.
    pub(crate) whole: SpentUnits,
    /// Number of the slot since the epoch, with its units; the oldest first.
    pub(crate) slots: VecDeque<(u64, SpentUnits)>,
}

impl SpentWrites {
    /// Takes in a write. The derivations are those that somebody [would write by hand](written_by_hand) too.
    pub(super) fn write(&mut self, by_hand: &BTreeSet<String>, commit: &Commit) {
        let Commit { derivations, units, at_ms, .. } = commit;
        let part = units / share(derivations.len());
        let mut units_by_hand = 0.0;
        for name in derivations {
            let total = self.totals.entry(name.clone()).or_default();
            total.n_writes += 1;
            total.units += part;
            units_by_hand += if by_hand.contains(name) { part } else { 0.0 };
        }
        if derivations.is_empty() {
            self.ledger.n_writes += 1;
            self.ledger.units += units;
        }
        self.add(*at_ms, SpentUnits { ripple: *units, by_hand: units_by_hand });
    }

    /// Takes in what a batch met.
    pub(super) fn conflicts(&mut self, contention: &Contention) {
        for (derivation, n_conflicts, n_throttles) in contention.by_derivation() {
            *self.conflicts.entry(derivation.to_owned()).or_default() += n_conflicts + n_throttles;
        }
    }

    /// Takes in a change that came for the first time, and asks for so many additions.
    pub(super) fn change(&mut self, n_additions: usize, at_ms: u64) {
        let n = f64::from(u32::try_from(n_additions).unwrap_or(u32::MAX));
        self.add(at_ms, SpentUnits { ripple: 0.0, by_hand: n * ADD_UNITS });
    }

    fn add(&mut self, at_ms: u64, spent: SpentUnits) {
        self.whole.add(spent);
        // Functions run beside each other, so an older write may come later; it goes into the newest slot.
        let slot = at_ms / SLOT_MS;
        match self.slots.back_mut().filter(|(last, _)| *last >= slot) {
            Some((_, units)) => units.add(spent),
            None => self.slots.push_back((slot, spent)),
        }
        while self.slots.front().is_some_and(|(first, _)| first + SLOTS as u64 <= slot) {
            self.slots.pop_front();
        }
    }
}

impl SpentUnits {
    pub(crate) fn add(&mut self, other: Self) {
        self.ripple += other.ripple;
        self.by_hand += other.by_hand;
    }
}

/// The derivations that somebody would write by hand too. Not counters and what shows them: by hand, the count is added where
/// it is shown.
pub(super) fn written_by_hand(schema: &Schema, catalogue: &Catalogue) -> BTreeSet<String> {
    let is_by_hand = |derivation: &&Derivation| {
        let reads = derivation.kind.reach(schema).map(|reach| reach.reads).unwrap_or_default();
        let reads_counter = reads.iter().any(|part| part.entity == COUNTER);
        derivation.kind.family() == Family::LevelTriggered && !reads_counter
    };
    catalogue.derivations().filter(is_by_hand).map(|derivation| derivation.label().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_kept_by_slot_for_ten_minutes() {
        let mut spent = SpentWrites::default();
        spent.change(2, 5);
        spent.change(1, SLOT_MS + 1);
        // Of an earlier moment.
        spent.change(1, 7);
        let by_hand: Vec<(u64, Units)> = spent.slots.iter().map(|(slot, units)| (*slot, units.by_hand)).collect();
        assert_eq!(by_hand, [(0, 2.0), (1, 2.0)]);
        spent.change(1, SLOT_MS * SLOTS as u64);
        assert_eq!(spent.slots.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [1, SLOTS as u64]);
        assert_eq!(spent.whole, SpentUnits { ripple: 0.0, by_hand: 5.0 });
    }
}

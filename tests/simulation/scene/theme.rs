//! What a run's application does more of than everything else, so that rare things happen often somewhere.

use crate::chance::Chance;

/// What an application is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Everything.
    Mixed,
    /// Users with many followers, who change their names again and again.
    Famous,
    /// Employees who change their managers, and whose items are edited meanwhile.
    Moves,
    /// Users and posts that are removed, and what belongs to them and comes again.
    Removals,
}

impl Theme {
    /// The theme of a run.
    pub(crate) fn drawn(chance: &Chance) -> Self {
        match chance.below(10) {
            0 | 1 => Self::Famous,
            2 => Self::Moves,
            3 | 4 => Self::Removals,
            _ => Self::Mixed,
        }
    }
}

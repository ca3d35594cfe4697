//! What a run's application writes more often than everything else, so that rare things are frequent in some runs.

use crate::chance::Chance;

/// What many writes of an application are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Everything.
    Mixed,
    /// Users with many followers, who change their names again and again.
    Famous,
    /// Employees who change their managers, and whose items are edited meanwhile.
    Moves,
    /// Users and posts that are removed, while items that belong to them are written.
    Removals,
}

impl Theme {
    pub(crate) fn drawn(chance: &Chance) -> Self {
        match chance.below(10) {
            0 | 1 => Self::Famous,
            2 => Self::Moves,
            3 | 4 => Self::Removals,
            _ => Self::Mixed,
        }
    }
}

//! Families: why the effects of a derivation are correct, and so which function runs it.

use std::fmt;

/// Why a kind's effects are correct under repeats and reordering, and so which function runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Effects are commutative differences; the ledger counts each change once.
    Additive,
    /// Effects are refresh requests; the refresh reads the sources when it writes.
    LevelTriggered,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Additive => "additive",
            Self::LevelTriggered => "level-triggered",
        })
    }
}

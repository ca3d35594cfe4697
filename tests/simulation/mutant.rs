//! A service with something left out, which the simulation must notice.

use derive::guard::Guard;
use engine::protocol::ProtocolStep;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Guards of this name are not sent.
    Unguarded(&'static str),
    /// This step is not taken.
    Without(ProtocolStep),
}

impl Mutant {
    /// Every guard and every step.
    pub(crate) fn all() -> Vec<Self> {
        let guards = Guard::ALL.iter().map(|(name, _)| Self::Unguarded(name));
        guards.chain(ProtocolStep::ALL.iter().map(|step| Self::Without(*step))).collect()
    }

    /// What it prevents that is left out.
    pub(crate) fn prevents(self) -> &'static str {
        match self {
            Self::Unguarded(left_out) => {
                Guard::ALL.iter().find(|(name, _)| *name == left_out).map_or("", |(_, prevents)| prevents)
            }
            Self::Without(step) => step.prevents(),
        }
    }

    /// Is this guard sent?
    pub(crate) fn sends(self, guard: &Guard) -> bool {
        !matches!(self, Self::Unguarded(name) if name == guard.name())
    }

    /// The step that is not taken.
    pub(crate) fn step(self) -> Option<ProtocolStep> {
        match self {
            Self::Without(step) => Some(step),
            Self::Unguarded(_) => None,
        }
    }
}

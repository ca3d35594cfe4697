//! A service with something left out, which the simulation must notice.

use derive::guard::{Guard, Purpose};
use engine::protocol::ProtocolStep;

/// Purposes whose overlap random runs seldom or never meet. `cases/scripts.rs` has a script for each.
pub(crate) const SCRIPTED: &[Purpose] = &[
    Purpose::LedgerKind,
    Purpose::NewJob,
    Purpose::MirrorType,
    Purpose::OwnerAbsent,
    Purpose::StillTheirs,
    Purpose::OldWatermark,
    Purpose::Spread,
    Purpose::Exception,
    Purpose::Shown,
    Purpose::Wait,
    Purpose::IndexKeys,
    Purpose::CounterType,
    Purpose::RepairRight,
    Purpose::StillZero,
    Purpose::DroppedCounter,
    Purpose::Listed,
    Purpose::KeyWait,
    Purpose::LossMark,
    Purpose::Registry,
    Purpose::SweepRound,
    Purpose::Clock,
    Purpose::Suspect,
];

/// Steps whose overlap random runs seldom or never meet. `cases/scripts.rs` has a script for each.
pub(crate) const SCRIPTED_STEPS: &[ProtocolStep] = &[
    ProtocolStep::RedriveWait,
    ProtocolStep::OneReader,
    ProtocolStep::ZeroRevision,
    ProtocolStep::ProvenIn,
    ProtocolStep::RepairOnce,
    ProtocolStep::LookupKey,
    ProtocolStep::Vacated,
    ProtocolStep::SettleAgain,
    ProtocolStep::StillFound,
    ProtocolStep::Later,
    ProtocolStep::BackAndForth,
    ProtocolStep::NotAhead,
    ProtocolStep::WholeRange,
    ProtocolStep::ExceptionsKept,
    ProtocolStep::RedriveWaitLate,
    ProtocolStep::LeaveUnsure,
    ProtocolStep::YoungWithoutMark,
    ProtocolStep::YoungerThanOthers,
    ProtocolStep::RedriveMark,
    ProtocolStep::PulseGap,
    ProtocolStep::ParkedWhereItCounts,
    ProtocolStep::SpreadingRequests,
    ProtocolStep::HotWithFlag,
    ProtocolStep::HomeStays,
    ProtocolStep::AsksSatellites,
];

/// A condition of the platform without which watermarks are not exact. `ripple dev` and the templates refuse mappings that
/// lack it; a function does not see the settings of its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A shard has one lane.
    OneLane,
    /// A batch that fails comes again before any later one.
    NeverGivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Guards of this purpose are not sent.
    Unguarded(Purpose),
    /// This step is not taken.
    Without(ProtocolStep),
    /// The platform lacks this.
    Platform(Condition),
}

impl Mutant {
    /// Every purpose of a guard, and every step, that has no script, and every condition of the platform.
    pub(crate) fn all() -> Vec<Self> {
        let guards = Purpose::ALL.iter().filter(|purpose| !SCRIPTED.contains(purpose));
        let guards = guards.map(|purpose| Self::Unguarded(*purpose));
        let steps = ProtocolStep::ALL.iter().filter(|step| !SCRIPTED_STEPS.contains(step));
        let platform = [Condition::OneLane, Condition::NeverGivenUp].map(Self::Platform);
        guards.chain(steps.map(|step| Self::Without(*step))).chain(platform).collect()
    }

    pub(crate) fn prevents(self) -> &'static str {
        match self {
            Self::Unguarded(purpose) => purpose.prevents(),
            Self::Without(step) => step.prevents(),
            Self::Platform(Condition::OneLane) => "a faster lane hides the changes of a slower one",
            Self::Platform(Condition::NeverGivenUp) => {
                "later changes hide what the platform gave up, and delivers again"
            }
        }
    }

    pub(crate) fn sends(self, guard: &Guard) -> bool {
        !matches!(self, Self::Unguarded(purpose) if purpose == guard.purpose)
    }

    pub(crate) fn step(self) -> Option<ProtocolStep> {
        match self {
            Self::Without(step) => Some(step),
            Self::Unguarded(_) | Self::Platform(_) => None,
        }
    }
}

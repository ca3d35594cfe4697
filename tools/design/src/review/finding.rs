//! Findings, and the checks that make them.

use std::{fmt, str::FromStr};

/// A check. Answers and scripts use its name, so the name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A pattern that reads the whole table.
    Scan,
    /// A partition key that is the same for every item of an entity.
    StaticPartition,
    /// An index that nobody reads.
    UnreadIndex,
    /// An index that projects what a derivation writes.
    ProjectedRewrite,
    /// A display on an item of more than one write unit.
    DisplayOnLargeItem,
    /// A number in a sort key that is ordered as text.
    UnpaddedNumber,
    /// What is declared as derived, and no derivation makes.
    NotDerived,
    /// Two forms of keys that one key can match.
    KeysMeet,
    /// A form of derived items that one of the application's can match.
    DerivedKeyTaken,
    /// A listing whose range includes counters.
    CounterInListing,
    /// Derivations that form a circle, or that recur without a bound.
    Cycle,
    /// A derivation whose target nobody reads.
    UnreadTarget,
    /// Two derivations that write one attribute.
    TwoWriters,
    /// A transaction that can exceed 100 actions.
    LargeTransaction,
    /// An answer to no finding.
    StaleAnswer,
}

impl Check {
    /// All checks, in the order of a review.
    pub const ALL: [Self; 15] = [
        Self::Scan,
        Self::StaticPartition,
        Self::UnreadIndex,
        Self::ProjectedRewrite,
        Self::DisplayOnLargeItem,
        Self::UnpaddedNumber,
        Self::NotDerived,
        Self::KeysMeet,
        Self::DerivedKeyTaken,
        Self::CounterInListing,
        Self::Cycle,
        Self::UnreadTarget,
        Self::TwoWriters,
        Self::LargeTransaction,
        Self::StaleAnswer,
    ];

    /// The name in answers and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::StaticPartition => "static-partition",
            Self::UnreadIndex => "unread-index",
            Self::ProjectedRewrite => "projected-rewrite",
            Self::DisplayOnLargeItem => "display-on-large-item",
            Self::UnpaddedNumber => "unpadded-number",
            Self::NotDerived => "not-derived",
            Self::KeysMeet => "keys-meet",
            Self::DerivedKeyTaken => "derived-key-taken",
            Self::CounterInListing => "counter-in-listing",
            Self::Cycle => "cycle",
            Self::UnreadTarget => "unread-target",
            Self::TwoWriters => "two-writers",
            Self::LargeTransaction => "large-transaction",
            Self::StaleAnswer => "stale-answer",
        }
    }

    /// Does a finding mean that the manifest probably says something else than is meant? `ripple check` shows these.
    #[must_use]
    pub fn doubts_manifest(self) -> bool {
        matches!(self, Self::NotDerived | Self::UnpaddedNumber | Self::DerivedKeyTaken)
    }

    /// Does the check need the access patterns?
    #[must_use]
    pub fn asks_patterns(self) -> bool {
        matches!(
            self,
            Self::Scan | Self::UnreadIndex | Self::CounterInListing | Self::UnreadTarget | Self::LargeTransaction
        )
    }
}

/// A name that no check has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no check {text:?}")]
pub struct UnknownCheck {
    /// The given name.
    pub text: String,
}

impl FromStr for Check {
    type Err = UnknownCheck;

    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        let named = Self::ALL.into_iter().find(|check| check.name() == text);
        named.ok_or_else(|| UnknownCheck { text: text.to_owned() })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A question of a reviewer about the design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewFinding {
    /// The check that made it.
    pub check: Check,
    /// The declarations that it is about. An answer repeats this text.
    pub subject: String,
    /// The observation.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do.
    pub advice: &'static str,
}

impl fmt::Display for ReviewFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.check, self.subject, self.what)
    }
}

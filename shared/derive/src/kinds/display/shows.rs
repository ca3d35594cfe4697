//! What a display shows of a tally, and what it makes of zero.

use keys::counter::{SUM, VALUE};
use serde_dynamo::AttributeValue;

use crate::tally::Tally;

/// What a display makes of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zero {
    /// The attribute is removed.
    Absent,
    /// The attribute is 0, where the target had a count before.
    #[default]
    Write,
    /// The attribute is 0, also where nothing was ever counted.
    Always,
}

impl Zero {
    /// It, in words that are stored.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::Write => Some("zero is written"),
            Self::Always => Some("zero is always written"),
        }
    }
}

/// What a display shows of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// How many.
    Count,
    /// What they come to.
    Sum,
    /// What they come to on average.
    Average,
    /// `true` while there are any.
    Exists,
}

impl Shows {
    /// The counter's attributes that say it.
    pub(super) fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Count | Self::Exists => &[VALUE],
            Self::Sum => &[SUM],
            Self::Average => &[VALUE, SUM],
        }
    }

    /// It, in words that are stored.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Count => VALUE,
            Self::Sum => SUM,
            Self::Average => "Average",
            Self::Exists => "Exists",
        }
    }

    /// Does it show a number, which can be zero?
    pub(super) fn has_zero(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// It, as an attribute; `None` for a count or sum of zero, and for the average or the existence of nothing.
    pub(super) fn value(self, tally: &Tally) -> Option<AttributeValue> {
        match self {
            Self::Count => (tally.count != 0).then(|| AttributeValue::N(tally.count.to_string())),
            Self::Sum => (!tally.sum.is_zero()).then(|| tally.sum.to_value()),
            Self::Average => tally.average().map(|average| average.to_value()),
            Self::Exists => (tally.count > 0).then_some(AttributeValue::Bool(true)),
        }
    }
}

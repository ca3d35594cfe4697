//! Answers: why a finding is acceptable for a table.

use crate::review::finding::{Check, ReviewFinding};

/// A written reason that answers a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingAnswer {
    /// The check of the finding.
    pub check: Check,
    /// The subject of the finding.
    pub subject: String,
    /// The reason.
    pub reason: String,
}

impl FindingAnswer {
    /// Answers the findings of a check with this subject.
    #[must_use]
    pub fn new(check: Check, subject: &str, reason: &str) -> Self {
        Self { check, subject: subject.to_owned(), reason: reason.to_owned() }
    }
}

/// The finding about an answer to no finding.
pub(super) fn stale(answer: &FindingAnswer) -> ReviewFinding {
    ReviewFinding {
        check: Check::StaleAnswer,
        subject: format!("{} {}", answer.check, answer.subject),
        what: "it answers a finding that does not exist".to_owned(),
        why: "it would silently answer a later finding with this name",
        advice: "remove the answer",
    }
}

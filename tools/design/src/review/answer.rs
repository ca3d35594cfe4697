//! Answers: why a finding is right for the table at hand.

use crate::review::finding::{Check, ReviewFinding};

/// A written reason that answers a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingAnswer {
    /// The check that found it.
    pub check: Check,
    /// What the finding is about.
    pub subject: String,
    /// Why it is right as it is.
    pub reason: String,
}

impl FindingAnswer {
    /// An answer.
    #[must_use]
    pub fn new(check: Check, subject: &str, reason: &str) -> Self {
        Self { check, subject: subject.to_owned(), reason: reason.to_owned() }
    }
}

/// The finding that an answer answers nothing.
pub(super) fn stale(answer: &FindingAnswer) -> ReviewFinding {
    ReviewFinding {
        check: Check::StaleAnswer,
        subject: format!("{} {}", answer.check, answer.subject),
        what: "there is no such finding, and it is answered".to_owned(),
        why: "the answer would answer, unread, whatever is found under this name later",
        advice: "take the answer away",
    }
}

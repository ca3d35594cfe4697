//! The review: the questions that a reviewer asks about a table's design.
//!
//! Each [`Check`] reads declarations, requests or prices, and gives [findings](ReviewFinding): what it is, why it
//! matters, what to do. A finding may be acceptable for the table; then it is [answered](FindingAnswer) with a written
//! reason. An answer to no finding is a finding itself, so that no answer outlives its reason.
//!
//! If the access patterns are unknown, the checks that need them are skipped, and the review names those.

pub mod answer;
pub mod derivations;
pub mod finding;
#[cfg(test)]
mod fixture;
mod keys;
pub(crate) mod patterns;

use std::collections::BTreeSet;

use crate::{
    Design,
    review::{
        answer::FindingAnswer,
        finding::{Check, ReviewFinding},
    },
};

/// The result of a review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reviewed {
    /// The findings, each with its answer if there is one.
    pub findings: Vec<(ReviewFinding, Option<FindingAnswer>)>,
    /// The skipped checks, because the access patterns are unknown.
    pub unchecked: Vec<Check>,
}

impl Reviewed {
    /// The findings without an answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &ReviewFinding> {
        self.findings.iter().filter(|(_, answer)| answer.is_none()).map(|(finding, _)| finding)
    }
}

/// Makes all checks of a design.
#[must_use]
pub fn review(design: &Design) -> Reviewed {
    let mut found = keys::findings(design);
    found.extend(derivations::findings(design));
    if !design.patterns.is_empty() {
        found.extend(patterns::findings(design));
    }
    found.sort_by(|a, b| (a.check, &a.subject).cmp(&(b.check, &b.subject)));
    found.dedup();
    let answered: BTreeSet<(Check, &str)> =
        found.iter().map(|finding| (finding.check, finding.subject.as_str())).collect();
    let stale: Vec<ReviewFinding> = design
        .answers
        .iter()
        .filter(|answer| {
            !answered.contains(&(answer.check, answer.subject.as_str())) && is_checked(design, answer.check)
        })
        .map(answer::stale)
        .collect();
    found.extend(stale);
    let answer = |finding: &ReviewFinding| {
        let mut answers = design.answers.iter();
        answers.find(|answer| answer.check == finding.check && answer.subject == finding.subject).cloned()
    };
    let findings = found.into_iter().map(|finding| (finding.clone(), answer(&finding))).collect();
    let unchecked = Check::ALL.into_iter().filter(|check| !is_checked(design, *check)).collect();
    Reviewed { findings, unchecked }
}

fn is_checked(design: &Design, check: Check) -> bool {
    !design.patterns.is_empty() || !check.asks_patterns()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{fixture::Reviewing, *};

    const INDEXED: &str = r#"
        [index.all]
        partition-key = "gpk"
        sort-key = "gsk"
        [entity.Note]
        partition-key = "NOTE#{id}"
        sort-key = "NOTE"
        [entity.Note.index.all]
        partition-key = "NOTES"
        sort-key = "{id}"
    "#;

    #[test]
    fn a_finding_is_answered_by_check_and_subject() {
        let answer = FindingAnswer::new(Check::StaticPartition, "Note in all", "there are ten");
        let reviewed = Reviewing::table(INDEXED).answer(answer.clone()).reviewed();
        assert_eq!(reviewed.findings.iter().map(|(_, answer)| answer.clone()).collect::<Vec<_>>(), [Some(answer)]);
        assert_eq!(reviewed.unanswered().count(), 0);
        let other = FindingAnswer::new(Check::KeysMeet, "Note in all", "there are ten");
        assert_eq!(Reviewing::table(INDEXED).answer(other).reviewed().unanswered().count(), 2);
    }

    #[test]
    fn an_answer_that_answers_nothing_is_a_finding() {
        let answer = |check, subject| FindingAnswer::new(check, subject, "once it was so");
        let reviewing = Reviewing::table(INDEXED).answer(answer(Check::StaticPartition, "Note in all"));
        reviewing.clone().check(Check::StaleAnswer, &expect![""]);
        let stale = reviewing.clone().answer(answer(Check::StaticPartition, "Gone in all"));
        stale.check(
            Check::StaleAnswer,
            &expect!["static-partition Gone in all: it answers a finding that does not exist"],
        );
        // Nobody knows the findings of a skipped check.
        reviewing.answer(answer(Check::Scan, "AP-1")).check(Check::StaleAnswer, &expect![""]);
    }

    #[test]
    fn what_is_asked_is_not_checked_where_it_is_not_known() {
        let reviewed = Reviewing::table(INDEXED).reviewed();
        let names: Vec<&str> = reviewed.unchecked.iter().map(|check| check.name()).collect();
        expect!["scan, unread-index, counter-in-listing, unread-target, large-transaction"]
            .assert_eq(&names.join(", "));
        assert_eq!(Reviewing::table(INDEXED).gets("AP-1", "NOTE#{id}", "NOTE").reviewed().unchecked, []);
    }

    #[test]
    fn a_check_is_read_by_its_name() {
        for check in Check::ALL {
            assert_eq!(check.name().parse(), Ok(check));
        }
        assert_eq!("skan".parse::<Check>().unwrap_err().to_string(), "there is no check \"skan\"");
    }
}

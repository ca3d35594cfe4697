//! The review: checks of a table's design, like those of a human reviewer.
//!
//! Each [`Check`] reads declarations, requests or prices, and reports [findings](ReviewFinding): the observation, why
//! it matters, and what to do. A finding that is acceptable for the table can be [answered](FindingAnswer) with a
//! written reason. An answer without a finding is a finding itself, so that no answer outlives its reason.
//!
//! If the access patterns are unknown, the checks that need them are skipped, and the review names those.

pub mod derivations;
mod keys;
pub(crate) mod patterns;

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::Deserialize;

use crate::Design;

/// The result of a review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reviewed {
    /// The findings, each with its answer if there is one.
    pub findings: Vec<(ReviewFinding, Option<FindingAnswer>)>,
    /// The checks that were skipped because the access patterns are unknown.
    pub unchecked: Vec<Check>,
}

impl Reviewed {
    /// The findings without an answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &ReviewFinding> {
        self.findings.iter().filter(|(_, answer)| answer.is_none()).map(|(finding, _)| finding)
    }
}

/// Runs all checks of a design.
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
        .map(stale)
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

// ---- Answers: why a finding is acceptable for a table ----

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

/// An answer in a file. The names are stable.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerInFile {
    check: String,
    subject: String,
    reason: String,
}

/// Why a file of answers cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// The text is not a JSON list of answers.
    #[error("not a list of answers: {0}")]
    List(serde_json::Error),
    /// An answer gives no reason.
    #[error("the answer to {0} {1} has an empty reason: say why the finding is right")]
    Empty(String, String),
    /// An answer names a check that does not exist.
    #[error(transparent)]
    Check(#[from] UnknownCheck),
}

/// Reads a file of answers: a JSON list of objects with `check`, `subject` and `reason`.
///
/// # Errors
///
/// [`AnswersError`] if the text is not such a list, or names an unknown check.
pub fn answers(text: &str) -> Result<Vec<FindingAnswer>, AnswersError> {
    let answers: Vec<AnswerInFile> = serde_json::from_str(text).map_err(AnswersError::List)?;
    let answer = |AnswerInFile { check, subject, reason }| {
        if reason.trim().is_empty() {
            return Err(AnswersError::Empty(check, subject));
        }
        Ok(FindingAnswer { check: Check::from_str(&check)?, subject, reason })
    };
    answers.into_iter().map(answer).collect()
}

/// The finding about an answer without a finding.
fn stale(answer: &FindingAnswer) -> ReviewFinding {
    ReviewFinding {
        check: Check::StaleAnswer,
        subject: format!("{} {}", answer.check, answer.subject),
        what: "it answers a finding that does not exist".to_owned(),
        why: "it would silently answer a later finding with this name",
        advice: "remove the answer",
    }
}

// ---- Findings, and the checks that make them ----

/// A check. Answers and scripts use its name, so the name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A pattern that reads the whole table.
    Scan,
    /// A partition key that is the same for every item of an entity.
    StaticPartition,
    /// An index that no pattern and no derivation reads.
    UnreadIndex,
    /// An index that projects what a derivation writes.
    ProjectedRewrite,
    /// A display on an item of more than one write unit.
    DisplayOnLargeItem,
    /// A number in a sort key that is ordered as text.
    UnpaddedNumber,
    /// A part that is declared as derived, but that no derivation writes.
    NotDerived,
    /// Two key forms that the same key can match.
    KeysMeet,
    /// A key form of derived items that a key of the application can match.
    DerivedKeyTaken,
    /// A listing whose range includes counters.
    CounterInListing,
    /// Derivations that form a cycle, or that recur without a bound.
    Cycle,
    /// A derivation whose target no pattern and no derivation reads.
    UnreadTarget,
    /// Two derivations that write one attribute.
    TwoWriters,
    /// A transaction that can exceed 100 actions.
    LargeTransaction,
    /// An answer without a finding.
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

    /// True if a finding means that the manifest probably declares something unintended. `ripple check` shows these.
    #[must_use]
    pub fn doubts_manifest(self) -> bool {
        matches!(self, Self::NotDerived | Self::UnpaddedNumber | Self::DerivedKeyTaken)
    }

    /// True if the check needs the access patterns.
    #[must_use]
    pub fn asks_patterns(self) -> bool {
        matches!(
            self,
            Self::Scan | Self::UnreadIndex | Self::CounterInListing | Self::UnreadTarget | Self::LargeTransaction
        )
    }
}

/// The name of a check that does not exist.
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

/// An observation about the design that needs a change or an answer.
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

#[cfg(test)]
mod tests {
    use ::keys::{entity::Definition, index_key::IndexKey, item::Item, key::Key};
    use derive::{
        catalogue::Catalogue,
        derivation::Derivation,
        guard::{Guard, Purpose},
        kind::Kind,
        query::{Consistency, Query, SortKeys},
        schema::Schema,
        write::{Action, Table, Transaction, Write},
    };
    use expect_test::{Expect, expect};
    use serde_dynamo::AttributeValue;
    use store::recording::Request;

    use super::*;
    use crate::{PatternRequests, samples::Samples};

    /// A table to review.
    #[derive(Clone)]
    pub(super) struct Reviewing(Design);

    impl Reviewing {
        /// The table of a manifest. The key names are added.
        pub(super) fn table(manifest: &str) -> Self {
            let names = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"type\"\n";
            Self::of(&format!("{names}{manifest}"))
        }

        /// The table of a whole manifest.
        pub(super) fn of(manifest: &str) -> Self {
            let (schema, catalogue) = manifest::load(manifest).unwrap_or_else(|error| panic!("{error}"));
            Self(Design::declared(schema, catalogue))
        }

        /// Adds a sample of an entity, with its key and attributes.
        pub(super) fn sample(mut self, entity: &str, (pk, sk): (&str, &str), of: &[(&str, AttributeValue)]) -> Self {
            let layout = &self.0.schema.layout;
            let mut item: Item = of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            item.extend(layout.key_item(&Key::new(pk, sk)));
            item.extend(layout.type_of(entity));
            self.0.samples = Samples::of(&self.0.schema, vec![item]);
            self
        }

        /// Adds a derived key of an entity in an index, which a manifest cannot declare.
        pub(super) fn placed(mut self, entity: &str, key: &IndexKey) -> Self {
            let definition = |definition: &Definition| {
                let own = (definition.name == entity).then(|| key.clone());
                Definition { indexes: definition.indexes.iter().cloned().chain(own).collect(), ..definition.clone() }
            };
            let definitions: Vec<Definition> = self.0.schema.entities().map(definition).collect();
            self.0.schema = Schema::new(self.0.schema.layout.clone(), definitions);
            self
        }

        /// Replaces all derivations by this one.
        pub(super) fn derives(mut self, name: &str, kind: impl Kind + 'static) -> Self {
            self.0.catalogue = Catalogue::new(&self.0.schema, vec![Derivation::new(name, name, kind)]).unwrap();
            self
        }

        pub(super) fn answer(mut self, answer: FindingAnswer) -> Self {
            self.0.answers.push(answer);
            self
        }

        /// Adds a pattern that gets an item.
        pub(super) fn gets(self, id: &str, pk: &str, sk: &str) -> Self {
            self.asks(id, Request::Read(Table::Main, vec![Key::new(pk, sk)], Consistency::Strong), None)
        }

        /// Adds a pattern that queries.
        pub(super) fn queries(self, id: &str, index: Option<&str>, pk: &str, sk: SortKeys) -> Self {
            self.asks(id, Request::Query(Table::Main, Query::of(index, pk, sk), None), None)
        }

        /// Adds a pattern that deletes these items in a transaction.
        pub(super) fn deletes(self, id: &str, keys: &[(&str, &str)], actions_max: Option<usize>) -> Self {
            let delete = |(pk, sk): &(&str, &str)| Write {
                table: Table::Main,
                key: Key::new(*pk, *sk),
                action: Action::Delete,
                guard: Some(Guard::present(Purpose::Update)),
            };
            let transaction = Transaction::new(keys.iter().map(delete).collect()).unwrap();
            self.asks(id, Request::Transact(transaction), actions_max)
        }

        /// Adds a pattern with this request.
        pub(super) fn asks(mut self, id: &str, request: Request, actions_max: Option<usize>) -> Self {
            self.0.patterns.push(PatternRequests {
                name: id.to_owned(),
                id: id.to_owned(),
                title: "a pattern".to_owned(),
                input: String::new(),
                result: String::new(),
                order: String::new(),
                requests: vec![request],
                filter: None,
                actions_max,
            });
            self
        }

        pub(super) fn reviewed(&self) -> Reviewed {
            review(&self.0)
        }

        /// Compares the findings of one check with a text: `subject: what`, one per line.
        pub(super) fn check(&self, check: Check, wanted: &Expect) {
            let reviewed = self.reviewed();
            let found = reviewed.findings.iter().filter(|(finding, _)| finding.check == check);
            let lines: Vec<String> =
                found.map(|(finding, _)| format!("{}: {}", finding.subject, finding.what)).collect();
            wanted.assert_eq(&lines.join("\n"));
        }
    }

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
        // The findings of a skipped check are unknown.
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

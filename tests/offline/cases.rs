//! Cases of people who keep derived data by a stream, taken from public reports: each folder of `tests/cases` has the
//! manifest that says what they want, what their application writes, and what is right at each check.
//!
//! [`CASES`] says of every folder what becomes of it, so none is passed over. The operations run under both ledgers, once
//! with every record handed over by itself and once with all records since the last check at once, the tables in reverse
//! order. Every batch is delivered twice, and at each check everything once more, which must write nothing.

mod bed;
mod events;
mod members;

use std::{collections::BTreeSet, fs, path::PathBuf};

use engine::ledger::LedgerKind;

use bed::{Bed, Pace};

/// What becomes of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Course {
    /// The language can say it: what is derived is right at every check.
    Right,
    /// It has records and no operations, which `events` or the tests of the command line read.
    Records,
}

use Course::{Records, Right};

const CASES: [(&str, Course); 23] = [
    ("02-review-average", Right),
    ("03-amplify-soft-delete", Right),
    ("05-join-rows", Right),
    ("06-owner-two-forms", Right),
    ("07-room-preview", Right),
    ("11-active-blockers", Right),
    ("12-attendees-of-a-slug", Right),
    ("13-vote-shards", Right),
    ("14-all-in-one-transaction", Right),
    ("15-distance-ranking", Right),
    ("16-three-levels", Right),
    ("17-view-types", Records),
    ("18-creation-times", Records),
    ("19-other-envelopes", Records),
    ("21-emulator-images-and-bytes", Right),
    ("22-complaint-management", Right),
    ("24-recurring-payments", Right),
    ("25-electrodb-keys", Right),
    ("26-onetable-keys", Right),
    ("27-replies-at-every-level", Right),
    ("28-unread-in-a-chat", Right),
    ("29-offers-of-a-product", Right),
    ("30-trending-songs", Right),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// The text of a file of a case.
fn text(case: &str, file: &str) -> String {
    let path = folder().join(case).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the entries of a folder.
fn names(of: PathBuf) -> BTreeSet<String> {
    fs::read_dir(of).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_case_has_a_course_and_the_files_that_it_needs() {
    let listed: BTreeSet<String> = CASES.map(|(case, _)| case.to_owned()).into();
    let mut found = names(folder());
    found.remove("README.md");
    assert_eq!(found, listed);
    for (case, course) in CASES {
        let files = names(folder().join(case));
        let has = |name: &str| files.contains(name);
        let has_operations = has("ops.jsonl") && has("expected.json");
        assert_eq!(has_operations, course == Right, "{case}");
        assert!(has("ripple.toml") || case == "19-other-envelopes", "{case}");
    }
}

#[test]
fn what_the_language_can_say_is_right_at_every_check() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (case, course) in CASES {
        if course != Right {
            continue;
        }
        for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
            for pace in [Pace::OneByOne, Pace::AtChecks] {
                runtime
                    .block_on(Bed::of(case, ledger, pace).run(&text(case, "ops.jsonl"), &text(case, "expected.json")));
            }
        }
    }
}

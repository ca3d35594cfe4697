//! The page that lists the facts names tests: each must be there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/event-source-mapping.md");

/// The names between backticks in a row of a table of tests.
fn named(row: &str) -> Vec<&str> {
    row.split('`').skip(1).step_by(2).filter(|text| is_test_name(text)).collect()
}

/// Tests are named by sentences, of three words and more; nothing else on the page is.
fn is_test_name(text: &str) -> bool {
    let is_name = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_name && text.split('_').count() > 2
}

/// All functions of this crate that are tests.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            let name = pair[1].trim_start_matches("async ").strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            if let Some(name) = name.filter(|_| pair[0] == "#[test]" || pair[0].starts_with("#[tokio::test")) {
                found.insert(name.to_owned());
            }
        }
    }
}

#[test]
fn every_fact_on_the_page_has_its_test() {
    let mut tests = BTreeSet::new();
    tests_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut tests);
    let mut n_rows = 0;
    let facts = PAGE.split_once("\n## Facts\n").unwrap().1.split_once("\n## Not emulated\n").unwrap().0;
    for row in facts.lines().filter(|line| line.starts_with("| ")) {
        if row.starts_with("| fact |") || row.starts_with("| open |") {
            continue;
        }
        let named = named(row);
        assert!(!named.is_empty(), "no test: {row}");
        for name in named {
            assert!(tests.contains(name), "there is no test {name}: {row}");
        }
        n_rows += 1;
    }
    assert!(n_rows > 80, "{n_rows} facts");
}

//! The page of the table's design is up to date and complete.

use std::{env, fs, path::PathBuf};

use design::{
    review::review,
    shipped::{self, PATH},
};

/// The ranges of ids in the table's design: letters, the first and the last number, and the number of digits.
const IDS: [(&str, u32, u32, usize); 4] = [("E", 1, 31, 2), ("AP", 1, 44, 3), ("WP", 1, 19, 2), ("D", 1, 30, 2)];

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH)
}

#[tokio::test]
async fn the_page_is_what_the_values_say() {
    let page = shipped::page().await.unwrap();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(kept(), &page).unwrap();
    }
    let held = fs::read_to_string(kept()).unwrap_or_default();
    let differs = page.lines().zip(held.lines()).position(|(made, held)| made != held);
    let line = differs.map_or_else(|| page.lines().count().min(held.lines().count()) + 1, |line| line + 1);
    assert!(page == held, "{PATH} is stale from line {line} on: run `{}`", shipped::WRITTEN_BY);
}

#[tokio::test]
async fn no_row_of_the_tables_design_is_missing() {
    let page = shipped::page().await.unwrap();
    let names: Vec<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    let mut missing = Vec::new();
    for (letters, first, last, digits) in IDS {
        let ids = (first..=last).map(|number| format!("{letters}-{number:0digits$}"));
        missing.extend(ids.filter(|id| !names.contains(&id.as_str())));
    }
    assert!(missing.is_empty(), "the page has no {}", missing.join(", "));
}

#[tokio::test]
async fn what_the_guide_to_reviews_shows_of_the_page_is_on_it() {
    let page = shipped::page().await.unwrap();
    let guide = fs::read_to_string(kept().with_file_name("review-the-design.md")).unwrap();
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| AP-") || line.starts_with("| WP-")).collect();
    assert!(!rows.is_empty(), "it shows a row");
    for row in rows {
        assert!(page.lines().any(|line| line == row), "the page has no row {row}");
    }
}

#[tokio::test]
async fn every_finding_is_answered() {
    let reviewed = review(&shipped::design().await.unwrap());
    let unanswered: Vec<String> = reviewed.unanswered().map(ToString::to_string).collect();
    assert!(unanswered.is_empty(), "{}", unanswered.join("\n"));
    assert!(reviewed.unchecked.is_empty(), "{:?}", reviewed.unchecked);
}

#[tokio::test]
async fn the_page_has_a_table_of_as_many_cells_in_every_row() {
    let page = shipped::page().await.unwrap();
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = 0;
    for line in page.lines() {
        if !line.starts_with('|') {
            head = 0;
        } else if head == 0 {
            head = cells(line);
        } else {
            assert_eq!(cells(line), head, "{line}");
        }
    }
}

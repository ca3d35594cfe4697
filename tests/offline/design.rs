//! The page of the table's design is up to date and complete.

use std::{env, fs, path::PathBuf};

use design::{Design, document, review::review};
use table_design::{PATH, WRITTEN_BY};

/// The ranges of ids in the table's design: letters, the first and the last number, and the number of digits.
const IDS: [(&str, u32, u32, usize); 4] = [("E", 1, 31, 2), ("AP", 1, 44, 3), ("WP", 1, 19, 2), ("D", 1, 30, 2)];

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH)
}

#[tokio::test]
async fn the_page_is_what_the_values_say() {
    let page = table_design::page().await.unwrap();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(kept(), &page).unwrap();
    }
    let held = fs::read_to_string(kept()).unwrap_or_default();
    let differs = page.lines().zip(held.lines()).position(|(made, held)| made != held);
    let line = differs.map_or_else(|| page.lines().count().min(held.lines().count()) + 1, |line| line + 1);
    assert!(page == held, "{PATH} is stale from line {line} on: run `{WRITTEN_BY}`");
}

#[tokio::test]
async fn no_row_of_the_tables_design_is_missing() {
    let page = table_design::page().await.unwrap();
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
    let page = table_design::page().await.unwrap();
    let guide = include_str!("../../docs/review-the-design.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| AP-") || line.starts_with("| WP-")).collect();
    assert!(!rows.is_empty(), "it shows a row");
    for row in rows {
        assert!(page.lines().any(|line| line == row), "the page has no row {row}");
    }
}

#[tokio::test]
async fn every_finding_is_answered() {
    let reviewed = review(&table_design::design().await.unwrap());
    let unanswered: Vec<String> = reviewed.unanswered().map(ToString::to_string).collect();
    assert!(unanswered.is_empty(), "{}", unanswered.join("\n"));
    assert!(reviewed.unchecked.is_empty(), "{:?}", reviewed.unchecked);
}

#[tokio::test]
async fn the_page_has_a_table_of_as_many_cells_in_every_row() {
    let page = table_design::page().await.unwrap();
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

/// The page of the table that a manifest declares.
fn page_of(manifest: &str) -> String {
    let (schema, catalogue) = manifest::load(manifest).unwrap();
    let design = Design::declared(schema, catalogue);
    document::page(&design, "a test", &review(&design))
}

#[test]
fn the_page_of_an_own_table_says_which_indexes_project_everything() {
    let page = page_of(include_str!("../../examples/models/ripple.toml"));
    for sentence in [
        "Post.byAuthor and Comment.byPost: everything is projected, so",
        "Comment.byAuthor projects what lists show: the keys alone.",
    ] {
        assert!(page.lines().any(|line| line.starts_with(sentence)), "{page}");
    }
}

#[test]
fn every_count_of_an_own_table_has_a_price_whatever_its_condition() {
    let of_guide = include_str!("../../docs/own-table.md").split("```").find_map(|block| block.strip_prefix("toml\n"));
    let shop = include_str!("../../examples/shop/ripple.toml");
    for (manifest, condition) in [(of_guide.unwrap(), "where status = 'paid'"), (shop, "orderStatus <> 'cancelled'")] {
        let page = page_of(manifest);
        let rows: Vec<&str> = page.lines().filter(|row| row.contains("(additive)") && row.starts_with("| ")).collect();
        assert!(rows.iter().any(|row| row.contains(condition)), "{rows:#?}");
        for row in rows {
            assert!(row.ends_with("| 2 + 2 ledger |"), "{row}");
        }
    }
}

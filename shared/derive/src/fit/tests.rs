use super::*;
use crate::fixture::{derivations, schema};

const NAMES: Names =
    Names { table: "TABLE_NAME", ledger_table: "LEDGER_TABLE_NAME", config: "CONFIG", disabled: "DISABLED" };

fn key(pk: &str, sk: &str) -> StoredKey {
    StoredKey([pk, sk].map(|name| (name.to_owned(), "S".to_owned())).to_vec())
}

/// An index with this key, which projects these attributes.
fn index(name: &str, pk: &str, sk: &str, projected: Option<&[&str]>) -> StoredIndex {
    let projection = projected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    StoredIndex { name: name.to_owned(), key: key(pk, sk), projection }
}

/// A table with all that derivations need and nothing more.
fn fitting() -> StoredTable {
    StoredTable {
        name: "shop".to_owned(),
        key: key("PK", "SK"),
        indexes: vec![
            index("GSI1", "GSI1PK", "GSI1SK", Some(&["EntityType"])),
            index("GSI2", "GSI2PK", "GSI2SK", None),
        ],
        has_stream: true,
        view: Some(BOTH_IMAGES.to_owned()),
    }
}

fn with_indexes(indexes: Vec<StoredIndex>) -> StoredTable {
    StoredTable { indexes, ..fitting() }
}

/// The lines of what does not fit, of the derivations that these names leave.
fn lines(table: &StoredTable, is_on: impl Fn(&str) -> bool) -> String {
    let schema = schema();
    let derivations = derivations().into_iter().filter(|derivation| is_on(&derivation.name));
    let catalogue = Catalogue::new(&schema, derivations.collect()).unwrap();
    let misfits = of_table(&schema, &catalogue, table, NAMES);
    misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn all(_: &str) -> bool {
    true
}

#[test]
fn a_table_that_has_what_is_declared_fits() {
    assert_eq!(lines(&fitting(), all), "");
}

#[test]
fn a_key_has_the_declared_names_and_types() {
    let other = StoredTable { key: key("Id", "SK"), ..fitting() };
    expect_test::expect!["the table shop has the key Id (S) and SK (S), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG"]
    .assert_eq(&lines(&other, all));
    let mut number = fitting();
    "N".clone_into(&mut number.key.0[1].1);
    expect_test::expect!["the table shop has the key PK (S) and SK (N), and PK (S) and SK (S) is declared: SK is of type N, and only keys of type S (text) are supported, so name another table with TABLE_NAME"]
    .assert_eq(&lines(&number, all));
    let mut simple = fitting();
    simple.key.0.truncate(1);
    assert!(lines(&simple, all).starts_with("the table shop has the key PK (S), and "));
}

#[test]
fn an_index_is_needed_by_those_who_find_by_it_or_write_its_keys() {
    let none = with_indexes(Vec::new());
    let author = |name: &str| name == "comment-author";
    expect_test::expect!["the table shop has no index GSI1, needed by comment-author: make it with the key GSI1PK (S) and GSI1SK (S), or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&none, author));
    let sellers = |name: &str| ["sale-count", "sale-shown", "best-sellers"].contains(&name);
    assert!(lines(&none, sellers).starts_with("the table shop has no index GSI2, needed by best-sellers: "));
    let path = |name: &str| name == "employee-path";
    assert!(lines(&none, path).contains(", needed by employee-path: "), "{}", lines(&none, path));
    assert_eq!(lines(&none, |name| name == "writer-count"), "", "nobody needs one");
}

#[test]
fn an_index_has_the_declared_key_and_projects_what_is_read_there() {
    let author = |name: &str| name == "comment-author";
    let other = with_indexes(vec![index("GSI1", "GSI1PK", "SK", None)]);
    expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and SK (S), and GSI1PK (S) and GSI1SK (S) is declared: make it anew, declare its key with CONFIG, or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&other, author));
    let mut number = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", None)]);
    "N".clone_into(&mut number.indexes[0].key.0[1].1);
    expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and GSI1SK (N), and GSI1PK (S) and GSI1SK (S) is declared: GSI1SK is of type N, and only keys of type S (text) are supported; write it as text of a fixed width, such as 000042, into an attribute of its own, and make an index on that, or switch comment-author off with DISABLED"].assert_eq(&lines(&number, author));
    let keys_only = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", Some(&[]))]);
    expect_test::expect!["the index GSI1 of shop does not project EntityType, read there by comment-author: make it anew with that, or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&keys_only, author));
}

#[test]
fn a_stream_has_both_images() {
    for one_image in ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"] {
        let line = format!("the stream of shop has the view type {one_image}: it must be NEW_AND_OLD_IMAGES");
        assert_eq!(lines(&StoredTable { view: Some(one_image.to_owned()), ..fitting() }, all), line);
    }
    let none = "the table shop has no stream: enable one with the view type NEW_AND_OLD_IMAGES";
    assert_eq!(lines(&StoredTable { has_stream: false, view: None, ..fitting() }, all), none);
}

#[test]
fn a_ledger_has_the_key_of_the_table() {
    let layout = schema().layout;
    let other = StoredTable { key: key("Id", "SK"), ..fitting() };
    let line = of_ledger(&layout, &other, NAMES).unwrap().to_string();
    assert!(line.contains("name another table with LEDGER_TABLE_NAME"), "{line}");
    assert_eq!(of_ledger(&layout, &fitting(), NAMES), None);
}

use keys::{
    entity::{Definition, KeyTemplate},
    index_key::IndexKey,
    tables::{EntityBy, IndexForm, KeyType, TableForms},
};

use super::*;
use crate::{
    declaration::{FoundBy, Link},
    fixture::{derivations, schema},
    kinds::copy::Copy,
};

const NAMES: Names = Names {
    table: "TABLE_NAME",
    tables: "TABLES",
    ledger_table: "LEDGER_TABLE_NAME",
    config: "CONFIG",
    disabled: "DISABLED",
};

fn key(pk: &str, sk: &str) -> StoredKey {
    StoredKey([pk, sk].map(|name| (name.to_owned(), "S".to_owned())).to_vec())
}

/// An index with this key, which projects these attributes.
fn index(name: &str, pk: &str, sk: &str, projected: Option<&[&str]>) -> StoredIndex {
    let projection = projected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    StoredIndex { name: name.to_owned(), key: key(pk, sk), projection }
}

/// A table with exactly what derivations need.
fn fitting() -> StoredTable {
    StoredTable {
        name: "shop".to_owned(),
        key: key("PK", "SK"),
        index_keys: BTreeSet::new(),
        indexes: vec![
            index("GSI1", "GSI1PK", "GSI1SK", Some(&["EntityType"])),
            index("GSI2", "GSI2PK", "GSI2SK", None),
        ],
        has_stream: true,
        is_strong_global: false,
        view: Some(BOTH_IMAGES.to_owned()),
    }
}

fn with_indexes(indexes: Vec<StoredIndex>) -> StoredTable {
    StoredTable { indexes, ..fitting() }
}

/// The lines of the misfits, for the derivations that the filter keeps.
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
    expect_test::expect!["the table shop has the key PK (S) and SK (N), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG, in [tables.NAME]"]
    .assert_eq(&lines(&number, all));
    let mut simple = fitting();
    simple.key.0.truncate(1);
    assert!(lines(&simple, all).starts_with("the table shop has the key PK (S), and "));
}

#[test]
fn an_index_is_needed_by_those_who_find_by_it_or_write_its_keys() {
    let none = with_indexes(Vec::new());
    let author = |name: &str| name == "comment-author";
    expect_test::expect!["the table shop has no index GSI1, needed by comment-author: make it with the key GSI1PK (S) and GSI1SK (S), projecting KEYS_ONLY, or switch comment-author off with DISABLED"]
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
    expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and SK (S), and GSI1PK (S) and GSI1SK (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&other, author));
    let mut number = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", None)]);
    "N".clone_into(&mut number.indexes[0].key.0[1].1);
    expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and GSI1SK (N), and GSI1PK (S) and GSI1SK (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, in [tables.NAME], or switch comment-author off with DISABLED"].assert_eq(&lines(&number, author));
    let keys_only = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", Some(&[]))]);
    expect_test::expect!["the index GSI1 of shop does not project EntityType, read there by comment-author; DynamoDB never changes an index: delete it and create it again with that, or switch comment-author off with DISABLED"]
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
fn a_global_table_with_strong_consistency_refuses_transactions() {
    let table = StoredTable { is_strong_global: true, ..fitting() };
    let of_ledger = of_ledger(&schema().layout, &table, NAMES).unwrap().to_string();
    for line in [lines(&table, all), of_ledger] {
        assert!(line.starts_with("the table shop is a global table with strong consistency (MRSC)"), "{line}");
    }
}

#[test]
fn a_ledger_has_the_key_of_the_table() {
    let layout = schema().layout;
    let other = StoredTable { key: key("Id", "SK"), ..fitting() };
    let line = of_ledger(&layout, &other, NAMES).unwrap().to_string();
    assert!(line.contains("name another table with LEDGER_TABLE_NAME"), "{line}");
    assert_eq!(of_ledger(&layout, &fitting(), NAMES), None);
}

/// A table with a numeric sort key and an index without a sort key, where the layout declares its own table forms.
fn in_forms() -> (Schema, Catalogue) {
    let attribute = KeyAttribute::plain;
    let index = IndexForm {
        name: "byAuthor".to_owned(),
        pk: vec![attribute("authorId", KeyType::S)],
        sk: Vec::new(),
        projection: None,
        entities: vec!["Post".to_owned()],
    };
    let form = |name: &str, sk: Option<KeyAttribute>, indexes| TableForm {
        name: name.to_owned(),
        called: format!("prod-{name}"),
        pk: attribute("id", KeyType::S),
        sk,
        entity: EntityBy::Table(name.trim_end_matches('s').to_owned()),
        time_to_live: None,
        indexes,
    };
    let forms = TableForms(vec![
        form("Posts", Some(attribute("at", KeyType::N)), vec![index]),
        form("Users", None, Vec::new()),
    ]);
    let definition = |name: &str, key: (&str, &str), attributes: &[&str], indexes| Definition {
        id: name.to_owned(),
        name: name.to_owned(),
        key: KeyTemplate::parse(key.0, key.1).unwrap(),
        indexes,
        derived: false,
        attributes: attributes.iter().map(|&it| it.to_owned()).collect(),
        derived_attributes: vec!["authorName".to_owned()],
    };
    let key = KeyTemplate::parse("{authorId}", "-").unwrap();
    let by_author = IndexKey { index: "Posts.byAuthor".to_owned(), key, only_if: None, derived: false };
    let post = definition("Post", ("Posts#{id}", "{at:N}"), &["authorId"], vec![by_author]);
    let user = definition("User", ("Users#{id}", "-"), &["name"], Vec::new());
    let schema = Schema::new(forms.layout(), [post, user]);
    let copy = Copy {
        source: "User".to_owned(),
        target: "Post".to_owned(),
        link: Link::of(&[("id", "authorId")]),
        condition: crate::condition::Condition::Always,
        attributes: vec![("name".into(), "authorName".into())],
        found: FoundBy {
            via: "Post".to_owned(),
            index: Some("Posts.byAuthor".to_owned()),
            by: Link::of(&[("authorId", "id")]),
        },
    };
    let catalogue = Catalogue::new(&schema, vec![Derivation::new("D", "author", copy)]).unwrap();
    (schema, catalogue)
}

#[test]
fn each_table_of_another_form_has_its_own_key_and_indexes() {
    let (schema, catalogue) = in_forms();
    let lines = |name: &str, key: &[(&str, &str)], indexes: Vec<StoredIndex>| {
        let key = StoredKey(key.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect());
        let table = StoredTable { name: name.to_owned(), key, indexes, ..fitting() };
        let misfits = of_table(&schema, &catalogue, &table, NAMES);
        misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let by_author = |of: &str| StoredIndex {
        name: "byAuthor".to_owned(),
        key: StoredKey(vec![("authorId".to_owned(), of.to_owned())]),
        projection: Some(BTreeSet::new()),
    };
    let posts = [("id", "S"), ("at", "N")];
    assert_eq!(lines("prod-Posts", &posts, vec![by_author("S")]), "");
    assert_eq!(lines("prod-Users", &[("id", "S")], Vec::new()), "");
    assert_eq!(lines("ripple", &[("RipplePK", "S"), ("RippleSK", "S")], Vec::new()), "");
    expect_test::expect!["the table prod-Posts has the key id (S) and at (S), and id (S) and at (N) is declared: name another table with TABLES, or declare this one's key with CONFIG"].assert_eq(&lines("prod-Posts", &[("id", "S"), ("at", "S")], vec![by_author("S")]));
    expect_test::expect!["the index byAuthor of prod-Posts has the key authorId (N), and authorId (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, or switch author off with DISABLED"].assert_eq(&lines("prod-Posts", &posts, vec![by_author("N")]));
    expect_test::expect!["the table prod-Posts has no index byAuthor, needed by author: make it with the key authorId (S), projecting ALL, or switch author off with DISABLED"].assert_eq(&lines("prod-Posts", &posts, Vec::new()));
}

#[test]
fn keys_of_indexes_that_nobody_declared_are_noted() {
    let mut schema = schema();
    let index_keys = ["PK", "SK", "GSI1PK", "GSI1SK", "gsi7pk", "gsi7sk"].map(str::to_owned).into();
    note_undeclared_keys(&mut schema, &StoredTable { index_keys, ..fitting() });
    let noted = schema.layout.undeclared_keys.get("").unwrap();
    assert_eq!(noted.iter().collect::<Vec<_>>(), ["gsi7pk", "gsi7sk"]);
}

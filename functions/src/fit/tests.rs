use aws_sdk_dynamodb::types::{Projection, ScalarAttributeType, StreamSpecification};
use derive::catalogue::Catalogue;

use super::*;
use crate::start::VARIABLES;

fn key(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
    let element = |name: &str, part| KeySchemaElement::builder().attribute_name(name).key_type(part).build().unwrap();
    vec![element(pk, KeyType::Hash), element(sk, KeyType::Range)]
}

fn attribute(name: &str, of: ScalarAttributeType) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
}

/// An index with this key, which projects these attributes.
fn index(name: &str, pk: &str, sk: &str, projected: Option<&[&str]>) -> GlobalSecondaryIndexDescription {
    let projection = match projected {
        None => Projection::builder().projection_type(ProjectionType::All),
        Some([]) => Projection::builder().projection_type(ProjectionType::KeysOnly),
        Some(names) => {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(names))
        }
    };
    let index = GlobalSecondaryIndexDescription::builder().index_name(name).set_key_schema(Some(key(pk, sk)));
    index.projection(projection.build()).build()
}

/// The shipped table, with all that derivations need and nothing more.
fn fitting() -> TableDescription {
    let names = ["PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"];
    let stream = StreamSpecification::builder().stream_enabled(true);
    TableDescription::builder()
        .table_name("shop")
        .set_key_schema(Some(key("PK", "SK")))
        .set_attribute_definitions(Some(names.iter().map(|name| attribute(name, ScalarAttributeType::S)).collect()))
        .global_secondary_indexes(index("GSI1", "GSI1PK", "GSI1SK", Some(&["EntityType"])))
        .global_secondary_indexes(index("GSI2", "GSI2PK", "GSI2SK", None))
        .stream_specification(stream.stream_view_type(StreamViewType::NewAndOldImages).build().unwrap())
        .build()
}

/// The table with something changed.
fn with(change: impl FnOnce(&mut TableDescription)) -> TableDescription {
    let mut table = fitting();
    change(&mut table);
    table
}

fn with_indexes(indexes: Vec<GlobalSecondaryIndexDescription>) -> TableDescription {
    with(|table| table.global_secondary_indexes = Some(indexes))
}

/// The lines of what does not fit, of the derivations that these names leave.
fn lines(table: &TableDescription, is_on: impl Fn(&str) -> bool) -> String {
    let schema = catalogue::schema();
    let derivations = catalogue::derivations().into_iter().filter(|derivation| is_on(&derivation.name));
    let catalogue = Catalogue::new(&schema, derivations.collect()).unwrap();
    let misfits = of_table(&schema, &catalogue, table, VARIABLES);
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
    let other = with(|table| table.key_schema = Some(key("Id", "SK")));
    expect_test::expect!["the table shop has the key Id (?) and SK (S), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG"]
    .assert_eq(&lines(&other, all));
    let mut number = fitting();
    let attributes = number.attribute_definitions.as_mut().unwrap();
    attributes[1] = attribute("SK", ScalarAttributeType::N);
    expect_test::expect!["the table shop has the key PK (S) and SK (N), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG"]
    .assert_eq(&lines(&number, all));
    let mut simple = fitting();
    simple.key_schema = simple.key_schema.map(|key| key.into_iter().take(1).collect());
    assert!(lines(&simple, all).starts_with("the table shop has the key PK (S), and "));
}

#[test]
fn an_index_is_needed_by_those_who_find_by_it_or_write_its_keys() {
    let none = with_indexes(Vec::new());
    let author = |name: &str| name == "comment-author";
    expect_test::expect!["the table shop has no index GSI1, needed by comment-author: make it with the key GSI1PK (S) and GSI1SK (S), or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&none, author));
    let sellers = |name: &str| ["sold", "units-sold", "best-sellers"].contains(&name);
    assert!(lines(&none, sellers).starts_with("the table shop has no index GSI2, needed by best-sellers: "));
    let path = |name: &str| name == "employee-path";
    assert!(lines(&none, path).contains(", needed by employee-path: "), "{}", lines(&none, path));
    assert_eq!(lines(&none, |name| name == "like-count"), "", "nobody needs one");
}

#[test]
fn an_index_has_the_declared_key_and_projects_what_is_read_there() {
    let author = |name: &str| name == "comment-author";
    let other = with_indexes(vec![index("GSI1", "GSI1PK", "SK", None)]);
    expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and SK (S), and GSI1PK (S) and GSI1SK (S) is declared: make it anew, declare its key with CONFIG, or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&other, author));
    let keys_only = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", Some(&[]))]);
    expect_test::expect!["the index GSI1 of shop does not project EntityType, read there by comment-author: make it anew with that, or switch comment-author off with DISABLED"]
    .assert_eq(&lines(&keys_only, author));
}

#[test]
fn a_stream_has_both_images() {
    let view = |view: StreamViewType| {
        let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view).build().unwrap();
        with(|table| table.stream_specification = Some(stream))
    };
    for one_image in [StreamViewType::KeysOnly, StreamViewType::NewImage, StreamViewType::OldImage] {
        let line = format!("the stream of shop has the view type {one_image}: it must be NEW_AND_OLD_IMAGES");
        assert_eq!(lines(&view(one_image), all), line);
    }
    let none = "the table shop has no stream: enable one with the view type NEW_AND_OLD_IMAGES";
    assert_eq!(lines(&with(|table| table.stream_specification = None), all), none);
    let off = StreamSpecification::builder().stream_enabled(false).build().unwrap();
    assert_eq!(lines(&with(|table| table.stream_specification = Some(off)), all), none);
}

#[test]
fn a_ledger_has_the_key_of_the_table_and_no_stream() {
    let layout = catalogue::schema().layout;
    let other = with(|table| table.key_schema = Some(key("Id", "SK")));
    let line = of_ledger(&layout, &other, VARIABLES).unwrap().to_string();
    assert!(line.contains("name another table with LEDGER_TABLE_NAME"), "{line}");
    assert_eq!(of_ledger(&layout, &fitting(), VARIABLES), None);
    assert!(streams(&fitting()));
}

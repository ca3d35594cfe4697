//! Files that declare entities, written after their public forms, and damaged copies of them.

use expect_test::{Expect, expect, expect_file};
use serde_json::{Value, json};

use super::*;

/// Each file, with the entities of its draft.
const FILES: [(&str, &str); 7] = [
    (include_str!("forum.schema.json"), "Reply Topic"),
    (include_str!("fleet.schema.json"), "Vehicle Trip"),
    (include_str!("accounts.schema.json"), "Account EmailClaim"),
    (include_str!("created.data_model.json"), "Book Loan Visits"),
    (include_str!("described.data_model.json"), "Order"),
    (include_str!("onetable.json"), "Account Session User"),
    (SCHEMA, "Blog BlogEditors Comment Editor Post"),
];

pub(super) const FORUM: &str = FILES[0].0;
pub(super) const FLEET: &str = FILES[1].0;
const CREATED: &str = FILES[3].0;
const DESCRIBED: &str = FILES[4].0;
pub(super) const ONETABLE: &str = FILES[5].0;
pub(super) const SCHEMA: &str = include_str!("schema.graphql");

#[track_caller]
fn drafted(text: &str) -> crate::Draft {
    let found = tables_of(text).unwrap();
    let draft = draft(&format!("a {}", found.kind), &found.tables);
    let (schema, _) = manifest::load(&draft.text).unwrap_or_else(|error| panic!("{error}\n{}", draft.text));
    assert!(draft.entities.iter().all(|name| schema.entity(name).is_some()), "{}", draft.text);
    draft
}

#[test]
fn each_file_gives_a_draft_that_is_valid() {
    for (text, entities) in FILES {
        assert_eq!(drafted(text).entities.join(" "), entities);
    }
}

#[test]
fn drafts_have_the_keys_indexes_and_reads_that_the_files_declare() {
    expect_file!["forum.toml"].assert_eq(&drafted(FORUM).text);
    expect_file!["fleet.toml"].assert_eq(&drafted(FLEET).text);
    expect_file!["described.toml"].assert_eq(&drafted(DESCRIBED).text);
    expect_file!["onetable.toml"].assert_eq(&drafted(ONETABLE).text);
    expect_file!["amplify.toml"].assert_eq(&drafted(SCHEMA).text);
}

#[test]
fn a_data_model_has_tables_and_items() {
    check(
        CREATED,
        &expect![[r#"
            DynamoDB data model: Library (PK S, SK S); GSI1 (GSI1PK S, GSI1SK S) Some(["title"]); 6 items
            DynamoDB data model: Visits (branch S, day N); ByCity (city S, branch S, day N) None; expires by expires; 3 items"#]],
    );
    let text = drafted(CREATED).text;
    assert!(text.contains("\n# 2: Query of GSI1: List the loans of a member\n"), "{text}");
}

// ---- Wrong files ----

/// The error for a file with another value at a place; `None` removes what is there.
#[track_caller]
fn wrong(text: &str, place: &str, value: Option<Value>, expected: &Expect) {
    let mut file: Value = serde_json::from_str(text).unwrap();
    assert!(replace(&mut file, place, value), "{place}");
    expected.assert_eq(&tables_of(&file.to_string()).unwrap_err().to_string());
}

fn replace(file: &mut Value, place: &str, value: Option<Value>) -> bool {
    let Some((parent, name)) = place.rsplit_once('/') else { return false };
    match (file.pointer_mut(parent), value) {
        (Some(Value::Object(all)), Some(value)) => all.insert(name.to_owned(), value).is_some(),
        (Some(Value::Object(all)), None) => all.remove(name).is_some(),
        (Some(Value::Array(all)), value) => {
            let place = name.parse().ok().and_then(|at: usize| all.get_mut(at));
            place.map(|place| *place = value.unwrap_or(Value::Null)).is_some()
        }
        _ => false,
    }
}

#[test]
fn an_error_names_the_place_in_the_file() {
    let topic = "/tables/0/entities/Topic";
    let at = |rest: &str| format!("{topic}{rest}");
    wrong(FORUM, "/tables/0/table_config/partition_key", None, &expect!["tables[0].table_config has no partition_key"]);
    wrong(FORUM, &at("/pk_template"), None, &expect!["tables[0].entities.Topic has no pk_template"]);
    wrong(
        FORUM,
        &at("/sk_template"),
        Some(json!(5)),
        &expect!["tables[0].entities.Topic.sk_template is neither a text nor a list of texts"],
    );
    wrong(
        FORUM,
        &at("/fields/4/type"),
        Some(json!("float")),
        &expect![[
            r#"tables[0].entities.Topic.fields[4].type: "float" is none of string, integer, decimal, boolean, array, object and uuid"#
        ]],
    );
    wrong(
        FORUM,
        &at("/gsi_mappings/0/name"),
        Some(json!("ByNobody")),
        &expect![[r#"tables[0].entities.Topic.gsi_mappings[0].name: no gsi_list has "ByNobody""#]],
    );
    wrong(
        FORUM,
        &at("/access_patterns/1/operation"),
        None,
        &expect!["tables[0].entities.Topic.access_patterns[1] has no operation"],
    );
    wrong(
        FLEET,
        "/tables/0/entities/Vehicle/gsi_mappings/0/sk_template",
        Some(json!("{state}")),
        &expect![
            "tables[0].entities.Vehicle.gsi_mappings[0].sk_template has 1 templates, and the key of ByDepot has 2 attributes"
        ],
    );
    wrong(CREATED, "/tables/1/TableName", None, &expect!["tables[1] has no TableName"]);
    wrong(CREATED, "/tables/1/KeySchema", None, &expect!["Visits has no KeySchema with the KeyType HASH"]);
    wrong(CREATED, "/items/Library/2/PutRequest", Some(json!({})), &expect!["items.Library[2] has no PutRequest.Item"]);
    wrong(
        CREATED,
        "/items/Library/1/PutRequest/Item/title",
        Some(json!("x")),
        &expect![[
            r#"items.Library[1]: invalid type: string "x", expected an object with a single key "N", "S", "BOOL", "B", "NULL", "M", "L", "SS", "NS", or "BS""#
        ]],
    );
    wrong(DESCRIBED, "/tables/0/key_schema", None, &expect!["tables[0].key_schema has no partition_key"]);
    wrong(DESCRIBED, "/tables/0/gsis/1/partition_key", None, &expect!["tables[0].gsis[1] has no partition_key"]);
    wrong(ONETABLE, "/indexes/primary", None, &expect!["indexes.primary has no hash"]);
    wrong(ONETABLE, "/models/User", Some(json!([])), &expect!["models.User is not an object"]);
    wrong(ONETABLE, "/models", Some(json!({})), &expect!["models has no entity"]);
    wrong(FORUM, "/tables", Some(json!([])), &expect!["this DynamoDB data model declares no DynamoDB table"]);
}

#[test]
fn an_error_in_a_graphql_schema_names_the_line_or_the_field() {
    let check = |from: &str, to: &str, expected: Expect| {
        assert!(SCHEMA.contains(from), "{from}");
        expected.assert_eq(&tables_of(&SCHEMA.replacen(from, to, 1)).unwrap_err().to_string());
    };
    check("slug: String!", "slug String!", expect!["line 20: expected `:`, found `String`"]);
    check("\ntype Place", "\nAtype Place", expect!["line 44: expected a definition such as `type`, found `Atype`"]);
    check("  longitude: Float\n}", "", expect!["line 48: expected `:`, found `Query`"]);
    check("[\"status\", \"slug\"]", "[\"state\"]", expect!["Post.blogId: Post has no field state for a key"]);
    check("posts: [Post]", "posts: [Place]", expect!["Blog.posts: Place is no type with @model in this file"]);
    check(
        "type Comment @model",
        "type Comment @model @key(fields: [\"id\"])",
        expect![
            "type Comment: @key is of version 1 of the GraphQL transformer: read its tables as they are deployed, with --table"
        ],
    );
    check(
        "@manyToMany(relationName: \"BlogEditors\")",
        "@manyToMany",
        expect!["Blog.editors: @manyToMany has no relationName"],
    );
    let deep = format!("type A @model @auth(rules: {}", "[".repeat(100_000));
    expect!["line 1: expected a value of fewer levels, found `[`"]
        .assert_eq(&tables_of(&deep).unwrap_err().to_string());
    let none = tables_of("type Query { a: Int }").unwrap_err();
    assert_eq!(none, FileError::NoTable("GraphQL schema of Amplify"));
}

// ---- Damaged files ----

/// Reads and drafts a file; a draft with entities is valid.
fn survives(text: &str) {
    let Ok(found) = tables_of(text) else { return };
    let draft = draft("a damaged file", &found.tables);
    if !draft.entities.is_empty() {
        manifest::load(&draft.text).unwrap_or_else(|error| panic!("{error}\n{text}\n{}", draft.text));
    }
}

#[test]
fn no_truncated_file_panics() {
    for (text, _) in FILES {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            tables_of(&text[..end]).ok();
        }
        // Without its last line, a schema may still be valid.
        for (end, _) in text.match_indices('\n') {
            survives(&text[..end]);
        }
    }
}

/// All places in a file.
fn places(of: &Value, path: &str, all: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match of {
        Value::Object(of) => of.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(of) => of.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in parts {
        let path = format!("{path}/{name}");
        places(value, &path, all);
        all.push(path);
    }
}

#[test]
fn no_file_with_another_value_anywhere_panics() {
    let values = [
        json!(null),
        json!(5),
        json!(""),
        json!("{"),
        json!("}${a:"),
        json!("a#b.c[0]\"\n# [x]"),
        json!([]),
        json!({}),
        json!(["{x}"]),
        json!({ "type": "number" }),
        json!("\u{e9}"),
        json!(true),
    ];
    for (text, _) in FILES.into_iter().filter(|(text, _)| text.starts_with('{')) {
        let file: Value = serde_json::from_str(text).unwrap();
        let mut all = Vec::new();
        places(&file, "", &mut all);
        for (at, place) in all.iter().enumerate() {
            // Each place takes some of the values, so that neighbours take others.
            let chosen = values.iter().cycle().skip(at * 5 % values.len()).take(2).cloned().map(Some);
            for value in chosen.chain([None]) {
                let mut file = file.clone();
                replace(&mut file, place, value);
                survives(&file.to_string());
            }
        }
    }
}

#[test]
fn no_graphql_schema_with_another_word_anywhere_panics() {
    let words: Vec<&str> = SCHEMA.split_inclusive([' ', '\n', '(', '[', ':', '"']).collect();
    for at in 0..words.len() {
        for other in ["", "{", "}", "(", ")", "[", "\"", "\"\"\"", "@", "type ", "#", "\u{e9} ", "Post "] {
            let mut words = words.clone();
            words[at] = other;
            survives(&words.concat());
        }
    }
}

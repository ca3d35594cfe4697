//! Files of each shape, damaged copies of them, files of none, and manifests that are exported, read and drafted again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use derive::{
    access::{Access, AccessReads},
    schema::Schema,
};
use expect_test::{Expect, expect, expect_file};
use keys::{
    entity::{Definition, KeyTemplate},
    tables::{IndexForm, KeyAttribute, TYPE, TableForm},
    template::{
        Piece,
        form::{Casing, Form},
    },
};
use manifest::load;
use serde_json::{Value, json};

use super::{
    export::{Export, ExportForm, Loss, export},
    *,
};
use crate::{draft, names::kebab};

/// A line for each table.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let lines = match tables_of(text) {
        Ok(found) => found.tables.iter().map(|table| line(found.kind, table)).collect::<Vec<_>>().join("\n"),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&lines);
}

fn line(kind: &str, SampledTable { shape, sample, .. }: &SampledTable) -> String {
    let key = |pk: &[keys::tables::KeyAttribute], sk: &[keys::tables::KeyAttribute]| {
        pk.iter().chain(sk).map(|it| format!("{} {:?}", it.name, it.of)).collect::<Vec<_>>().join(", ")
    };
    let sk: Vec<_> = shape.sk.clone().into_iter().collect();
    let indexes = shape.indexes.iter().map(|it| format!("; {} ({}) {:?}", it.name, key(&it.pk, &it.sk), it.projection));
    let expiry = shape.time_to_live.as_ref().map(|name| format!("; expires by {name}")).unwrap_or_default();
    let key = key(std::slice::from_ref(&shape.pk), &sk);
    let (n_items, indexes) = (sample.items.len(), indexes.collect::<String>());
    format!("{kind}: {} ({key}){indexes}{expiry}; {n_items} items", shape.name)
}

const WORKBENCH: &str = include_str!("tests/workbench.json");

#[test]
fn a_workbench_model_has_tables_and_items() {
    check(WORKBENCH, &expect!["NoSQL Workbench model: Staff (PK S, SK S); GSI1 (SK S, PK S) None; 4 items"]);
    let found = tables_of(WORKBENCH).unwrap();
    let draft = draft("a model", &found.tables);
    manifest::load(&draft.text).unwrap();
    assert_eq!(draft.entities, ["Employee", "Team"]);
}

#[test]
fn templates_in_json_and_yaml_with_short_tags_have_tables() {
    check(
        r#"{"Resources": {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": {
            "TableName": {"Fn::Sub": "${Stage}-orders"},
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "at", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
            "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": true}}}}}"#,
        &expect!["CloudFormation template: Orders (id S, at N); expires by expires; 0 items"],
    );
    let resources = "
  Bucket:
    Type: AWS::S3::Bucket
  Orders:
    Type: AWS::DynamoDB::GlobalTable
    Properties:
      TableName: !Sub '${AWS::StackName}-orders'
      AttributeDefinitions:
        - { AttributeName: PK, AttributeType: S }
        - { AttributeName: SK, AttributeType: S }
      KeySchema:
        - { AttributeName: PK, KeyType: HASH }
        - { AttributeName: SK, KeyType: RANGE }
      GlobalSecondaryIndexes:
        - IndexName: GSI1
          KeySchema:
            - { AttributeName: SK, KeyType: HASH }
            - { AttributeName: PK, KeyType: RANGE }
          Projection: { ProjectionType: INCLUDE, NonKeyAttributes: [name] }
  Simple:
    Type: AWS::Serverless::SimpleTable
";
    let nested = resources.replace("\n  ", "\n    ");
    check(
        &format!("Transform: AWS::Serverless-2016-10-31\nResources:{resources}"),
        &expect![[r#"
        CloudFormation template: Orders (PK S, SK S); GSI1 (SK S, PK S) Some(["name"]); 0 items
        CloudFormation template: Simple (id S); 0 items"#]],
    );
    check(
        &format!("service: shop\nprovider: {{ name: aws }}\nresources:\n  Resources:{nested}"),
        &expect![[r#"
        serverless.yml: Orders (PK S, SK S); GSI1 (SK S, PK S) Some(["name"]); 0 items
        serverless.yml: Simple (id S); 0 items"#]],
    );
}

#[test]
fn terraform_shows_tables_of_all_modules() {
    let table = |address: &str| {
        format!(
            r#"{{"address": "{address}", "type": "aws_dynamodb_table", "values": {{"name": "orders", "hash_key": "id",
            "range_key": null, "attribute": [{{"name": "id", "type": "N"}}], "ttl": [{{"enabled": true, "attribute_name": "gone"}}],
            "global_secondary_index": [{{"name": "byAt", "hash_key": "id", "range_key": "at", "projection_type": "KEYS_ONLY"}}]}}}}"#
        )
    };
    let text = format!(
        r#"{{"format_version": "1.0", "values": {{"root_module": {{"resources": [{}], "child_modules": [
            {{"resources": [{}, {{"type": "aws_s3_bucket"}}]}}]}}}}}}"#,
        table("aws_dynamodb_table.a"),
        table("module.b.aws_dynamodb_table.b")
    );
    check(&text, &expect!["terraform JSON: orders (id N); byAt (id N, at S) Some([]); expires by gone; 0 items"]);
}

#[test]
fn a_file_of_another_shape_names_the_known_ones() {
    check(
        "{\"name\": \"package\"}",
        &expect![
            "no known shape: give a NoSQL Workbench model (with DataModel), a CloudFormation, SAM or cdk.out template (with Resources), a serverless.yml (with resources), the output of `terraform show -json` (with values or planned_values), a schema.json or dynamodb_data_model.json (with tables), a OneTable schema (with models and indexes), or a schema.graphql (with @model)"
        ],
    );
    check(
        "just text",
        &expect![
            "no known shape: give a NoSQL Workbench model (with DataModel), a CloudFormation, SAM or cdk.out template (with Resources), a serverless.yml (with resources), the output of `terraform show -json` (with values or planned_values), a schema.json or dynamodb_data_model.json (with tables), a OneTable schema (with models and indexes), or a schema.graphql (with @model)"
        ],
    );
    check("{\"name\": ", &expect!["not JSON and not YAML: EOF while parsing a value at line 1 column 9"]);
    check(
        "a: [",
        &expect![
            "not JSON and not YAML: while parsing a node, did not find expected node content at byte 4 line 2 column 1"
        ],
    );
    check(
        "",
        &expect![
            "no known shape: give a NoSQL Workbench model (with DataModel), a CloudFormation, SAM or cdk.out template (with Resources), a serverless.yml (with resources), the output of `terraform show -json` (with values or planned_values), a schema.json or dynamodb_data_model.json (with tables), a OneTable schema (with models and indexes), or a schema.graphql (with @model)"
        ],
    );
    check(
        "Resources:\n  Bucket:\n    Type: AWS::S3::Bucket\n",
        &expect!["this CloudFormation template declares no DynamoDB table"],
    );
    check("service: a\nprovider: b\n", &expect!["this serverless.yml declares no DynamoDB table"]);
    check("{\"DataModel\": [{\"TableName\": \"a\"}]}", &expect!["the table a has no KeyAttributes.PartitionKey"]);
    check(
        "{\"DataModel\": [{\"TableName\": \"a\", \"KeyAttributes\": {\"PartitionKey\": {\"AttributeName\": \"id\", \
         \"AttributeType\": \"S\"}}, \"TableData\": [{\"id\": 5}]}]}",
        &expect![[
            r#"the table a, TableData[0]: invalid type: integer `5`, expected an object with a single key "N", "S", "BOOL", "B", "NULL", "M", "L", "SS", "NS", or "BS""#
        ]],
    );
}

#[test]
fn a_table_without_items_has_a_draft_that_lacks_only_an_entity() {
    let text = "Resources: { App: { Type: 'AWS::DynamoDB::Table', Properties: { KeySchema: [{ AttributeName: PK, KeyType: \
                HASH }, { AttributeName: SK, KeyType: RANGE }] } } }";
    let draft = draft("a template", &tables_of(text).unwrap().tables);
    let error = manifest::load(&draft.text).unwrap_err().to_string();
    assert_eq!(error, "1:1: there is no entity: declare one with [entity.NAME]");
    assert!(draft.text.contains("the forms of PK and SK are yours"), "{}", draft.text);
}

// ---- files that declare entities, written after their public forms, and damaged copies of them ----

/// Each file, with the entities of its draft.
const FILES: [(&str, &str); 7] = [
    (include_str!("tests/forum.schema.json"), "Reply Topic"),
    (include_str!("tests/fleet.schema.json"), "Vehicle Trip"),
    (include_str!("tests/accounts.schema.json"), "Account EmailClaim"),
    (include_str!("tests/created.data_model.json"), "Book Loan Visits"),
    (include_str!("tests/described.data_model.json"), "Order"),
    (include_str!("tests/onetable.json"), "Account Session User"),
    (SCHEMA, "Blog BlogEditors Comment Editor Post"),
];

const FORUM: &str = FILES[0].0;
const FLEET: &str = FILES[1].0;
const CREATED: &str = FILES[3].0;
const DESCRIBED: &str = FILES[4].0;
const ONETABLE: &str = FILES[5].0;
const SCHEMA: &str = include_str!("tests/schema.graphql");

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
    expect_file!["tests/forum.toml"].assert_eq(&drafted(FORUM).text);
    expect_file!["tests/fleet.toml"].assert_eq(&drafted(FLEET).text);
    expect_file!["tests/described.toml"].assert_eq(&drafted(DESCRIBED).text);
    expect_file!["tests/onetable.toml"].assert_eq(&drafted(ONETABLE).text);
    expect_file!["tests/amplify.toml"].assert_eq(&drafted(SCHEMA).text);
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

/// The errors for files with another value at a place, a line each; `None` removes what is there.
#[track_caller]
fn wrong(cases: &[(&str, &str, Option<Value>)], expected: &Expect) {
    let error = |(text, place, value): &(&str, &str, Option<Value>)| {
        let mut file: Value = serde_json::from_str(text).unwrap();
        assert!(replace(&mut file, place, value.clone()), "{place}");
        format!("{}\n", tables_of(&file.to_string()).unwrap_err())
    };
    expected.assert_eq(&cases.iter().map(error).collect::<String>());
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
    wrong(
        &[
            (FORUM, "/tables/0/table_config/partition_key", None),
            (FORUM, &at("/pk_template"), None),
            (FORUM, &at("/sk_template"), Some(json!(5))),
            (FORUM, &at("/fields/4/type"), Some(json!("float"))),
            (FORUM, &at("/gsi_mappings/0/name"), Some(json!("ByNobody"))),
            (FORUM, &at("/access_patterns/1/operation"), None),
            (FLEET, "/tables/0/entities/Vehicle/gsi_mappings/0/sk_template", Some(json!("{state}"))),
            (CREATED, "/tables/1/TableName", None),
            (CREATED, "/tables/1/KeySchema", None),
            (CREATED, "/items/Library/2/PutRequest", Some(json!({}))),
            (CREATED, "/items/Library/1/PutRequest/Item/title", Some(json!("x"))),
            (DESCRIBED, "/tables/0/key_schema", None),
            (DESCRIBED, "/tables/0/gsis/1/partition_key", None),
            (ONETABLE, "/indexes/primary", None),
            (ONETABLE, "/models/User", Some(json!([]))),
            (ONETABLE, "/models", Some(json!({}))),
            (FORUM, "/tables", Some(json!([]))),
        ],
        &expect![[r#"
            tables[0].table_config has no partition_key
            tables[0].entities.Topic has no pk_template
            tables[0].entities.Topic.sk_template is neither a text nor a list of texts
            tables[0].entities.Topic.fields[4].type: "float" is none of string, integer, decimal, boolean, array, object and uuid
            tables[0].entities.Topic.gsi_mappings[0].name: no gsi_list has "ByNobody"
            tables[0].entities.Topic.access_patterns[1] has no operation
            tables[0].entities.Vehicle.gsi_mappings[0].sk_template has 1 templates, and the key of ByDepot has 2 attributes
            tables[1] has no TableName
            Visits has no KeySchema with the KeyType HASH
            items.Library[2] has no PutRequest.Item
            items.Library[1]: invalid type: string "x", expected an object with a single key "N", "S", "BOOL", "B", "NULL", "M", "L", "SS", "NS", or "BS"
            tables[0].key_schema has no partition_key
            tables[0].gsis[1] has no partition_key
            indexes.primary has no hash
            models.User is not an object
            models has no entity
            this DynamoDB data model declares no DynamoDB table
        "#]],
    );
}

#[test]
fn an_error_in_a_graphql_schema_names_the_line_or_the_field() {
    let error = |&(from, to): &(&str, &str)| {
        assert!(SCHEMA.contains(from), "{from}");
        format!("{}\n", tables_of(&SCHEMA.replacen(from, to, 1)).unwrap_err())
    };
    let check = |cases: &[(&str, &str)], expected: &Expect| {
        expected.assert_eq(&cases.iter().map(error).collect::<String>());
    };
    check(
        &[
            ("slug: String!", "slug String!"),
            ("\ntype Place", "\nAtype Place"),
            ("  longitude: Float\n}", ""),
            ("[\"status\", \"slug\"]", "[\"state\"]"),
            ("posts: [Post]", "posts: [Place]"),
            ("type Comment @model", "type Comment @model @key(fields: [\"id\"])"),
            ("@manyToMany(relationName: \"BlogEditors\")", "@manyToMany"),
        ],
        &expect![[r#"
            line 20: expected `:`, found `String`
            line 44: expected a definition such as `type`, found `Atype`
            line 48: expected `:`, found `Query`
            Post.blogId: Post has no field state for a key
            Blog.posts: Place is no type with @model in this file
            type Comment: @key is of version 1 of the GraphQL transformer: read its tables as they are deployed, with --table
            Blog.editors: @manyToMany has no relationName
        "#]],
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

// ---- manifests that are exported, read and drafted again: they are equal in everything but the losses ----

const FORMS: [ExportForm; 2] = [ExportForm::Workbench, ExportForm::SchemaJson];

/// The name of the table of `[table]`.
const TABLE: &str = "app";

/// An aspect and its subject.
type Fact = (&'static str, String);

/// What a manifest says.
type Facts = BTreeMap<Fact, String>;

/// The text of each manifest of the repository, by its path.
fn manifests() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "tests/cases"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path().join("ripple.toml"));
    let found: BTreeSet<PathBuf> = paths.filter(|path| path.exists()).collect();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Exports a manifest, and drafts a manifest from the file.
fn there_and_back(text: &str, form: ExportForm) -> (Export, String) {
    let (schema, catalogue) = load(text).unwrap();
    let export = export(&schema, &catalogue, form, TABLE);
    let drafted = match tables_of(&export.file.to_string()) {
        Ok(found) => draft("an export", &found.tables).text,
        Err(error) => {
            assert_eq!(export.file["tables"], json!([]), "{error}");
            String::new()
        }
    };
    (export, drafted)
}

// ---- What a manifest says ----

fn facts(schema: &Schema, only: Option<&str>) -> Facts {
    let mut facts = Facts::new();
    let forms = schema.layout.forms.as_ref().map_or_else(|| vec![schema.layout.own_table()], |forms| forms.0.clone());
    // A draft of one table has not always its name.
    let name_of = |form: &TableForm| only.filter(|_| forms.len() == 1).unwrap_or(&form.name).to_owned();
    for form in &forms {
        let name = name_of(form);
        let key = |key: &KeyAttribute| format!("{} {:?}", key.name, key.of);
        let keys = |keys: &[KeyAttribute]| keys.iter().map(key).collect::<Vec<_>>().join(", ");
        facts.insert(("table", name.clone()), format!("{} / {:?}", key(&form.pk), form.sk.as_ref().map(key)));
        let type_attribute = form.type_attribute().filter(|name| *name != TYPE);
        facts.extend(type_attribute.map(|it| (("type", name.clone()), it.to_owned())));
        facts.extend(form.time_to_live.clone().map(|it| (("time to live", name.clone()), it)));
        for index in &form.indexes {
            let what = format!("{} / {}; {:?}", keys(&index.pk), keys(&index.sk), index.projection);
            facts.insert(("index", format!("{} of {name}", index.name)), what);
        }
    }
    for entity in schema.entities().filter(|entity| !entity.is_own()) {
        let form = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(entity));
        let form = form.or(forms.first()).unwrap();
        of_entity(&mut facts, entity, form, &name_of(form));
    }
    let counter = schema.entities().filter(|entity| entity.is_own() && entity.id != entity.name);
    facts.extend(counter.map(|entity| (("id", entity.name.clone()), entity.id.clone())));
    for access in &schema.accesses {
        of_read(&mut facts, access);
    }
    facts
}

fn of_entity(facts: &mut Facts, entity: &Definition, form: &TableForm, table: &str) {
    let name = &entity.name;
    let text = |key: &KeyTemplate| {
        let pk = key.pk.to_string();
        let pk = pk.strip_prefix(&format!("{}#", form.name)).unwrap_or(&pk).to_owned();
        format!("{pk} / {}", key.sk).replace("!}", "}")
    };
    let is_bare = |piece: &Piece| {
        let Piece::Field { form, .. } = piece else { return false };
        matches!(form, Form::Plain | Form::Cased(Casing { is_escaped: false, .. }))
    };
    if entity.key.pk.pieces().iter().chain(entity.key.sk.pieces()).any(is_bare) {
        facts.insert(("escape", table.to_owned()), "none".to_owned());
    }
    facts.insert(("entity", name.clone()), table.to_owned());
    facts.insert(("key", name.clone()), text(&entity.key));
    facts.extend((entity.id != *name).then(|| (("id", name.clone()), entity.id.clone())));
    facts.extend(entity.derived.then(|| (("derived", name.clone()), String::new())));
    let of_form = form.indexes.iter().flat_map(IndexForm::parts).filter(|it| !it.is_plain).map(|it| &it.name);
    let of_form: BTreeSet<&String> = of_form.collect();
    let is_own = |name: &&String| !of_form.contains(name) && !name.contains('/');
    let attributes: BTreeSet<&String> =
        entity.attributes.iter().chain(&entity.derived_attributes).filter(is_own).collect();
    facts.insert(("attributes", name.clone()), format!("{attributes:?}"));
    for attribute in entity.derived_attributes.iter().filter(is_own) {
        facts.insert(("derived", format!("{name}.{attribute}")), String::new());
    }
    for index in &entity.indexes {
        let inside = index.index.strip_prefix(&format!("{}.", form.name)).unwrap_or(&index.index);
        let subject = format!("{name} in {inside}");
        facts.insert(("in", subject.clone()), text(&index.key));
        facts.extend(index.only_if.as_ref().map(|it| (("only", subject.clone()), format!("{it:?}"))));
        facts.extend(index.derived.then_some((("derived", subject), String::new())));
    }
}

fn of_read(facts: &mut Facts, access: &Access) {
    let name = kebab(&[&access.name]);
    let mut add = |aspect, value: String| facts.insert((aspect, name.clone()), value);
    add("name", access.name.clone());
    add("about", access.about.clone());
    add("consistent", format!("{:?}", access.consistency));
    // Without an id, a read has its name as one.
    if access.id != access.name {
        add("number", access.id.clone());
    }
    let AccessReads::Query(query) = &access.reads else {
        add("read", format!("{:?}", access.reads));
        return;
    };
    let index = query.index.as_ref().map(|index| index.rsplit('.').next().unwrap());
    add("read", format!("{:?} {index:?} {:?} {:?}", query.entities.first(), query.fields, query.next));
    add("entities", query.entities.join(", "));
    add("order", format!("{:?}", query.order));
    add("limit", query.limit.to_string());
    add("filter", format!("{:?}", query.filter.as_ref().map(|filter| &filter.condition)));
}

// ---- What a loss is about ----

/// True for a fact that a loss of this kind with this name explains.
fn explains(what: &str, name: &str, (aspect, subject): &Fact, facts: &Facts) -> bool {
    let of = name.rsplit_once("` of ").map_or(name, |(_, of)| of);
    let is_of_entity = |entity: &str| {
        let reads = || facts.get(&("entities", subject.clone())).or_else(|| facts.get(&("read", subject.clone())));
        let is_read = || reads().is_some_and(|read| read.split(&[',', '"', ' ']).any(|it| it == entity));
        let beside = subject.strip_prefix(entity).unwrap_or("x");
        (beside.is_empty() && !OF_READS.contains(aspect)) || beside.starts_with([' ', '.']) || is_read()
    };
    let is_read = |aspects: &[&str]| subject == &kebab(&[name]) && aspects.contains(aspect);
    match what {
        "attribute that names the entity of an item" => *aspect == "type" && subject == of,
        "other way to distinguish items" => is_of_entity(name.split(" and ").next().unwrap()),
        "time to live" => *aspect == "time to live" && subject == of,
        "table with unescaped keys" => *aspect == "escape" && subject == of,
        "id of an entity" => *aspect == "id" && subject == of,
        "mark of what is derived" => *aspect == "derived" && subject == of,
        "condition for being in an index" => *aspect == "only" && subject == of,
        "form of a key in an index" | "way to keep an entity out of an index of the table's own key" => {
            *aspect == "in" && subject == of
        }
        "index with several attributes in a part of its key" => {
            let index = of.split(" of ").next().unwrap();
            *aspect == "index" && subject == of || *aspect == "in" && subject.ends_with(&format!(" in {index}"))
        }
        "key of this form" if of.contains(" in ") => ["in", "only", "derived"].contains(aspect) && subject == of,
        "key of this form" => is_of_entity(of),
        "mark of a path, or of a value with any text" => ["key", "in"].contains(aspect) && is_of_entity(of),
        "projected attribute that no entity in the index has" => {
            *aspect == "index" && name.split_once(" in ").is_some_and(|(_, index)| subject == index)
        }
        "table without entities" => subject == name || subject.ends_with(&format!(" of {name}")),
        "key of type B" | "type of a key that no entity has" => ["table", "index", "key"].contains(aspect),
        "read"
        | "read of counters"
        | "read below a path"
        | "range behind several fields of a key"
        | "read by a key that is left out"
        | "filter of this form" => is_read(&OF_READS),
        "choice of entities in a partition" => is_read(&["entities", "read"]),
        "descending order" => is_read(&["order"]),
        "limit of a page" => is_read(&["limit"]),
        "id of a read other than a number of its own" => *aspect == "number" && subject == &kebab(&[of]),
        "name of a read with capital letters or `_`" => is_read(&["name"]),
        "derivation" => false,
        _ => panic!("{what}: {name}"),
    }
}

const OF_READS: [&str; 9] = ["name", "about", "consistent", "number", "read", "entities", "order", "limit", "filter"];

/// Compares a manifest with the draft from its export. Every difference is a loss, and every loss is a difference.
#[track_caller]
fn compare(text: &str, form: ExportForm) -> Vec<Loss> {
    let (Export { losses, .. }, drafted) = there_and_back(text, form);
    let (schema, _) = load(text).unwrap();
    let again = load(&drafted).map(|(schema, _)| schema);
    let only = schema.layout.forms.as_ref().map_or(TABLE, |forms| forms.0[0].name.as_str());
    let before = facts(&schema, Some(only));
    let after = match again {
        Ok(again) => facts(&again, Some(only)),
        Err(_) if drafted.is_empty() => Facts::new(),
        Err(error) => panic!("{error}\n{drafted}"),
    };
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    // A read without an id gets a number.
    let is_new_number = |key: &Fact| key.0 == "number" && !before.contains_key(key);
    let differs = |key: &&Fact| before.get(*key) != after.get(*key) && !is_new_number(key);
    let differ: Vec<&Fact> = keys.into_iter().filter(differs).collect();
    let parts = || losses.iter().flat_map(|loss| loss.names.iter().map(|name| (loss.what, name.as_str())));
    let mut wrong = Vec::new();
    for key in &differ {
        if !parts().any(|(what, name)| explains(what, name, key, &before)) {
            wrong.push(format!("{key:?} is no loss: {:?}, then {:?}", before.get(*key), after.get(*key)));
        }
    }
    for (what, name) in parts().filter(|(what, _)| *what != "derivation") {
        if !differ.iter().any(|key| explains(what, name, key, &before)) {
            wrong.push(format!("{what} {name:?} is a loss, and nothing differs"));
        }
    }
    assert!(wrong.is_empty(), "{form:?}\n{}\n{drafted}", wrong.join("\n"));
    losses
}

/// Compares a manifest in both forms, and lists the losses.
#[track_caller]
fn losses(name: &str, text: &str) -> String {
    let lines = |form| {
        let losses = compare(text, form);
        [format!("# {name}")].into_iter().chain(losses.iter().map(Loss::to_string)).collect::<Vec<_>>()
    };
    FORMS.into_iter().flat_map(lines).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_draft_from_an_export_equals_the_manifest_but_for_the_losses() {
    let all: String = manifests().iter().map(|(path, text)| losses(path, text)).collect();
    expect_file!["tests/export.txt"].assert_eq(&all);
}

#[test]
fn files_of_other_tools_are_exported_as_they_were() {
    let files =
        [("Workbench", WORKBENCH), ("Forum", FORUM), ("Fleet", FLEET), ("OneTable", ONETABLE), ("Amplify", SCHEMA)];
    let drafted = |text: &str| draft("a file", &tables_of(text).unwrap().tables).text;
    let all: String = files.iter().map(|(name, text)| losses(name, &drafted(text))).collect();
    expect_file!["tests/export_of_files.txt"].assert_eq(&all);
    // Drafting an exported file and exporting the draft again gives the same file.
    for (text, form) in files.iter().flat_map(|(_, text)| FORMS.map(|form| (text, form))) {
        let (_, first) = there_and_back(&drafted(text), form);
        let (second, again) = there_and_back(&first, form);
        assert_eq!(second.file, there_and_back(&again, form).0.file);
    }
}

/// Everything that is in no manifest of the repository.
const RARE: &str = include_str!("tests/rare.toml");

#[test]
fn rare_parts_are_written_or_lost() {
    expect![[r#"
        # rare
        left out, as NoSQL Workbench has no attribute that names the entity of an item: `kind` of Rooms
        left out, as NoSQL Workbench has no way to keep an entity out of an index of the table's own key: Key in byOwner
        left out, as NoSQL Workbench has no read: roomsByState, tagged-rooms, open-rooms, rooms-by-form, rooms-of-house, points, guest, rooms
        left out, as NoSQL Workbench has no index with several attributes in a part of its key: byState of Rooms
        left out, as NoSQL Workbench has no other way to distinguish items: Room and Hall
        # rare
        left out, as schema.json has no attribute that names the entity of an item: `kind` of Rooms
        left out, as schema.json has no way to keep an entity out of an index of the table's own key: Key in byOwner
        left out, as schema.json has no id of a read other than a number of its own: `7` of tagged-rooms
        left out, as schema.json has no key of this form: `MAIL#{lower(mail)} / GUEST` of Guest
        left out, as schema.json has no other way to distinguish items: Room and Hall
        left out, as schema.json has no choice of entities in a partition: rooms-of-house
        left out, as schema.json has no name of a read with capital letters or `_`: roomsByState
        left out, as schema.json has no filter of this form: open-rooms, rooms-by-form
        left out, as schema.json has no type of a key that no entity has: `price` of Rooms
        left out, as schema.json has no key of type B: `hash` of Blobs
        left out, as schema.json has no limit of a page: points
        left out, as schema.json has no read by a key that is left out: guest
    "#]].assert_eq(&losses("rare", RARE));
}

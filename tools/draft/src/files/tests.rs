//! One file of each shape, and files of none.

use expect_test::{Expect, expect};

use super::*;
use crate::draft;

mod declared;
mod export;

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

//! The tables.

use std::collections::BTreeSet;

use engine::ledger::EXPIRES_AT;
use serde_json::{Value, json};

use crate::infra::template::{BOTH, READERS, at, read};

fn key(pk: &Value, sk: &Value) -> Value {
    json!([{ "AttributeName": pk, "KeyType": "HASH" }, { "AttributeName": sk, "KeyType": "RANGE" }])
}

fn names(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|it| it["AttributeName"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_table_is_the_shipped_one() {
    let (template, layout) = (read("template.yaml"), catalogue::schema().layout);
    let table = at(&template, &["Resources", "Table", "Properties"]);
    assert_eq!(table["KeySchema"], key(&json!(layout.pk), &json!(layout.sk)));
    let indexes: Vec<Value> = layout
        .indexes
        .iter()
        .map(|index| {
            json!({
                "IndexName": index.name,
                "KeySchema": key(&json!(index.pk), &json!(index.sk)),
                "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": index.projection },
            })
        })
        .collect();
    assert_eq!(table["GlobalSecondaryIndexes"], json!(indexes));
    let mut keys: BTreeSet<String> = [layout.pk.clone(), layout.sk.clone()].into();
    keys.extend(layout.indexes.iter().flat_map(|index| [index.pk.clone(), index.sk.clone()]));
    assert_eq!(names(&table["AttributeDefinitions"]), keys);
    let to_live = json!({ "AttributeName": layout.time_to_live, "Enabled": true });
    assert_eq!(table["TimeToLiveSpecification"], to_live);
    assert_eq!(table["StreamSpecification"], json!({ "StreamViewType": "NEW_AND_OLD_IMAGES" }));
}

#[test]
fn the_ledgers_table_has_the_main_tables_keys_and_no_stream() {
    let layout = catalogue::schema().layout;
    let keys = [(json!(layout.pk), json!(layout.sk)), (json!({ "Ref": "PartitionKey" }), json!({ "Ref": "SortKey" }))];
    for (name, (pk, sk)) in BOTH.into_iter().zip(keys) {
        let template = read(name);
        let table = at(&template, &["Resources", "LedgerTable", "Properties"]);
        assert_eq!(table["KeySchema"], key(&pk, &sk), "{name}");
        assert_eq!(table["TimeToLiveSpecification"], json!({ "AttributeName": EXPIRES_AT, "Enabled": true }));
        assert_eq!(table.get("StreamSpecification"), None);
    }
}

#[test]
fn the_attaching_templates_keys_are_by_default_the_shipped_ones() {
    let (attach, layout) = (read("attach.yaml"), catalogue::schema().layout);
    assert_eq!(at(&attach, &["Parameters", "PartitionKey", "Default"]), &json!(layout.pk));
    assert_eq!(at(&attach, &["Parameters", "SortKey", "Default"]), &json!(layout.sk));
}

#[test]
fn tables_are_kept_protected_and_restorable() {
    for name in BOTH {
        let template = read(name);
        let all = template["Resources"].as_object().unwrap();
        for (id, table) in all.iter().filter(|(_, resource)| resource["Type"] == "AWS::DynamoDB::Table") {
            let properties = &table["Properties"];
            // A first deployment that fails deletes what it made, so that its name is free for the next.
            let policies = [&table["DeletionPolicy"], &table["UpdateReplacePolicy"]];
            assert_eq!(policies, [&json!("RetainExceptOnCreate"), &json!("Retain")], "{id}");
            assert_eq!(properties["DeletionProtectionEnabled"], json!({ "Ref": "DeletionProtection" }), "{id}");
            assert_eq!(properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], json!(true));
            let key = json!({ "Fn::If": ["CustomerKey", { "Ref": "KmsKeyArn" }, { "Ref": "AWS::NoValue" }] });
            assert_eq!(properties["SSESpecification"]["KMSMasterKeyId"], key, "{id}");
        }
    }
}

/// Names that a person or the template chose, so that a resource which is left over takes them from the next stack.
#[test]
fn only_tables_and_the_dashboard_can_have_names_of_their_own_and_tables_have_none_by_default() {
    for name in BOTH {
        let template = read(name);
        for (id, resource) in template["Resources"].as_object().unwrap() {
            let properties = resource["Properties"].as_object().unwrap();
            let own: Vec<_> = properties.keys().filter(|key| NAMES.contains(&key.as_str())).collect();
            match resource["Type"].as_str().unwrap() {
                "AWS::DynamoDB::Table" => {
                    let choice = properties["TableName"]["Fn::If"].as_array().unwrap();
                    assert_eq!(
                        choice[2],
                        json!({ "Ref": "AWS::NoValue" }),
                        "{id} is named by CloudFormation by default"
                    );
                }
                // Its name has that of the stack, and nothing retains it.
                "AWS::CloudWatch::Dashboard" => assert!(resource.get("DeletionPolicy").is_none(), "{id}"),
                _ => assert!(own.is_empty(), "{id} has {own:?}"),
            }
        }
    }
}

/// Properties that name a resource. Source: the user guide of AWS templates, "Name type".
const NAMES: [&str; 7] =
    ["TableName", "BucketName", "FunctionName", "RoleName", "LogGroupName", "AlarmName", "LayerName"];

#[test]
fn a_functions_logical_id_is_its_name() {
    for (id, function) in READERS {
        assert_eq!(id.to_lowercase(), function.to_string());
        let template = read("template.yaml");
        let binary = at(&template, &["Resources", id, "Metadata", "BuildProperties", "Binary"]);
        assert_eq!(binary, &json!(function.to_string()));
    }
}

#[test]
fn what_is_switched_off_by_default_is_a_word_that_the_functions_know() {
    let attach = read("attach.yaml");
    assert_eq!(at(&attach, &["Parameters", "Disabled", "Default"]), functions::declared::GROUND);
}

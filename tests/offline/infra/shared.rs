//! The templates are what `ripple infra` prints, with the filters of the catalogue.

use std::{env, fs, path::Path};

use derive::{catalogue::Catalogue, schema::Schema};
use engine::ledger::LedgerKind;
use functions::handler::Function;
use infra::{
    Stack,
    mapping::{Needed, StreamTable, criteria, filters, mapping, needed},
};
use serde_json::{Value, json};
use stream::mapping::{OnFailure, StartingPosition};

use crate::infra::template::{BOTH, READERS, at, parsed, path, read, text};

pub(crate) fn shipped() -> (Schema, Catalogue) {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    (schema, catalogue)
}

/// The patterns of a function for the shipped table.
pub(crate) fn patterns(function: Function) -> Vec<String> {
    let (schema, catalogue) = shipped();
    match needed(StreamTable::all(&schema).next().unwrap(), &catalogue, &function.families()) {
        Needed::Matching(patterns) => patterns,
        other => panic!("{function} has patterns, and not: {other:?}"),
    }
}

/// The template as `ripple infra` prints it.
fn printed(name: &str) -> String {
    let ((schema, catalogue), attaches) = (shipped(), name == "attach.yaml");
    let command = if attaches { "ripple infra --attach" } else { "ripple infra" };
    let stack = Stack { schema: &schema, catalogue: &catalogue, attaches, shipped: true, zipped: false, command };
    infra::template(&stack)
}

#[test]
fn the_templates_are_what_ripple_infra_prints_for_the_shipped_table() {
    for name in BOTH {
        let wanted = printed(name);
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(path(name), &wanted).unwrap();
        }
        let differs = text(name).lines().zip(wanted.lines()).position(|(held, wanted)| held != wanted);
        let line = differs.map_or_else(String::new, |line| format!(" from line {} on", line + 1));
        assert!(
            text(name) == wanted,
            "infra/{name} is stale{line}: run UPDATE_EXPECT=1 cargo test -p tests --test offline infra::"
        );
    }
}

#[test]
fn a_manifests_template_has_its_keys_and_its_filters_and_takes_no_other_manifest() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");
    let (schema, catalogue) = manifest::read(Path::new(example)).unwrap();
    let stack = |attaches| {
        let stack =
            Stack { schema: &schema, catalogue: &catalogue, attaches, shipped: false, zipped: true, command: "" };
        parsed(&infra::template(&stack))
    };
    let [made, attached] = [false, true].map(stack);
    let layout = &schema.layout;
    let key = |of: &str| made["Resources"][of]["Properties"]["KeySchema"][0]["AttributeName"].clone();
    assert_eq!((key("Table"), key("LedgerTable")), (layout.pk.as_str().into(), layout.pk.as_str().into()));
    let n_indexes = made["Resources"]["Table"]["Properties"]["GlobalSecondaryIndexes"].as_array().map_or(0, Vec::len);
    assert_eq!(n_indexes, layout.indexes.len());
    assert_eq!(attached["Parameters"]["PartitionKey"]["Default"], layout.pk.as_str());
    for template in [&made, &attached] {
        assert_eq!(template["Parameters"]["ConfigUri"].get("Default"), None);
        for (id, function) in READERS {
            let event = ["Resources", id, "Properties", "Events", "Stream", "Properties"];
            let held = at(template, &event).get("FilterCriteria").map(|criteria| &criteria["Filters"]);
            let table = StreamTable::all(&schema).next().unwrap();
            let wanted = criteria(&needed(table, &catalogue, &function.families()));
            assert_eq!(held, wanted.get("Filters"), "{id}");
        }
    }
}

#[test]
fn a_mapping_has_its_functions_filters() {
    for (id, function) in READERS {
        let event = ["Resources", id, "Properties", "Events", "Stream", "Properties", "FilterCriteria"];
        let ours: Vec<_> = patterns(function).into_iter().map(|text| serde_json::json!({ "Pattern": text })).collect();
        for name in BOTH {
            let template = read(name);
            let choice = at(&template, &event)["Fn::If"].as_array().unwrap();
            assert_eq!(choice[0], "OwnConfig", "{name}");
            assert_eq!(choice[1]["Ref"], "AWS::NoValue", "a manifest's own table gets everything");
            assert_eq!(choice[2]["Filters"], serde_json::json!(ours), "{name}: {id}");
        }
    }
}

#[test]
fn nothing_in_the_attaching_template_names_the_main_table_of_the_other() {
    let attach = text("attach.yaml");
    for line in attach.lines() {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        assert!(words.all(|word| !word.starts_with("Table.")) && !line.ends_with("!Ref Table"), "{line}");
    }
    assert!(parsed(&attach)["Resources"].get("Table").is_none());
}

/// A value of a template in which these conditions hold; null stands for a property that is left out.
fn computed(value: &Value, conditions: &[&str]) -> Value {
    match value {
        Value::Object(all) if all.contains_key("Fn::If") => {
            let branch = if conditions.iter().any(|name| all["Fn::If"][0] == *name) { 1 } else { 2 };
            computed(&all["Fn::If"][branch], conditions)
        }
        Value::Object(all) if all.get("Ref").is_some_and(|name| name == "AWS::NoValue") => Value::Null,
        Value::Object(all) => all.iter().map(|(name, value)| (name.clone(), computed(value, conditions))).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_mappings_that_dev_takes_are_those_of_the_templates() {
    let (schema, catalogue) = shipped();
    let table = StreamTable::all(&schema).next().unwrap();
    for (ledger, conditions) in [(LedgerKind::Receipts, &[][..]), (LedgerKind::Watermarks, &["Watermarks"])] {
        for (id, function) in READERS {
            let families = function.families();
            let needed = needed(table, &catalogue, &families);
            let ours = mapping("m", "arn", &families, ledger, filters(&needed).unwrap());
            assert_eq!((ours.starting_position, ours.on_failure), (StartingPosition::TrimHorizon, Some(OnFailure::S3)));
            let record_age_s = ours.record_age_ms_max.map_or(json!(-1), |age_ms| json!(age_ms / 1_000));
            let window_s = ours.tumbling_window_seconds;
            let wanted = json!({
                "StartingPosition": "TRIM_HORIZON",
                "Enabled": true,
                "BatchSize": ours.batch_size,
                "MaximumBatchingWindowInSeconds": ours.batching_window_ms / 1_000,
                "TumblingWindowInSeconds": Some(window_s).filter(|window_s| *window_s > 0),
                "ParallelizationFactor": ours.parallelization_factor,
                "MaximumRetryAttempts": -1,
                "MaximumRecordAgeInSeconds": record_age_s,
                "BisectBatchOnFunctionError": false,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
                "DestinationConfig": { "OnFailure": { "Type": "S3" } },
                "MetricsConfig": { "Metrics": ["EventCount"] },
                "FilterCriteria": criteria(&needed),
            });
            assert!(ours.retry_attempts_max.is_none() && ours.report_batch_item_failures);
            for name in BOTH {
                let template = read(name);
                let event = ["Resources", id, "Properties", "Events", "Stream", "Properties"];
                let mut held = computed(at(&template, &event), conditions);
                held.as_object_mut().unwrap().remove("Stream");
                held["DestinationConfig"]["OnFailure"].as_object_mut().unwrap().remove("Destination");
                held.as_object_mut().unwrap().entry("TumblingWindowInSeconds").or_insert(Value::Null);
                assert_eq!(held, wanted, "{name}: {id} under {ledger}");
            }
        }
    }
}

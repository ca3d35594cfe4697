//! The templates of `infra/` agree with the code: they are what `ripple infra` prints, with the filters of the catalogue,
//! and have the tables, keys, indexes, variables, metrics and permissions. Every setting that a function reads is a
//! parameter of theirs, or the documentation says that it is fixed.

mod alarms;
mod filters;
mod permissions;
mod several;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use derive::{catalogue::Catalogue, schema::Schema};
use engine::ledger::{EXPIRES_AT, LedgerKind};
use functions::{
    config::{self, Config},
    handler::Function,
    logging::{DEFAULT_FILTER, LOG_LEVELS},
};
use infra::{
    Stack,
    mapping::{Needed, StreamTable, criteria, filters, mapping, needed},
};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value, json};
use stream::mapping::{OnFailure, StartingPosition};

// ---- A template as a value: YAML, with the short forms of its functions expanded ----

/// Both templates.
pub(crate) const BOTH: [&str; 2] = ["template.yaml", "attach.yaml"];

/// Both templates, each with its name.
fn both() -> impl Iterator<Item = (&'static str, Value)> {
    BOTH.into_iter().map(|name| (name, read(name)))
}

/// The functions that read the stream, with their logical ids.
pub(crate) const READERS: [(&str, Function); 3] =
    [("Aggregate", Function::Aggregate), ("Propagate", Function::Propagate), ("Combined", Function::Combined)];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../infra").join(name)
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn read(name: &str) -> Value {
    parsed(&text(name))
}

/// A template's text as a value.
pub(crate) fn parsed(text: &str) -> Value {
    let documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}"));
    value(documents.first().expect("a document"))
}

/// The value at a path of names.
pub(crate) fn at<'a>(template: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .fold(template, |value, name| value.get(*name).unwrap_or_else(|| panic!("there is no {}", path.join("."))))
}

/// The event source mapping of a function.
fn mapping_of<'a>(template: &'a Value, id: &str) -> &'a Value {
    at(template, &["Resources", id, "Properties", "Events", "Stream", "Properties"])
}

/// The resources of a type, by their logical ids.
pub(crate) fn resources<'a>(template: &'a Value, of_type: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let all = at(template, &["Resources"]).as_object().expect("resources");
    let ours = all.iter().filter(move |(_, resource)| resource["Type"] == of_type);
    ours.map(|(id, resource)| (id.as_str(), &resource["Properties"]))
}

fn value(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(truth)) => json!(truth),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Sequence(all) => all.iter().map(value).collect(),
        Yaml::Mapping(map) => {
            let member =
                |(name, stored): (&Yaml<'_>, &Yaml<'_>)| (name.as_str().expect("a name").to_owned(), value(stored));
            Value::Object(map.iter().map(member).collect())
        }
        Yaml::Tagged(tag, node) => {
            let name = if tag.suffix == "Ref" { "Ref".to_owned() } else { format!("Fn::{}", tag.suffix) };
            Value::Object(Map::from_iter([(name, value(node))]))
        }
        other => panic!("no such thing is expected in a template: {other:?}"),
    }
}

// ---- What `ripple infra` prints ----

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
        let differs = text(name).lines().zip(wanted.lines()).position(|(stored, wanted)| stored != wanted);
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
            let stored = mapping_of(template, id).get("FilterCriteria").map(|criteria| &criteria["Filters"]);
            let table = StreamTable::all(&schema).next().unwrap();
            let wanted = criteria(&needed(table, &catalogue, &function.families()));
            assert_eq!(stored, wanted.get("Filters"), "{id}");
        }
    }
}

#[test]
fn a_mapping_has_its_functions_filters() {
    for (id, function) in READERS {
        let ours: Vec<_> = patterns(function).into_iter().map(|text| serde_json::json!({ "Pattern": text })).collect();
        for (name, template) in both() {
            let choice = mapping_of(&template, id)["FilterCriteria"]["Fn::If"].as_array().unwrap();
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
            for (name, template) in both() {
                let mut stored = computed(mapping_of(&template, id), conditions);
                stored.as_object_mut().unwrap().remove("Stream");
                stored["DestinationConfig"]["OnFailure"].as_object_mut().unwrap().remove("Destination");
                stored.as_object_mut().unwrap().entry("TumblingWindowInSeconds").or_insert(Value::Null);
                assert_eq!(stored, wanted, "{name}: {id} under {ledger}");
            }
        }
    }
}

// ---- Tables ----

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
    for (_, template) in both() {
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
    for (_, template) in both() {
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

// ---- Settings ----

/// The repository's root.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The configuration with these variables, and the names of all variables that it asks for.
fn configured(variable: impl Fn(&str) -> Option<String>) -> (Config, BTreeSet<String>) {
    let asked = RefCell::new(BTreeSet::new());
    let config = Config::from_variables(|name| {
        asked.borrow_mut().insert(name.to_owned());
        variable(name)
    });
    (config.unwrap(), asked.into_inner())
}

/// The value of a variable without a template: only the tables have names.
fn bare(name: &str) -> Option<String> {
    [config::TABLE_NAME, config::LEDGER_TABLE_NAME].contains(&name).then(|| "t".to_owned())
}

/// Every variable that a function reads, except for those of Lambda and of the SDK, and for what only a manifest of several
/// tables needs: no template is printed for such a one.
fn variables() -> BTreeSet<String> {
    let (_, mut asked) = configured(bare);
    assert!(asked.remove(config::TABLES));
    asked.insert(LOG_LEVELS.to_owned());
    asked
}

fn set(template: &Value) -> &serde_json::Map<String, Value> {
    at(template, &["Globals", "Function", "Environment", "Variables"]).as_object().unwrap()
}

/// What a variable is set to: a parameter, a condition on one, or a resource.
fn source(value: &Value) -> &str {
    let named = value["Ref"].as_str().or_else(|| value["Fn::If"][0].as_str()).or_else(|| value["Fn::GetAtt"].as_str());
    named.unwrap_or_else(|| panic!("{value} is no parameter, condition or resource"))
}

fn documentation(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(file)).unwrap()
}

/// The cells of a row of a Markdown table; cells may hold no bar.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split(" | ").map(str::trim).collect()
}

#[test]
fn the_templates_set_every_variable_that_a_function_reads_and_no_other() {
    for (name, template) in both() {
        assert_eq!(set(&template).keys().cloned().collect::<BTreeSet<_>>(), variables(), "{name}");
        let parameters = at(&template, &["Parameters"]);
        for (variable, value) in set(&template) {
            let source = source(value).split('.').next().unwrap();
            let is_there = parameters.get(source).is_some()
                || at(&template, &["Resources"]).get(source).is_some()
                || at(&template, &["Conditions"]).get(source).is_some();
            assert!(is_there, "{name}: {variable} is set to {value}");
        }
    }
}

#[test]
fn only_three_files_read_the_environment() {
    let mut readers = Vec::new();
    let mut folders = vec![Path::new(ROOT).join("functions/src"), Path::new(ROOT).join("shared")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Integration tests may read what they like.
                folders.extend(Some(path).filter(|it| !it.ends_with("tests") && !it.ends_with("target")));
            } else if path.extension().is_some_and(|it| it == "rs")
                && fs::read_to_string(&path).unwrap().contains("env::var")
            {
                readers.push(path.strip_prefix(ROOT).unwrap().display().to_string());
            }
        }
    }
    readers.sort();
    // `lambda.rs` asks whether Lambda runs it at all.
    assert_eq!(readers, ["functions/src/config.rs", "functions/src/lambda.rs", "functions/src/logging.rs"]);
}

#[test]
fn the_defaults_of_the_parameters_are_those_of_the_functions() {
    for (name, template) in both() {
        let default = |variable: &str| {
            let source = source(set(&template).get(variable)?).to_owned();
            let default = at(&template, &["Parameters"]).get(&source)?.get("Default")?;
            Some(default.as_str().map_or_else(|| default.to_string(), str::to_owned))
        };
        let (ours, _) = configured(|variable| bare(variable).or_else(|| default(variable)));
        let (bare, _) = configured(bare);
        // These two have another default in a template: docs/settings.md and infra/README.md say so.
        let bare = Config { mode: ours.mode, disabled: ours.disabled.clone(), ..bare };
        assert_eq!(ours, bare, "{name}");
        assert_eq!(default(LOG_LEVELS).unwrap(), DEFAULT_FILTER, "{name}");
    }
}

#[test]
fn the_documentation_names_the_parameter_of_each_variable_or_says_that_it_is_fixed() {
    let settings = documentation("docs/settings.md");
    let section =
        settings.split("## Environment variables of a function").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = section.lines().filter(|line| line.starts_with("| `")).map(cells).collect();
    let template = read("attach.yaml");
    let mut documented = BTreeSet::new();
    for row in &rows {
        let variable = row[0].split('`').nth(1).unwrap();
        let parameter = row.last().unwrap();
        if let Some(value) = set(&template).get(variable) {
            documented.insert(variable.to_owned());
            let source = source(value);
            let stored = match source {
                "OwnConfig" => "`ConfigUri`".to_owned(),
                "LedgerTable" => "`LedgerTableName`".to_owned(),
                parameter => format!("`{parameter}`"),
            };
            assert_eq!(*parameter, stored, "{variable}");
        } else {
            assert!(parameter.starts_with("fixed: "), "{variable} is no parameter: {parameter}");
        }
    }
    assert_eq!(documented, variables());
}

#[test]
fn the_reference_of_the_templates_lists_every_parameter_with_its_default() {
    let readme = documentation("infra/README.md");
    let section = readme.split("\n## Parameters").nth(1).unwrap().split("\n## ").next().unwrap();
    for (name, template) in both() {
        for (parameter, declared) in at(&template, &["Parameters"]).as_object().unwrap() {
            let row = section.lines().find(|line| cells(line)[0].contains(&format!("`{parameter}`")));
            let row = cells(row.unwrap_or_else(|| panic!("infra/README.md does not list {parameter} of {name}")));
            if let Some(default) = declared["Default"].as_u64() {
                let defaults = row.last().unwrap();
                let is_there = defaults.split([',', ' ']).any(|word| word.trim_matches('`') == default.to_string());
                assert!(is_there, "{parameter} is {default} by default: {defaults}");
            }
        }
    }
}

#[test]
fn each_function_that_reads_the_stream_has_the_cap_on_concurrency_and_no_other_has() {
    let cap = json!({
        "Fn::If": ["HasReservedConcurrency", { "Ref": "ReservedConcurrency" }, { "Ref": "AWS::NoValue" }]
    });
    for (name, template) in both() {
        let stored =
            |id: &str| at(&template, &["Resources", id, "Properties"]).get("ReservedConcurrentExecutions").cloned();
        for (id, _) in READERS {
            assert_eq!(stored(id), Some(cap.clone()), "{name}: {id}");
        }
        // A sweep that is throttled would be asked again for hours, while nothing looks for drift.
        assert_eq!(stored("Sweep"), None);
        assert_eq!(at(&template, &["Parameters", "ReservedConcurrency", "Default"]), "", "nothing is reserved");
    }
}

#[test]
fn a_latency_target_sets_window_batch_and_lanes_together_and_each_can_be_set_alone() {
    let choice = |set: &str, parameter: &str, low: Value, none: u64| json!({ "Fn::If": [set, { "Ref": parameter }, { "Fn::If": ["LowLatency", low, none] }] });
    // Lambda's own defaults, a batch of 100 without a window, which its API does not take as values.
    let left_out = || json!({ "Ref": "AWS::NoValue" });
    let low_window = || json!({ "Fn::If": ["HasBatchSize", 1, left_out()] });
    for (name, template) in both() {
        for (id, _) in READERS {
            let mapping = mapping_of(&template, id);
            assert_eq!(mapping["BatchSize"], choice("HasBatchSize", "BatchSize", left_out(), 500), "{name}: {id}");
            let window = choice("HasBatchingWindow", "BatchingWindowSeconds", low_window(), 5);
            assert_eq!(mapping["MaximumBatchingWindowInSeconds"], window, "{name}: {id}");
            let lanes = if id == "Propagate" { choice("HasLanes", "Lanes", json!(4), 2) } else { json!(1) };
            assert_eq!(mapping["ParallelizationFactor"], lanes, "{name}: {id}");
        }
        assert_eq!(at(&template, &["Parameters", "LatencyTarget", "Default"]), "none");
        let logging = json!({ "LogFormat": "JSON", "SystemLogLevel": { "Ref": "SystemLogLevel" }, "ApplicationLogLevel": "TRACE" });
        assert_eq!(at(&template, &["Globals", "Function", "LoggingConfig"]), &logging, "{name}");
    }
}

#[test]
fn the_arithmetic_of_concurrency_in_the_documentation_is_that_of_the_templates() {
    let template = read("template.yaml");
    let of = |id: &str| {
        let factor = &mapping_of(&template, id)["ParallelizationFactor"];
        // Neither `Lanes` nor a low latency is asked for.
        factor.as_u64().or_else(|| factor["Fn::If"][2]["Fn::If"][2].as_u64()).unwrap()
    };
    let costs = documentation("docs/costs.md");
    let section = costs.split("\n## Concurrency").nth(1).unwrap().split("\n## ").next().unwrap();
    for n_shards in [4, 100] {
        let (aggregate, propagate, combined) =
            (n_shards * of("Aggregate"), n_shards * of("Propagate"), n_shards * of("Combined"));
        let row = format!(
            "| {n_shards} | {aggregate} + {propagate} + 1 = {} | {combined} + 1 = {} |",
            aggregate + propagate + 1,
            combined + 1
        );
        assert!(section.contains(&row), "docs/costs.md has the row {row}");
    }
}

#[test]
fn a_manifest_comes_as_a_layer_of_each_function_and_never_in_its_package() {
    let files = documentation("docs/attach.md") + &documentation("infra/README.md");
    for (name, template) in both() {
        let globals = at(&template, &["Globals", "Function"]);
        // SAM's builder for Rust packs the binary `bootstrap` and nothing else, so no path in the package can work.
        for (id, _) in READERS.into_iter().chain([("Sweep", functions::handler::Function::Sweep)]) {
            let function = at(&template, &["Resources", id]);
            assert_eq!(function["Metadata"]["BuildMethod"], "rust-cargolambda", "{name}: {id}");
            assert!(function["Properties"].get("Layers").is_none(), "{name}: {id} has the layer of Globals");
            assert!(function["Properties"].get("Environment").is_none(), "{name}: {id} has the variables of Globals");
        }
        let layers = json!({ "Fn::If": ["OwnConfig", [{ "Ref": "Config" }], { "Ref": "AWS::NoValue" }] });
        assert_eq!(globals["Layers"], layers, "{name}");
        // Lambda unpacks a layer to /opt.
        let variable = json!({ "Fn::If": ["OwnConfig", "/opt/ripple.toml", ""] });
        assert_eq!(set(&template)[config::CONFIG], variable, "{name}");
        let layer = at(&template, &["Resources", "Config"]);
        assert_eq!((&layer["Type"], &layer["Condition"]), (&json!("AWS::Lambda::LayerVersion"), &json!("OwnConfig")));
        let none = at(&template, &["Parameters", "ConfigUri", "Default"]);
        assert!(
            text(name).contains(&format!("OwnConfig: !Not [!Equals [!Ref ConfigUri, {}]]", none.as_str().unwrap()))
        );
    }
    // What the steps pack lies at the root of the zip, so that Lambda unpacks it to that path.
    let packs: Vec<&str> = files.lines().filter(|line| line.trim_start().starts_with("zip ")).collect();
    assert!(!packs.is_empty() && packs.iter().all(|line| line.contains(".zip ripple.toml")), "{packs:?}");
}

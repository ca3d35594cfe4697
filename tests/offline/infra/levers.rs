//! Every setting that a function reads is a parameter of the templates, or the documentation says that it is fixed.

use std::{cell::RefCell, collections::BTreeSet, fs, path::Path};

use functions::{
    config::{self, Config},
    logging::{DEFAULT_FILTER, LOG_LEVELS},
};
use serde_json::{Value, json};

use crate::infra::template::{BOTH, READERS, at, read, text};

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
    for name in BOTH {
        let template = read(name);
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
    for name in BOTH {
        let template = read(name);
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
            let held = match source {
                "OwnConfig" => "`ConfigUri`".to_owned(),
                "LedgerTable" => "`LedgerTableName`".to_owned(),
                parameter => format!("`{parameter}`"),
            };
            assert_eq!(*parameter, held, "{variable}");
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
    for name in BOTH {
        let template = read(name);
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
    for name in BOTH {
        let template = read(name);
        let held =
            |id: &str| at(&template, &["Resources", id, "Properties"]).get("ReservedConcurrentExecutions").cloned();
        for (id, _) in READERS {
            assert_eq!(held(id), Some(cap.clone()), "{name}: {id}");
        }
        // A sweep that is throttled would be asked again for hours, while nothing looks for drift.
        assert_eq!(held("Sweep"), None);
        assert_eq!(at(&template, &["Parameters", "ReservedConcurrency", "Default"]), "", "nothing is reserved");
    }
}

#[test]
fn a_latency_target_sets_window_batch_and_lanes_together_and_each_can_be_set_alone() {
    let choice = |set: &str, parameter: &str, low: Value, none: u64| json!({ "Fn::If": [set, { "Ref": parameter }, { "Fn::If": ["LowLatency", low, none] }] });
    // Lambda's own defaults, a batch of 100 without a window, which its API does not take as values.
    let left_out = || json!({ "Ref": "AWS::NoValue" });
    let low_window = || json!({ "Fn::If": ["HasBatchSize", 1, left_out()] });
    for name in BOTH {
        let template = read(name);
        for (id, _) in READERS {
            let mapping = at(&template, &["Resources", id, "Properties", "Events", "Stream", "Properties"]);
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
        let factor =
            at(&template, &["Resources", id, "Properties", "Events", "Stream", "Properties", "ParallelizationFactor"]);
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
    for name in BOTH {
        let template = read(name);
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

//! What `--json` prints, and each sample of docs/json.md, fits the schema that `ripple schema --json-output` prints, for every
//! command that takes it.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::{Value, json};
use support::{database::client, schema::fits};
use tokio::runtime::Runtime;

use super::{
    SHIPPED, commands,
    input::Dev,
    ripple,
    waits::{put, waited},
};

/// Names under which the names are not ours.
const FOREIGN: [&str; 7] = ["stored", "derived", "record", "by_derivation", "entities", "Filters", "difference"];

/// The samples of the page, by the command.
pub(super) fn samples() -> BTreeMap<String, Value> {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = fs::read_to_string(page).unwrap();
    let sections = page.split("\n## `ripple ").skip(1);
    let sample = |section: &str| {
        let (name, rest) = section.split_once('`').unwrap();
        let text = rest.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        (name.to_owned(), serde_json::from_str(text).map_err(|error| format!("{name}: {error}")).unwrap())
    };
    sections.map(sample).collect()
}

/// Every name of our own.
fn names(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| names(value, all)),
        Value::Object(values) => values.iter().for_each(|(name, value)| {
            if FOREIGN.contains(&name.as_str()) && !value.is_array() {
                return;
            }
            all.extend((name != "Filters").then(|| name.clone()));
            if name != "Filters" {
                names(value, all);
            }
        }),
        _ => {}
    }
}

#[test]
fn each_object_has_the_names_of_its_page_and_the_version() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let items: [&[(&str, &str)]; 4] = [
        &[("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", "Ada")],
        &[("PK", "USER#grace"), ("SK", "FOLLOWS#ada"), ("EntityType", "Follow")],
        &[("PK", "GADGET#1"), ("SK", "X"), ("EntityType", "Gadget")],
        &[("PK", "POST#p"), ("SK", "COMMENT#1"), ("EntityType", "Comment")],
    ];
    for item in items {
        runtime.block_on(put(&client, item));
    }
    waited(&dev.endpoint);
    let samples = samples();
    let schema = ripple(&["schema", "--json-output"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let all = commands();
    let printing = all.iter().filter(|command| command.runs() && command.takes("--json"));
    let mut printing: Vec<String> = printing.map(|command| command.words.join(" ")).collect();
    printing.retain(|name| name != "design");
    printing.extend(["design --check", "design --filters"].map(str::to_owned));
    printing.sort();
    assert_eq!(printing, samples.keys().cloned().collect::<Vec<_>>(), "docs/json.md has each command once");
    // `dev` prints until it is stopped: `each_event_of_dev_is_an_object_a_line`.
    for (name, sample) in samples.iter().filter(|(name, _)| *name != "dev") {
        let words: Vec<&str> = name.split(' ').collect();
        let command = all.iter().find(|command| words.starts_with(&[command.words[0].as_str()])).unwrap();
        let command = all.iter().find(|command| name == &command.words.join(" ")).unwrap_or(command);
        let mut arguments = command.arguments();
        arguments.extend(words.iter().filter(|word| word.starts_with("--")));
        match name.as_str() {
            "check" => arguments = vec!["check", "examples/own-table/ripple.toml"],
            "cost" => arguments = vec!["cost", "--rate", "Like=10"],
            "demo" => arguments.extend(["--writes", "50"]),
            _ if command.takes("--endpoint") => arguments.extend(["--endpoint", &dev.endpoint]),
            _ => {}
        }
        arguments.push("--json");
        let ended = ripple(&arguments);
        assert!(
            matches!(ended.code, Some(0 | 3)) && ["", SHIPPED].contains(&ended.stderr.as_str()),
            "{arguments:?}: {ended:?}"
        );
        let printed: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        let top = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!((&printed["version"], top(&printed)), (&json!(1), top(sample)), "{name}");
        let form = name.replace(" --", "_").replace(' ', "_");
        for value in [&printed, sample] {
            fits(&schema, &form, value).unwrap_or_else(|why| panic!("`ripple {name}`: {why}"));
            let mut used = Vec::new();
            names(value, &mut used);
            let is_snake =
                |name: &String| name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
            assert!(used.iter().all(is_snake), "{name}: {used:?}");
        }
    }
}

#[test]
fn an_unknown_and_a_missing_name_are_seen() {
    let schema: Value = serde_json::from_str(&ripple(&["schema", "--json-output"]).stdout).unwrap();
    let error = |name: &str, value: Value| fits(&schema, name, &value).unwrap_err();
    let right = json!({"version": 1, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0});
    fits(&schema, "wait", &right).unwrap();
    assert_eq!(error("wait", json!({"version": 1})), r#"wait: ["handled_until", "parked"] are missing"#);
    let more = json!({"version": 1, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0, "more": 1});
    assert_eq!(error("wait", more), "wait.more is not known");
    assert_eq!(
        error("wait", json!({"version": 2, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0})),
        "wait.version: 2 is not 1"
    );
    let deep = json!({"version": 1, "redriven": [{"id": "a", "family": "additive", "outcome": "gone", "why": null}], "unknown": []});
    assert!(error("redrive", deep).starts_with("redrive.redriven[0].outcome: \"gone\" is not "));
    assert_eq!(error("nothing", json!({})), "the schema has no nothing");
}

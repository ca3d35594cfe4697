//! What programs read. What `--json` prints, and each sample of docs/json.md, fits the schema that
//! `ripple schema --json-output` prints, for every command that takes it; and `ripple mcp` gives the same over standard
//! input and output.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use expect_test::expect;
use serde_json::{Value, json};
use support::{command::command, database::client, schema::fits};
use tokio::runtime::Runtime;

use crate::{
    SHIPPED, commands,
    dev::Dev,
    file, ripple,
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
    waited(&dev.endpoint, &[]);
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
    let right = json!({"version": 1, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0, "jobs": 0});
    fits(&schema, "wait", &right).unwrap();
    assert_eq!(error("wait", json!({"version": 1})), r#"wait: ["handled_until", "parked", "jobs"] are missing"#);
    let more = json!({"version": 1, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0, "jobs": 0, "more": 1});
    assert_eq!(error("wait", more), "wait.more is not known");
    assert_eq!(
        error("wait", json!({"version": 2, "handled_until": "2026-11-24T10:00:00.000Z", "parked": 0, "jobs": 0})),
        "wait.version: 2 is not 1"
    );
    let deep = json!({"version": 1, "redriven": [{"id": "a", "family": "additive", "outcome": "gone", "why": null}], "unknown": []});
    assert!(error("redrive", deep).starts_with("redrive.redriven[0].outcome: \"gone\" is not "));
    assert_eq!(error("nothing", json!({})), "the schema has no nothing");
}

// ---- `ripple mcp` ----

/// A server that has been initialized. It ends with the test.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

#[expect(clippy::indexing_slicing, reason = "a name that is missing is null")]
impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
        ripple.arg("mcp").args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut child = ripple.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output };
        let client = json!({"name": "test", "version": "1"});
        let begun = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let answer = server.answer("initialize", &begun);
        assert_eq!(answer["result"]["serverInfo"], json!({"name": "ripple", "version": env!("CARGO_PKG_VERSION")}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.answer("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The tools, each with its arguments; a required one with `!`.
    fn tools(&mut self) -> Vec<String> {
        let answer = self.answer("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        let line = |tool: &Value| {
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
            let schema = &tool["inputSchema"];
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
            let required = schema["required"].as_array().unwrap();
            let properties = schema["properties"].as_object().unwrap().iter();
            let name = |(name, form): (&String, &Value)| {
                assert!(form["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {form}");
                format!("{name}{}", if required.contains(&json!(name)) { "!" } else { "" })
            };
            format!("{}: {}", tool["name"].as_str().unwrap(), properties.map(name).collect::<Vec<_>>().join(" "))
        };
        tools.map(line).collect()
    }

    /// Closes its input, and waits until it ends.
    fn ended(mut self) -> Option<i32> {
        drop(self.input);
        self.child.wait().unwrap().code()
    }
}

#[test]
fn the_tools_have_the_options_of_their_commands_that_only_read() {
    let mut server = Server::start(&[]);
    let tools = server.tools();
    expect![[r#"
        check: file
        explain: config file!
        why: attribute changes config disable endpoint key! ledger_table list no_changes region sources table tables
        audit: at_rest config disable endpoint read_units region segments table tables values
        verify: allow_unreadable at_rest config derivation disable endpoint entity iterator_age ledger_table pk read_units region segments sk table tables wait
        parked: about config disable endpoint ids ledger_table region table tables
        jobs: config disable endpoint ids ledger_table region table tables
        design: answers config
        cost: batch call_ms config fan_out lanes memory price rate read shards targets window"#]]
    .assert_eq(&tools.join("\n"));
    assert_eq!(server.ended(), Some(0));
    let mut server = Server::start(&["--aws"]);
    let of_aws = server.tools();
    let n_aws = of_aws.iter().filter(|tool| tool.split(' ').any(|name| name == "aws")).count();
    assert_eq!(n_aws, 5, "{of_aws:?}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_tool_gives_what_its_command_prints_and_a_failure_says_why() {
    let mut server = Server::start(&[]);
    let right = "examples/own-table/ripple.toml";
    let checked = server.call("check", &json!({"file": right}));
    let printed: Value = serde_json::from_str(&ripple(&["check", right, "--json"]).stdout).unwrap();
    assert_eq!((&checked["result"]["structuredContent"], &checked["result"]["isError"]), (&printed, &json!(false)));
    // Findings are a result.
    let reviewed = server.call("design", &json!({}));
    assert!(
        reviewed["result"]["structuredContent"]["findings"].as_array().is_some_and(|it| !it.is_empty()),
        "{reviewed}"
    );
    let cost = server.call("cost", &json!({"rate": ["Like=10", "Follow=1"], "shards": 8}));
    assert_eq!(cost["result"]["structuredContent"]["version"], 1, "{cost}");

    let wrong = file("[table]\n");
    let wrong = wrong.path().to_str().unwrap();
    let refused = server.call("check", &json!({"file": wrong}));
    let why = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(why, ripple(&["check", wrong, "--json"]).stderr);
    let silent = server.call("verify", &json!({"endpoint": "http://127.0.0.1:1"}));
    let why = "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws.\n";
    assert_eq!(silent["result"]["content"][0]["text"], why, "{silent}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_wrong_call_says_what_there_is() {
    let mut server = Server::start(&[]);
    let cases = [
        (
            "repair",
            json!({}),
            "there is no tool repair: the tools are check, explain, why, audit, verify, parked, jobs, design, cost",
        ),
        ("check", json!({"path": "ripple.toml"}), "check has no argument path: its arguments are file"),
        ("audit", json!({"html": "page.html"}), "audit has no argument html: its arguments are "),
        ("verify", json!({"aws": true}), "verify has no argument aws: its arguments are "),
        ("verify", json!({"at_rest": "yes"}), "at_rest of verify must be true or false"),
        ("cost", json!({"rate": "Like=10"}), "rate of cost must be a list of strings"),
        ("check", json!({"file": ["a"]}), "file of check must be a string or a number"),
    ];
    for (tool, arguments, what) in cases {
        let answer = server.call(tool, &arguments);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(what), "{answer}");
    }
    // A value is a value, and no option.
    let option = server.call("check", &json!({"file": "--help"}));
    let why = "ripple: cannot read --help: No such file or directory (os error 2)\n";
    assert_eq!(option["result"]["content"][0]["text"], why, "{option}");
    assert_eq!(server.ended(), Some(0));
}

//! `ripple mcp`: the protocol over standard input and output.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use expect_test::expect;
use serde_json::{Value, json};
use support::command::command;

use super::{file, ripple};

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

//! The command line: what it says, and with which exit code it ends.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]

use std::{
    io::Write as _,
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
};

use dynoxide::{Database, server::serve_on};
use expect_test::{Expect, expect};
use serde_json::Value;

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Variables that would have a command look elsewhere.
const FOREIGN_VARIABLES: [&str; 5] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL_DYNAMODB", "RUST_LOG"];

const COMMANDS: [&str; 4] = ["demo", "dev", "verify", "explain"];

/// Runs a command in the workspace's folder.
fn ripple(arguments: &[&str]) -> Ended {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut ripple = Command::new(env!("CARGO_BIN_EXE_ripple"));
    ripple.args(arguments).current_dir(workspace).stdin(Stdio::null());
    for variable in FOREIGN_VARIABLES {
        ripple.env_remove(variable);
    }
    let output = ripple.output().expect("ripple starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A command that fails: its exit code, nothing on standard output, and this on standard error.
fn fails(arguments: &[&str], code: i32, stderr: &Expect) {
    let ended = ripple(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
    stderr.assert_eq(&ended.stderr);
}

/// A command that fails with exit code 1 and this one line.
fn fails_saying(arguments: &[&str], line: &str) {
    let ended = ripple(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stderr, format!("ripple: {line}\n"));
}

/// A database without tables, as long as the runtime lives.
fn database() -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(serve_on(listener, Database::memory().unwrap()));
    (runtime, endpoint)
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn every_command_has_help() {
    let help = ripple(&["--help"]);
    assert_eq!(help.code, Some(0));
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{}", help.stdout);
        let help = ripple(&[command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{command}");
        assert!(help.stdout.contains(&format!("Usage: ripple {command}")), "{}", help.stdout);
        assert!(help.stdout.ends_with("Exit codes: 0 in step, 1 failed, 2 usage, 3 findings.\n"), "{}", help.stdout);
    }
    assert_eq!(ripple(&["--version"]).stdout, concat!("ripple ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn explain_says_what_each_record_would_do() {
    let ended = ripple(&["explain", "tests/events/insert.json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    expect![[""]].assert_eq(&ended.stdout);
}

#[test]
fn explain_tells_what_is_ignored_and_what_does_not_decode() {
    let ended = ripple(&["explain", "tests/events/unknown-entities.json"]);
    assert_eq!(ended.code, Some(0));
    let ignored: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("ignored")).collect();
    expect![[""]].assert_eq(&ignored.join("\n"));
    let ended = ripple(&["explain", "tests/events/undecodable.json"]);
    assert_eq!(ended.code, Some(0));
    expect![[""]].assert_eq(&ended.stdout);
}

#[test]
fn explain_prints_one_json_object() {
    let ended = ripple(&["explain", "tests/events/modify.json", "--json"]);
    assert_eq!(ended.code, Some(0));
    let explained: Value = serde_json::from_str(&ended.stdout).unwrap();
    let records = explained.get("records").and_then(Value::as_array).unwrap();
    assert!(records.iter().all(|record| record.get("record") == Some(&Value::from("change"))), "{records:?}");
}

#[test]
fn an_event_file_that_is_none_is_one_line() {
    fails_saying(&["explain", "no/such/file"], "cannot read no/such/file: No such file or directory (os error 2)");
    for (text, why) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{\"Records\": [", "EOF while parsing a list at line 1 column 13"),
        ("[1, 2]", "invalid type: integer `1`, expected a sequence at line 1 column 2"),
        ("{\"records\": []}", "missing field `Records` at line 1 column 15"),
    ] {
        let file = file(text);
        let path = file.path().to_str().unwrap();
        let what = "the event is no batch of DynamoDB stream records: it wants an object with a list `Records`";
        fails_saying(&["explain", path], &format!("{path}: {what}: {why}"));
    }
}

#[test]
fn an_endpoint_where_nothing_answers_is_one_line() {
    // Bound and never listened to by a database: the port is nobody else's while the test runs.
    let port = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    for endpoint in [format!("http://127.0.0.1:{port}"), "nonsense".to_owned()] {
        let line = format!("nothing answers at {endpoint}: is a DynamoDB running there?");
        fails_saying(&["verify", "--endpoint", &endpoint], &line);
        fails_saying(&["dev", "--endpoint", &endpoint], &line);
        fails_saying(&["demo", "--endpoint", &endpoint, "--writes", "1"], &line);
    }
}

#[test]
fn a_table_that_is_missing_is_one_line() {
    let (_runtime, endpoint) = database();
    let line = |table| format!("there is no table {table} at {endpoint}: name another with --table, or make it first");
    fails_saying(&["verify", "--endpoint", &endpoint], &line("ripple"));
    fails_saying(&["verify", "--endpoint", &endpoint, "--table", "rippel"], &line("rippel"));
    fails_saying(&["dev", "--endpoint", &endpoint, "--table", "rippel"], &line("rippel"));
}

#[test]
fn a_port_in_use_is_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = format!("port {port} is in use: stop what uses it, or give another --port");
    fails_saying(&["dev", "--port", &port.to_string()], &line);
}

#[test]
fn bad_arguments_are_usage() {
    fails(&["frobnicate"], 2, &expect![[""]]);
    fails(&["explain"], 2, &expect![[""]]);
    fails(&["demo", "--writes", "0"], 2, &expect![[""]]);
    fails(&["demo", "--readers", "three"], 2, &expect![[""]]);
    fails(&["dev", "--port", "99999"], 2, &expect![[""]]);
    fails(&["dev", "--port", "1", "--endpoint", "http://127.0.0.1:1"], 2, &expect![[""]]);
    fails(&["verify", "--tabel", "x"], 2, &expect![[""]]);
}

#[test]
fn the_demonstration_ends_in_step() {
    demonstrates("two");
}

#[test]
fn the_demonstration_with_one_reader_ends_in_step() {
    demonstrates("one");
}

fn demonstrates(readers: &str) {
    let ended = ripple(&["demo", "--writes", "200", "--seed", "3", "--json", "--readers", readers]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended.stdout.lines().count(), 1);
    let keys = |pointer: &str| {
        let object = shown.pointer(pointer).and_then(Value::as_object).unwrap();
        let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(keys(""), "changes derived_writes echoes elapsed_ms findings lag_ms parked scenario seed wcu writes");
    assert_eq!(keys("/wcu"), "by_derivation derived ground per_change total");
    assert_eq!(keys("/lag_ms"), "max p50 p99");
    let number = |pointer: &str| shown.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert_eq!(["/seed", "/writes", "/findings", "/parked"].map(number), [3.0, 200.0, 0.0, 0.0], "{shown}");
    assert!(number("/changes") > 200.0 && number("/derived_writes") > 200.0, "{shown}");
    let by_derivation = shown.pointer("/wcu/by_derivation").and_then(Value::as_object).unwrap();
    let sum: f64 = by_derivation.values().filter_map(Value::as_f64).sum();
    assert!((sum - number("/wcu/derived")).abs() < 0.1, "{shown}");
}

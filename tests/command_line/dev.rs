//! What `ripple dev` prints: where it is, each change, and each problem once.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use keys::key::is_hidden;
use serde_json::Value;
use support::{
    command::{Ended, command},
    database::client,
    schema,
};
use tokio::runtime::Runtime;

use super::{database, input::Dev, json::samples, ripple, ripple_with};

/// A chat: a reaction names its message by the message's time, which the key has in 13 digits.
const CHAT: &str = r#"
[table]
partition-key = "pk"
sort-key = "sk"
type = "Type"

[entity.Message]
partition-key = "ROOM#{room}"
sort-key = "MSG#{at:13}"
attributes = ["text"]
derived-attributes = ["reactionCount"]

[entity.Reaction]
partition-key = "USER#{user}"
sort-key = "REACTION#{id}"
attributes = ["room", "messageAt"]

[derivation.reactions]
kind = "count"
from = "Reaction"
into = "Message.reactionCount"
link = { room = "room", at = "messageAt" }
"#;

fn chat(folder: &Path) -> String {
    let file = folder.join("chat.toml");
    fs::write(&file, CHAT).unwrap();
    file.to_str().unwrap().to_owned()
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A reaction to the first message. Its application stores the time as this type.
async fn react(client: &Client, id: usize, message_at: AttributeValue) {
    let put = client.put_item().table_name("ripple").item("pk", s("USER#u")).item("sk", s(&format!("REACTION#{id}")));
    let put = put.item("Type", s("Reaction")).item("room", s("r")).item("messageAt", message_at);
    put.send().await.unwrap();
}

async fn message(client: &Client) {
    let put = client.put_item().table_name("ripple").item("pk", s("ROOM#r")).item("sk", s("MSG#0000000001000"));
    put.item("Type", s("Message")).send().await.unwrap();
}

async fn n_reactions(client: &Client) -> Option<String> {
    let get = client.get_item().table_name("ripple").key("pk", s("ROOM#r")).key("sk", s("MSG#0000000001000"));
    get.send().await.unwrap().item?.get("reactionCount")?.as_n().ok().cloned()
}

fn waited(endpoint: &str, more: &[&str]) {
    let ended = ripple(&[&["wait", "--timeout", "60", "--endpoint", endpoint], more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

/// Every line of standard output fits a terminal.
fn fits(ended: &Ended) {
    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

/// The lines of changes, in any order.
fn changes(ended: &Ended) -> String {
    let lines = ended.stdout.lines().skip_while(|line| *line != "ready").skip(1);
    let mut lines: Vec<&str> = lines.filter(|line| !line.starts_with("caught up ")).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn what_an_application_stores_as_another_type_is_told_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = chat(folder.path());
    let dev = Dev::start(&["--config", &manifest]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    runtime.block_on(async {
        message(&client).await;
        for id in 0..60 {
            let at = if id % 3 == 0 { AttributeValue::N("1000".to_owned()) } else { s("1000") };
            react(&client, id, at).await;
        }
    });
    waited(&dev.endpoint, &["--config", &manifest]);
    assert_eq!(runtime.block_on(n_reactions(&client)).as_deref(), Some("40"));
    let verified = ripple(&["verify", "--endpoint", &dev.endpoint, "--config", &manifest]);
    assert!(verified.stdout.contains("20 unreadable, 0 findings"), "{verified:?}");
    let ended = dev.stopped();
    let why = "cannot be read by reactions: messageAt is N, and `{at:13}` takes a text: store a text, or link by text(messageAt)";
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert!(ended.stderr.contains("USER#u / REACTION#0"), "{ended:?}");
    assert!(ended.stderr.lines().all(|line| !line.contains("failed")), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fits(&ended);
}

#[test]
fn a_command_runs_against_the_service_and_its_exit_code_is_that_of_dev() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = chat(folder.path());
    let run = |script: &str| ripple(&["dev", "--config", &manifest, "--", "sh", "-c", script]);
    let ended = run("echo $AWS_ENDPOINT_URL_DYNAMODB $RIPPLE_CONFIG; exit 4");
    let (endpoint, config) = ended.stdout.trim().split_once(' ').unwrap();
    assert!(endpoint.starts_with("http://127.0.0.1:") && config == manifest, "{ended:?}");
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let right = run("true");
    assert_eq!((right.code, right.stdout.as_str()), (Some(0), ""), "{right:?}");
    assert!(right.stderr.contains("0 unreadable, 0 findings"), "{right:?}");
    let missing = ripple(&["dev", "--config", &manifest, "--", "/no/such/program"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""), "{missing:?}");
    assert!(missing.stderr.contains("cannot start the command /no/such/program"), "{missing:?}");
}

#[test]
fn everything_is_handled_and_compared_before_dev_ends_with_the_command() {
    let (runtime, endpoint) = database();
    let folder = tempfile::tempdir().unwrap();
    let manifest = chat(folder.path());
    Dev::run(&["--endpoint", &endpoint, "--config", &manifest]).stopped();
    let client = client(&endpoint);
    let run = || ripple(&["dev", "--endpoint", &endpoint, "--config", &manifest, "--", "true"]);
    runtime.block_on(async {
        message(&client).await;
        for id in 1..4 {
            react(&client, id, s("1000")).await;
        }
    });
    let ended = run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let counted = runtime.block_on(n_reactions(&client));
    assert_eq!(counted.as_deref(), Some("3"), "what was in the stream is handled before the end");
    runtime.block_on(react(&client, 4, AttributeValue::N("1000".to_owned())));
    let ended = run();
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
fn the_brakes_variables_are_read_and_checked() {
    for (name, what) in [("UNREADABLE_PERCENT_MAX", "percent, 0 to 100"), ("UNREADABLE_HOLD_HOURS", "hours")] {
        for command in [&["dev", "--port", "0"][..], &["demo", "--writes", "1"]] {
            let ended = ripple_with(command, &[(name, "abc")]);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
            let line = format!("the environment variable {name} is \"abc\": set it to a whole number of {what}");
            assert_eq!(ended.stderr, format!("ripple: {line}\n"));
        }
    }
    // What is set holds a batch, as it does in a function: with the first delivery there are 30 items in the stream.
    let (runtime, endpoint) = database();
    let folder = tempfile::tempdir().unwrap();
    let manifest = chat(folder.path());
    let arguments = ["--endpoint", &endpoint, "--config", &manifest];
    Dev::run(&arguments).stopped();
    let client = client(&endpoint);
    runtime.block_on(async {
        for id in 0..30 {
            react(&client, id, AttributeValue::N("1000".to_owned())).await;
        }
    });
    let mut dev = Dev::run_with(&arguments, &[("UNREADABLE_PERCENT_MAX", "50")]);
    let says = "of 30 items cannot be read, so nothing is applied; among them ";
    let line = dev.said_on_stderr(says);
    assert!(line.starts_with("aggregate failed, and tries again: 30 of 30 items"), "{line}");
    assert!(line.contains("(USER#u / REACTION#0): messageAt is N, and `{at:13}` takes a text: store a text, or link by text(messageAt) (reactions); "), "{line}");
}

#[test]
fn each_change_is_a_line_that_names_derivation_item_and_effect() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let put = |attributes: &[(&str, &str)]| {
        let put = client.put_item().table_name("ripple");
        let put = attributes.iter().fold(put, |put, (name, value)| put.item(*name, s(value)));
        runtime.block_on(put.send()).unwrap();
        waited(&dev.endpoint, &[]);
    };
    let user = [("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User"), ("UserId", "ada"), ("Name", "Ada")];
    put(&user);
    put(&[("PK", "USER#eve"), ("SK", "PROFILE"), ("EntityType", "User"), ("UserId", "eve"), ("Name", "Eve")]);
    put(&[("PK", "USER#eve"), ("SK", "FOLLOWS#ada"), ("EntityType", "Follow")]);
    // The whole item, without the count that is displayed on it.
    put(&[&user[..4], &[("Name", "Ada Lovelace")]].concat());
    let ended = dev.stopped();
    assert_eq!((ended.code, fits(&ended)), (Some(0), ()));
    expect![[r#"
        followee-name  copied FolloweeName to Follow USER#eve / FOLLOWS#ada
        followee-name  copied FolloweeName to Follow USER#eve / FOLLOWS#ada
        follower-count  USER#ada / PROFILE  +1
        follower-count-display  USER#ada / PROFILE  FollowerCount = 1
        follower-count-display  USER#ada / PROFILE  FollowerCount = 1
        follower-mirror  created Follower USER#ada / FOLLOWER#eve
        following-count  USER#eve / PROFILE  +1
        following-count-display  USER#eve / PROFILE  FollowingCount = 1"#]]
    .assert_eq(&changes(&ended));
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[0], "stopping after the batches in progress");
    assert!(said[1].starts_with("aggregate  polled ") && !said[1].contains("failed"), "{said:?}");
}

#[test]
fn why_names_index_keys_that_are_missing_and_a_key_of_another_form() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let put = |pk: &str, sk: &str, more: &[(&str, &str)]| {
        let put = client.put_item().table_name("ripple").item("PK", s(pk)).item("SK", s(sk));
        runtime.block_on(more.iter().fold(put, |put, (name, value)| put.item(*name, s(value))).send()).unwrap();
    };
    put("POST#p", "COMMENT#2024-01-15T10:30:00.417Z#c", &[("EntityType", "Comment"), ("UserId", "ada")]);
    put("PERSON#ada", "PROFILE", &[("EntityType", "User")]);
    let why = |key: &str| ripple(&["why", key, "--no-changes", "--endpoint", &dev.endpoint]);
    let comment = why("POST#p / COMMENT#2024-01-15T10:30:00.417Z#c").stdout;
    let says = "by the item's other attributes, and the item has none: a search of the index does not \
                find the item until `ripple repair` or its writer corrects that\n";
    assert!(comment.contains("\n  index keys: GSI1PK, GSI1SK should be {") && comment.contains(says), "{comment}");
    let says = "PERSON#ada / PROFILE  unreadable\n  every derivation skips this item: its PK, SK are not \
                USER#{UserId} / PROFILE, the form of User; correct the item\n";
    let person = why("PERSON#ada / PROFILE");
    assert!(person.stdout.starts_with(says) && person.code == Some(3), "{person:?}");
}

#[test]
fn a_key_does_not_control_the_terminal() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let id = "a\u{1b}[31m\n\u{9b}2J\u{202e}b";
    let put = |pk: &str, sk: &str, kind: &str| {
        let put = client.put_item().table_name("ripple").item("PK", s(pk)).item("SK", s(sk));
        runtime.block_on(put.item("EntityType", s(kind)).send()).unwrap();
    };
    put(&format!("USER#{id}"), "PROFILE", "User");
    put("USER#eve", &format!("FOLLOWS#{id}"), "Follow");
    put(&format!("USER#n{id}"), "PROFILE", id);
    waited(&dev.endpoint, &[]);
    // A count that is wrong, so that its key is printed.
    let count = client.update_item().table_name("ripple").key("PK", s(&format!("USER#{id}"))).key("SK", s("PROFILE"));
    let count = count.update_expression("SET FollowerCount = :n");
    let verify = ["verify", "--at-rest", "--endpoint", &dev.endpoint];
    let wrong = count.expression_attribute_values(":n", AttributeValue::N("7".to_owned()));
    runtime.block_on(wrong.send()).unwrap();
    let verified = [ripple(&verify), ripple(&[&verify[..], &["--json"]].concat())];
    let ended = dev.stopped();
    for text in verified.iter().chain([&ended]).flat_map(|ended| [&ended.stdout, &ended.stderr]) {
        let hidden: Vec<char> = text.chars().filter(|c| is_hidden(*c) && *c != '\n').collect();
        assert_eq!(hidden, [' '; 0], "{text}");
    }
    let line = r"follower-count  USER#a\u{1b}[31m\n\u{9b}2J\u{202e}b / PROFILE  +1";
    assert!(ended.stdout.lines().any(|said| said == line), "{}", ended.stdout);
    assert!(ended.stderr.contains("are ignored"), "{}", ended.stderr);
}

#[test]
fn a_type_that_nobody_declared_is_told_once_with_the_nearest_one_whether_filters_pass_it_or_not() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/social/ripple.toml");
    for arguments in [&[][..], &["--config", manifest]] {
        let dev = Dev::start(arguments);
        let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
        let put = |pk: &str, kind: Option<&str>| {
            let put = client.put_item().table_name("ripple").item("PK", s(pk)).item("SK", s("PROFILE"));
            let put = kind.into_iter().fold(put, |put, kind| put.item("EntityType", s(kind)));
            runtime.block_on(put.send()).unwrap();
            waited(&dev.endpoint, &[]);
        };
        for pk in ["USER#a", "USER#b", "GADGET#a", "GADGET#b"] {
            let kind = if pk.starts_with("USER#") { "Usre" } else { "Gadget" };
            put(pk, Some(kind));
            put(pk, None);
        }
        let ended = dev.stopped();
        let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("ignored")).collect();
        assert_eq!(
            said,
            [
                "items of the type \"Usre\" are ignored, because there is no such entity: did you mean \"User\"? One is USER#a / PROFILE",
                "items without EntityType are ignored; one is USER#a / PROFILE",
                "items of the type \"Gadget\" are ignored, because there is no such entity; one is GADGET#a / PROFILE",
            ]
        );
        // `propagate` displays counts on profiles, so it gets what is under the key of one.
        assert!(ended.stderr.contains("propagate  polled 8, filtered out 4, invoked 4,"), "{}", ended.stderr);
    }
}

#[test]
fn batches_are_lines_with_verbose_alone() {
    for (verbose, is_said) in [(&[][..], false), (&["-v"][..], true)] {
        let dev = Dev::start(verbose);
        let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
        let put = client.put_item().table_name("ripple").item("PK", s("USER#a")).item("SK", s("PROFILE"));
        runtime.block_on(put.item("EntityType", s("User")).send()).unwrap();
        waited(&dev.endpoint, &[]);
        let ended = dev.stopped();
        fits(&ended);
        let line = "propagate  1 record, 1 change, 0.0 write units, ";
        assert_eq!(ended.stdout.lines().any(|said| said.starts_with(line)), is_said, "{ended:?}");
    }
}

#[test]
fn the_start_says_where_the_data_is_and_what_to_paste() {
    let dev = Dev::start(&[]);
    let port = dev.endpoint.rsplit(':').next().unwrap().to_owned();
    let started = |dev: Dev| {
        let stdout = dev.stopped().stdout;
        let lines = stdout.lines().take_while(|line| *line != "ready");
        // Its usual port may be that of another test.
        let lines: Vec<&str> = lines
            .map(|line| {
                if line.starts_with("console   http://127.0.0.1:") { "console   http://127.0.0.1:PAGES" } else { line }
            })
            .collect();
        lines.join("\n")
    };
    let said = started(dev).replace(&port, "PORT");
    expect![[r#"
        endpoint  http://127.0.0.1:PORT
        console   http://127.0.0.1:PAGES
        table     ripple
        ledger    ripple-ledger
        manifest  no ripple.toml is here: this is the shipped example's table
        data      in memory, gone when this ends: --data DIR keeps it
        for clients in another terminal:
          export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:PORT
          export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
          export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
        then, for example:
          AWS CLI     aws dynamodb scan --table-name ripple
          Python      boto3.resource("dynamodb").Table("ripple").scan()
          JavaScript  await new DynamoDB().scan({ TableName: "ripple" })"#]]
    .assert_eq(&said);
    let folder = tempfile::tempdir().unwrap();
    let kept = started(Dev::start(&["--data", folder.path().to_str().unwrap()]));
    assert!(kept.contains(&format!("\ndata      in the folder {}\n", folder.path().display())), "{kept}");
    let dev = Dev::run_with(&["--port", "0"], &[("AWS_ACCESS_KEY_ID", "mine"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
    let said = started(dev);
    assert!(!said.contains("AWS_ACCESS_KEY_ID") && !said.contains("secret"), "{said}");
}

#[test]
fn each_event_of_dev_is_an_object_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = chat(folder.path());
    let mut dev = Program::start(&["--config", &manifest]);
    let ready = dev.event("ready");
    let (runtime, client) = (Runtime::new().unwrap(), client(ready["endpoint"].as_str().unwrap()));
    assert_eq!(ready["variables"]["AWS_ENDPOINT_URL_DYNAMODB"], ready["endpoint"]);
    runtime.block_on(async {
        message(&client).await;
        react(&client, 1, AttributeValue::N("1000".to_owned())).await;
    });
    let problem = dev.event("problem");
    assert!(problem["message"].as_str().unwrap().starts_with("USER#u / REACTION#1 cannot be read by reactions"));
    dev.event("caught_up");
    fs::write(&manifest, CHAT.replace("[derivation.reactions]", "[derivation")).unwrap();
    let wrong = dev.event("problem");
    assert!(wrong["message"].as_str().unwrap().contains("the functions run as before the change"), "{wrong}");
    fs::write(&manifest, CHAT.replace("[derivation.reactions]", "[derivation.all-reactions]\nwas = \"reactions\""))
        .unwrap();
    dev.event("changed");
    let (seen, schema) = dev.stopped();
    let page = samples().remove("dev").unwrap();
    let mut of_page = BTreeSet::new();
    for sample in page.as_array().unwrap() {
        schema::fits(&schema, "dev", sample).unwrap();
        of_page.insert(sample["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, of_page);
    for option in [&["-v"][..], &["--functions", "http://127.0.0.1:1"], &["--", "true"]] {
        let refused = ripple(&[&["dev", "--json"], option].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

/// A `ripple dev --json` that ends with the test.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    schema: Value,
    /// The events of the lines so far.
    seen: BTreeSet<String>,
}

#[expect(clippy::indexing_slicing, reason = "a name that is missing is null")]
impl Program {
    fn start(arguments: &[&str]) -> Self {
        let schema = serde_json::from_str(&ripple(&["schema", "--json-output"]).stdout).unwrap();
        let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
        let mut child =
            ripple.args(["dev", "--json", "--port", "0"]).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, schema, seen: BTreeSet::new() }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        let object: Value = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}")).unwrap();
        schema::fits(&self.schema, "dev", &object).map_err(|why| format!("{line}: {why}")).unwrap();
        self.seen.insert(object["event"].as_str().unwrap().to_owned());
        Some(object)
    }

    /// Waits for an event.
    fn event(&mut self, event: &str) -> Value {
        loop {
            let object = self.next().unwrap();
            if object["event"] == event {
                return object;
            }
        }
    }

    /// Stops it, and returns the events of all lines, and the schema.
    fn stopped(mut self) -> (BTreeSet<String>, Value) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        while self.next().is_some() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        (std::mem::take(&mut self.seen), self.schema.take())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_database_that_goes_away_is_told_once() {
    let first = Dev::start(&[]);
    let endpoint = first.endpoint.clone();
    let mut second = Dev::run(&["--endpoint", &endpoint]);
    first.killed();
    let line = second.said_on_stderr("respond");
    assert_eq!(line, format!("{endpoint} does not respond: trying again until it does"));
    let said = second.killed();
    assert!(!said.contains("respond"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full_ends_the_command_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    // The shell limits the size of files, in blocks; a file that would be larger cannot be written.
    let dev = Dev::limited(&["--port", "0", "--data", path], 3_000);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let text = "x".repeat(50_000);
    let is_full = (0..500).any(|id| {
        let put = client.put_item().table_name("ripple").item("PK", s(&format!("NOTE#{id}"))).item("SK", s("NOTE"));
        runtime.block_on(put.item("Text", s(&text)).send()).is_err()
    });
    assert!(is_full);
    let ended = dev.ended();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = "ripple: the database cannot be written any more (disk I/O error): is its disk full or read-only?";
    assert!(ended.stderr.lines().any(|said| said.starts_with(line)), "{ended:?}");
}

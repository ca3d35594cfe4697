//! `ripple dev`: what it prints, which is where it is, each change, and each problem once; and which web pages and names its
//! embedded database answers.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use keys::key::is_hidden;
use serde_json::{Value, json};
use support::{
    command::{Ended, command},
    database::client,
    schema,
};
use tokio::runtime::Runtime;

use crate::{
    database,
    json::samples,
    ripple, ripple_with,
    waits::{follow, put, s, waited},
};

/// A `ripple dev` that ends with the test.
pub(super) struct Dev {
    pub(super) endpoint: String,
    child: Child,
    /// What it prints after it is ready; `None` if nobody reads that.
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<BufReader<ChildStderr>>,
    /// What it printed until it was ready.
    greeting: String,
}

impl Dev {
    /// Starts it with an embedded database on a free port, and waits until it is ready.
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::run(&[&["--port", "0"], arguments].concat())
    }

    /// Starts it with these arguments, and waits until it is ready.
    pub(super) fn run(arguments: &[&str]) -> Self {
        Self::run_with(arguments, &[])
    }

    /// Starts it with these variables too.
    fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut dev = command(env!("CARGO_BIN_EXE_ripple"));
        dev.arg("dev").args(arguments).envs(variables.iter().copied());
        Self::spawned(dev)
    }

    /// Starts it under a limit on the size of its files, in blocks of 512 bytes.
    fn limited(arguments: &[&str], n_blocks: u32) -> Self {
        let mut shell = command("sh");
        let run = format!("trap '' XFSZ; ulimit -f {n_blocks}; exec \"$0\" dev \"$@\"");
        shell.args(["-c", &run, env!("CARGO_BIN_EXE_ripple")]).args(arguments);
        Self::spawned(shell)
    }

    fn spawned(mut dev: Command) -> Self {
        let mut child = dev.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdout, stderr) = (child.stdout.take().map(BufReader::new), child.stderr.take().map(BufReader::new));
        let mut greeting = String::new();
        while !greeting.ends_with("\nready\n") {
            let n_bytes = stdout.as_mut().unwrap().read_line(&mut greeting).unwrap();
            assert!(n_bytes > 0, "{greeting}{}", io::read_to_string(stderr.unwrap()).unwrap());
        }
        let endpoint = greeting.lines().find_map(|line| line.strip_prefix("endpoint  ")).unwrap().to_owned();
        Self { endpoint, child, stdout, stderr, greeting }
    }

    /// From now on nobody reads what it prints.
    fn unread(&mut self) {
        drop(self.stdout.take());
    }

    /// Waits for a line on standard error with this text.
    pub(super) fn said_on_stderr(&mut self, text: &str) -> String {
        let lines = self.stderr.as_mut().unwrap().lines();
        lines.map(Result::unwrap).find(|line| line.contains(text)).unwrap()
    }

    /// Waits for a line on standard output with this text.
    pub(super) fn said(&mut self, text: &str) -> String {
        let lines = self.stdout.as_mut().unwrap().lines();
        lines.map(Result::unwrap).find(|line| line.contains(text)).unwrap()
    }

    /// Kills it. Returns what it printed on standard error.
    pub(super) fn killed(mut self) -> String {
        self.child.kill().unwrap();
        io::read_to_string(self.stderr.take().unwrap()).unwrap()
    }

    /// Stops it as Ctrl-C does, and returns what it printed.
    pub(super) fn stopped(self) -> Ended {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.ended()
    }

    /// Waits until it ends by itself, and returns what it printed.
    pub(super) fn ended(mut self) -> Ended {
        let printed = io::read_to_string(self.stdout.take().unwrap()).unwrap();
        let stderr = io::read_to_string(self.stderr.take().unwrap()).unwrap();
        Ended { code: self.child.wait().unwrap().code(), stdout: format!("{}{printed}", self.greeting), stderr }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_service_goes_on_when_nobody_reads_its_lines_any_more() {
    let mut dev = Dev::start(&[]);
    dev.unread();
    Runtime::new().unwrap().block_on(follow(&client(&dev.endpoint), 0..1));
    let verified = ripple(&["verify", "--endpoint", &dev.endpoint]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let pid = dev.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(dev.child.wait().unwrap().code(), Some(0));
}

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
        runtime.block_on(put(&client, attributes));
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
    let comment = [("PK", "POST#p"), ("SK", "COMMENT#2024-01-15T10:30:00.417Z#c"), ("EntityType", "Comment")];
    runtime.block_on(put(&client, &[&comment[..], &[("UserId", "ada")]].concat()));
    runtime.block_on(put(&client, &[("PK", "PERSON#ada"), ("SK", "PROFILE"), ("EntityType", "User")]));
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
    let (user, follows, untyped) = (format!("USER#{id}"), format!("FOLLOWS#{id}"), format!("USER#n{id}"));
    for (pk, sk, kind) in [(&*user, "PROFILE", "User"), ("USER#eve", &*follows, "Follow"), (&*untyped, "PROFILE", id)] {
        runtime.block_on(put(&client, &[("PK", pk), ("SK", sk), ("EntityType", kind)]));
    }
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
            let key = [("PK", pk), ("SK", "PROFILE")].into_iter();
            let item: Vec<_> = key.chain(kind.map(|kind| ("EntityType", kind))).collect();
            runtime.block_on(put(&client, &item));
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
        runtime.block_on(put(&client, &[("PK", "USER#a"), ("SK", "PROFILE"), ("EntityType", "User")]));
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
          export AWS_ENDPOINT_URL_DYNAMODB_STREAMS=http://127.0.0.1:PORT
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
    assert_eq!(ready["variables"]["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"], ready["endpoint"]);
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

// ---- Which web pages and names the embedded database answers ----

/// Origin of a page that is not of this machine.
const FOREIGN: &str = "http://foreign.example";

/// A response.
#[derive(Debug)]
struct Response {
    status: u16,
    /// In lower case.
    head: String,
    body: String,
}

impl Response {
    /// Checks that a request was refused for this reason, in the shape of DynamoDB's errors, and without a permission.
    fn is_refused(&self, reason: &str) {
        assert_eq!(self.status, 403, "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        let name = "com.amazon.coral.service#AccessDeniedException";
        assert_eq!(body, json!({ "__type": name, "message": reason }), "{self:?}");
        assert!(self.head.contains("content-type: application/x-amz-json-1.0\r\n"), "{self:?}");
        self.permits_nobody();
    }

    fn permits_nobody(&self) {
        assert!(!self.head.contains("access-control-"), "{self:?}");
    }
}

/// Sends a request with these headers, and reads the response.
fn sent(dev: &Dev, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(dev.endpoint.strip_prefix("http://").unwrap()).unwrap();
    let mut request = format!("{method} / HTTP/1.1\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        request.extend([*name, ": ", *value, "\r\n"]);
    }
    request.extend(["\r\n", body]);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: format!("{}\r\n", head.to_lowercase()), body: body.to_owned() }
}

/// Calls an operation, with these headers beside those of every client.
fn called(dev: &Dev, operation: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let target = format!("DynamoDB_20120810.{operation}");
    let signed =
        "AWS4-HMAC-SHA256 Credential=a/20261128/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
    let always = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", &*target),
        ("x-amz-date", "20261128T000000Z"),
        ("authorization", signed),
    ];
    sent(dev, "POST", &[headers, &always].concat(), body)
}

/// Asks as a browser does before it sends a page's request.
fn asked(dev: &Dev, host: &str, origin: &str) -> Response {
    let asks = [
        ("host", host),
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-amz-target"),
    ];
    sent(dev, "OPTIONS", &asks, "")
}

/// The request that deletes a user.
const DELETE: &str = r#"{"TableName":"ripple","Key":{"PK":{"S":"USER#ada"},"SK":{"S":"PROFILE"}}}"#;

const SCAN: &str = r#"{"TableName":"ripple"}"#;

async fn has_user(client: &Client) -> bool {
    let get = client.get_item().table_name("ripple").key("PK", s("USER#ada"));
    get.key("SK", s("PROFILE")).send().await.unwrap().item.is_some()
}

#[test]
fn a_page_of_another_site_neither_reads_nor_deletes() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    runtime.block_on(put(&client, &[("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User")]));
    let host = dev.endpoint.strip_prefix("http://").unwrap();
    let origin = "is not of this machine, and its pages may not use this database: start `ripple dev` with --allow-origin ORIGIN if they may";
    for foreign in [FOREIGN, "https://localhost.foreign.example", "null", "http://192.168.1.7:3000", "localhost"] {
        let why = format!("the origin \"{foreign}\" {origin}");
        for (operation, body) in [("Scan", SCAN), ("DeleteItem", DELETE)] {
            called(&dev, operation, &[("host", host), ("origin", foreign)], body).is_refused(&why);
        }
        asked(&dev, host, foreign).is_refused(&why);
    }
    // A name of the page's own site that resolves to this machine: the browser sends no origin with it.
    let name =
        "is not a name of this machine: use localhost or 127.0.0.1, or start `ripple dev` with --allow-host NAME";
    for rebound in ["foreign.example", "foreign.example:8000", "localhost.foreign.example", "192.168.1.7:8000"] {
        let why = format!("the host \"{rebound}\" {name}");
        for (operation, body) in [("Scan", SCAN), ("DeleteItem", DELETE)] {
            called(&dev, operation, &[("host", rebound)], body).is_refused(&why);
        }
    }
    called(&dev, "Scan", &[("host", host), ("host", "foreign.example")], SCAN)
        .is_refused(&format!("the host \"foreign.example\" {name}"));
    called(&dev, "Scan", &[], SCAN).is_refused(&format!("the host \"\" {name}"));
    assert!(runtime.block_on(has_user(&client)));
}

#[test]
fn names_of_this_machine_are_answered_and_permit_no_page() {
    let dev = Dev::start(&[]);
    for host in ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "ripple.localhost:8000"] {
        let response = called(&dev, "Scan", &[("host", host)], SCAN);
        assert!(response.status == 200 && response.body.contains("\"Count\":0"), "{response:?}");
    }
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:3000"] {
        let response = called(&dev, "Scan", &[("host", "localhost:8000"), ("origin", origin)], SCAN);
        assert_eq!(response.status, 200, "{response:?}");
        response.permits_nobody();
        // So the browser does not send what the page wants to send.
        let response = asked(&dev, "localhost:8000", origin);
        assert_eq!(response.status, 404, "{response:?}");
        response.permits_nobody();
    }
}

#[test]
fn an_allowed_origin_and_an_allowed_host_are_answered_and_no_other() {
    let allowed = "http://app.example:3000";
    let dev =
        Dev::start(&["--allow-origin", allowed, "--allow-host", "Ripple", "--allow-host", "host.docker.internal"]);
    for host in ["ripple:8000", "host.docker.internal", "localhost:8000"] {
        let response = called(&dev, "Scan", &[("host", host), ("origin", allowed)], SCAN);
        assert_eq!(response.status, 200, "{response:?}");
        assert!(response.head.contains(&format!("access-control-allow-origin: {allowed}\r\n")), "{response:?}");
        assert!(response.head.contains("vary: origin\r\n"), "{response:?}");
    }
    let response = asked(&dev, "localhost:8000", allowed);
    assert_eq!(response.status, 200, "{response:?}");
    for header in [&*format!("origin: {allowed}"), "methods: post", "headers: x-amz-target"] {
        assert!(response.head.contains(&format!("access-control-allow-{header}\r\n")), "{response:?}");
    }
    for other in ["http://app.example", "https://app.example:3000", FOREIGN] {
        assert_eq!(asked(&dev, "localhost:8000", other).status, 403, "{other}");
    }
    assert_eq!(called(&dev, "Scan", &[("host", "other:8000")], SCAN).status, 403);
}

#[test]
fn each_address_of_a_database_on_all_of_them_is_answered() {
    // Whoever listens on every address knows none of them; a name that is an address cannot resolve to another one.
    let dev = Dev::start(&["--host", "0.0.0.0"]);
    for host in ["192.168.1.7:8000", "[fe80::1]:8000"] {
        assert_eq!(called(&dev, "Scan", &[("host", host)], SCAN).status, 200, "{host}");
        assert_eq!(called(&dev, "Scan", &[("host", host), ("origin", FOREIGN)], SCAN).status, 403, "{host}");
    }
    assert_eq!(called(&dev, "Scan", &[("host", "foreign.example:8000")], SCAN).status, 403);
}

#[test]
fn what_cannot_be_allowed_is_a_usage_error() {
    let name = "it must be a name without a port, such as host.docker.internal";
    for wrong in ["", "ripple:8000", "http://ripple", "*"] {
        refused("--allow-host", wrong, name);
    }
    let origin = "it must be of the form http://HOST:PORT, as a browser shows it";
    for wrong in ["*", "null", "localhost:3000", "http://localhost:3000/", "http://localhost:3000/page"] {
        refused("--allow-origin", wrong, origin);
    }
    for own in [["--allow-host", "ripple"], ["--allow-origin", "http://ripple"]] {
        let both = ripple(&[&["dev", "--endpoint", "http://127.0.0.1:1"], &own[..]].concat());
        let says = format!("cannot be used with '{} ", own[0]);
        assert!(both.code == Some(2) && both.stderr.contains(&says), "{both:?}");
    }
}

fn refused(option: &str, value: &str, why: &str) {
    let ended = ripple(&["dev", option, value]);
    assert!(ended.code == Some(2) && ended.stderr.contains(why), "{option} {value}: {ended:?}");
}

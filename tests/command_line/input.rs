//! Input that is empty or odd, and output that nobody reads: nothing of it is a panic.

use std::{
    io::{self, BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use proptest::{
    prelude::{Just, Strategy, prop},
    prop_assert, prop_assert_eq, prop_assume, prop_oneof,
    test_runner::{Config, TestRunner},
};
use support::{
    command::{Ended, command},
    database::client,
};

use super::{SHIPPED, commands, database, fails, ripple, ripple_with, table_without_stream};

/// The end of a pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs a command with standard output or standard error closed, or both. Returns its exit code and the other output.
fn unread(arguments: &[&str], is_stdout: bool, is_stderr: bool) -> Ended {
    let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
    ripple.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args(arguments);
    ripple.stdout(if is_stdout { closed() } else { Stdio::piped() });
    ripple.stderr(if is_stderr { closed() } else { Stdio::piped() });
    let output = ripple.spawn().unwrap().wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_reader_that_closes_the_pipe_changes_nothing_else() {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    let verify = ["verify", "--at-rest", "--endpoint", &endpoint];
    let verify_json = [&verify[..], &["--json"]].concat();
    let price = "the table has not counted its items yet; reading it takes one read unit for each 4 KB of items\n";
    let printing: [(&[&str], &str); 7] = [
        (&["design"], SHIPPED),
        (&["design", "--filters"], SHIPPED),
        (&["explain", "tests/events/insert.json"], SHIPPED),
        (&["explain", "tests/events/insert.json", "--json"], SHIPPED),
        (&["explain", "--help"], ""),
        (&verify, price),
        (&verify_json, ""),
    ];
    for (arguments, stderr) in printing {
        let ended = unread(arguments, true, false);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), stderr), "{arguments:?}");
    }
    for (is_stdout, is_stderr) in [(false, true), (true, true)] {
        assert_eq!(unread(&["parked", "--endpoint", "http://127.0.0.1:1"], is_stdout, is_stderr).code, Some(1));
        assert_eq!(unread(&["verify", "--nonsense"], is_stdout, is_stderr).code, Some(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    for argument in ["schema", "--help", "--version"] {
        let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = ripple.arg(argument).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let line = "ripple: cannot write the output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), stderr.as_str()), (Some(1), line), "{argument}");
    }
}

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
    pub(super) fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut dev = command(env!("CARGO_BIN_EXE_ripple"));
        dev.arg("dev").args(arguments).envs(variables.iter().copied());
        Self::spawned(dev)
    }

    /// Starts it under a limit on the size of its files, in blocks of 512 bytes.
    pub(super) fn limited(arguments: &[&str], n_blocks: u32) -> Self {
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
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(follow(&client(&dev.endpoint)));
    let verified = ripple(&["verify", "--endpoint", &dev.endpoint]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let pid = dev.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(dev.child.wait().unwrap().code(), Some(0));
}

/// Writes a user and somebody who follows them.
async fn follow(client: &Client) {
    let user = [("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User"), ("UserId", "ada")];
    let follow = [("PK", "USER#grace"), ("SK", "FOLLOWS#ada"), ("EntityType", "Follow"), ("FollowerId", "grace")];
    for attributes in [&user, &follow] {
        let put = client.put_item().table_name("ripple");
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let put = attributes.iter().fold(put, |put, (name, value)| put.item(*name, text(value)));
        put.send().await.unwrap();
    }
}

#[test]
fn a_value_of_the_wrong_form_is_wrong_usage() {
    fails(
        &["verify", "--endpoint", ""],
        2,
        &expect![[r#"
            error: invalid value '' for '--endpoint <URL>': it must be of the form http://HOST:PORT

            For more information, try '--help'.
        "#]],
    );
    fails(
        &["verify", "--endpoint", "127.0.0.1:8000"],
        2,
        &expect![[r#"
        error: invalid value '127.0.0.1:8000' for '--endpoint <URL>': it must be of the form http://HOST:PORT

        For more information, try '--help'.
    "#]],
    );
    fails(
        &["verify", "--table", ""],
        2,
        &expect![[r#"
        error: invalid value '' for '--table <NAME>': the name of a table has 3 to 255 letters, digits, `-`, `_` and `.`

        For more information, try '--help'.
    "#]],
    );
    fails(
        &["verify", "--region", ""],
        2,
        &expect![[r#"
        error: invalid value '' for '--region <REGION>': it must be the name of a region, such as us-east-1

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    let empty = ["AWS_REGION", "DISABLED"].map(|name| (name, ""));
    // An emulator takes any credentials, so a part of them is as good as none.
    let credentials = [["", ""], ["", "secret"], ["id", ""]];
    for [id, secret] in credentials {
        let keys = [("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)];
        let jobs = ripple_with(&["jobs", "--endpoint", &endpoint], &[empty, keys].concat());
        assert_eq!((jobs.code, jobs.stderr.as_str()), (Some(0), ""), "{id} {secret}");
    }
    // Nothing listens on port 1, so the command ends.
    let dev = ripple_with(&["dev", "--endpoint", "http://127.0.0.1:1"], &empty);
    assert_eq!(
        dev.stderr,
        "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws.\n"
    );
    let verify = ripple_with(&["verify", "--table", "it"], &[("AWS_ENDPOINT_URL_DYNAMODB", "")]);
    assert!(verify.stderr.starts_with("error: invalid value 'it' for '--table <NAME>'"), "{}", verify.stderr);
}

#[test]
fn names_to_switch_off_are_read_as_the_functions_read_them() {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    for names in ["", ",", " ground , ", "user-cascade, post-cascade,"] {
        let given = ripple(&["jobs", "--endpoint", &endpoint, "--disable", names]);
        let set = ripple_with(&["jobs", "--endpoint", &endpoint], &[("DISABLED", names)]);
        for ended in [given, set] {
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{names:?}");
        }
    }
}

/// Values that somebody may give by mistake, or a script of theirs.
fn value(endpoint: &str) -> impl Strategy<Value = String> + use<> {
    let odd = [
        "",
        " ",
        ",",
        "-",
        "0",
        "1",
        "-1",
        "18446744073709551615",
        "99999999999999999999",
        "NaN",
        "\u{e9}\u{1f9ed}",
        "http://",
        "http:///",
        "http://:80",
        "127.0.0.1:1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:1",
        "http://[::1",
        "http://a b",
        "ftp://127.0.0.1:1",
        "nope",
        "ripple",
        "follower-count",
        "ground",
        "receipts",
        "tests/events/insert.json",
        "examples/own-table/ripple.toml",
        "no/such/file",
        ".",
    ];
    let odd: Vec<String> = odd.iter().map(|&text| text.to_owned()).collect();
    prop_oneof![2 => prop::sample::select(odd), 2 => Just(endpoint.to_owned()), 1 => "[^\\x00/]{1,12}"]
}

#[test]
fn no_argument_and_no_variable_is_a_panic() {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        // Without a stream, so that the service does not start.
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    // A demonstration and a service would work until they are stopped, as would a console whose port is free.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = listener.local_addr().unwrap().port().to_string();
    let known = commands();
    let words: Vec<Vec<String>> = known.iter().map(|command| command.words.clone()).collect();
    let options = [
        "--endpoint",
        "--table",
        "--ledger-table",
        "--region",
        "--config",
        "--disable",
        "--derivation",
        "--entity",
        "--pk",
        "--sk",
        "--segments",
        "--read-units",
        "--iterator-age",
        "--wait",
        "--items",
        "--units-per-second",
        "--segment-of",
        "--stream",
        "--shard",
        "--ledger",
        "--readers",
        "--functions",
        "--port",
        "--answers",
    ];
    let variables = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION", "DISABLED", "RUST_LOG"];
    let argument = prop_oneof![
        3 => (prop::sample::select(options.to_vec()), value(&endpoint))
            .prop_map(|(option, value)| vec![option.to_owned(), value]),
        1 => prop::sample::select(vec!["--json", "--at-rest", "--all", "--check", "--filters", "--apply", "--yes"])
            .prop_map(|flag| vec![flag.to_owned()]),
        1 => value(&endpoint).prop_map(|value| vec![value]),
    ];
    let cases = (
        prop::sample::select(words),
        prop::collection::vec(argument, 0..4),
        prop::collection::vec((prop::sample::select(variables.to_vec()), value(&endpoint)), 0..3),
    );
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let run = runner.run(&cases, |(words, arguments, variables)| {
        let arguments: Vec<String> = words.iter().cloned().chain(arguments.into_iter().flatten()).collect();
        let is_endless = ["demo", "dev"].iter().any(|endless| words == [*endless]);
        let has_endpoint = arguments.windows(2).any(|pair| pair == ["--endpoint", &endpoint]);
        prop_assume!(!is_endless || has_endpoint);
        let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if words == ["demo"] {
            all.extend(["--writes", "1"]);
        } else if words == ["console"] {
            all.extend(["--port", &busy]);
        }
        let mut set = vec![("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str())];
        set.extend(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let ended = ripple_with(&all, &set);
        prop_assert!(matches!(ended.code, Some(0..=3)), "{ended:?}");
        prop_assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        prop_assert_eq!(ended.code == Some(2) && ended.stderr.is_empty(), false, "{:?}", ended);
        Ok(())
    });
    run.unwrap();
}

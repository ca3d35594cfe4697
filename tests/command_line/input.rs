//! Input that is empty or odd, and output that nobody reads: nothing of it is a panic. Messages say what was meant, and
//! name nothing that the reader did not write.

use std::{
    io::{self, Write as _},
    net::{TcpListener, TcpStream},
    process::Stdio,
};

use expect_test::expect;
use proptest::{
    prelude::{Just, Strategy, prop},
    prop_assert, prop_assert_eq, prop_assume, prop_oneof,
    test_runner::{Config, TestRunner},
};
use support::{
    command::{Ended, command},
    server::{Request, serve},
};

use crate::{
    SHIPPED, commands, dev::Dev, fails_saying, file, misused, refuses, ripple, ripple_with, succeeds, with_tables,
};

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
    let (_runtime, endpoint) = with_tables();
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

#[test]
fn a_value_of_the_wrong_form_is_wrong_usage() {
    misused(
        &["verify", "--endpoint", ""],
        "invalid value '' for '--endpoint <URL>': it must be of the form http://HOST:PORT",
    );
    misused(
        &["verify", "--endpoint", "127.0.0.1:8000"],
        "invalid value '127.0.0.1:8000' for '--endpoint <URL>': it must be of the form http://HOST:PORT",
    );
    misused(
        &["verify", "--table", ""],
        "invalid value '' for '--table <NAME>': the name of a table has 3 to 255 letters, digits, `-`, `_` and `.`",
    );
    misused(
        &["verify", "--region", ""],
        "invalid value '' for '--region <REGION>': it must be the name of a region, such as us-east-1",
    );
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let (_runtime, endpoint) = with_tables();
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
    let (_runtime, endpoint) = with_tables();
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
    #[rustfmt::skip]
    let odd = [
        "", " ", ",", "-", "0", "1", "-1", "18446744073709551615", "99999999999999999999", "NaN", "\u{e9}\u{1f9ed}",
        "http://", "http:///", "http://:80", "127.0.0.1:1", "http://127.0.0.1:99999", "http://127.0.0.1:1",
        "http://[::1", "http://a b", "ftp://127.0.0.1:1", "nope", "ripple", "follower-count", "ground", "receipts",
        "tests/events/insert.json", "examples/own-table/ripple.toml", "no/such/file", ".",
    ];
    let odd: Vec<String> = odd.iter().map(|&text| text.to_owned()).collect();
    prop_oneof![2 => prop::sample::select(odd), 2 => Just(endpoint.to_owned()), 1 => "[^\\x00/]{1,12}"]
}

#[test]
fn no_argument_and_no_variable_is_a_panic() {
    let (_runtime, endpoint) = with_tables();
    // A demonstration and a service would work until they are stopped, as would a console whose port is free.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = listener.local_addr().unwrap().port().to_string();
    let known = commands();
    let words: Vec<Vec<String>> = known.iter().map(|command| command.words.clone()).collect();
    let options = "--endpoint --table --ledger-table --region --config --disable --derivation --entity --pk --sk \
        --segments --read-units --iterator-age --wait --items --units-per-second --segment-of --stream \
        --shard --ledger --readers --functions --port --answers";
    let options: Vec<&str> = options.split(' ').collect();
    let variables = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION", "DISABLED", "RUST_LOG"];
    let argument = prop_oneof![
        3 => (prop::sample::select(options), value(&endpoint))
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

// ---- Messages ----

/// Tickets, counted by room: twice into one attribute if `into` is not another one.
fn tickets(into: &str) -> String {
    format!(
        r#"
[table]
partition-key = "pk"
sort-key = "sk"
type = "Type"

[entity.Room]
partition-key = "ROOM#{{room}}"
sort-key = "ROOM"
derived-attributes = ["openCount", "allCount"]

[entity.Ticket]
partition-key = "TICKET#{{id}}"
sort-key = "TICKET"
attributes = ["room", "state"]

[derivation.open]
kind = "count"
from = "Ticket"
into = "Room.openCount"
link = {{ room = "room" }}
where = {{ state = "open" }}

[derivation.all]
kind = "count"
from = "Ticket"
into = "Room.{into}"
link = {{ room = "room" }}
"#
    )
}

#[test]
fn two_counts_into_one_attribute_are_named_as_they_are_declared() {
    let manifest = file(&tickets("openCount"));
    let manifest = manifest.path().to_str().unwrap();
    refuses(
        &["check", manifest],
        &format!(
            "{manifest}:24:13: derivation.all: writes Room.openCount, as open does: name another attribute, or leave one of both out"
        ),
    );
}

#[test]
fn types_are_printed_in_three_languages_of_a_manifest_that_is_right() {
    let right = file(&tickets("allCount"));
    let right = right.path().to_str().unwrap();
    for (language, line) in [
        ("typescript", "export const roomKey = new KeyForm<{ \"room\": string }, "),
        ("python", "ROOM_KEY: KeyForm[RoomKey, RoomKey, dict[str, str]] = KeyForm("),
        ("rust", "pub struct RoomKey {"),
    ] {
        let ended = succeeds(&["types", "--language", language, "--config", right]);
        assert!(ended.contains(line), "{ended}");
    }
    let wrong = file(&tickets("openCount"));
    let wrong = wrong.path().to_str().unwrap();
    let line = format!(
        "{wrong}:24:13: derivation.all: writes Room.openCount, as open does: name another attribute, or leave one of both out"
    );
    refuses(&["types", "--language", "rust", "--config", wrong], &line);
    let unknown = ripple(&["types", "--language", "go"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
    assert!(unknown.stderr.contains("invalid value 'go' for '--language <LANGUAGE>'"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("[possible values: typescript, python, rust]"), "{}", unknown.stderr);
}

#[test]
fn a_command_takes_the_manifest_of_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        Ended::of(command(env!("CARGO_BIN_EXE_ripple")).args(arguments).current_dir(folder.path()))
    };
    let shipped = run(&["types", "--language", "python"]);
    assert!(shipped.stdout.contains("COMMENT_KEY"), "{shipped:?}");
    let none = run(&["check"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (Some(2), "ripple: no ripple.toml is here: name the file of a manifest, or draft one with `ripple init`\n")
    );
    assert_eq!(shipped.stderr, SHIPPED);
    std::fs::write(folder.path().join("ripple.toml"), tickets("allCount")).unwrap();
    let own = run(&["types", "--language", "python"]);
    assert!(own.stdout.contains("ROOM_KEY") && !own.stdout.contains("COMMENT_KEY"), "{own:?}");
    assert_eq!(run(&["check"]).code, Some(0));
    let named = run(&["types", "--language", "python", "--config", "other.toml"]);
    assert_eq!(named.stderr, "ripple: cannot read other.toml: No such file or directory (os error 2)\n");
    for name in ["check", "design"] {
        let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
        let ripple = ripple.arg(name).env("RIPPLE_CONFIG", "other.toml").current_dir(folder.path());
        assert_eq!(Ended::of(ripple).stderr, named.stderr, "{name}");
    }
    // A manifest that cannot be read does not give the shipped table.
    std::fs::remove_file(folder.path().join("ripple.toml")).unwrap();
    std::fs::create_dir(folder.path().join("ripple.toml")).unwrap();
    assert_eq!(run(&["design"]).stderr, "ripple: cannot read ripple.toml: Is a directory (os error 21)\n");
}

#[test]
fn a_derivation_that_others_are_built_on_is_refused_with_all_that_have_to_go() {
    let manifest = file(&tickets("allCount"));
    let manifest = manifest.path().to_str().unwrap();
    let line = "open cannot be switched off alone, because open-display is built on it: switch off open,open-display";
    refuses(&["verify", "--config", manifest, "--disable", "open"], line);
    // What it says to do works; nothing listens on port 1.
    let ended =
        ripple(&["verify", "--config", manifest, "--endpoint", "http://127.0.0.1:1", "--disable", "open,open-display"]);
    assert_eq!(
        ended.stderr,
        "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws.\n"
    );
}

#[test]
fn a_name_that_does_not_exist_is_told_with_what_was_meant() {
    let dev = Dev::start(&[]);
    let at = |arguments: &[&str], line: &str| {
        refuses(&[arguments, &["--endpoint", &dev.endpoint]].concat(), line);
    };
    at(
        &["verify", "--derivation", "folower-count"],
        "there is no derivation folower-count: did you mean \"follower-count\"?",
    );
    at(&["verify", "--derivation", "nope"], "there is no derivation nope; `ripple design` lists all");
    at(&["backfill", "folower-count"], "there is no derivation folower-count: did you mean \"follower-count\"?");
    at(&["verify", "--entity", "user"], "there is no entity user: did you mean \"User\"?");
    let off = "there is no derivation nope to switch off; `ripple design` lists all";
    at(&["verify", "--disable", "nope"], off);
    refuses(&["dev", "--disable", "nope"], off);
}

#[test]
fn an_endpoint_that_is_none_of_aws_is_told_where_aws_is_named() {
    let elsewhere = ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1");
    let ended = ripple_with(&["parked", "--aws", "--region", "eu-west-1"], &[elsewhere]);
    let line = "AWS_ENDPOINT_URL_DYNAMODB is set, so the calls go to http://127.0.0.1:1 in place of AWS";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
}

#[test]
fn the_usage_shows_no_option_that_a_variable_stands_for() {
    let variables =
        [("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"), ("AWS_REGION", "eu-west-1"), ("DISABLED", "x")];
    let ended = ripple_with(&["backfill"], &variables);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    expect![[r#"
        error: the following required arguments were not provided:
          <DERIVATION|--all>

        Usage: ripple backfill <DERIVATION|--all>

        For more information, try '--help'.
    "#]]
    .assert_eq(&ended.stderr);
    // A variable that is at fault is named all the same.
    let ended = ripple_with(&["verify"], &[("AWS_ENDPOINT_URL_DYNAMODB", "nowhere")]);
    assert!(ended.stderr.contains("invalid value 'nowhere' for '--endpoint <URL>'"), "{}", ended.stderr);
}

#[test]
fn the_design_of_a_table_of_ones_own_says_nothing_of_another_table() {
    let manifest = file(&tickets("allCount"));
    let ended = succeeds(&["design", "--config", manifest.path().to_str().unwrap()]);
    let of_another =
        ["famous", "follower", "likes", "post", "sensor", "UserId", "E-25", "E-30", "MAX-", "a title", "spread}"];
    let found: Vec<&str> =
        of_another.into_iter().filter(|word| ended.to_lowercase().contains(&word.to_lowercase())).collect();
    assert_eq!(found, [""; 0], "{ended}");
    assert!(ended.contains("such as Ticket items by Room,"), "{ended}");
    let shipped = ripple(&["design"]).stdout;
    assert!(shipped.contains("`{UserId}` stands for a value, `{spread}` for a suffix"), "{shipped}");
}

/// A server that passes on the calls by which a command opens its tables, and answers no other one, as a database that is
/// gone after that.
fn gone_after_opening(endpoint: &str) -> String {
    let behind = endpoint.strip_prefix("http://").unwrap().to_owned();
    let address = serve(move |mut connection| {
        let Some(request) = Request::read(&connection) else { return };
        if request.head.contains(".DescribeTable") {
            let mut database = TcpStream::connect(&behind).unwrap();
            database.write_all(&request.closing()).unwrap();
            io::copy(&mut database, &mut connection).unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_database_that_goes_away_while_a_command_runs_is_told_in_a_sentence() {
    let (_runtime, endpoint) = with_tables();
    let endpoint = gone_after_opening(&endpoint);
    let line =
        "the database does not respond any more: what is done stays done; start the database, then this command again";
    for command in
        [&["parked"][..], &["jobs"], &["verify", "--at-rest"], &["redrive", "--all"], &["wait", "--timeout", "60"]]
    {
        fails_saying(&[command, &["--endpoint", &endpoint]].concat(), line);
    }
}

#[test]
fn a_value_of_the_wrong_form_is_told_in_words_of_ours() {
    let says = [
        (["wait", "--timeout", "x"], "it must be a whole number of seconds, 1 to 86400"),
        (["wait", "--timeout", "0"], "it must be a whole number of seconds, 1 to 86400"),
        (["verify", "--wait", "soon"], "it must be a whole number of seconds"),
        (["verify", "--iterator-age", "-"], "it must be a whole number of seconds"),
        (["verify", "--derivation", ""], "it is empty"),
        (["backfill", "", "--yes"], "it is empty"),
        (["wait", "--endpoint", "http://127.0.0.1:99999"], "it must be of the form http://HOST:PORT"),
        (["dev", "--functions", "http://127.0.0.1:99999"], "it must be of the form http://HOST:PORT"),
        (["dev", "--host", "nope"], "it must be an IP address, such as 0.0.0.0 for all of this machine's"),
    ];
    for (arguments, why) in says {
        let ended = ripple(&arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.lines().next().unwrap().ends_with(why), "{ended:?}");
    }
}

#[test]
fn a_progress_file_that_cannot_be_one_is_told_by_its_reason() {
    let (_runtime, endpoint) = with_tables();
    let other = file("no database, and long enough that its first bytes are those of none, as it is here at last\n");
    let other = other.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let lost = folder.path().join("no/file");
    let lost = lost.to_str().unwrap();
    let says = [
        (other, format!("{other} is not the progress file of a verification: give another file")),
        (lost, format!("cannot open the progress file {lost}: No such file or directory (os error 2)")),
    ];
    for (path, line) in says {
        let ended = ripple(&["verify", "--at-rest", "--json", "--endpoint", &endpoint, "--progress", path]);
        assert_eq!((ended.code, ended.stderr), (Some(1), format!("ripple: {line}\n")));
    }
}

#[test]
fn temporary_files_that_cannot_be_written_are_told_with_their_folder() {
    let (_runtime, endpoint) = with_tables();
    let line = "ripple: cannot write temporary files in the folder /no/such: name another with TMPDIR, or a file with \
                --progress: ";
    for command in [&["verify"][..], &["repair"], &["repair", "--apply"]] {
        let arguments = [command, &["--at-rest", "--endpoint", &endpoint]].concat();
        let ended = ripple_with(&arguments, &[("TMPDIR", "/no/such")]);
        assert!(ended.code == Some(1) && ended.stderr.starts_with(line), "{ended:?}");
    }
}

#[test]
fn a_proxy_is_named_where_nothing_responds() {
    let ended = ripple_with(&["parked", "--endpoint", "http://127.0.0.1:1"], &[("HTTP_PROXY", "http://127.0.0.1:1")]);
    let line = "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws. HTTP_PROXY names a proxy: only \
                the hosts in NO_PROXY are called without it\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), line));
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let no_text = std::ffi::OsStr::from_bytes(b"a\xff");
    let said = |name: &str| {
        let mut dev = command(env!("CARGO_BIN_EXE_ripple"));
        let ended = Ended::of(dev.args(["dev", "--port", "0"]).env(name, no_text));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        ended.stderr
    };
    for name in ["AWS_REGION", "DISABLED"] {
        let line = format!("error: the environment variable {name} is not UTF-8: set it to another value, or unset it");
        assert_eq!(said(name).lines().next(), Some(line.as_str()));
    }
    let name = "UNREADABLE_PERCENT_MAX";
    let line = format!("ripple: the environment variable {name} is \"a\u{fffd}\": set it to a whole number of percent");
    assert!(said(name).starts_with(&line));
}

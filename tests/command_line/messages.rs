//! Messages that say what was meant, and name nothing that the reader did not write.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use expect_test::expect;
use support::command::{Ended, command};

use super::{SHIPPED, database, fails_saying, file, input::Dev, refuses, ripple, ripple_with, table_without_stream};

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
        let ended = ripple(&["types", "--language", language, "--config", right]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
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
    let ended = ripple(&["design", "--config", manifest.path().to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let of_another =
        ["famous", "follower", "likes", "post", "sensor", "UserId", "E-25", "E-30", "MAX-", "a title", "spread}"];
    let found: Vec<&str> =
        of_another.into_iter().filter(|word| ended.stdout.to_lowercase().contains(&word.to_lowercase())).collect();
    assert_eq!(found, [""; 0], "{}", ended.stdout);
    assert!(ended.stdout.contains("such as Ticket items by Room,"), "{}", ended.stdout);
    let shipped = ripple(&["design"]).stdout;
    assert!(shipped.contains("`{UserId}` stands for a value, `{spread}` for a suffix"), "{shipped}");
}

/// A server that passes on the calls by which a command opens its tables, and answers no other one, as a database that is
/// gone after that.
fn gone_after_opening(endpoint: &str) -> String {
    let behind = endpoint.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, behind) = (connection.unwrap(), behind.clone());
            thread::spawn(move || {
                let request = request(&connection);
                if String::from_utf8_lossy(&request).contains(".DescribeTable") {
                    let mut database = TcpStream::connect(behind).unwrap();
                    database.write_all(&request).unwrap();
                    io::copy(&mut database, &mut connection).unwrap();
                }
            });
        }
    });
    before
}

/// A request with its body, made one after which the connection is closed.
fn request(connection: &TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(connection);
    let (mut request, mut n_bytes) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let lower = line.to_lowercase();
        if let Some(length) = lower.strip_prefix("content-length:") {
            n_bytes = length.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        if !lower.starts_with("connection:") {
            request.push_str(&line);
        }
    }
    request.push_str("Connection: close\r\n\r\n");
    let mut request = request.into_bytes();
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body).unwrap();
    request.extend(body);
    request
}

#[test]
fn a_database_that_goes_away_while_a_command_runs_is_told_in_a_sentence() {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
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
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
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
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
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

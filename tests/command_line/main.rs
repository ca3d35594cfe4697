//! The command line: its output and its exit codes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]

mod attaching;
mod dev;
mod init;
mod input;
mod jobs;
mod json;
mod opening;
mod planned;
mod waits;

use std::{
    fs,
    io::Write as _,
    net::{TcpListener, TcpStream},
    path::PathBuf,
};

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use support::{
    command::{Ended, command},
    database::{client, create_table, embedded as database},
    server::{Request, serve},
};
use tokio::runtime::Runtime;

/// What a command without a database says on standard error if no manifest is named.
const SHIPPED: &str = "no ripple.toml is here: this is the shipped example's table\n";

/// Runs a command in the repository's folder.
fn ripple(arguments: &[&str]) -> Ended {
    ripple_with(arguments, &[])
}

/// Runs a command with these variables.
fn ripple_with(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
    Ended::of(ripple.args(arguments).current_dir(workspace).envs(variables.iter().copied()))
}

/// Checks a failing command: its exit code, an empty standard output, and this standard error.
fn fails(arguments: &[&str], code: i32, stderr: &Expect) {
    let ended = ripple(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
    stderr.assert_eq(&ended.stderr);
}

/// The output of a command that ends with this exit code and this standard error.
fn ends(arguments: &[&str], code: i32, stderr: &str) -> String {
    let ended = ripple(arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), stderr), "{arguments:?}: {}", ended.stdout);
    ended.stdout
}

/// The output of a command that succeeds, and says nothing on standard error.
fn succeeds(arguments: &[&str]) -> String {
    ends(arguments, 0, "")
}

/// Checks a command that fails with exit code 1 and this one line.
fn fails_saying(arguments: &[&str], line: &str) {
    assert_eq!(ends(arguments, 1, &format!("ripple: {line}\n")), "");
}

/// Checks a command that is used wrongly: exit code 2 and this one line.
fn refuses(arguments: &[&str], line: &str) {
    assert_eq!(ends(arguments, 2, &format!("ripple: {line}\n")), "");
}

/// Checks a command that the parser of arguments refuses: exit code 2 and this message, before a hint.
fn misused(arguments: &[&str], message: &str) {
    assert_eq!(ends(arguments, 2, &format!("error: {message}\n\nFor more information, try '--help'.\n")), "");
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A command, with the names of the commands above it.
struct Listed {
    words: Vec<String>,
    help: String,
}

/// Every command in the help of clap, with the commands below it.
fn commands() -> Vec<Listed> {
    let mut all = vec![Listed { words: Vec::new(), help: ripple(&["--help"]).stdout }];
    let mut at = 0;
    while let Some(Listed { words, help }) = all.get(at) {
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // A line with a greater indentation continues the line above.
        let names =
            listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
        let names = names.filter(|name| *name != "help").map(|name| [words.as_slice(), &[name.to_owned()]].concat());
        for words in names.collect::<Vec<_>>() {
            let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
            let help = ripple(&arguments);
            assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{words:?}");
            all.push(Listed { words, help: help.stdout });
        }
        at += 1;
    }
    all.split_off(1)
}

impl Listed {
    fn usage(&self) -> &str {
        self.help.lines().find(|line| line.starts_with("Usage: ")).expect("help says how a command is used")
    }

    /// Is it a command to run, and not only a group of commands?
    fn runs(&self) -> bool {
        !self.usage().ends_with(" <COMMAND>")
    }

    fn takes(&self, option: &str) -> bool {
        self.help.lines().any(|line| line.trim_start().split(' ').next() == Some(option))
    }

    /// The command with its required arguments.
    fn arguments(&self) -> Vec<&str> {
        let mut arguments: Vec<&str> = self.words.iter().map(String::as_str).collect();
        arguments.extend(self.usage().split(' ').filter(|word| word.starts_with('<') && !word.ends_with(']')).map(
            |word| match word {
                "<FILE>" | "<FILE>..." => "tests/events/tumbling-window.json",
                "<SHELL>" => "bash",
                "<DERIVATION>" | "<DERIVATION>..." | "<DERIVATION|--all>" => "follower-count",
                "<ID|--all>" => "--all",
                "<KEY>" => "USER#ada / PROFILE",
                // Of `<FILE|--table <NAME>>`.
                "<FILE|--table" => "--table",
                "<NAME>>" => "ripple",
                "<LANGUAGE>" => "--language=python",
                other => unreachable!("{}: what is {other}?", self.usage()),
            },
        ));
        arguments
    }
}

#[test]
fn every_command_has_help() {
    let commands = commands();
    assert!(commands.len() > 10 && commands.iter().any(|command| command.words == ["catalogue", "diff"]));
    for command in commands {
        let help = &command.help;
        assert!(command.usage().starts_with(&format!("Usage: ripple {}", command.words.join(" "))), "{help}");
        let examples: Vec<&str> =
            help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty()).collect();
        assert_eq!(examples.len(), 2, "{help}");
        assert!(
            help.ends_with(
                "Exit codes: 0 nothing to do, 1 failed, 2 wrong usage, 3 findings, or something left to do.\n"
            ),
            "{help}"
        );
    }
    assert_eq!(ripple(&["--version"]).stdout, concat!("ripple ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn help_is_wrapped_at_the_width_of_the_terminal() {
    for command in commands() {
        let arguments: Vec<&str> = command.words.iter().map(String::as_str).chain(["--help"]).collect();
        let width = |columns: &str| {
            let help = ripple_with(&arguments, &[("COLUMNS", columns)]).stdout;
            // A usage line and an example stay as they are.
            let wrapped = help.split("Options:").nth(1).unwrap().split("Examples:").next().unwrap().to_owned();
            wrapped.lines().map(|line| line.chars().count()).max().unwrap()
        };
        assert!(width("80") <= 80 && width("120") <= 120, "{arguments:?}: {} and {}", width("80"), width("120"));
    }
}

#[test]
fn completions_and_manual_pages_know_every_command_and_option() {
    let all = commands();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = succeeds(&["completions", shell]);
        assert!(all.iter().all(|command| ended.contains(command.words.last().unwrap())), "{shell}");
        assert!(ended.contains("units-per-second"), "{shell}");
    }
    let script = ripple(&["completions", "bash"]).stdout;
    let asked = "COMP_WORDS=(ripple ver); COMP_CWORD=1; _ripple ripple ver ripple; echo \"${COMPREPLY[@]}\"";
    let answered = Ended::of(command("bash").args(["-c", &format!("{script}\n{asked}")]));
    assert_eq!((answered.stdout.as_str(), answered.stderr.as_str()), ("verify\n", ""), "{answered:?}");
    for command in &all {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let page = succeeds(&[&["man"], &words[..]].concat());
        let title = format!(".TH ripple-{} 1", words.join("-"));
        assert!(page.lines().any(|line| line.starts_with(&title)), "{title}: {page}");
        assert!(page.contains("Exit codes: "), "{words:?}");
    }
    assert!(ripple(&["man"]).stdout.contains("ripple\\-verify(1)"));
    refuses(&["man", "nope"], "there is no command nope");
}

#[test]
fn every_command_is_in_the_documentation() {
    let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))];
    let mut pages = String::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages += &fs::read_to_string(path).unwrap();
            }
        }
    }
    for command in commands().iter().filter(|command| command.runs()) {
        let run = format!("ripple {}", command.words.join(" "));
        assert!(pages.contains(&run), "no page of docs/ says what `{run}` does");
    }
}

#[test]
fn explain_says_what_each_record_would_do() {
    let explained = ends(&["explain", "tests/events/insert.json"], 0, SHIPPED);
    expect![[r#"
        34d30e10884303047e842a3b67bd5624  change  USER#grace / FOLLOWS#ada
          follower-mirror          recomputes the Follower USER#ada / FOLLOWER#grace
          follower-count           adds +1 to the count of USER#ada / PROFILE
          following-count          adds +1 to the count of USER#grace / PROFILE
          followee-name            recomputes the Follow USER#grace / FOLLOWS#ada
          follower-name            recomputes the Follower USER#ada / FOLLOWER#grace
        8ddb2e6d751d9524bfc9f8196f8fc095  change  USER#grace / LIKE#POST#p-1842
          like-count               adds +1 to the count of POST#p-1842 / METADATA
        50a4d805e187dd604291aa9e099d2e2f  change  POST#p-1842 / COMMENT#2024-01-15T10:30:00.417Z#c-77
          comment-count            adds +1 to the count of POST#p-1842 / METADATA
          comment-author           recomputes the Comment POST#p-1842 / COMMENT#2024-01-15T10:30:00.417Z#c-77
    "#]]
    .assert_eq(&explained);
}

#[test]
fn explain_names_ignored_records_and_those_that_do_not_decode() {
    let ended = ripple(&["explain", "tests/events/unknown-entities.json"]);
    assert_eq!(ended.code, Some(0));
    let ignored: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("ignored")).collect();
    expect![[r#"
        709e7340bf3f6b642cd94bb581236aec  ignored: the item has no entity type  USER#ada / SETTINGS
        da63f5f501a8dbd9108ce398bc65e011  ignored: the item's entity type is not declared  GADGET#7 / METADATA"#]]
    .assert_eq(&ignored.join("\n"));
    let ended = ripple(&["explain", "tests/events/undecodable.json"]);
    assert_eq!(ended.code, Some(0));
    expect![[r#"
        ad06b151e8833b3f4d933068c0082e04  change  USER#ada / LIKE#POST#p-7
          like-count               adds +1 to the count of POST#p-7 / METADATA
        d2c530e61cf1e9fd7ce7725806121264  parked
          the record does not decode: a value is missing or not of the form of a stream record, at column 15
        138d77cec11d62b1889bc4d36b24847c  change  USER#linus / LIKE#POST#p-7
          like-count               adds +1 to the count of POST#p-7 / METADATA
    "#]]
    .assert_eq(&ended.stdout);
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
fn explain_knows_the_table_of_a_manifest() {
    let event = r#"{"Records": [{"eventID": "e1", "eventName": "INSERT", "dynamodb": {
        "Keys": {"pk": {"S": "USER#grace"}, "sk": {"S": "FOLLOWS#ada"}}, "SequenceNumber": "1",
        "NewImage": {"pk": {"S": "USER#grace"}, "sk": {"S": "FOLLOWS#ada"}, "Type": {"S": "Follow"}}}}]}"#;
    let event = file(event);
    let manifest = "examples/own-table/ripple.toml";
    let ended = succeeds(&["explain", event.path().to_str().unwrap(), "--config", manifest]);
    expect![[r#"
        e1  change  USER#grace / FOLLOWS#ada
          follower-count           adds +1 to the count of USER#ada / USER#ada
          followed-by              recomputes the FollowedBy USER#ada / FOLLOWEDBY#grace
          followed-name            recomputes the Follow USER#grace / FOLLOWS#ada
          follower-name            recomputes the FollowedBy USER#ada / FOLLOWEDBY#grace
    "#]]
    .assert_eq(&ended);
}

#[test]
fn a_manifest_that_cannot_be_used_is_one_line() {
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml")).unwrap();
    let wrong = file(&text.replacen("from = \"Follow\"", "from = \"Folow\"", 1));
    let wrong = wrong.path().to_str().unwrap();
    let what = "derivation.follower-count.from: there is no entity \"Folow\": did you mean \"Follow\"?";
    let missing = "cannot read no/ripple.toml: No such file or directory (os error 2)";
    for (config, line) in [(wrong, format!("{wrong}:33:1: {what}")), ("no/ripple.toml", missing.to_owned())] {
        // The command refuses this before any call, so no server is necessary.
        let configured: Vec<Listed> =
            commands().into_iter().filter(|command| command.runs() && command.takes("--config")).collect();
        assert!(configured.len() > 10);
        for command in &configured {
            let mut arguments = command.arguments();
            arguments.extend(["--config", config]);
            if command.takes("--endpoint") {
                arguments.extend(["--endpoint", "http://127.0.0.1:1"]);
            }
            refuses(&arguments, &line);
        }
        refuses(&["check", config], &line);
    }
}

#[test]
fn a_derivation_that_cannot_be_switched_off_is_one_line() {
    for command in ["dev", "verify"] {
        let line = "ripple: there is no derivation user-cascades to switch off: did you mean \"user-cascade\"?\n";
        ends(&[command, "--endpoint", "http://127.0.0.1:1", "--disable", "user-cascades"], 2, line);
    }
}

#[test]
fn design_prints_the_page_of_the_embedded_manifest_and_of_its_file_alike() {
    let shipped = ends(&["design"], 0, SHIPPED);
    let file = "examples/social/ripple.toml";
    let of_file = ripple(&["design", "--config", file]).stdout;
    assert_eq!(shipped, of_file.replace(&format!("`ripple design --config {file}`"), "`ripple design`"));
}

#[test]
fn design_prints_the_event_filters_that_the_template_has() {
    let ended = ripple(&["design", "--filters"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let template = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../infra/template.yaml");
    let patterns = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| line.starts_with("- Pattern:")).map(str::to_owned).collect()
    };
    assert_eq!(patterns(&ended.stdout), patterns(&fs::read_to_string(template).unwrap()));
    let json = ripple(&["design", "--filters", "--json", "--config", "examples/own-table/ripple.toml"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(["aggregate", "propagate", "combined"].iter().all(|name| json[name]["Filters"].is_array()), "{json}");
    let first = json["aggregate"]["Filters"][0]["Pattern"].as_str().unwrap();
    expect![[r##"{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"USER#"}]},"sk":{"S":[{"prefix":"FOLLOWS#"}]}}}}"##]]
        .assert_eq(first);
    assert_eq!(ripple(&["design", "--filters", "--check"]).code, Some(2));
}

#[test]
fn the_shipped_design_has_no_finding_without_an_answer() {
    let arguments = ["design", "--check", "--answers", "examples/social/answers.json"];
    let reviewed = ends(&arguments, 0, SHIPPED);
    assert!(reviewed.ends_with(" findings, 0 not answered\n"), "{reviewed}");
    let ended = ripple(&[&arguments[..], &["--json"]].concat());
    let reviewed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &reviewed["unanswered"]), (Some(0), &json!(0)));
    let findings = reviewed["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding["answer"].is_string()), "{findings:?}");
}

const NOTES: &str = r#"
[table]
partition-key = "pk"
sort-key = "sk"
type = "Type"
[index.all]
partition-key = "gpk"
sort-key = "gsk"
[entity.Note]
partition-key = "NOTE#{id}"
sort-key = "NOTE"
[entity.Note.index.all]
partition-key = "NOTES"
sort-key = "{id}"
"#;

#[test]
fn the_design_of_a_table_of_ones_own_is_checked_as_far_as_it_is_known() {
    let ended = succeeds(&["design", "--check", "--config", "examples/own-table/ripple.toml"]);
    expect![[r#"
        not checked, because no [access.NAME] declares your reads: scan, unread-index, counter-in-listing, unread-target, large-transaction
        0 findings, 0 not answered
    "#]].assert_eq(&ended);
    let notes = file(NOTES);
    let ended = ends(&["design", "--check", "--config", notes.path().to_str().unwrap()], 3, "");
    expect![[r#"
        static-partition  Note in all
          found     the partition key `NOTES` is the same for all items, or nearly so
          matters   a partition takes 1,000 write units and gives 3,000 read units a second, whatever the table has; every item is written to and read from this one
          to do     spread the key over suffixes, such as `{Id%8}`, and merge the suffixes when reading; or put a field into it that differs
        not checked, because no [access.NAME] declares your reads: scan, unread-index, counter-in-listing, unread-target, large-transaction
        1 finding, 1 not answered
    "#]].assert_eq(&ended);
}

#[test]
fn a_finding_is_answered_from_a_file() {
    let notes = file(NOTES);
    let notes = notes.path().to_str().unwrap();
    let answered = |text: &str| {
        let answers = file(text);
        let answers = answers.path().to_str().unwrap();
        let ended = ripple(&["design", "--check", "--config", notes, "--answers", answers]);
        (ended.code, ended.stdout.lines().last().unwrap_or_default().to_owned(), ended.stderr.replace(answers, "FILE"))
    };
    let (code, last, _) =
        answered(r#"[{"check": "static-partition", "subject": "Note in all", "reason": "there are ten"}]"#);
    assert_eq!((code, last.as_str()), (Some(0), "1 finding, 0 not answered"));
    let (code, last, _) = answered(r#"[{"check": "keys-meet", "subject": "Note in all", "reason": "there are ten"}]"#);
    assert_eq!((code, last.as_str()), (Some(3), "2 findings, 2 not answered"));
    let (code, _, stderr) = answered(r#"[{"check": "skan", "subject": "x", "reason": "y"}]"#);
    assert_eq!((code, stderr.as_str()), (Some(2), "ripple: FILE: there is no check \"skan\"\n"));
    let ended = ripple(&["design", "--json"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn an_event_file_that_is_none_is_one_line() {
    refuses(&["explain", "no/such/file"], "cannot read no/such/file: No such file or directory (os error 2)");
    let none = "unknown format: give a Lambda event, a list of its records, a page of GetRecords, or an on-failure record of a \
                DynamoDB stream as Lambda writes it to S3";
    for (text, why) in [
        ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ("{\"Records\": [", "it is not JSON: EOF while parsing a list at line 1 column 13"),
        ("[1, 2]", "its record 1 is not a stream record: it has no `dynamodb`"),
        ("{\"records\": []}", none),
    ] {
        let file = file(text);
        let path = file.path().to_str().unwrap();
        refuses(&["explain", path], &format!("{path}: {why}"));
    }
}

#[test]
fn an_endpoint_that_is_something_else_is_one_line() {
    // The whole request is read, because unread input would reset the connection.
    let answer = |mut connection: TcpStream| {
        drop(Request::read(&connection));
        connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    };
    let endpoint = format!("http://{}", serve(answer));
    let line = format!("the server at {endpoint} is not a DynamoDB");
    fails_saying(&["verify", "--endpoint", &endpoint], &line);
    fails_saying(&["dev", "--endpoint", &endpoint], &line);
}

#[test]
fn a_table_that_is_missing_is_one_line() {
    let (_runtime, endpoint) = database();
    let line =
        |table| format!("there is no table {table} at {endpoint}: name another with --table, or create it first");
    fails_saying(&["verify", "--endpoint", &endpoint], &line("ripple"));
    fails_saying(&["verify", "--endpoint", &endpoint, "--table", "rippel"], &line("rippel"));
    fails_saying(&["jobs", "--endpoint", &endpoint], &line("ripple"));
    fails_saying(&["dev", "--endpoint", &endpoint, "--table", "rippel"], &line("rippel"));
    for command in WITH_LEDGER {
        fails_saying(&[command, &["--endpoint", &endpoint]].concat(), &line("ripple"));
    }
}

/// Commands that also need the ledger's table.
const WITH_LEDGER: [&[&str]; 4] =
    [&["parked"], &["redrive", "--all"], &["replay", "tests/events/insert.json"], &["jobs", "--pause", "an-id"]];

#[test]
fn a_ledgers_table_that_is_missing_is_one_line() {
    let (runtime, endpoint) = database();
    runtime.block_on(table_without_stream(&endpoint, "ripple"));
    let line = format!(
        "there is no table ledger at {endpoint}: name another with --ledger-table, or create it first, with `ripple dev` or by deploying the functions"
    );
    for command in WITH_LEDGER {
        fails_saying(&[command, &["--endpoint", &endpoint, "--ledger-table", "ledger"]].concat(), &line);
    }
}

#[test]
fn what_writes_on_the_real_aws_says_where_and_wants_a_yes() {
    // An emulator in the standard AWS environment stands for the real AWS.
    let (_runtime, endpoint) = with_tables();
    let variables = [
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "else"),
        ("AWS_REGION", "us-east-1"),
    ];
    // The ARNs of the embedded database always name the same Region.
    let elsewhere = format!("AWS_ENDPOINT_URL_DYNAMODB is set, so the calls go to {endpoint} in place of AWS\n");
    let place =
        format!("{elsewhere}account 000000000000, region dynoxide, table ripple, ledger's table ripple-ledger\n");
    let refused = "ripple: this writes to the tables named above, on the real AWS: give --yes to confirm\n";
    for command in &WITH_LEDGER[1..] {
        let ended = ripple_with(&[command, &["--aws"][..]].concat(), &variables);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(2), "", format!("{place}{refused}")));
    }
    let ended = ripple_with(&["redrive", "--all", "--aws", "--yes"], &variables);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "nothing is parked\n", place.as_str())
    );
    for reading in ["parked", "jobs"] {
        let ended = ripple_with(&[reading, "--aws"], &variables);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), elsewhere.as_str()), "reading needs no yes");
    }
    let ended = ripple_with(&["jobs", "--cancel", "an-id", "--aws", "--yes"], &variables);
    let said = format!("{place}ripple: an-id is no job: `ripple jobs` lists all\n");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(2), "", said));
}

#[test]
fn a_file_that_cannot_be_replayed_is_one_line_and_nothing_is_applied() {
    let gone = "cannot read no/such/file: No such file or directory (os error 2)";
    refuses(&["replay", "no/such/file"], gone);
    refuses(&["replay", "tests/events/insert.json", "no/such/file"], gone);
    let none = "unknown format: give a Lambda event, a list of its records, a page of GetRecords, or an on-failure record of a \
                DynamoDB stream as Lambda writes it to S3";
    let queued = r#"{"requestContext": {}, "version": "1.0", "DDBStreamBatchInfo":
        {"shardId": "s", "startSequenceNumber": "1", "endSequenceNumber": "2", "batchSize": 2, "streamArn": "arn"}}"#;
    let no_payload = "it is a failure record without the records: Lambda writes them only to S3, in `payload`, and a \
                      pipe of EventBridge nowhere; while the stream arn holds them (24 hours), GetRecords gives them, \
                      1 to 2 of the shard s";
    for (text, why) in [
        ("hello", "it is not JSON: expected value at line 1 column 1"),
        ("{}", none),
        (
            r#"{"Records": [{"eventSource": "aws:sqs"}]}"#,
            "its record 1 is of aws:sqs, not of aws:dynamodb: give the message that it holds, as a file",
        ),
        (queued, no_payload),
    ] {
        let file = file(text);
        let path = file.path().to_str().unwrap();
        refuses(&["replay", path], &format!("{path}: {why}"));
    }
}

#[test]
fn a_table_without_a_stream_is_one_line() {
    let (runtime, endpoint) = database();
    runtime.block_on(table_without_stream(&endpoint, "quiet"));
    let line = "the table quiet has no stream: enable one with the view type NEW_AND_OLD_IMAGES";
    refuses(&["dev", "--endpoint", &endpoint, "--table", "quiet"], line);
}

/// Creates a table with the keys and indexes of the shipped one.
async fn table_without_stream(endpoint: &str, table: &str) {
    create_table(&client(endpoint), table, &catalogue::schema().layout).await;
}

/// A database with the shipped table and its ledger's, without a stream.
fn with_tables() -> (Runtime, String) {
    let (runtime, endpoint) = database();
    for table in ["ripple", "ripple-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    (runtime, endpoint)
}

#[test]
fn a_folder_that_cannot_keep_the_database_is_one_line() {
    let file = file("no database");
    let path = file.path().to_str().unwrap();
    let line = format!("{path} is a file: --data names a folder");
    fails_saying(&["dev", "--port", "0", "--data", path], &line);
}

#[test]
fn a_folder_that_another_service_uses_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let first = dev::Dev::start(&["--data", path]);
    let line = format!("another `ripple dev` uses the folder {path}: stop it, or give another --data");
    fails_saying(&["dev", "--port", "0", "--data", path], &line);
    // The lock goes with the process, however that ends.
    drop(first);
    drop(dev::Dev::start(&["--data", path]));
}

#[test]
fn a_file_that_is_no_database_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dynamodb.sqlite");
    fs::write(&file, "a letter to a friend, which is longer than the header of a database: ".repeat(20)).unwrap();
    let (path, file) = (folder.path().to_str().unwrap(), file.display());
    let what = "it must be a file of `ripple dev`; move it, or give another --data";
    fails_saying(&["dev", "--port", "0", "--data", path], &format!("cannot open the database {file}: {what}"));
}

#[test]
fn a_port_in_use_is_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (_runtime, endpoint) = database();
    let port = port.to_string();
    let dev = ["dev", "--port", "0", "--console-port", &port];
    let console = ["console", "--endpoint", &endpoint, "--port", &port];
    drop(dev::Dev::run(&["--endpoint", &endpoint]));
    for (command, option) in [(&["dev", "--port", &port][..], "--port"), (&dev, "--console-port"), (&console, "--port")]
    {
        ends(command, 2, &format!("ripple: port {port} is in use: stop what uses it, or give another {option}\n"));
    }
}

#[test]
fn a_command_that_is_none_or_wants_more_is_usage() {
    misused(&["frobnicate"], "unrecognized subcommand 'frobnicate'\n\nUsage: ripple [COMMAND]");
    misused(
        &["explain"],
        "the following required arguments were not provided:\n  <FILE>\n\nUsage: ripple explain <FILE>",
    );
    misused(
        &["redrive"],
        "the following required arguments were not provided:\n  <ID|--all>\n\nUsage: ripple redrive <ID|--all>",
    );
    misused(
        &["redrive", "an-id", "--all"],
        "the argument '[ID]...' cannot be used with '--all'\n\nUsage: ripple redrive <ID|--all>",
    );
    misused(
        &["replay"],
        "the following required arguments were not provided:\n  <FILE>...\n\nUsage: ripple replay <FILE>...",
    );
}

#[test]
fn a_bad_value_of_an_option_is_usage() {
    misused(&["demo", "--writes", "0"], "invalid value '0' for '--writes <N>': 0 is not in 1..=10000000");
    misused(
        &["demo", "--readers", "three"],
        "invalid value 'three' for '--readers <READERS>'\n  [possible values: one, two]",
    );
    misused(
        &["demo", "--scenario", "nonsense"],
        "invalid value 'nonsense' for '--scenario <SCENARIO>'\n  [possible values: story, mixed, hot, famous]",
    );
    misused(&["dev", "--port", "99999"], "invalid value '99999' for '--port <PORT>': 99999 is not in 0..=65535");
    misused(
        &["dev", "--port", "1", "--endpoint", "http://127.0.0.1:1"],
        "the argument '--port <PORT>' cannot be used with '--endpoint <URL>'\n\nUsage: ripple dev --port <PORT> [-- <COMMAND>...]",
    );
    misused(
        &["verify", "--tabel", "x"],
        "unexpected argument '--tabel' found\n\n  tip: a similar argument exists: '--table'\n\nUsage: ripple verify --table <NAME>",
    );
}

#[test]
fn a_table_that_would_be_its_own_ledger_is_usage() {
    let same = ["--table", "ripple", "--ledger-table", "ripple"];
    let others = [&["verify"][..], &["dev", "--port", "0"]];
    for command in others.into_iter().chain(WITH_LEDGER) {
        let line = "ripple: ripple cannot be its own ledger: give another --ledger-table\n";
        assert_eq!(ends(&[command, &same].concat(), 2, line), "");
    }
}

#[test]
fn other_people_go_with_a_famous_user_alone() {
    for scenario in ["story", "mixed", "hot"] {
        refuses(
            &["demo", "--scenario", scenario, "--others", "1"],
            "--others needs --scenario famous: it is the lag of other people while a user is renamed",
        );
    }
}

#[test]
fn a_story_has_no_options_of_a_load() {
    for load in [&["--writes", "5"][..], &["--rate", "5"], &["--json"]] {
        refuses(
            &[&["demo", "--scenario", "story"], load].concat(),
            "--writes, --rate and --json need a load: give --scenario mixed, hot or famous",
        );
    }
}

/// The handler by hand counts too much where a lost batch has a like; how many do depends on how the likes are cut.
#[test]
fn without_arguments_a_story_shows_items_and_counts_that_are_right_under_faults() {
    for arguments in [&[][..], &["demo", "--seed", "2", "--readers", "one"]] {
        let ended = succeeds(arguments);
        let shown = &ended;
        assert!(shown.lines().count() < 20, "{shown}");
        assert!(
            shown.contains("UserName \"Ada\"\n") && shown.contains("UserName \"Ada Lovelace\"  (12 of 12 "),
            "{shown}"
        );
        for (post, right) in [("p1", 120), ("p2", 80)] {
            let line = shown.lines().find(|line| line.starts_with(&format!("  POST#{post} / METADATA "))).unwrap();
            assert!(line.contains(&format!("{right} likes  LikeCount {right} ")), "{shown}");
            let by_hand: u32 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(by_hand >= right, "{shown}");
        }
        assert!(shown.contains(" 0 findings, 0 parked: every derived value equals its definition."), "{shown}");
    }
}

#[test]
fn the_demonstration_ends_in_step_with_one_reader_and_with_two() {
    ["one", "two"].into_iter().for_each(demonstrates);
}

fn demonstrates(readers: &str) {
    let ended = succeeds(&["demo", "--writes", "200", "--seed", "3", "--json", "--readers", readers]);
    let shown: Value = serde_json::from_str(&ended).unwrap();
    assert_eq!(ended.lines().count(), 1);
    let keys = |pointer: &str| {
        let object = shown.pointer(pointer).and_then(Value::as_object).unwrap();
        let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(
        keys(""),
        "changes derived_writes echoes elapsed_ms findings lag_ms late_changes memory_mb parked refused scenario seed \
         version wcu writes"
    );
    assert_eq!(shown.pointer("/scenario").and_then(Value::as_str), Some("mixed"));
    assert_eq!(shown.pointer("/memory_mb").is_some_and(Value::is_f64), cfg!(target_os = "linux"), "{shown}");
    assert_eq!(keys("/wcu"), "by_derivation derived ground per_change total");
    assert_eq!(keys("/lag_ms"), "max p50 p99");
    let number = |pointer: &str| shown.pointer(pointer).and_then(Value::as_f64).unwrap();
    let whole = ["/seed", "/writes", "/findings", "/parked"].map(|name| shown.pointer(name).and_then(Value::as_u64));
    assert_eq!(whole, [Some(3), Some(200), Some(0), Some(0)], "{shown}");
    assert!(number("/changes") > 100.0 && number("/derived_writes") > 100.0, "{shown}");
    let by_derivation = shown.pointer("/wcu/by_derivation").and_then(Value::as_object).unwrap();
    let sum: f64 = by_derivation.values().filter_map(Value::as_f64).sum();
    assert!((sum - number("/wcu/derived")).abs() < 0.1, "{shown}");
}

#[test]
fn every_derivation_takes_part_in_the_demonstration_under_either_ledger() {
    ["receipts", "watermarks"].into_iter().for_each(takes_part);
}

/// A workload that is large enough to use the whole table.
fn takes_part(ledger: &str) {
    let ended = ripple(&["demo", "--writes", "1000", "--seed", "11", "--json", "--ledger", ledger]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    let count = |name: &str| shown.get(name).and_then(Value::as_u64).unwrap();
    assert_eq!((count("findings"), count("parked")), (0, 0), "{shown}");
    assert!(count("refused") > 0 && count("late_changes") > 0, "{shown}");
    let by_derivation = shown.pointer("/wcu/by_derivation").and_then(Value::as_object).unwrap();
    let units = |name: &str| by_derivation.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let derivations = catalogue::derivations();
    let absent: Vec<&str> = derivations.iter().map(|d| d.name.as_str()).filter(|name| units(name) <= 0.0).collect();
    assert_eq!(absent, [""; 0], "{shown}");
}

/// The JSON report of a scenario that ends in step.
fn scenario(arguments: &[&str]) -> Value {
    let ended = succeeds(&[&["demo", "--json", "--scenario"], arguments].concat());
    assert_eq!(ended.lines().count(), 1);
    let shown: Value = serde_json::from_str(&ended).unwrap();
    assert_eq!(shown.pointer("/scenario").and_then(Value::as_str), arguments.first().copied());
    let none = ["/refused", "/parked", "/findings"].map(|name| shown.pointer(name).and_then(Value::as_u64));
    assert_eq!(none, [Some(0); 3], "{shown}");
    assert_eq!(shown.pointer("/lag_ms"), Some(&Value::Null));
    assert_eq!(shown.pointer("/memory_mb").is_some_and(Value::is_f64), cfg!(target_os = "linux"), "{shown}");
    shown
}

fn number(shown: &Value, pointer: &str) -> f64 {
    shown.pointer(pointer).and_then(Value::as_f64).expect(pointer)
}

fn whole(shown: &Value, pointer: &str) -> u64 {
    shown.pointer(pointer).and_then(Value::as_u64).expect(pointer)
}

#[test]
fn a_post_that_everybody_likes_has_its_exact_count_under_either_ledger() {
    // A receipt is 2 units; the likes share the counter and its display.
    is_liked("receipts", "one", 2.0..4.5);
    is_liked("watermarks", "two", 0.0..2.0);
}

fn is_liked(ledger: &str, readers: &str, wcu_per_like: std::ops::Range<f64>) {
    let shown = scenario(&["hot", "--writes", "203", "--seed", "5", "--ledger", ledger, "--readers", readers]);
    assert_eq!(["/writes", "/hot/likes", "/hot/exact"].map(|name| whole(&shown, name)), [203; 3], "{shown}");
    // Besides the likes: the author and the post.
    assert_eq!(whole(&shown, "/changes"), 205, "{shown}");
    assert!(wcu_per_like.contains(&number(&shown, "/hot/wcu_per_like")), "{shown}");
    assert_eq!(shown.pointer("/famous"), None);
}

#[test]
fn a_famous_users_items_have_the_last_name_under_either_ledger() {
    ["receipts", "watermarks"].into_iter().for_each(is_renamed);
}

/// The verification shows that every name is the last one.
fn is_renamed(ledger: &str) {
    let shown = scenario(&["famous", "--writes", "150", "--seed", "5", "--ledger", ledger]);
    assert_eq!(["/writes", "/famous/items"].map(|name| whole(&shown, name)), [150; 2], "{shown}");
    // The user and the authors of a hundred posts, each with a name; their posts; the comments; the renames.
    assert_eq!(whole(&shown, "/changes"), 101 + 100 + 150 + 3, "{shown}");
    assert_eq!(whole(&shown, "/famous/renames"), 3);
    assert!(number(&shown, "/famous/items_per_second") > 0.0, "{shown}");
    // Each gets the first name, and each later one at most once.
    let names = number(&shown, "/wcu/by_derivation/comment-author");
    assert!((300.0..=600.0).contains(&names), "{shown}");
    let a_second = number(&shown, "/famous/items_per_second") * number(&shown, "/famous/fan_out_ms") / 1_000.0;
    assert!((a_second - (names - 150.0)).abs() < 1.0, "{shown}");
    assert_eq!((shown.pointer("/famous/others"), shown.pointer("/hot")), (Some(&Value::Null), None), "{shown}");
}

#[test]
fn the_lag_of_other_people_is_reported_before_and_while_a_user_is_renamed() {
    let shown = scenario(&["famous", "--writes", "150", "--others", "40", "--rate", "2000"]);
    // Forty a second for three seconds, each a change.
    assert_eq!(whole(&shown, "/famous/others/quiet/changes"), 120, "{shown}");
    for phase in ["quiet", "during"] {
        let [changes, p50, p99, max] =
            ["changes", "p50", "p99", "max"].map(|name| whole(&shown, &format!("/famous/others/{phase}/{name}")));
        assert!(p50 <= p99 && p99 <= max && (max > 0 || changes == 0), "{shown}");
    }
    assert_eq!(whole(&shown, "/famous/items"), 150);
}

#[test]
fn a_scenario_is_reported_as_text() {
    let ended = succeeds(&["demo", "--scenario", "hot", "--writes", "8", "--rate", "100"]);
    let lines: Vec<&str> = ended.lines().collect();
    let first = lines.first().unwrap();
    assert!(
        first.starts_with("8 likes of one post, each by another user (seed 1), 0 of them refused, in "),
        "{ended:?}"
    );
    let exact = "  exact count 8, right each time the stream was quiet: at 2, 4, 6, 8";
    assert_eq!(lines.get(1), Some(&exact), "{ended:?}");
    let verdict = "0 parked, 0 findings: every derived value equals its definition";
    assert_eq!(lines.last(), Some(&verdict), "{ended:?}");
}

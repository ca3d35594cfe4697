//! `ripple audit`: how wrong a table is that Ripple does not maintain.

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use serde_json::Value;
use support::{
    command::{Ended, command},
    database::client,
    schema::fits,
    tables::make,
};

use super::{database, refuses, ripple};

/// A database with a table of the manifest examples/own-table, without a stream, and no table of Ripple's.
struct HandWritten {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    client: Client,
}

impl HandWritten {
    fn new() -> Self {
        let (runtime, endpoint) = database();
        let client = client(&endpoint);
        runtime.block_on(make(&client, "social", ["pk", "sk"], |call| call));
        Self { runtime, endpoint, client }
    }

    /// Puts an item, written as `pk / sk Name=Value …`; `N:` marks a number.
    fn put(&self, text: &str) {
        let (key, rest) = text.split_once(" : ").unwrap();
        let (pk, sk) = key.split_once(" / ").unwrap();
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let mut call = self.client.put_item().table_name("social").item("pk", s(pk)).item("sk", s(sk));
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap();
            let number = |number: &str| AttributeValue::N(number.to_owned());
            call = call.item(name, value.strip_prefix("N:").map_or_else(|| s(value), number));
        }
        self.runtime.block_on(call.send()).unwrap();
    }

    /// Both halves of a follow.
    fn follow(&self, follower: &str, followed: &str) {
        self.put(&format!(
            "USER#{follower} / FOLLOWS#{followed} : Type=Follow since=2024 followedName=secret-{followed}"
        ));
        self.put(&format!(
            "USER#{followed} / FOLLOWEDBY#{follower} : Type=FollowedBy since=2024 followerName=secret-{follower}"
        ));
    }

    fn user(&self, user: &str, count: &str) {
        self.put(&format!("USER#{user} / USER#{user} : Type=User userName=secret-{user} {count}"));
    }

    /// Users whose counts and names a handler maintained for a while.
    fn naive() -> Self {
        let table = Self::new();
        table.user("ada", "followerCount=N:2");
        table.user("bob", "followerCount=N:9");
        table.user("cid", "");
        for (follower, followed) in [("bob", "ada"), ("cid", "ada"), ("ada", "bob"), ("ada", "cid"), ("bob", "gone")] {
            table.follow(follower, followed);
        }
        // A name from before, a mirror that is left, one that is missing, and a follower that is a number.
        table.put("USER#ada / FOLLOWS#bob : Type=Follow since=2024 followedName=secret-before");
        table.put("USER#ada / FOLLOWEDBY#eve : Type=FollowedBy since=2024");
        table.put("USER#cid / FOLLOWS#bob : Type=Follow since=2024 followedName=secret-bob");
        table.put("PERSON#x / USER#x : Type=User userName=secret-x");
        table
    }

    fn audit(&self, arguments: &[&str]) -> Ended {
        let tables = ["audit", "--endpoint", &self.endpoint, "--table", "social"];
        ripple(&[&tables[..], &["--config", "examples/own-table/ripple.toml"], arguments].concat())
    }

    fn tables(&self) -> Vec<String> {
        let listed = self.runtime.block_on(self.client.list_tables().send()).unwrap();
        listed.table_names().to_vec()
    }
}

/// The output without times.
fn masked(text: &str) -> String {
    let is_bound = |line: &&str| !line.starts_with("bound ");
    text.lines().filter(is_bound).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn what_a_handler_left_wrong_is_reported_by_derivation_and_by_key() {
    let table = HandWritten::naive();
    let ended = table.audit(&[]);
    expect![[r#"
        follower-count-display  1 of 3 right, 1 wrong, 1 missing; wrong ones are off by 4 on average, by 7 at most, by 8 in sum
        followed-by             5 of 7 right, 1 missing, 1 extra
        followed-name           4 of 6 right, 1 wrong, 1 extra
        follower-name           6 of 6 right
        no item     follower-count  1 count is about items that do not exist, or cannot be read, such as USER#gone / USER#gone: deleted items, or a link that gives other keys
        unreadable  1  by every derivation: pk, sk are not USER#{userId} / USER#{userId}, the form of User, such as PERSON#x / USER#x
        worst       +7       follower-count-display  USER#bob / USER#bob
        worst       -1       follower-count-display  USER#cid / USER#cid
        worst       extra    followed-by  USER#ada / FOLLOWEDBY#eve
        worst       missing  followed-by  USER#bob / FOLLOWEDBY#cid
        worst       wrong    followed-name  USER#ada / FOLLOWS#bob
        worst       extra    followed-name  USER#bob / FOLLOWS#gone
        mend        at most 6 items, 6 write units
        16 items, 0 ignored, 1 unreadable, 6 differences
    "#]].assert_eq(&masked(&ended.stdout));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("bound       two reads, from 2"), "{ended:?}");
    assert!(!ended.stdout.contains("secret"), "{ended:?}");
    assert!(table.audit(&["--values"]).stdout.contains("secret-before"));
    assert_eq!(table.tables(), ["social"], "an audit creates no table");
}

#[test]
fn the_object_has_its_schema_and_the_page_is_one_new_file() {
    let table = HandWritten::naive();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("audit.html");
    let file = page.to_str().unwrap();
    let ended = table.audit(&["--json", "--at-rest", "--html", file]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema: Value = serde_json::from_str(&ripple(&["schema", "--json-output"]).stdout).unwrap();
    fits(&schema, "audit", &printed).unwrap();
    let count = printed["derivations"].as_array().unwrap().iter().find(|it| it["kind"] == "display").unwrap();
    assert_eq!((&count["values"], &count["errors"]["largest"]), (&3.into(), &"7".into()), "{count}");
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!((html.matches("<svg").count(), html.contains("secret")), (2, false), "{html}");
    assert!(!html.contains("http") && !html.contains("src="), "the page loads nothing");
    refuses(
        &["audit", "--html", file, "--endpoint", &table.endpoint],
        &format!("{} exists: name another file with --html", Path::new(file).display()),
    );
    let with_values = folder.path().join("values.html");
    table.audit(&["--at-rest", "--values", "--html", with_values.to_str().unwrap()]);
    assert!(fs::read_to_string(with_values).unwrap().contains("secret-before"));
}

#[test]
fn a_right_table_and_an_empty_one_end_with_0_and_another_manifest_does_not() {
    let table = HandWritten::new();
    let empty = table.audit(&[]);
    assert!(empty.code == Some(0) && empty.stdout.ends_with("0 items, 0 ignored, 0 unreadable, 0 differences\n"));
    table.user("ada", "followerCount=N:1");
    table.user("bob", "");
    table.follow("bob", "ada");
    let right = table.audit(&[]);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.stdout.contains("bound       one read, from 2"), "one read shows that nothing differs: {right:?}");
    // The keys of the shipped table have other names.
    let misfit = ripple(&["audit", "--endpoint", &table.endpoint, "--table", "social"]);
    assert!(misfit.code == Some(2) && misfit.stdout.is_empty(), "{misfit:?}");
    let missing = ripple(&["audit", "--endpoint", &table.endpoint, "--table", "other"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""), "{missing:?}");
    let other = HandWritten::new();
    for item in ["GADGET#1 / X : Type=Gadget", "GADGET#2 / X : Kind=Gadget"] {
        other.put(item);
    }
    let ignored = other.audit(&[]);
    assert!(ignored.code == Some(3) && ignored.stderr.contains("is this the manifest of this table?"), "{ignored:?}");
}

#[test]
fn an_audit_has_no_option_of_the_ledger_and_none_that_permits_writes() {
    for option in [&["--ledger-table", "x-ledger"][..], &["--yes"], &["--apply"]] {
        let ended = ripple(&[&["audit"], option].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}

#[test]
fn an_interrupted_audit_says_what_it_has_seen() {
    let table = HandWritten::new();
    let note = "x".repeat(30_000);
    for n in 0..60 {
        table.put(&format!("USER#u{n} / USER#u{n} : Type=User followerCount=N:1 note={note}"));
    }
    let mut audit = command(env!("CARGO_BIN_EXE_ripple"));
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-table/ripple.toml");
    audit.args(["audit", "--endpoint", &table.endpoint, "--table", "social", "--config", config, "--read-units", "1"]);
    let mut audit = audit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It reports the price before it reads, and a page of 1 MB pays for itself for minutes.
    let mut stderr = BufReader::new(audit.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    assert!(Command::new("kill").args(["-INT", &audit.id().to_string()]).status().unwrap().success());
    let said = io::read_to_string(stderr).unwrap();
    assert_eq!(audit.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.starts_with("ripple: interrupted: the first read of the table has read "), "{said}");
}

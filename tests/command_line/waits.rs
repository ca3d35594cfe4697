//! A manifest alone, `ripple wait` beside services that run and services that are gone, and other addresses; commands that
//! Ctrl-C ends, files that never do, and exit codes.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use expect_test::expect;
use keys::job::JobKey;
use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::{Value, json};
use support::{
    command::{Ended, command},
    database::client,
};
use tokio::runtime::Runtime;

use crate::{commands, database, dev::Dev, fails_saying, refuses, ripple, succeeds, table_without_stream};

#[test]
fn a_manifest_is_checked_alone() {
    let ended = succeeds(&["check", "examples/own-table/ripple.toml"]);
    expect![[r#"
        entities       3  Follow, FollowedBy, User
        indexes        0
        derivations    4  follower-count, followed-by, followed-name, follower-name
    "#]]
    .assert_eq(&ended);
    let ended = ripple(&["check", "examples/own-table/ripple.toml", "--explain"]);
    let said = "follower-count: counts the Follow items into the User that `followedId` names; shows the count as User.followerCount\n";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    let ended = ripple(&["check", "examples/own-table/ripple.toml", "--json"]);
    let checked: Value = serde_json::from_str(&ended.stdout).unwrap();
    let entities = json!(["Follow", "FollowedBy", "User"]);
    assert_eq!((&checked["version"], &checked["entities"]), (&json!(1), &entities));
    refuses(&["check", "no/ripple.toml"], "cannot read no/ripple.toml: No such file or directory (os error 2)");
    let wrong = crate::file("[table]\npartition-key = 7\n");
    let wrong = wrong.path().to_str().unwrap();
    let ended = ripple(&["check", wrong]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
    assert!(ended.stderr.starts_with(&format!("ripple: {wrong}:2:1: table.partition-key: ")), "{ended:?}");
}

#[test]
fn what_is_probably_not_meant_is_named_below_what_is_declared() {
    let text = include_str!("../../examples/own-table/ripple.toml");
    let wanting = text.replacen("derived-attributes = [", "derived-attributes = [\"postCount\", ", 1);
    let wanting = crate::file(&wanting);
    let ended = ripple(&["check", wanting.path().to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""));
    let named: Vec<&str> = ended.stdout.lines().skip(3).collect();
    expect![[r#"
        not-derived  User.postCount
          found     it is declared as derived, and no derivation writes it
          matters   readers wait for what nothing writes
          to do     declare the derivation that writes it, or leave it out of `derived-attributes`"#]]
    .assert_eq(&named.join("\n"));
    let ended = ripple(&["check", wanting.path().to_str().unwrap(), "--json"]);
    let checked: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(checked["findings"][0]["check"], json!("not-derived"));
}

pub(super) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(super) async fn put(client: &Client, attributes: &[(&str, &str)]) {
    let put = client.put_item().table_name("ripple");
    attributes.iter().fold(put, |put, (name, value)| put.item(*name, s(value))).send().await.unwrap();
}

/// Writes followers of a user, each under another name.
pub(super) async fn follow(client: &Client, names: impl Iterator<Item = usize>) {
    put(client, &[("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User")]).await;
    for name in names {
        let pk = format!("USER#f{name}");
        put(client, &[("PK", &pk), ("SK", "FOLLOWS#ada"), ("EntityType", "Follow")]).await;
    }
}

/// The number of followers that is displayed on the user.
async fn n_followers(client: &Client) -> Option<String> {
    let get = client.get_item().table_name("ripple").key("PK", s("USER#ada")).key("SK", s("PROFILE"));
    let user = get.send().await.unwrap().item?;
    user.get("FollowerCount")?.as_n().ok().cloned()
}

async fn items(client: &Client) -> Vec<BTreeMap<String, AttributeValue>> {
    let scanned = client.scan().table_name("ripple").send().await.unwrap().items.unwrap_or_default();
    scanned.into_iter().map(|item| item.into_iter().collect()).collect()
}

/// Waits for at most a minute.
pub(super) fn waited(endpoint: &str, more: &[&str]) {
    let said = succeeds(&[&["wait", "--timeout", "60", "--endpoint", endpoint], more].concat());
    let until = said.strip_prefix("everything written before ").unwrap();
    assert!(until.ends_with("Z is handled\n"), "{until}");
}

#[test]
fn a_wait_ends_when_all_that_was_written_is_handled() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    waited(&dev.endpoint, &[]);
    assert_eq!(runtime.block_on(items(&client)), [], "nothing was written where the application sees it");
    for n_followers_now in [20, 25] {
        runtime.block_on(follow(&client, 0..n_followers_now));
        waited(&dev.endpoint, &[]);
        assert_eq!(runtime.block_on(n_followers(&client)), Some(n_followers_now.to_string()));
    }
    let ended = ripple(&["wait", "--json", "--endpoint", &dev.endpoint]);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &said["version"]), (Some(0), &json!(1)));
    assert!(said["handled_until"].is_string() && said["parked"] == 0 && said["jobs"] == 0, "{said}");
}

#[test]
fn a_wait_says_what_is_parked() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let counter = "PROFILE#COUNT#following-count#00";
    runtime.block_on(put(&client, &[("PK", "USER#f0"), ("SK", counter), ("EntityType", "Counter"), ("Value", "many")]));
    runtime.block_on(follow(&client, 0..2));
    let ended = ripple(&["wait", "--timeout", "60", "--endpoint", &dev.endpoint]);
    let parked = "what follows from 1 change is missing, since it is parked: see `ripple parked`";
    assert_eq!((ended.code, ended.stdout.lines().nth(1)), (Some(0), Some(parked)), "{ended:?}");
    let ended = ripple(&["wait", "--json", "--endpoint", &dev.endpoint]);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(said["parked"], 1, "{said}");
}

#[test]
fn a_wait_says_that_a_job_is_left() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    let key = JobKey { derivation: "comment-author".to_owned(), id: "8:USER#ada|PROFILE".to_owned() }.key();
    let job = [
        ("PK", key.pk.as_str()),
        ("SK", &key.sk),
        ("SourcePK", "USER#ada"),
        ("SourceSK", "PROFILE"),
        ("State", "running"),
    ];
    let numbers = ["Moves", "Touched", "StartedAt", "DueAt", "MovedAt"];
    runtime
        .block_on(async {
            let put =
                job.iter().fold(client.put_item().table_name("ripple"), |put, (name, value)| put.item(*name, s(value)));
            let put = numbers.iter().fold(put, |put, name| put.item(*name, AttributeValue::N("1".to_owned())));
            put.item("Paused", AttributeValue::Bool(true)).send().await
        })
        .unwrap();
    let ended = ripple(&["wait", "--timeout", "60", "--endpoint", &dev.endpoint]);
    let left = "1 job is paused or waiting: see `ripple jobs`";
    assert_eq!((ended.code, ended.stdout.lines().nth(1)), (Some(0), Some(left)), "{ended:?}");
}

#[test]
fn a_wait_ends_by_its_limit_though_the_database_never_responds() {
    // It takes connections, and nobody reads them.
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", frozen.local_addr().unwrap());
    let line = format!("not everything was handled within 2 s: the database at {endpoint} does not respond");
    fails_saying(&["wait", "--timeout", "2", "--endpoint", &endpoint], &line);
}

#[test]
fn a_service_on_another_table_with_the_same_ledger_says_nothing_of_this_one() {
    let (runtime, endpoint) = database();
    runtime.block_on(table_without_stream(&endpoint, "other"));
    let _dev = Dev::run(&["--endpoint", &endpoint]);
    waited(&endpoint, &[]);
    let line = "not everything was handled within 10 s: no `ripple dev` has run on the table other with this ledger: \
                start one";
    let at = ["--endpoint", &endpoint, "--table", "other", "--ledger-table", "ripple-ledger"];
    fails_saying(&[&["wait", "--timeout", "10"][..], &at].concat(), line);
}

#[test]
fn an_item_whose_derived_keys_would_be_too_long_holds_up_nobody() {
    let dev = Dev::start(&[]);
    let (runtime, client) = (Runtime::new().unwrap(), client(&dev.endpoint));
    // Each of these characters is three in the key of another item, and a partition key has 2,048 bytes.
    let pk = format!("USER#{}", "%".repeat(800));
    let user = [("PK", pk.as_str()), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", "Ada")];
    runtime.block_on(put(&client, &user));
    runtime.block_on(follow(&client, 0..2));
    waited(&dev.endpoint, &[]);
    assert_eq!(runtime.block_on(n_followers(&client)).as_deref(), Some("2"));
}

#[test]
fn a_wait_without_a_service_says_so_and_one_of_two_services_is_enough() {
    let (runtime, endpoint) = database();
    for table in ["quiet", "quiet-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    let line = "not everything was handled within 10 s: no `ripple dev` has run on the table quiet with this ledger: start one";
    fails_saying(&["wait", "--timeout", "10", "--endpoint", &endpoint, "--table", "quiet"], line);
    let [first, second] = [(); 2].map(|()| Dev::run(&["--endpoint", &endpoint]));
    let client = client(&endpoint);
    runtime.block_on(follow(&client, 0..5));
    waited(&endpoint, &[]);
    first.killed();
    runtime.block_on(follow(&client, 5..7));
    waited(&endpoint, &[]);
    assert_eq!(runtime.block_on(n_followers(&client)).as_deref(), Some("7"));
    second.killed();
    let ended = ripple(&["wait", "--timeout", "10", "--endpoint", &endpoint]);
    let gone =
        "ripple: not everything was handled within 10 s: no `ripple dev` runs on the table ripple: the last one ";
    assert_eq!((ended.code, ended.stderr.starts_with(gone)), (Some(1), true), "{ended:?}");
    let on_aws = "wait knows only the functions of `ripple dev`: on AWS, watch the iterator age instead";
    refuses(&["wait", "--aws"], on_aws);
}

#[test]
fn another_address_is_bound_with_a_warning() {
    // Every address of 127.0.0.0/8 is of this machine.
    let other = |dev: &Dev| {
        let port = dev.endpoint.rsplit(':').next().unwrap();
        TcpStream::connect(format!("127.0.0.2:{port}")).is_ok()
    };
    let dev = Dev::start(&["--host", "0.0.0.0"]);
    assert!(dev.endpoint.starts_with("http://127.0.0.1:"), "{}", dev.endpoint);
    assert_eq!(other(&dev), cfg!(target_os = "linux"));
    let line = "warning: whoever reaches 0.0.0.0 can read and write this database: it asks for no password\n";
    assert_eq!(dev.killed(), line);
    let dev = Dev::start(&[]);
    assert!(!other(&dev));
    assert_eq!(dev.killed(), "");
    for own in [["--host", "0.0.0.0"], ["--data", "folder"], ["--port", "1"]] {
        let both = ripple(&[&["dev", "--endpoint", "http://127.0.0.1:1"], &own[..]].concat());
        let says = format!("cannot be used with '{} ", own[0]);
        assert!(both.code == Some(2) && both.stderr.contains(&says), "{both:?}");
    }
}

// ---- Commands that Ctrl-C ends ----

/// Ends a command as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

pub(crate) fn started(arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
    ripple.args(arguments).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ripple.spawn().unwrap()
}

/// The exit code, and what it printed on standard error.
pub(crate) fn ended(mut child: Child) -> (Option<i32>, String) {
    let stderr = io::read_to_string(child.stderr.take().unwrap()).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_demo_that_is_interrupted_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let has_any = || fs::read_dir(folder.path()).unwrap().next().is_some();
    let demo = started(&["demo", "--writes", "1000000"], &[("TMPDIR", folder.path().to_str().unwrap())]);
    while !has_any() {
        std::thread::yield_now();
    }
    interrupt(&demo);
    assert_eq!(ended(demo), (Some(1), "ripple: interrupted\n".to_owned()));
    assert!(!has_any());
}

#[test]
fn a_repair_that_is_interrupted_says_what_it_has_done() {
    let (runtime, endpoint) = database();
    // It makes the tables.
    Dev::run(&["--endpoint", &endpoint]).stopped();
    runtime.block_on(follow(&client(&endpoint), 0..1_000));
    let mut repair = started(&["repair", "--apply", "--at-rest", "--endpoint", &endpoint], &[]);
    // What it prints of all findings does not fit into the pipe, so it cannot end before it is read.
    let mut printed = BufReader::new(repair.stdout.take().unwrap());
    printed.read_line(&mut String::new()).unwrap();
    interrupt(&repair);
    let rest = io::read_to_string(printed).unwrap();
    assert!(!rest.contains("right already"), "{rest}");
    let (code, stderr) = ended(repair);
    let said = stderr.split_once("ripple: interrupted: ").map(|(_, said)| said);
    let n_done = said.and_then(|said| said.split(' ').next());
    let n_done: usize = n_done.and_then(|n_done| n_done.parse().ok()).unwrap_or_else(|| panic!("{stderr}"));
    assert!(code == Some(1) && n_done > 0, "{code:?} {stderr}");
    let end = " left to an operator, and one more may be written; what is done stays done, run it again for the rest\n";
    assert!(stderr.ends_with(end), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_file_without_an_end_is_one_line() {
    refuses(&["check", "/dev/zero"], "cannot read /dev/zero: it is longer than 16 MB");
    refuses(&["explain", "/dev/zero"], "cannot read /dev/zero: it is longer than 256 MB");
    refuses(&["replay", "/dev/zero"], "cannot read /dev/zero: it is longer than 256 MB");
}

// ---- Exit codes by one rule: 0 nothing to do, 1 failed, 2 wrong usage, 3 findings ----

#[test]
fn every_command_ends_with_two_for_wrong_usage_and_with_one_when_nothing_answers() {
    for command in commands().iter().filter(|command| command.runs()) {
        let arguments = command.arguments();
        let wrong = ripple(&[&arguments[..], &["--nonsense"]].concat());
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        if !command.takes("--endpoint") {
            continue;
        }
        // Nothing listens on port 1; another test might have taken a free port by now.
        let endpoint = "http://127.0.0.1:1";
        let line =
            format!("nothing responds at {endpoint}: is a DynamoDB running there? For a table on AWS, give --aws.");
        fails_saying(&[&arguments[..], &["--endpoint", endpoint]].concat(), &line);
    }
}

// ---- What packages the command: the container image and the GitHub Action. Neither engine is needed ----

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap()
}

#[test]
fn the_image_copies_the_whole_workspace_and_builds_it_with_the_rust_that_it_needs() {
    let dockerfile = read("Dockerfile");
    let mut copied: Vec<&str> = Vec::new();
    for line in dockerfile.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from")) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        copied.extend(words.split_last().unwrap().1);
    }
    assert!(copied.iter().all(|path| root(path).exists()), "{copied:?}");
    let ignored = read(".dockerignore");
    assert!(copied.iter().all(|path| ignored.lines().any(|line| line == format!("!{path}"))), "{ignored}");
    let manifest = read("Cargo.toml");
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    for member in members.split('"').skip(1).step_by(2) {
        let folder = member.split('/').next().unwrap();
        assert!(copied.contains(&folder), "{member} is not copied");
    }
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(dockerfile.contains(&format!("FROM rust:{rust}-")), "{rust}");
    // Its command is one that the command line understands.
    let words = dockerfile.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let words: Vec<String> = serde_json::from_str(words).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    assert_eq!(ripple(&words).code, Some(0));
}

/// Options of `verify` that are no inputs: the action's job reads, starts anew, and prints lines.
const NO_INPUTS: [&str; 6] = ["at-rest", "help", "json", "progress", "sk", "yes"];

fn names(yaml: &Yaml<'_>) -> BTreeMap<String, String> {
    let entries = yaml.as_mapping().unwrap().iter();
    entries.map(|(name, value)| (name.as_str().unwrap().to_owned(), value.as_str().unwrap_or("").to_owned())).collect()
}

#[test]
fn the_inputs_of_the_action_are_the_options_of_verify() {
    let text = read("infra/action/action.yml");
    let documents = Yaml::load_from_str(&text).unwrap();
    let action = documents.first().unwrap();
    let inputs: Vec<String> = names(&action["inputs"]).into_keys().collect();
    let verify = commands().into_iter().find(|command| command.words == ["verify"]).unwrap();
    let options =
        verify.help.lines().filter_map(|line| line.trim_start().trim_start_matches("-h, ").strip_prefix("--"));
    let mut options: Vec<String> = options.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    options.retain(|option| !NO_INPUTS.contains(&option.as_str()));
    options.sort();
    assert_eq!(inputs, options);
    let steps = action["runs"]["steps"].as_sequence().unwrap();
    let passed = names(&steps.last().unwrap()["env"]);
    let variable = |input: &String| format!("INPUT_{}", input.to_uppercase().replace('-', "_"));
    let wanted = inputs.iter().map(|input| (variable(input), format!("${{{{ inputs.{input} }}}}")));
    assert_eq!(passed, wanted.collect());
}

#[test]
fn the_action_runs_verify_with_its_inputs() {
    let dev = Dev::start(&[]);
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_ripple")).parent().unwrap().to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let run = |inputs: &[(&str, &str)]| {
        let mut bash = command("bash");
        bash.arg(root("infra/action/verify.sh")).env("PATH", &path).envs(inputs.iter().copied());
        Ended::of(&mut bash)
    };
    let switches = [("INPUT_AWS", "false"), ("INPUT_ALLOW_UNREADABLE", "true")];
    let given = [("INPUT_ENDPOINT", dev.endpoint.as_str()), ("INPUT_TABLE", "ripple"), ("INPUT_PK", "")];
    let inputs = [&switches[..], &given].concat();
    let verified = run(&inputs);
    let price = "the table has not counted its items yet; reading it takes one read unit for each 4 KB of items\n";
    assert_eq!((verified.code, verified.stderr.as_str()), (Some(0), price), "{verified:?}");
    let wrong = run(&[&inputs[..], &[("INPUT_READ_UNITS", "no number; exit 0")]].concat());
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("--read-units"), "{wrong:?}");
}

//! Commands that Ctrl-C ends, and files that never do.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use saphyr::{LoadableYamlNode as _, Yaml};
use support::{
    command::{Ended, command},
    database::client,
};

use crate::{commands, database, input::Dev, refuses, ripple, waits::follow};

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
        let mut arguments = command.arguments();
        let wrong = ripple(&[&arguments[..], &["--nonsense"]].concat());
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        if !command.takes("--endpoint") {
            continue;
        }
        // Nothing listens on port 1.
        arguments.extend(["--endpoint", "http://127.0.0.1:1"]);
        let failed = ripple(&arguments);
        let line = "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there? For a table on AWS, give --aws.\n";
        assert_eq!((failed.code, failed.stdout.as_str(), failed.stderr.as_str()), (Some(1), "", line), "{arguments:?}");
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

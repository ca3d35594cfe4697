//! What packages the command: the container image and the GitHub Action. Neither engine is needed.

use std::{collections::BTreeMap, fs, path::PathBuf};

use saphyr::{LoadableYamlNode as _, Yaml};
use support::command::{Ended, command};

use super::{commands, input::Dev, ripple};

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

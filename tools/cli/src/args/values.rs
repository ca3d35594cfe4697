//! Parsers of the values that several options share, and of the whole command line; and the end of each command's help.

use std::{
    env,
    ffi::OsStr,
    io::{self, Write as _},
    net::IpAddr,
    process::ExitCode,
};

use clap::{
    Arg, Command, CommandFactory as _, FromArgMatches as _,
    builder::{PossibleValuesParser, Resettable, TypedValueParser},
    error::ErrorKind,
};
use engine::ledger::LedgerKind;
use hyper::{Uri, http::uri::Authority};

use crate::{args::Args, exit::report};

/// Longest wait, in seconds: a day.
const TIMEOUT_S_MAX: u64 = 86_400;

/// Accepts the URL of a DynamoDB.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    url(text, &["http", "https"])
}

/// Accepts the base URL of an Invoke API. Only plain HTTP, because emulators use that.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    url(text, &["http"])
}

fn url(text: &str, schemes: &[&str]) -> Result<String, String> {
    let is_url = text.parse::<Uri>().is_ok_and(|uri| {
        let has_scheme = uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme));
        // A port that does not fit 16 bits reads as none. The authority then does not end with the host, and is
        // refused.
        let has_place =
            |at: &Authority| !at.host().is_empty() && (at.port_u16().is_some() || at.as_str().ends_with(at.host()));
        has_scheme && uri.authority().is_some_and(has_place)
    });
    if is_url { Ok(text.to_owned()) } else { Err("it must be of the form http://HOST:PORT".to_owned()) }
}

/// Accepts the name of a table.
pub(super) fn table(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if (3..=255).contains(&text.len()) && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("the name of a table has 3 to 255 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// Accepts a name that is not empty.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Accepts the name of a region.
pub(super) fn region(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
    if !text.is_empty() && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("it must be the name of a region, such as us-east-1".to_owned())
    }
}

/// Accepts a number of seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be a whole number of seconds".to_owned())
}

/// Accepts a timeout: 1 to `TIMEOUT_S_MAX` seconds.
pub(super) fn timeout(text: &str) -> Result<u64, String> {
    let is_allowed = |seconds: &u64| (1..=TIMEOUT_S_MAX).contains(seconds);
    let what = || format!("it must be a whole number of seconds, 1 to {TIMEOUT_S_MAX}");
    text.parse().ok().filter(is_allowed).ok_or_else(what)
}

/// Accepts an address to listen on.
pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "it must be an IP address, such as 0.0.0.0 for all of this machine's".to_owned())
}

pub(super) fn ledger_kind() -> impl TypedValueParser<Value = LedgerKind> {
    PossibleValuesParser::new(["receipts", "watermarks"]).try_map(|text| text.parse::<LedgerKind>())
}

// ---- The environment variables that set options ----

/// Parses the arguments. If they are wrong or ask for help, prints the message and returns the exit code.
pub(crate) fn parse() -> Result<Args, ExitCode> {
    let mut command = without_empty_variables(described());
    let matches = command.try_get_matches_from_mut(env::args_os()).map_err(|error| {
        match no_text(&command).filter(|_| error.kind() == ErrorKind::InvalidUtf8) {
            Some(name) => {
                let what =
                    format!("the environment variable {name} is not UTF-8: set it to another value, or unset it");
                command.error(ErrorKind::InvalidUtf8, what)
            }
            None => without_variables_said(error),
        }
    });
    matches.and_then(|matches| Args::from_arg_matches(&matches)).map_err(|error| printed(&error))
}

/// Prints the requested help, or the usage error.
fn printed(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(failed) if !error.use_stderr() && failed.kind() != io::ErrorKind::BrokenPipe => {
            report(&format!("ripple: cannot write the output: {failed}"));
            ExitCode::FAILURE
        }
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// Name of a variable that sets an option and is not UTF-8.
fn no_text(command: &Command) -> Option<String> {
    let is_no_text = |name: &&OsStr| env::var_os(name).is_some_and(|value| value.to_str().is_none());
    let here = command.get_arguments().filter_map(Arg::get_env).find(is_no_text);
    let below = || command.get_subcommands().find_map(no_text);
    here.map(|name| name.to_string_lossy().into_owned()).or_else(below)
}

/// Removes the variables from an error that they did not cause. Otherwise its usage line would list their options as if
/// they were required.
fn without_variables_said(error: clap::Error) -> clap::Error {
    let alone = without_variables(described(), &|_| true).try_get_matches().err();
    alone.filter(|alone| alone.kind() == error.kind()).unwrap_or(error)
}

/// All commands, as help, completions and manual pages describe them.
pub(crate) fn described() -> Command {
    with_examples(Args::command(), "ripple")
}

/// Treats an empty variable as unset, as the functions and the AWS tools do.
fn without_empty_variables(command: Command) -> Command {
    without_variables(command, &|value| value.is_empty())
}

/// Ignores the variables whose value `is_ignored` selects.
fn without_variables(command: Command, is_ignored: &dyn Fn(&OsStr) -> bool) -> Command {
    command
        .mut_args(|argument| {
            let value = argument.get_env().and_then(env::var_os);
            if value.is_some_and(|value| is_ignored(&value)) { argument.env(Resettable::Reset) } else { argument }
        })
        .mut_subcommands(|below| without_variables(below, is_ignored))
}

// ---- The end of each command's help: two examples, and the exit codes ----

const EXIT_CODES: &str = "Exit codes: 0 nothing to do, 1 failed, 2 wrong usage, 3 findings, or something left to do.";

/// Two examples of each command, by its name.
const EXAMPLES: [(&str, [&str; 2]); 30] = [
    ("ripple", ["ripple dev", "ripple verify --config ripple.toml"]),
    ("ripple demo", ["ripple demo --scenario famous --others 20", "ripple demo --scenario mixed --writes 500 --json"]),
    ("ripple dev", ["ripple dev --config ripple.toml --data .ripple", "ripple dev --config ripple.toml -- npm test"]),
    ("ripple wait", ["ripple wait", "ripple wait --timeout 60 --endpoint http://127.0.0.1:8001 --table app"]),
    (
        "ripple verify",
        ["ripple verify --config ripple.toml", "ripple verify --aws --table app --iterator-age 60 --read-units 100"],
    ),
    (
        "ripple why",
        ["ripple why 'POST#p / METADATA' CommentCount", "ripple why 'USER#ada / PROFILE' --aws --table app --changes"],
    ),
    (
        "ripple console",
        [
            "ripple console --aws --table app --config ripple.toml",
            "ripple console --aws --table app --allow-writes --yes",
        ],
    ),
    ("ripple repair", ["ripple repair --derivation follower-count", "ripple repair --apply --progress repair.sqlite"]),
    (
        "ripple backfill",
        ["ripple backfill --all", "ripple backfill like-count --aws --table app --iterator-age 60 --yes"],
    ),
    ("ripple catalogue", ["ripple catalogue diff --config ripple.toml", "ripple catalogue forget like-count"]),
    (
        "ripple catalogue diff",
        ["ripple catalogue diff --config ripple.toml", "ripple catalogue diff --aws --table app --items 0 --json"],
    ),
    (
        "ripple catalogue forget",
        ["ripple catalogue forget like-count", "ripple catalogue forget like-count --aws --table app --yes"],
    ),
    (
        "ripple preflight",
        ["ripple preflight --config ripple.toml", "ripple preflight --aws --table app --segment-of 100"],
    ),
    ("ripple init", ["ripple init --aws --table app", "ripple init template.yaml --out -"]),
    (
        "ripple audit",
        [
            "ripple audit --config ripple.toml --at-rest",
            "ripple audit --aws --table app --read-units 500 --html audit.html",
        ],
    ),
    ("ripple check", ["ripple check ripple.toml", "ripple check ripple.toml --json"]),
    (
        "ripple schema",
        ["ripple schema > ripple.schema.json", "ripple schema --json-output > ripple-output.schema.json"],
    ),
    (
        "ripple types",
        [
            "ripple types --language typescript --config ripple.toml > keys.ts",
            "ripple types --language python > keys.py",
        ],
    ),
    ("ripple explain", ["ripple explain event.json", "ripple explain event.json --config ripple.toml --json"]),
    (
        "ripple design",
        ["ripple design --config ripple.toml", "ripple design --config ripple.toml --export workbench > model.json"],
    ),
    (
        "ripple cost",
        [
            "ripple cost --rate Like=10 --targets like-count=100",
            "ripple cost --rate Follow=2 --fan-out comment-author=0.01x200",
        ],
    ),
    ("ripple rates", ["ripple rates", "ripple rates --aws --table app --config ripple.toml"]),
    (
        "ripple infra",
        [
            "ripple infra --config ripple.toml --deployed template.yaml > next.yaml",
            "ripple infra --attach --format terraform > main.tf",
        ],
    ),
    ("ripple parked", ["ripple parked --about 'USER#ada'", "ripple parked --discard 34d30e10884303047e842a3b67bd5624"]),
    (
        "ripple redrive",
        ["ripple redrive --all", "ripple redrive 34d30e10884303047e842a3b67bd5624 --aws --table app --yes"],
    ),
    ("ripple jobs", ["ripple jobs", "ripple jobs --pause 'comment-author#8:USER%23ada|PROFILE'"]),
    ("ripple replay", ["ripple replay failed-batch.json", "ripple replay event.json --aws --table app --yes"]),
    ("ripple mcp", ["ripple mcp", "ripple mcp --aws"]),
    ("ripple completions", ["ripple completions bash", "ripple completions zsh"]),
    ("ripple man", ["ripple man", "ripple man catalogue diff"]),
];

/// Adds the examples of the command with this name and of its subcommands.
fn with_examples(command: Command, name: &str) -> Command {
    let examples = EXAMPLES.iter().filter(|(of, _)| *of == name).flat_map(|(_, examples)| examples);
    let lines: Vec<String> = examples.map(|example| format!("  {example}")).collect();
    let command = command.after_help(format!("Examples:\n{}\n\n{EXIT_CODES}", lines.join("\n")));
    command.mut_subcommands(|below| {
        let name = format!("{name} {}", below.get_name());
        with_examples(below, &name)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn names(command: &Command, name: &str) -> Vec<String> {
        let below = command.get_subcommands().flat_map(|it| names(it, &format!("{name} {}", it.get_name())));
        [name.to_owned()].into_iter().chain(below).collect()
    }

    /// The words of a command line, split by a shell, without the redirection of its output.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap();
        let echo = format!("each() {{ printf '%s\\n' \"$@\"; }}; each {line}");
        let output = Process::new("sh").args(["-c", &echo]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_command_has_two_examples_that_it_understands() {
        let mut of: Vec<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        of.sort();
        let mut all = names(&Args::command(), "ripple");
        all.sort();
        assert_eq!(of, all);
        for (name, examples) in EXAMPLES {
            for example in examples {
                assert!(example.starts_with(name), "{example}");
                let words = words(example);
                assert!(words.starts_with(&["ripple".to_owned()]), "{example}: {words:?}");
                let read = Args::command().try_get_matches_from(words);
                assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
            }
        }
    }
}

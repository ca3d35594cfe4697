//! The end of each command's help: two examples, and the exit codes.

use clap::Command;

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
pub(super) fn with_examples(command: Command, name: &str) -> Command {
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

//! The printed Rust is compiled alone by `rustc`, and builds and parses keys as the crate `keys` does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod vectors;

use std::{
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use types::{Language, types};

use vectors::{tables, vectors};

const OWN_TABLE: &str = include_str!("../../../examples/own-table/ripple.toml");
const CHAT: &str = include_str!("../../../examples/chat/ripple.toml");
const MODELS: &str = include_str!("../../../examples/models/ripple.toml");
const SOCIAL: &str = include_str!("../../../examples/social/ripple.toml");

fn printed(manifest: &str) -> String {
    let (schema, catalogue) = manifest::load(manifest).unwrap();
    types(Language::Rust, &schema, &catalogue)
}

/// Compiles a program with the printed file beside it.
fn compiled(folder: &TempDir, program: &str, keys: &str, arguments: &[&str]) {
    fs::write(folder.path().join("keys.rs"), keys).unwrap();
    fs::write(folder.path().join("main.rs"), program).unwrap();
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2021", "-D", "warnings", "-A", "dead_code"]).args(arguments);
    let done = command.args(["main.rs", "-o", "main"]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs the compiled program.
fn answers(folder: &Path, input: &str) -> String {
    let mut command = Command::new(folder.join("main"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_printed_rust_builds_and_parses_keys_as_the_service_does() {
    for table in tables() {
        answers_as_the_service_does(&table);
    }
}

fn answers_as_the_service_does(table: &str) {
    let keys = printed(table);
    // The blocks of the forms: those that begin with the comment of the constant.
    let forms: Vec<String> = keys
        .split("\nimpl ")
        .filter_map(|block| Some(block.split_once(" {\n    /// Its form.\n")?.0))
        .map(|name| format!("keys::{name}::FORM"))
        .collect();
    assert_eq!(forms.len(), 17, "{forms:?}");
    let folder = tempfile::tempdir().unwrap();
    let program = include_str!("rust/answers.rs").replace("/* forms */", &forms.join(", "));
    compiled(&folder, &program, &keys, &["-O"]);

    let (schema, _) = manifest::load(table).unwrap();
    let vectors = vectors(&schema);
    let questions: Vec<&str> = vectors.iter().map(|(question, _)| question.as_str()).collect();
    let answered = answers(folder.path(), &(questions.join("\n") + "\n"));
    assert_eq!(answered.lines().count(), vectors.len());
    for ((question, wanted), answered) in vectors.iter().zip(answered.lines()) {
        assert_eq!(answered, wanted, "{question}");
    }
    // Neither all refused nor all built.
    for kind in ["key ", "keys ", "none", "error ", "fields "] {
        let n = vectors.iter().filter(|(_, answer)| answer.starts_with(kind)).count();
        assert!(n > 200, "{n} of {kind}");
    }
}

#[test]
fn the_printed_rust_types_keys_and_items() {
    let folder = tempfile::tempdir().unwrap();
    compiled(&folder, include_str!("rust/typed.rs"), &printed(OWN_TABLE), &[]);
    answers(folder.path(), "");
    // Its reads need the SDK; the crate `queries` compiles them.
    let (without_reads, _) = SOCIAL.split_once("\n[access.").unwrap();
    compiled(&folder, "mod keys;\nfn main() {}\n", &printed(without_reads), &[]);
}

/// Keys of texts have builders in a table of several too, and values as they are need none.
#[test]
fn the_printed_rust_of_several_tables_builds_the_keys_that_have_a_form() {
    let folder = tempfile::tempdir().unwrap();
    let keys = printed(CHAT);
    compiled(&folder, include_str!("rust/several.rs"), &keys, &[]);
    answers(folder.path(), "");
    assert!(
        !keys.contains("MessageKey") && keys.contains("pub struct Message<V> "),
        "a message's key is its attributes"
    );
    compiled(&folder, "mod keys;\nfn main() {}\n", &printed(MODELS), &[]);
}

//! Commands that Ctrl-C ends, and files that never do.

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use support::{command::command, database::client};

use super::{database, input::Dev, refuses, waits::follow};

/// Ends a command as Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

fn started(arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
    ripple.args(arguments).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ripple.spawn().unwrap()
}

/// The exit code, and what it printed on standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
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

//! Built programs, run as child processes.

use std::process::{Command, Stdio};

/// Variables that would lead a program to another place.
#[rustfmt::skip]
const FOREIGN_VARIABLES: [&str; 11] = [
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL_DYNAMODB", "RUST_LOG", "HTTP_PROXY",
    "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
];

/// A command of the program at a path, without input and without the variables of this process that change its work.
#[must_use]
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    for variable in FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ended {
    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// If it does not start, or if its output is not text.
    #[must_use]
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

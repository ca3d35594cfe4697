//! The built `ripple`, as a child process that no test leaves behind.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    primitives::{DateTime, DateTimeFormat},
};
use serde_json::Value;
use support::command::{Ended, command};
use tokio::{sync::mpsc, time::timeout};

use crate::database::{item, put};

/// Longest wait for a line of the service, which is a debug build on a busy machine.
const LINE_WAIT: Duration = Duration::from_mins(1);

/// A running `ripple dev`.
pub(crate) struct Ripple {
    /// Where its database is.
    pub(crate) endpoint: String,
    /// Host and port of its console.
    pub(crate) console: String,
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
}

impl Ripple {
    /// Starts `ripple dev` with an embedded database on a free port, and waits until it is ready.
    pub(crate) async fn embedded(arguments: &[&str]) -> Self {
        Self::dev(&[&["--port", "0"], arguments].concat()).await
    }

    /// Starts `ripple dev` with a line for each batch, and waits until it is ready.
    pub(crate) async fn dev(arguments: &[&str]) -> Self {
        let mut child = ripple("dev", &[&["-v"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ripple starts");
        let (sender, lines) = mpsc::unbounded_channel();
        forward(child.stdout.take().expect("a pipe"), sender.clone());
        forward(child.stderr.take().expect("a pipe"), sender);
        let mut started = Self { endpoint: String::new(), console: String::new(), child, lines, seen: Vec::new() };
        let line = started.line(|line| line.starts_with("endpoint  ")).await;
        started.endpoint = line.trim_start_matches("endpoint  ").to_owned();
        let line = started.line(|line| line.starts_with("console   ")).await;
        started.console = line.trim_start_matches("console   http://").to_owned();
        started.line(|line| line == "ready").await;
        started
    }

    /// The next line of the service that is like this.
    pub(crate) async fn line(&mut self, like: impl Fn(&str) -> bool) -> String {
        loop {
            let line = timeout(LINE_WAIT, self.lines.recv()).await.expect("the service says what is waited for");
            let line = line.expect("the service runs on");
            self.seen.push(line.clone());
            if like(&line) {
                return line;
            }
        }
    }

    /// Waits until it has caught up with all that was written up to now.
    pub(crate) async fn caught_up(&mut self, client: &Client) {
        let now = SystemTime::now();
        loop {
            // No derivation is of this item, but without a write there would be no line, and one that changes nothing makes no
            // record. It fits both forms of key.
            let written = format!("{:?}", SystemTime::now());
            let mark = ["PK", "SK", "pk", "sk", "At"]
                .map(|name| (name, if name == "At" { written.clone() } else { "MARK".to_owned() }));
            put(client, item(mark)).await;
            let line = self.line(|line| line.starts_with("caught up ")).await;
            let moment = line.rsplit(' ').next().expect("the line ends with a time");
            let moment = DateTime::from_str(moment, DateTimeFormat::DateTime).expect("a time");
            if SystemTime::try_from(moment).expect("a time of today") > now {
                return;
            }
        }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ran");
    }

    /// Stops it with SIGTERM, and waits until it has ended.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill starts").success());
        self.child.wait().expect("it ran")
    }
}

impl Drop for Ripple {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
        if thread::panicking() {
            while let Ok(line) = self.lines.try_recv() {
                self.seen.push(line);
            }
            eprintln!("the service said:\n{}", self.seen.join("\n"));
        }
    }
}

/// What `ripple verify --json` said.
pub(crate) struct VerifyOutput {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
}

impl VerifyOutput {
    /// Derivation and key of each finding, or of each unreadable item, in order.
    pub(crate) fn named(&self, list: &str) -> Vec<[&str; 3]> {
        let entries = self.json[list].as_array().expect("a list");
        let mut named: Vec<[&str; 3]> =
            entries.iter().map(|entry| ["derivation", "pk", "sk"].map(|name| entry[name].as_str().unwrap())).collect();
        named.sort_unstable();
        named
    }
}

/// Runs `ripple verify --json`.
pub(crate) fn verify(endpoint: &str) -> VerifyOutput {
    let (code, json) = json("verify", endpoint, &[]);
    VerifyOutput { code, json }
}

/// The same while nothing runs and nobody writes.
pub(crate) fn verify_at_rest(endpoint: &str) -> VerifyOutput {
    let (code, json) = json("verify", endpoint, &["--at-rest"]);
    VerifyOutput { code, json }
}

/// Runs a command with `--json`; its exit code and what it said.
pub(crate) fn json(command: &str, endpoint: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let said = said(command, endpoint, &[arguments, &["--json"]].concat());
    let json =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", said.stdout, said.stderr));
    (said.code, json)
}

/// Runs a command at an endpoint.
pub(crate) fn said(command: &str, endpoint: &str, arguments: &[&str]) -> Ended {
    Ended::of(&mut ripple(command, &[&["--endpoint", endpoint], arguments].concat()))
}

/// A command of `ripple`, about to run.
pub(crate) fn ripple(name: &str, arguments: &[&str]) -> Command {
    let mut ripple = command(env!("CARGO_BIN_EXE_ripple"));
    ripple.arg(name).args(arguments);
    ripple
}

fn forward(pipe: impl Read + Send + 'static, lines: mpsc::UnboundedSender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            // Nobody listens any more once the test is over; the pipe is read on, so that the service is not blocked.
            drop(lines.send(line));
        }
    });
}

//! The other processes. None outlives the bench.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use serde_json::Value;
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::{
    Result, index,
    served::RuntimeApi,
    table::{LEDGER, MAIN},
};

/// What the credentials of every client are here.
pub(crate) const CREDENTIALS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")];

/// Ticks of processor time in a second. Source: proc(5); it is 100 on every Linux that Rust runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// The period of a share, in microseconds.
const PERIOD_US: f64 = 20_000.0;

/// A process that is ended when nobody needs it any more.
pub(crate) struct Child {
    /// What its first line said.
    pub(crate) endpoint: String,
    process: process::Child,
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Child {
    pub(crate) fn database() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg("database").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut endpoint = String::new();
        BufReader::new(process.stdout.take().ok_or("a pipe")?).read_line(&mut endpoint)?;
        Ok(Self { endpoint: endpoint.trim().to_owned(), process })
    }
}

/// Serves an embedded database until the process that started this one is gone.
pub(crate) async fn database() -> Result<()> {
    let path = format!("file:wire-{}?mode=memory&cache=shared", process::id());
    let database = dynoxide::Database::new(&path)?;
    index::add(&path)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    tokio::spawn(dynoxide::server::serve_on(listener, database));
    // Nothing is ever sent; it ends with the other end of the pipe.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// A control group that gives its processes a share of a processor, and goes with this.
pub(crate) struct Share(PathBuf);

impl Share {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a period, in microseconds")]
    pub(crate) fn new(of_a_processor: f64) -> std::io::Result<Self> {
        let group = Self(PathBuf::from(format!("/sys/fs/cgroup/cpu/ripple-wire-{}", process::id())));
        fs::create_dir(&group.0)?;
        for (file, us) in [("cpu.cfs_period_us", PERIOD_US), ("cpu.cfs_quota_us", PERIOD_US * of_a_processor)] {
            fs::write(group.0.join(file), (us as u64).to_string())?;
        }
        Ok(group)
    }

    fn give(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // The kernel keeps a group whose processes are not gone yet; an empty one does no harm.
        drop(fs::remove_dir(&self.0));
    }
}

/// A compiled function with a runtime API of its own.
pub(crate) struct Function {
    process: Child,
    api: RuntimeApi,
    /// What it gave for the next invocation of its tumbling window.
    state: Value,
}

impl Function {
    pub(crate) async fn start(binary: &Path, endpoint: &str, share: Option<&Share>) -> Result<Self> {
        let api = RuntimeApi::serve().await?;
        let mut command = Command::new(binary);
        command.envs(CREDENTIALS).env("AWS_ENDPOINT_URL", endpoint).env("LEDGER", "watermarks");
        command.env("TABLE_NAME", MAIN).env("LEDGER_TABLE_NAME", LEDGER);
        command.env("AWS_LAMBDA_RUNTIME_API", &api.address).env("AWS_LAMBDA_FUNCTION_NAME", "f");
        command.env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST").env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512");
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let process = Child { endpoint: endpoint.to_owned(), process };
        if let Some(share) = share {
            share.give(process.process.id())?;
        }
        Ok(Self { process, api, state: Value::Object(serde_json::Map::new()) })
    }

    /// Gives it a batch until it has handled all of it.
    pub(crate) async fn handle(&mut self, records: &[&str]) -> Result<()> {
        loop {
            let event = format!(
                r#"{{"Records":[{}],"window":{{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:01:00Z"}},"state":{},"shardId":"shardId-00000001573689847180-864758bb","isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}}"#,
                records.join(","),
                self.state,
            );
            self.api.events.send(event).await?;
            let mut answer: Value = serde_json::from_slice(&self.api.answers.recv().await.ok_or("an answer")??)?;
            self.state = answer["state"].take();
            if answer["batchItemFailures"].as_array().is_none_or(Vec::is_empty) {
                return Ok(());
            }
        }
    }

    /// Processor time that it has used, in seconds.
    pub(crate) fn cpu_s(&self) -> Result<f64> {
        cpu_s(&self.process.process.id().to_string())
    }
}

/// The user and system time of a process, in seconds. Source: proc(5), `/proc/pid/stat`.
pub(crate) fn cpu_s(process: &str) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = stat.rsplit_once(')').ok_or("a name in brackets")?.1.split_whitespace();
    let ticks = fields.skip(11).take(2).map(str::parse::<f64>).sum::<std::result::Result<f64, _>>()?;
    Ok(ticks / TICKS_A_SECOND)
}

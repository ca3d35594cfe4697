//! The other processes. None outlives the benchmark.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{self, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::Context as _;

use crate::a_second;

/// What processor time is counted in. Source: proc(5); it is 100 on every Linux that Rust runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// A process that is killed when nobody needs it any more.
pub(crate) struct Child {
    /// Where its database is.
    pub(crate) endpoint: String,
    process: process::Child,
    /// Ends it when this process ends, however that is.
    _stdin: Option<ChildStdin>,
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Child {
    /// A database in a process of its own, whose answers come so much later.
    pub(crate) fn database(latency_ms: u64) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["database", &latency_ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().context("a pipe")?).lines();
        let mut child = Self { endpoint: String::new(), process, _stdin: stdin };
        child.endpoint = lines.next().context("the database did not start")??;
        Ok(child)
    }

    /// Sets an attribute of all comments in a process of its own; gives items a second.
    pub(crate) fn bare(
        endpoint: &str,
        table: &str,
        items: usize,
        calls: usize,
        [attribute, value]: [&str; 2],
    ) -> anyhow::Result<f64> {
        let (count, calls) = (items.to_string(), calls.to_string());
        let arguments = ["bare", endpoint, table, &count, &calls, attribute, value];
        let output = Command::new(std::env::current_exe()?).args(arguments).stderr(Stdio::inherit()).output()?;
        let said = String::from_utf8(output.stdout)?;
        Ok(a_second(items, said.trim().parse().context("the bare loop did not end")?))
    }
}

impl Child {
    /// Processor time that it has taken, in seconds.
    pub(crate) fn processor_s(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // Behind the name, which may hold anything: user and system time are the 12th and 13th.
        let (_, behind) = stat.rsplit_once(") ").context("a name")?;
        let ticks = behind.split(' ').skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS_A_SECOND)
    }
}

/// The functions: `ripple dev` at the database's endpoint.
pub(crate) struct Functions {
    pub(crate) child: Child,
    n_batches: Arc<AtomicU64>,
}

/// Resident memory of a process, in MB of 1,048,576 bytes.
pub(crate) struct Memory {
    pub(crate) resident_mb: f64,
    pub(crate) peak_mb: f64,
}

impl Functions {
    /// Starts them over a table, or over the one that they make, and waits until they are ready.
    pub(crate) fn start(endpoint: &str, table: Option<&str>) -> anyhow::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripple"));
        command
            .args(["dev", "--verbose", "--endpoint", endpoint])
            .args(table.iter().flat_map(|table| ["--table", table]));
        for foreign in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
            command.env_remove(foreign);
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("a pipe")?);
        let child = Child { endpoint: endpoint.to_owned(), process, _stdin: None };
        let mut line = String::new();
        while line.trim_end() != "ready" {
            line.clear();
            anyhow::ensure!(lines.read_line(&mut line)? > 0, "the functions did not start");
        }
        let n_batches = Arc::new(AtomicU64::new(0));
        count(lines, Arc::clone(&n_batches));
        Ok(Self { child, n_batches })
    }

    /// Ends them.
    pub(crate) fn stop(self) {
        drop(self.child);
    }

    /// Batches so far.
    pub(crate) fn n_batches(&self) -> u64 {
        self.n_batches.load(Ordering::Relaxed)
    }

    /// What they have in memory now, and had at most.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.process.id()))?;
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
            let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
            anyhow::Ok(kilobytes / 1_024.0)
        };
        Ok(Memory { resident_mb: megabytes("VmRSS:")?, peak_mb: megabytes("VmHWM:")? })
    }
}

/// Counts the lines of batches, which begin with the name of a function.
fn count(mut pipe: BufReader<impl Read + Send + 'static>, n_batches: Arc<AtomicU64>) {
    thread::spawn(move || {
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok_and(|n| n > 0) {
            let is_batch = ["aggregate  ", "propagate  "].iter().any(|function| line.starts_with(function));
            n_batches.fetch_add(u64::from(is_batch), Ordering::Relaxed);
            line.clear();
        }
    });
}

//! The other processes: that of the functions, that of the bare loop, and that of the database, which is the one that
//! `ripple dev` embeds, on a free port of the loopback address. None outlives the benchmark.

#[path = "../../src/embedded/index.rs"]
mod index;

use std::{
    io::{BufRead as _, BufReader, Read},
    net::SocketAddr,
    process::{self, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context as _;
use dynoxide::{Database, server::serve_on};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// What processor time is counted in. Source: proc(5); it is 100 on every Linux that Rust runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// A process that is killed when this is dropped.
pub(crate) struct Child {
    /// URL of its database.
    pub(crate) endpoint: String,
    process: process::Child,
    /// The process ends when this is closed, so that it never outlives this process.
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
    /// Starts a database that delays each response by this many milliseconds.
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

    /// Sets an attribute of all comments in another process. Returns the items a second.
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

    /// Processor time so far, in seconds.
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
    /// Starts them on a table, or on the one that they create, and waits until they are ready.
    pub(crate) fn start(endpoint: &str, table: Option<&str>) -> anyhow::Result<Self> {
        let mut command = ripple();
        command
            .args(["dev", "--verbose", "--endpoint", endpoint])
            .args(table.iter().flat_map(|table| ["--table", table]));
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

    /// Stops them.
    pub(crate) fn stop(self) {
        drop(self.child);
    }

    /// Batches so far.
    pub(crate) fn n_batches(&self) -> u64 {
        self.n_batches.load(Ordering::Relaxed)
    }

    /// Their resident memory, and its peak.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        let process = self.child.process.id();
        Ok(Memory { resident_mb: memory_mb(process, "VmRSS:")?, peak_mb: memory_mb(process, "VmHWM:")? })
    }
}

/// A line of a process's status, in MB of 1,048,576 bytes.
pub(crate) fn memory_mb(process: u32, name: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1_024.0)
}

/// `ripple` in a process of its own, without the variables of another database.
pub(crate) fn ripple() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ripple"));
    for foreign in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        command.env_remove(foreign);
    }
    command
}

#[expect(clippy::cast_precision_loss, reason = "far below what a double holds")]
pub(crate) fn a_second(items: usize, seconds: f64) -> f64 {
    items as f64 / seconds
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

// ---- The database ----

/// Serves until the process that started this one has ended. Delays each response by the latency.
pub(crate) async fn serve_database(latency: Duration) -> anyhow::Result<()> {
    let path = format!("file:fan-out-{}?mode=memory&cache=shared", std::process::id());
    let database = Database::new(&path)?;
    index::add(&path)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = listener.local_addr()?;
    tokio::spawn(serve_on(listener, database));
    if latency.is_zero() {
        println!("http://{near}");
    } else {
        let far = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", far.local_addr()?);
        tokio::spawn(serve_late(far, near, latency));
    }
    // Nothing is ever sent; it ends with the other end of the pipe.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

// ---- A database that is further away ----
//
// Its responses come later, as over a network. The delay takes no processor time.

/// Most bytes that are passed on at once.
const CHUNK_BYTES: usize = 64 * 1_024;

/// Passes connections on to the database, and delays each response by the latency.
async fn serve_late(listener: TcpListener, database: SocketAddr, latency: Duration) -> std::io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(database).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        // A connection has one request at a time, so the first bytes after a request begin its response.
        let is_asked = Arc::new(AtomicBool::new(false));
        tokio::spawn(asks(from_client, to_server, Arc::clone(&is_asked)));
        tokio::spawn(answers(from_server, to_client, is_asked, latency));
    }
}

async fn asks(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_asked: Arc<AtomicBool>) -> std::io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            return to.shutdown().await;
        }
        is_asked.store(true, Ordering::Release);
        to.write_all(&chunk).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_asked: Arc<AtomicBool>,
    latency: Duration,
) -> std::io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            return to.shutdown().await;
        }
        if is_asked.swap(false, Ordering::AcqRel) {
            tokio::time::sleep(latency).await;
        }
        to.write_all(&chunk).await?;
    }
}

//! What verifying and auditing a large table take: memory, and items a second beside a bare parallel scan.
//!
//! `cargo bench -p cli --bench verify`, with `-- --items 100000,1000000 --segments 4 --commands verify,audit` for others.
//! The embedded database of `ripple dev` is a process of its own, and so is each command.
//!
//! The table holds a user and comments over 100 posts, each with the user's name, and no counters: every item is looked at
//! with its source, each is counted twice (for its post, and for its writer where that is declared), and each count is a
//! finding. In each size:
//!
//! - *scan*: all items are read, consistently, in as many segments, and nothing is done with them, before and after each
//!   command.
//! - *verify*, *audit*: `ripple verify --at-rest` and `ripple audit --at-rest` of the same table, each from its start to its
//!   end, with its greatest resident memory.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "it prints what it measured, and stops when it cannot")]

#[expect(dead_code, reason = "shared with the other benchmark")]
#[path = "fan_out/child.rs"]
mod child;
#[expect(dead_code, reason = "shared with the other benchmark")]
#[path = "fan_out/table.rs"]
mod table;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::Client;
use child::{Child, Functions, a_second, memory_mb, ripple};
use futures::future::try_join_all;
use table::{Shape, client};

/// That of `ripple`, so that the database has what it has there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TABLE: &str = "verified";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if let ["database", latency_ms] = arguments.as_slice() {
        return runtime.block_on(child::serve_database(Duration::from_millis(latency_ms.parse()?)));
    }
    let given = |name: &str| arguments.iter().position(|it| *it == name).and_then(|at| arguments.get(at + 1).copied());
    let sizes = given("--items").unwrap_or("100000,1000000").split(',').map(str::parse);
    let segments: i32 = given("--segments").unwrap_or("4").parse()?;
    let commands: Vec<&str> = given("--commands").unwrap_or("verify,audit").split(',').collect();
    for n_items in sizes.collect::<Result<Vec<usize>, _>>()? {
        runtime.block_on(measure(n_items, segments, &commands))?;
    }
    Ok(())
}

async fn measure(n_items: usize, segments: i32, commands: &[&str]) -> anyhow::Result<()> {
    let database = Child::database(0)?;
    let client = client(&database.endpoint);
    // The service makes its table, which is the model of this.
    Functions::start(&database.endpoint, None)?.stop();
    Shape::of(&client, "ripple").await?.make(&client, TABLE).await?;
    table::fill(&client, TABLE, n_items).await?;

    // The first scan is not measured: it fills the database's cache.
    scan_all(&client, segments).await?;
    let (n_scanned, mut before_s) = scan_all(&client, segments).await?;
    println!("{n_scanned} items");
    for name in commands {
        let (command_s, peak_mb) = ran(name, &database.endpoint, segments).await?;
        let (_, after_s) = scan_all(&client, segments).await?;
        let scan_s = f64::midpoint(before_s, after_s);
        println!(
            "  {name} {:.0} a second ({:.2} of the scans around it, {:.0} and {:.0} a second), {peak_mb:.1} MB at most",
            a_second(n_scanned, command_s),
            scan_s / command_s,
            a_second(n_scanned, before_s),
            a_second(n_scanned, after_s),
        );
        before_s = after_s;
    }
    Ok(())
}

/// Reads the whole table in this many segments. Returns the number of items, and the seconds.
async fn scan_all(client: &Client, segments: i32) -> anyhow::Result<(usize, f64)> {
    let began = Instant::now();
    let scanned = try_join_all((0..segments).map(|segment| scan(client, segment, segments))).await?;
    Ok((scanned.into_iter().sum(), began.elapsed().as_secs_f64()))
}

/// The seconds that a command of ripple takes for the table, and its peak memory in MB.
async fn ran(name: &str, endpoint: &str, segments: i32) -> anyhow::Result<(f64, f64)> {
    let began = Instant::now();
    let mut command = ripple();
    command.args([name, "--at-rest", "--json", "--table", TABLE, "--segments", &segments.to_string()]);
    if name == "verify" {
        command.args(["--ledger-table", "ripple-ledger"]);
    }
    command.args(["--endpoint", endpoint]).stdout(Stdio::null());
    let mut process = command.spawn()?;
    let mut peak_mb: f64 = 0.0;
    let status = loop {
        peak_mb = peak_mb.max(memory_mb(process.id(), "VmHWM:").unwrap_or_default());
        if let Some(status) = process.try_wait()? {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    anyhow::ensure!(status.code() == Some(3), "no count is there, so there are differences: {status}");
    Ok((began.elapsed().as_secs_f64(), peak_mb))
}

async fn scan(client: &Client, segment: i32, segments: i32) -> anyhow::Result<usize> {
    let scan = client.scan().table_name(TABLE).consistent_read(true).segment(segment).total_segments(segments);
    let mut pages = scan.into_paginator().send();
    let mut n_items = 0;
    while let Some(page) = pages.next().await {
        n_items += usize::try_from(page?.count)?;
    }
    Ok(n_items)
}

//! `ripple demo`: a mixed workload against the running service, verified at the end.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stderr},
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{
    ledger::settings::claim,
    verify::{Verified, verify},
};
use indicatif::{ProgressBar, ProgressStyle};
use runtime::{
    config::Config,
    declared::{Choice, declared},
    handler::dynamo,
    logging,
};
use serde::Serialize;
use tokio::sync::watch;

use super::{LOG_FILTER, verify::as_text};
use crate::{
    args::Demo,
    book::{Book, Bookkeeper},
    connection::Clients,
    embedded::Embedded,
    exit::{Ended, print},
    lag::{lags_ms, percentile},
    service::{Plan, Service, Witness},
    tables,
    workload::{
        Application,
        metered::{Metered, Written},
        writer::write,
    },
};

/// Employees are moved faster than their keys follow here, so one who waits for their manager's key is no news.
const AWAITS_FILTER: &str = "engine::ground::place=error";

/// What a run showed. The names are stable.
#[derive(Debug, Serialize)]
struct Shown {
    scenario: &'static str,
    seed: u64,
    /// Actions of the application; some write more than one item.
    writes: u32,
    /// Those of them that the query interface refused: a taken email, not enough in stock.
    refused: usize,
    /// Records of ground items with a difference that a derivation reads.
    changes: usize,
    /// The other records.
    echoes: usize,
    /// Changes and removals of items of which only the insert counts; nothing follows from them.
    late_changes: usize,
    /// Writes of the service in the application's table.
    derived_writes: usize,
    wcu: Wcu,
    lag_ms: Lag,
    parked: usize,
    findings: usize,
    elapsed_ms: u128,
}

/// Write units, as DynamoDB reports them.
#[derive(Debug, Serialize)]
struct Wcu {
    ground: f64,
    derived: f64,
    total: f64,
    /// Derived ones, by change.
    per_change: f64,
    /// Derived ones; of a transaction's sum each write's part by item size.
    by_derivation: BTreeMap<String, f64>,
}

/// From the answer to a write to the commit of the last write that follows from it.
#[derive(Debug, Serialize)]
struct Lag {
    p50: u64,
    p99: u64,
    max: u64,
}

/// Runs the demonstration.
pub(crate) async fn run(args: &Demo) -> anyhow::Result<Ended> {
    logging::readable(&format!("{LOG_FILTER},{AWAITS_FILTER}"));
    let (stop, stopped) = watch::channel(false);
    let embedded = match args.endpoint {
        None => Some(Embedded::start(0, None, stopped).await?),
        Some(_) => None,
    };
    let endpoint = embedded.as_ref().map(|embedded| embedded.endpoint.clone()).or_else(|| args.endpoint.clone());
    let shown = demonstrate(args, &endpoint.unwrap_or_default()).await;
    let _nobody_listens = stop.send(true).is_err();
    if let Some(embedded) = embedded {
        embedded.stopped().await;
    }
    let (shown, verified) = shown?;
    if args.json {
        print(&serde_json::to_string(&shown)?);
    } else {
        print(&text(&shown, args.rate));
        if shown.findings > 0 {
            print(&as_text(&verified));
        }
    }
    Ok(if shown.findings == 0 && shown.parked == 0 { Ended::InStep } else { Ended::Findings })
}

async fn demonstrate(args: &Demo, endpoint: &str) -> anyhow::Result<(Shown, Verified)> {
    let clients = Clients::at(endpoint, "us-east-1").await;
    let (schema, catalogue) = declared(Choice::default())?;
    // Tables of its own, so that nothing of anybody's is touched.
    let table = format!("ripple-demo-{}", std::process::id());
    let ledger_table = format!("{table}-ledger");
    let config = Config { ledger: args.ledger, ..Config::of(table, ledger_table) };
    tables::make(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
    let stream_arn = tables::stream_arn(&clients.dynamodb, &config.table, endpoint).await?;
    let store = Arc::new(dynamo(clients.dynamodb.clone(), &schema, &config));
    claim(&store, &schema.layout, config.ledger).await?;
    let failures = tempfile::tempdir()?;
    let plan = Plan {
        schema: Arc::clone(&schema),
        catalogue: Arc::clone(&catalogue),
        store: Arc::clone(&store),
        streams: clients.streams,
        stream_arn,
        readers: args.readers,
        ledger: args.ledger,
        functions: None,
        failures: failures.path(),
    };
    let book = Arc::new(Bookkeeper::new(Arc::clone(&schema), Arc::clone(&catalogue)));
    let started = Instant::now();
    let mut service = Service::start(&plan, &(Arc::clone(&book) as Arc<dyn Witness>));
    let metered = Arc::new(Metered::new(Arc::clone(&store)));
    let bar = progress(args);
    let written = write(&metered, args.rate, Application::new(args.seed), args.writes, &bar).await?;
    bar.set_message("waiting until the stream is quiet");
    service.quiet().await?;
    let elapsed = started.elapsed();
    service.stop().await?;
    bar.set_message("verifying");
    let verified = verify(&schema, &catalogue, store.as_ref(), |_| {}).await?;
    bar.finish_and_clear();
    if args.endpoint.is_some() {
        tables::delete(&clients.dynamodb, &config).await?;
    }
    let shown = shown(args, &book.book(), &written, &verified, elapsed);
    Ok((shown, verified))
}

fn shown(args: &Demo, book: &Book, written: &Written, verified: &Verified, elapsed: Duration) -> Shown {
    let derived: f64 = book.units.values().fold(0.0, |sum, units| sum + units);
    let changes = book.records.iter().filter(|record| record.is_change).count();
    let n_changes = u32::try_from(changes).unwrap_or(u32::MAX);
    let lags = lags_ms(&book.records, book.writes.clone(), written);
    Shown {
        scenario: "mixed",
        seed: args.seed,
        writes: args.writes,
        refused: written.n_refused,
        changes,
        echoes: book.records.len() - changes,
        late_changes: book.n_late_changes,
        derived_writes: book.writes.len(),
        wcu: Wcu {
            ground: rounded(written.units),
            derived: rounded(derived),
            total: rounded(written.units + derived),
            per_change: rounded(derived / f64::from(n_changes.max(1))),
            by_derivation: book.units.iter().map(|(name, units)| (name.clone(), rounded(*units))).collect(),
        },
        lag_ms: Lag { p50: percentile(&lags, 50), p99: percentile(&lags, 99), max: lags.last().copied().unwrap_or(0) },
        parked: book.parked.len(),
        findings: verified.findings.len(),
        elapsed_ms: elapsed.as_millis(),
    }
}

/// Parts of sums, to three decimals.
fn rounded(units: f64) -> f64 {
    (units * 1_000.0).round() / 1_000.0
}

fn progress(args: &Demo) -> ProgressBar {
    if args.json || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} writes  {msg}");
    ProgressBar::new(u64::from(args.writes)).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn text(shown: &Shown, rate: Option<u32>) -> String {
    let Shown { seed, writes, refused, changes, echoes, late_changes, derived_writes, wcu, lag_ms, .. } = shown;
    let Shown { parked, findings, elapsed_ms, .. } = shown;
    let paced = match rate {
        Some(_) => "",
        None => ", behind an application that writes as fast as it can (--rate 200 paces it)",
    };
    let mut lines = vec![
        format!("{writes} writes of an application (seed {seed}), {refused} of them refused, in {elapsed_ms} ms"),
        format!("  {changes} changes and {echoes} echoes in the stream, {derived_writes} derived writes"),
        format!("  lag p50 {} ms, p99 {} ms, max {} ms{paced}", lag_ms.p50, lag_ms.p99, lag_ms.max),
        format!(
            "  write units: {} the application's, {} derived, {} derived a change, by derivation:",
            wcu.ground, wcu.derived, wcu.per_change
        ),
    ];
    if *late_changes > 0 {
        lines.insert(2, format!("  {late_changes} late changes, of items of which only the insert counts"));
    }
    for (name, units) in &wcu.by_derivation {
        lines.push(format!("    {name:<26} {units:>12.1}"));
    }
    let verdict = if *findings == 0 { "every derived value is what its definition says" } else { "not in step" };
    lines.push(format!("{parked} parked, {findings} findings: {verdict}"));
    lines.join("\n")
}

//! `ripple demo`: runs a workload against the service, and verifies the result.

mod book;
mod famous;
mod hot;
mod story;
mod workload;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stderr},
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use derive::schema::Schema;
use engine::{
    clock::{Clock as _, SystemClock},
    ledger::claim,
    publishing::begin,
};
use functions::{
    config::{Config, Mode},
    declared::{Choice, declared},
    handler::dynamo,
    logging,
};
use indicatif::{ProgressBar, ProgressStyle};
use operate::verify::definition::{Comparison, compare_table};
use serde::Serialize;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    args::{Demo, Scenario},
    commands::{
        LOG_FILTER,
        demo::{
            book::{Book, Bookkeeper, HasLag, Lags, Metered, WriteTotals, peak_mb},
            famous::{FamousReport, is_theirs},
            hot::HotReport,
            story::{StoryFaults, StoryReport},
            workload::{AppAction, Application, Client},
        },
        dev::stop_signal,
        verify::as_text,
    },
    embedded::{Access, Embedded},
    exit::{Completion, print, print_json},
    opened::Clients,
    service::{
        Faults, Plan, Service, Witness,
        function::{MappingRequest, mappings},
        laptop_limits,
    },
    tables,
};

pub(crate) async fn run(args: &Demo) -> anyhow::Result<Completion> {
    args.check()?;
    logging::readable(LOG_FILTER);
    let (stop, stopped) = watch::channel(false);
    let embedded = match args.endpoint {
        None => Some(Embedded::start((Ipv4Addr::LOCALHOST, 0).into(), Access::default(), None, stopped).await?),
        Some(_) => None,
    };
    let endpoint = embedded.as_ref().map(|embedded| embedded.endpoint.clone()).or_else(|| args.endpoint.clone());
    let endpoint = endpoint.unwrap_or_default();
    let interrupted = stop_signal()?;
    // If the signal comes first, the run is dropped, which deletes its temporary folder.
    let shown = tokio::select! {
        shown = demonstrate(args, &endpoint) => shown,
        () = interrupted => Err(interrupt(args, &endpoint).await),
    };
    let _nobody_listens = stop.send(true).is_err();
    if let Some(embedded) = embedded {
        embedded.stopped().await;
    }
    let (shown, verified) = shown?;
    if args.json {
        print_json(serde_json::to_value(&shown)?);
    } else {
        print(&shown.text(args.rate));
        if shown.findings > 0 {
            print(&as_text(&verified));
        }
    }
    Ok(if shown.findings == 0 && shown.parked == 0 { Completion::InStep } else { Completion::Findings })
}

/// The demo has tables of its own, so that it touches no other data.
fn config(args: &Demo) -> Config {
    let table = format!("ripple-demo-{}", std::process::id());
    let ledger_table = format!("{table}-ledger");
    Config { ledger: args.ledger, ..Config::of(table, ledger_table) }
}

/// Deletes the tables of an interrupted demo, unless they end with the process.
async fn interrupt(args: &Demo, endpoint: &str) -> anyhow::Error {
    let config = config(args);
    let deleted = match args.endpoint {
        Some(_) => tables::delete(&Clients::at(endpoint, "us-east-1").await.dynamodb, &config).await,
        None => Ok(()),
    };
    match deleted {
        Ok(()) => anyhow::anyhow!("interrupted"),
        Err(error) => error.context(format!(
            "interrupted; delete the tables {} and {} if they are there",
            config.table, config.ledger_table
        )),
    }
}

async fn demonstrate(args: &Demo, endpoint: &str) -> anyhow::Result<(RunReport, Comparison)> {
    let limits = laptop_limits()?;
    let clients = Clients::at(endpoint, "us-east-1").await;
    let (schema, catalogue) = declared(Choice::default())?;
    let config = config(args);
    let is_new = tables::make(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
    let streams = tables::with_streams(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
    let streams: Vec<String> = streams.into_iter().map(|(_, arn)| arn).collect();
    let store = Arc::new(dynamo(clients.dynamodb.clone(), &schema, &config));
    claim(&store, &schema.layout, config.ledger).await?;
    if is_new {
        begin(&store, &schema, &catalogue, SystemClock.now_ms()).await?;
    }
    let failures = tempfile::tempdir()?;
    let is_story = args.scenario() == Scenario::Story;
    let faults =
        is_story.then(|| Arc::new(StoryFaults::new(args.seed, clients.dynamodb.clone(), &config.table, &schema)));
    let (readers, ledger) = (args.readers, args.ledger);
    let wanted = MappingRequest { readers, ledger, streams: &streams, schema: &schema, catalogue: &catalogue };
    let mappings = mappings(&wanted)?;
    let plan = Plan {
        schema: Arc::clone(&schema),
        catalogue: Arc::clone(&catalogue),
        store: Arc::clone(&store),
        streams: clients.streams,
        mappings,
        ledger,
        mode: Mode::Apply,
        limits,
        functions: None,
        faults: faults.clone().map(|faults| faults as Arc<dyn Faults>),
        failures: failures.path(),
    };
    let book = Arc::new(Bookkeeper::new(Arc::clone(&schema), Arc::clone(&catalogue), has_lag(args)));
    let started = Instant::now();
    let service = Service::start(&plan, &(Arc::clone(&book) as Arc<dyn Witness>)).await?;
    let metered = Arc::new(Metered::new(Arc::clone(&store), has_lag(args)));
    let bar = progress(args);
    let mut running = Running { args, schema: Arc::clone(&schema), service, metered, book, faults, bar };
    let report = run_scenario(&mut running).await?;
    let (memory_mb, elapsed) = (peak_mb(), started.elapsed());
    let Running { service, metered, book, bar, .. } = running;
    service.stop().await?;
    bar.set_message("verifying");
    let verified = compare_table(&schema, &catalogue, store.as_ref()).await?;
    bar.finish_and_clear();
    if args.endpoint.is_some() {
        tables::delete(&clients.dynamodb, &config).await?;
    }
    let (mut book, written) = (book.book(), std::mem::take(&mut *metered.written()));
    let is_mixed = args.scenario() == Scenario::Mixed;
    let lags = is_mixed.then(|| book.trace.followed(&written.answered_ms).into_iter().collect());
    let measured = Measured { report, written, lags, memory_mb, elapsed };
    let shown = RunReport::of(args, &book, measured, &verified);
    Ok((shown, verified))
}

fn progress(args: &Demo) -> ProgressBar {
    if args.json || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} writes  {msg}");
    ProgressBar::new(u64::from(args.writes())).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

// ---- Numbers that several reports contain: lags, and sums of units ----

/// Time from the response to a write until the commit of the last write derived from it, in milliseconds.
#[derive(Debug, Serialize)]
struct LagFigures {
    p50: u64,
    p99: u64,
    max: u64,
}

/// The lag of a small number of changes, such as those of other users.
#[derive(Debug, Serialize)]
struct FewLags {
    /// Number of changes.
    changes: usize,
    #[serde(flatten)]
    lag: LagFigures,
}

impl From<&Lags> for FewLags {
    fn from(lags: &Lags) -> Self {
        Self { changes: lags.len(), lag: LagFigures::from(lags) }
    }
}

impl FewLags {
    fn text(&self) -> String {
        format!("{}, of {} changes", self.lag.text(), self.changes)
    }
}

impl From<&Lags> for LagFigures {
    fn from(lags: &Lags) -> Self {
        Self { p50: lags.percentile_ms(50), p99: lags.percentile_ms(99), max: lags.max_ms() }
    }
}

impl LagFigures {
    fn text(&self) -> String {
        format!("p50 {} ms, p99 {} ms, max {} ms", self.p50, self.p99, self.max)
    }
}

/// Rounds a sum to three decimals.
fn rounded(units: f64) -> f64 {
    (units * 1_000.0).round() / 1_000.0
}

// ---- A running service, and the application that writes beside it ----

struct Running<'a> {
    args: &'a Demo,
    schema: Arc<Schema>,
    service: Service,
    metered: Arc<Metered>,
    book: Arc<Bookkeeper>,
    /// The faults of the story.
    faults: Option<Arc<StoryFaults>>,
    bar: ProgressBar,
}

impl Running<'_> {
    /// Performs the scenario's actions at its rate.
    async fn write(&self, actions: impl Iterator<Item = anyhow::Result<AppAction>>) -> anyhow::Result<()> {
        self.bar.set_message("");
        write(&self.metered, self.args.rate, actions, &self.bar).await
    }

    /// Performs the preparatory actions, and waits until the service has handled them.
    async fn set(&mut self, setting: Vec<AppAction>) -> anyhow::Result<()> {
        self.bar.set_message("setting the scene");
        write(&self.metered, None, setting.into_iter().map(Ok), &ProgressBar::hidden()).await?;
        self.service.quiet().await.map(|_handled_to| ())
    }

    async fn quiet(&mut self) -> anyhow::Result<()> {
        self.bar.set_message("waiting until the stream is quiet");
        self.service.quiet().await.map(|_handled_to| ())
    }
}

// ---- The report of a run, as JSON and as text. The JSON's names are stable ----

#[derive(Debug, Serialize)]
struct RunReport {
    scenario: Scenario,
    seed: u64,
    /// Actions of the application, without those that prepare a scenario; some write more than one item.
    writes: u32,
    /// Actions that a condition refused, such as a taken email address or a product out of stock.
    refused: usize,
    /// Records of application items with a difference that a derivation reads.
    changes: usize,
    /// All other records.
    echoes: usize,
    /// Changes and removals of items that count by their insert alone: they are not applied.
    late_changes: usize,
    /// Writes of the service to the application's table.
    derived_writes: usize,
    wcu: Wcu,
    /// Only for the mixed workload, because the trace of the lag grows with the run.
    lag_ms: Option<LagFigures>,
    /// Peak memory of the process until the stream was quiet, in MB of 1,048,576 bytes. It includes an embedded
    /// database.
    memory_mb: Option<f64>,
    parked: usize,
    findings: usize,
    /// Items that the verification read.
    #[serde(skip)]
    items: usize,
    elapsed_ms: u128,
    #[serde(flatten)]
    report: ScenarioReport,
}

/// Write units, as DynamoDB reports them.
#[derive(Debug, Serialize)]
struct Wcu {
    ground: f64,
    derived: f64,
    total: f64,
    /// Derived units per change.
    per_change: f64,
    /// Derived units. The units of a transaction are divided among its writes by item size.
    by_derivation: BTreeMap<String, f64>,
}

/// Measurements at the moment when the stream was quiet.
struct Measured {
    report: ScenarioReport,
    written: WriteTotals,
    lags: Option<Lags>,
    memory_mb: Option<f64>,
    elapsed: Duration,
}

impl RunReport {
    /// Makes the report from the account, the measurements and the verification.
    fn of(args: &Demo, book: &Book, measured: Measured, verified: &Comparison) -> Self {
        let Measured { report, written, lags, memory_mb, elapsed } = measured;
        let derived = book.derived_units();
        let n_changes = u32::try_from(book.n_changes).unwrap_or(u32::MAX);
        Self {
            scenario: args.scenario(),
            seed: args.seed,
            writes: args.writes(),
            refused: written.n_refused,
            changes: book.n_changes,
            echoes: book.n_echoes,
            late_changes: book.n_late_changes,
            derived_writes: book.n_writes,
            wcu: Wcu {
                ground: rounded(written.units),
                derived: rounded(derived),
                total: rounded(written.units + derived),
                per_change: rounded(derived / f64::from(n_changes.max(1))),
                by_derivation: book.units.iter().map(|(name, units)| (name.clone(), rounded(*units))).collect(),
            },
            lag_ms: lags.as_ref().map(LagFigures::from),
            memory_mb,
            parked: book.parked.len(),
            findings: verified.findings.len(),
            items: verified.n_items,
            elapsed_ms: elapsed.as_millis(),
            report,
        }
    }

    fn text(&self, rate: Option<u32>) -> String {
        let Self { seed, writes, refused, changes, echoes, derived_writes, wcu, parked, findings, .. } = self;
        if let Some(story) = &self.report.story {
            return story.text(self.items, *findings, *parked);
        }
        let what = match self.scenario {
            Scenario::Story | Scenario::Mixed => "writes of an application",
            Scenario::Hot => "likes of one post, each by another user",
            Scenario::Famous => "comments of one user",
        };
        let mut lines =
            vec![format!("{writes} {what} (seed {seed}), {refused} of them refused, in {} ms", self.elapsed_ms)];
        lines.extend(self.report.lines());
        lines.push(format!("  {changes} changes and {echoes} echoes in the stream, {derived_writes} derived writes"));
        if self.late_changes > 0 {
            lines.push(format!("  {} late changes, of items that count by their insert alone", self.late_changes));
        }
        if let Some(lag) = &self.lag_ms {
            let paced = match rate {
                Some(_) => "",
                None => ", while the application writes as fast as it can (--rate 200 slows it down)",
            };
            lines.push(format!("  lag {}{paced}", lag.text()));
        }
        if let Some(memory_mb) = self.memory_mb {
            lines.push(format!("  {memory_mb} MB of memory at most, an embedded database included"));
        }
        lines.push(format!(
            "  write units: {} the application's, {} derived, {} derived a change, by derivation:",
            wcu.ground, wcu.derived, wcu.per_change
        ));
        for (name, units) in &wcu.by_derivation {
            lines.push(format!("    {name:<26} {units:>12.1}"));
        }
        let verdict = if *findings == 0 { "every derived value equals its definition" } else { "not in step" };
        lines.push(format!("{parked} parked, {findings} findings: {verdict}"));
        lines.join("\n")
    }
}

// ---- The scenarios, each with its own part of the report ----

/// The report of one scenario, under its name. The names are stable.
#[derive(Debug, Default, Serialize)]
struct ScenarioReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    hot: Option<HotReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    famous: Option<FamousReport>,
    /// Not in the JSON, because the story is for reading.
    #[serde(skip)]
    story: Option<StoryReport>,
}

impl ScenarioReport {
    fn lines(&self) -> Vec<String> {
        let hot = self.hot.iter().flat_map(HotReport::lines);
        hot.chain(self.famous.iter().flat_map(FamousReport::lines)).collect()
    }
}

/// Selects the items whose lag is measured. `hot` and `famous` measure at most those of other users, so their memory
/// does not grow with the writes.
fn has_lag(args: &Demo) -> HasLag {
    match args.scenario() {
        Scenario::Mixed => |_| true,
        Scenario::Famous if args.others > 0 => is_theirs,
        Scenario::Story | Scenario::Hot | Scenario::Famous => |_| false,
    }
}

/// Runs the scenario until the stream is quiet.
async fn run_scenario(running: &mut Running<'_>) -> anyhow::Result<ScenarioReport> {
    match running.args.scenario() {
        Scenario::Story => Ok(ScenarioReport { story: Some(story::run(running).await?), ..ScenarioReport::default() }),
        Scenario::Mixed => {
            let mut application = Application::new((*running.schema).clone(), running.args.seed);
            running.write((0..running.args.writes()).map(|_| application.next_action())).await?;
            running.quiet().await?;
            Ok(ScenarioReport::default())
        }
        Scenario::Hot => Ok(ScenarioReport { hot: Some(hot::run(running).await?), ..ScenarioReport::default() }),
        Scenario::Famous => {
            Ok(ScenarioReport { famous: Some(famous::run(running).await?), ..ScenarioReport::default() })
        }
    }
}

// ---- The concurrent clients of the application ----

/// Number of clients. One client performs all actions of a subject, so they keep their order.
const CLIENTS: usize = 8;

/// Maximum number of actions that wait for a client.
const WAITING_MAX: usize = 64;

/// Performs the actions at a rate. Without a rate, performs them as fast as the database responds.
async fn write(
    store: &Arc<Metered>,
    rate: Option<u32>,
    actions: impl Iterator<Item = anyhow::Result<AppAction>>,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut clients = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..CLIENTS {
        let (queue, actions) = mpsc::channel(WAITING_MAX);
        queues.push(queue);
        clients.spawn(perform(Arc::clone(store), actions, bar.clone()));
    }
    let mut ticks = rate.map(|rate| tokio::time::interval(Duration::from_secs(1) / rate));
    for action in actions {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let action = action?;
        // A client that has failed is reported below.
        if let Some(queue) = queues.get(client_of(&action.subject))
            && queue.send(action).await.is_err()
        {
            break;
        }
    }
    drop(queues);
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

fn client_of(subject: &str) -> usize {
    subject.bytes().map(usize::from).sum::<usize>() % CLIENTS
}

/// One of the clients.
async fn perform(store: Arc<Metered>, mut actions: mpsc::Receiver<AppAction>, bar: ProgressBar) -> anyhow::Result<()> {
    let mut client = Client::default();
    while let Some(action) = actions.recv().await {
        let subject = action.subject.clone();
        let performed = client.perform(store.as_ref(), action).await;
        let is_done = performed.with_context(|| format!("the application cannot write to {subject}"))?;
        store.written().n_refused += usize::from(!is_done);
        bar.inc(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Vec<String> {
        let mut application = Application::new(catalogue::schema(), seed);
        (0..500).map(|_| format!("{:?}", application.next_action().unwrap())).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        assert_ne!(drawn(11), drawn(12));
    }
}

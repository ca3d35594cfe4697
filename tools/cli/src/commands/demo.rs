//! `ripple demo`: runs a workload against the service, and verifies the result.

mod famous;
mod figures;
mod hot;
mod running;
mod scenario;
mod shown;
mod writer;

use std::{
    io::{IsTerminal, stderr},
    net::Ipv4Addr,
    sync::Arc,
    time::Instant,
};

use engine::{
    clock::{Clock as _, SystemClock},
    ledger::settings::claim,
    registry::edit::begin,
};
use functions::{
    config::Config,
    declared::{Choice, declared},
    handler::dynamo,
    logging,
};
use indicatif::{ProgressBar, ProgressStyle};
use operate::verify::definition::{Comparison, compare_table};
use tokio::sync::watch;

use self::{
    running::Running,
    scenario::has_lag,
    shown::{Measured, RunReport},
};
use super::{LOG_FILTER, dev::stop_signal, verify::as_text};
use crate::{
    args::demo::{Demo, Scenario},
    book::Bookkeeper,
    connection::Clients,
    embedded::Embedded,
    exit::{Completion, print},
    json::print_json,
    mappings::{MappingRequest, mappings},
    memory,
    metered::Metered,
    service::{Plan, Service, Witness, laptop_limits},
    tables,
};

pub(crate) async fn run(args: &Demo) -> anyhow::Result<Completion> {
    args.check()?;
    logging::readable(LOG_FILTER);
    let (stop, stopped) = watch::channel(false);
    let embedded = match args.endpoint {
        None => Some(Embedded::start((Ipv4Addr::LOCALHOST, 0).into(), None, stopped).await?),
        Some(_) => None,
    };
    let endpoint = embedded.as_ref().map(|embedded| embedded.endpoint.clone()).or_else(|| args.endpoint.clone());
    let endpoint = endpoint.unwrap_or_default();
    let interrupted = stop_signal()?;
    // What is dropped here deletes its folder.
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

/// Tables of its own, so that the demo touches nobody else's data.
fn config(args: &Demo) -> Config {
    let table = format!("ripple-demo-{}", std::process::id());
    let ledger_table = format!("{table}-ledger");
    Config { ledger: args.ledger, ..Config::of(table, ledger_table) }
}

/// Deletes the tables of a demo that is interrupted, unless they end with the process.
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
    let (readers, ledger) = (args.readers, args.ledger);
    let wanted = MappingRequest {
        template: None,
        readers,
        ledger,
        streams: &streams,
        schema: &schema,
        catalogue: &catalogue,
        has_manifest: false,
    };
    let mappings = mappings(&wanted)?;
    let plan = Plan {
        schema: Arc::clone(&schema),
        catalogue: Arc::clone(&catalogue),
        store: Arc::clone(&store),
        streams: clients.streams,
        mappings,
        ledger,
        limits,
        functions: None,
        failures: failures.path(),
    };
    let book = Arc::new(Bookkeeper::new(Arc::clone(&schema), Arc::clone(&catalogue), has_lag(args)));
    let started = Instant::now();
    let service = Service::start(&plan, &(Arc::clone(&book) as Arc<dyn Witness>)).await?;
    let metered = Arc::new(Metered::new(Arc::clone(&store), has_lag(args)));
    let mut running = Running { args, service, metered, book, bar: progress(args) };
    let report = scenario::run(&mut running).await?;
    let (memory_mb, elapsed) = (memory::peak_mb(), started.elapsed());
    let Running { service, metered, book, bar, .. } = running;
    service.stop().await?;
    bar.set_message("verifying");
    let verified = compare_table(&schema, &catalogue, store.as_ref()).await?;
    bar.finish_and_clear();
    if args.endpoint.is_some() {
        tables::delete(&clients.dynamodb, &config).await?;
    }
    let (mut book, written) = (book.book(), std::mem::take(&mut *metered.written()));
    let is_mixed = args.scenario == Scenario::Mixed;
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
    ProgressBar::new(u64::from(args.writes)).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

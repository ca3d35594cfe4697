//! A function in Lambda.

use std::sync::Arc;

use engine::{batch::Engine, sweep::Bounds};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json, value::RawValue};
use store::Store;

use crate::{
    config::{Config, sdk_config},
    declared::declared,
    handler::{Function, dynamo, engine, response},
    logging,
    metrics::Metrics,
};

/// How long an invocation may take where the deadline is not to be believed, in milliseconds: `cargo lambda` gives one
/// that lies in 1970.
const INVOCATION_MS: u64 = 60_000;

/// Time that a sweep leaves of its invocation, in milliseconds: for calls that are under way, and for its answer.
const SWEEP_MARGIN_MS: u64 = 10_000;

/// Runs a function until Lambda ends it.
///
/// # Errors
///
/// What keeps it from starting, in one line, or what the runtime ended with.
pub async fn run(function: Function) -> Result<(), Error> {
    logging::for_function();
    let config = Config::from_env()?;
    let client = aws_sdk_dynamodb::Client::new(&sdk_config().await);
    let (schema, _) = declared(config.choice())?;
    let engine = Arc::new(engine(function, &config, dynamo(client, &schema, &config)).await?);
    let config = Arc::new(config);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (engine, config) = (Arc::clone(&engine), Arc::clone(&config));
        Box::pin(async move {
            match function {
                Function::Sweep => sweep(&engine, &config, &event).await,
                _ => handle(&engine, function, event).await,
            }
        })
    }))
    .await
}

/// A sweep, whatever the schedule's event says: jobs first, then what is to be searched for again, then the next slice
/// of the table.
async fn sweep<S: Store>(
    engine: &Engine<S>,
    config: &Config,
    event: &LambdaEvent<Box<RawValue>>,
) -> Result<Value, Error> {
    let deadline_ms = deadline_ms(engine, event).saturating_sub(SWEEP_MARGIN_MS);
    let jobs = engine.sweep(|_| true).await;
    let again = engine.search_again(deadline_ms).await;
    let bounds = Bounds { n_items_max: config.sweep_items, deadline_ms };
    let is_past = |noted_at_ms: u64| engine.clock().now_ms().saturating_sub(noted_at_ms) >= config.drift_wait_ms;
    let slice = engine.sweep_slice(bounds, is_past).await;
    // What one of them did is told though the other failed.
    let metrics = Metrics {
        jobs: jobs.as_ref().copied().unwrap_or_default(),
        again: again.as_ref().copied().unwrap_or_default(),
        slice: slice.as_ref().map(Clone::clone).unwrap_or_default(),
    };
    metrics.tell(&config.table, engine.clock().now_ms())?;
    for drift in &metrics.slice.drifts {
        tracing::warn!(item = %drift.item, derivations = drift.derivations.join(", "), "a derived part has drifted");
    }
    let (jobs, again, slice) = (jobs?, again?, slice?);
    tracing::info!(
        function = %Function::Sweep,
        request_id = event.context.request_id,
        jobs = jobs.n_jobs,
        begun = jobs.n_begun,
        rung = jobs.n_rung,
        searched_again = again.n_done,
        found_again = again.n_written,
        items = slice.n_items,
        suspects = slice.n_suspects,
        drift = slice.drifts.len(),
        zero_counters = slice.n_zero_counters,
        round_ms = slice.round_ms,
        "swept"
    );
    Ok(json!({
        "jobs": jobs.n_jobs,
        "begun": jobs.n_begun,
        "rung": jobs.n_rung,
        "searchedAgain": again.n_done,
        "foundAgain": again.n_written,
        "items": slice.n_items,
        "suspects": slice.n_suspects,
        "drift": slice.drifts.len(),
        "zeroCounters": slice.n_zero_counters,
    }))
}

/// When an invocation has to end.
fn deadline_ms<S: Store>(engine: &Engine<S>, event: &LambdaEvent<Box<RawValue>>) -> u64 {
    let now_ms = engine.clock().now_ms();
    Some(event.context.deadline).filter(|deadline| *deadline > now_ms).unwrap_or(now_ms + INVOCATION_MS)
}

async fn handle<S: Store>(
    engine: &Engine<S>,
    function: Function,
    event: LambdaEvent<Box<RawValue>>,
) -> Result<Value, Error> {
    let handled = engine.handle(event.payload.get(), deadline_ms(engine, &event)).await?;
    let account = &handled.account;
    tracing::info!(
        %function,
        request_id = event.context.request_id,
        records = account.n_records,
        changes = account.n_changes,
        echoes = account.n_echoes,
        ignored = account.n_ignored,
        late_changes = account.n_late_changes,
        duplicates = account.n_duplicates,
        writes = account.commits.len(),
        write_units = account.commits.iter().fold(0.0, |sum, commit| sum + commit.units),
        retries = account.n_retries,
        conflicts = Some(account.heat.n_conflicts()).filter(|n_conflicts| *n_conflicts > 0),
        throttles = Some(account.heat.n_throttles()).filter(|n_throttles| *n_throttles > 0),
        busy = account.heat.busy(),
        parked = account.parked.len(),
        refused = account.refused.len(),
        failed_from = handled.failed_from,
        cause = account.undone.values().next(),
        "handled a batch"
    );
    Ok(response(&handled))
}

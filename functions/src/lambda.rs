//! A function in Lambda.

use std::{process::ExitCode, sync::Arc};

use aws_sdk_dynamodb::Client;
use derive::fit::note_undeclared_keys;
use engine::{backoff::describe, batch::Engine, sweep::Bounds};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, value::RawValue};
use store::{Store, dynamo::DynamoStore};
use tracing::Instrument as _;

use crate::{
    config::{Config, Moded, sdk_config},
    declared::declared,
    handler::{Function, StartError, answer, dynamo, engine_of},
    logging,
    metrics::{self, BatchMetrics, LineOf, SweepMetrics, ZerosShown},
    start::{CheckedTables, check_tables, stream_changed},
};

/// Variable with the address of Lambda's runtime API.
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";

/// Time limit of an invocation without a plausible deadline, in milliseconds: `cargo lambda` sets one in 1970.
const INVOCATION_MS: u64 = 60_000;

/// Time that a sweep reserves at the end of its invocation, in milliseconds: for calls in progress, and for the
/// response.
const SWEEP_MARGIN_MS: u64 = 10_000;

/// Runs a function until Lambda ends it, on one thread: with the memory of the templates a function has a part of a
/// processor, and each response would wake another thread. If the function cannot start, logs why in one line and exits with 1.
pub async fn run(function: Function) -> ExitCode {
    logging::for_function();
    let started = match Box::pin(start(function)).await {
        Ok(started) => Arc::new(started),
        Err(error) => {
            tracing::error!("{function} does not start: {}", describe(&error));
            return ExitCode::FAILURE;
        }
    };
    // On Lambda Managed Instances a process handles several invocations at once, elsewhere one at a time.
    let ended = lambda_runtime::run_concurrent(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let started = Arc::clone(&started);
        let span = logging::invocation(function, &event.context, started.config.mode);
        let invocation = async move {
            let _turn = started.tables.begin().await;
            let answered = match function {
                Function::Sweep => sweep(&started, &event).await,
                _ => Box::pin(handle(&started, function, event)).await,
            };
            // The runtime logs it too, without the id of the invocation.
            answered.inspect_err(|error| tracing::error!("the invocation failed: {error}"))
        };
        Box::pin(invocation.instrument(span))
    }))
    .await;
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{function} ended: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The tables of a function.
type LambdaTables = Arc<Moded<DynamoStore>>;

/// A function that has started.
struct StartedFunction {
    config: Config,
    client: Client,
    tables: LambdaTables,
    engine: Engine<LambdaTables>,
    /// The table's number of items, as DynamoDB last counted them.
    n_items: u64,
    zeros: ZerosShown,
}

/// Reads the configuration, checks the tables, and creates the engine.
async fn start(function: Function) -> Result<StartedFunction, StartError> {
    let config = Config::from_env()?;
    let (mut schema, catalogue) = declared(config.choice())?;
    let client = Client::new(&sdk_config().await);
    let CheckedTables { n_items, stored } = check_tables(&client, &schema, &catalogue, &config).await?;
    for table in &stored {
        note_undeclared_keys(Arc::make_mut(&mut schema), table);
    }
    let tables = Arc::new(Moded::new(config.mode, dynamo(client.clone(), &schema, &config), &schema.layout));
    let engine = engine_of(function, &config, (schema, catalogue), Arc::clone(&tables)).await?;
    if std::env::var_os(RUNTIME_API).is_none() {
        return Err(StartError::NoLambda);
    }
    Ok(StartedFunction { config, client, tables, engine, n_items, zeros: ZerosShown::default() })
}

/// One sweep, whatever the schedule's event contains: jobs first, then repeated searches, then the next slice of the
/// table. Each may use half of the time that is left, so none of them starves the next. The response is the line of the
/// log.
async fn sweep(started: &StartedFunction, event: &LambdaEvent<Box<RawValue>>) -> Result<Value, Error> {
    let StartedFunction { config, client, engine, n_items, .. } = started;
    let stream_changed = stream_changed(client, config).await;
    let deadline_ms = deadline_ms(engine, event).saturating_sub(SWEEP_MARGIN_MS);
    let half_ms = || engine.clock().now_ms().midpoint(deadline_ms);
    let jobs = engine.sweep_by_pulse(half_ms()).await;
    let again = engine.search_again(half_ms()).await;
    let bounds = Bounds { n_items_max: config.sweep_items, deadline_ms };
    let is_past = |noted_at_ms: u64| engine.clock().now_ms().saturating_sub(noted_at_ms) >= config.drift_wait_ms;
    let slice = engine.sweep_slice(bounds, is_past).await;
    let damage = engine.damage(deadline_ms.saturating_add(SWEEP_MARGIN_MS / 2)).await;
    // The result of each step is reported, even if another failed.
    let metrics = SweepMetrics {
        jobs: jobs.as_ref().ok().copied(),
        again: again.as_ref().ok().copied(),
        slice: slice.as_ref().ok().cloned(),
        damage: damage.as_ref().ok().copied(),
        stream_changed,
    };
    let line = line_of(config, Function::Sweep, event, engine.clock().now_ms());
    let line = line.sweep(&metrics, *n_items);
    metrics::publish(&line)?;
    for drift in metrics.slice.iter().flat_map(|slice| &slice.drifts) {
        tracing::warn!(
            item = drift.item.for_log(),
            derivations = drift.derivations.join(", "),
            "a derived part has drifted"
        );
    }
    // As text: the runtime logs an error in full, and its details may contain values.
    let text = |error: &(dyn std::error::Error + 'static)| describe(error);
    jobs.map_err(|error| text(&error))?;
    again.map_err(|error| text(&error))?;
    slice.map_err(|error| text(&error))?;
    damage.map_err(|error| text(&error))?;
    Ok(line)
}

/// The time by which an invocation must end.
fn deadline_ms<S: Store>(engine: &Engine<S>, event: &LambdaEvent<Box<RawValue>>) -> u64 {
    let now_ms = engine.clock().now_ms();
    Some(event.context.deadline).filter(|deadline| *deadline > now_ms).unwrap_or(now_ms.saturating_add(INVOCATION_MS))
}

async fn handle(
    started: &StartedFunction,
    function: Function,
    event: LambdaEvent<Box<RawValue>>,
) -> Result<Value, Error> {
    let StartedFunction { config, engine, zeros, .. } = started;
    // As text: the runtime logs an error in full, and an error about an event quotes the event.
    let handled = engine.handle(event.payload.get(), deadline_ms(engine, &event)).await;
    let handled = handled.map_err(|error| error.to_string())?;
    let now_ms = engine.clock().now_ms();
    let line = line_of(config, function, &event, now_ms);
    metrics::publish(&line.batch(&BatchMetrics::of(engine, &handled.account), &handled, zeros.next(now_ms)))?;
    Ok(answer(&handled)?)
}

fn line_of<'a>(
    config: &'a Config,
    function: Function,
    event: &'a LambdaEvent<Box<RawValue>>,
    now_ms: u64,
) -> LineOf<'a> {
    let (request_id, xray_trace_id) = (event.context.request_id.as_str(), event.context.xray_trace_id.as_deref());
    LineOf { config, function, request_id, xray_trace_id, now_ms }
}

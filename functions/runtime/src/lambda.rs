//! A function in Lambda.

use std::sync::Arc;

use engine::batch::Engine;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json, value::RawValue};
use store::Store;

use crate::{
    config::{Config, sdk_config},
    declared::declared,
    handler::{Function, dynamo, engine, response},
    logging,
};

/// How long an invocation may take where the deadline is not to be believed, in milliseconds: `cargo lambda` gives one
/// that lies in 1970.
const INVOCATION_MS: u64 = 60_000;

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
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let engine = Arc::clone(&engine);
        Box::pin(async move {
            match function {
                Function::Sweep => sweep(&engine, &event).await,
                _ => handle(&engine, function, event).await,
            }
        })
    }))
    .await
}

/// A sweep; whatever the schedule's event says.
async fn sweep<S: Store>(engine: &Engine<S>, event: &LambdaEvent<Box<RawValue>>) -> Result<Value, Error> {
    let swept = engine.sweep(|_| true).await?;
    tracing::info!(
        function = %Function::Sweep,
        request_id = event.context.request_id,
        jobs = swept.n_jobs,
        begun = swept.n_begun,
        rung = swept.n_rung,
        "swept"
    );
    Ok(json!({ "jobs": swept.n_jobs, "begun": swept.n_begun, "rung": swept.n_rung }))
}

async fn handle<S: Store>(
    engine: &Engine<S>,
    function: Function,
    event: LambdaEvent<Box<RawValue>>,
) -> Result<Value, Error> {
    let now_ms = engine.clock().now_ms();
    let deadline_ms = Some(event.context.deadline).filter(|deadline| *deadline > now_ms);
    let handled = engine.handle(event.payload.get(), deadline_ms.unwrap_or(now_ms + INVOCATION_MS)).await?;
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

//! The handler: an event in, a response out. Lambda and the command line use the same one.

use std::{fmt, sync::Arc};

use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{
    batch::{Engine, Handled},
    clock::SystemClock,
    ledger::{SettingsError, claim},
    registry::{Hold, RegistryWatch},
};
use serde_json::json;
use store::{
    Store,
    dynamo::{DynamoStore, TableNames},
};

use crate::{
    config::{Config, ConfigError, Mode},
    declared::{DeclaredError, declared},
    start::TableError,
};

/// Time between two reads of the registry by an instance, in milliseconds.
const LOOK_MS: u64 = 60_000;

/// How long an instance may run without registering: until its next read of the registry, plus the longest invocation.
/// The margin covers the difference between clocks, calls in progress, and the rounding of record times by an emulator.
/// Source: Lambda's quotas, "function timeout", 900 seconds; DynamoDB Local rounds to the minute.
const HOLD: Hold = Hold { hold_ms: LOOK_MS + 900_000, margin_ms: 120_000 };

/// A function. Its name is stable: the binary, the package and the mapping have it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Runs the additive derivations.
    Aggregate,
    /// Runs the level-triggered derivations.
    Propagate,
    /// Runs both, for a stream with a single free reader.
    Combined,
    /// Runs none. On a schedule it starts due jobs, restarts stalled ones, checks the next slice of the table for
    /// drift, and deletes counters of zero.
    Sweep,
}

impl Function {
    /// The families of derivations that the function runs.
    #[must_use]
    pub fn families(self) -> Vec<Family> {
        match self {
            Self::Aggregate => vec![Family::Additive],
            Self::Propagate => vec![Family::LevelTriggered],
            Self::Combined => vec![Family::Additive, Family::LevelTriggered],
            Self::Sweep => Vec::new(),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aggregate => "aggregate",
            Self::Propagate => "propagate",
            Self::Combined => "combined",
            Self::Sweep => "sweep",
        })
    }
}

/// The DynamoDB tables of a configuration.
#[must_use]
pub fn dynamo(client: aws_sdk_dynamodb::Client, schema: &Schema, config: &Config) -> DynamoStore {
    let names = TableNames { main: config.table.clone(), ledger: config.ledger_table.clone() };
    DynamoStore::new(client, schema.layout.clone(), names)
}

/// A function's engine over a store, for the configured table.
///
/// # Errors
///
/// [`StartError`] if the declarations cannot be used, or if the ledger has another kind than configured.
pub async fn engine<S: Store>(function: Function, config: &Config, store: S) -> Result<Engine<S>, StartError> {
    engine_of(function, config, declared(config.choice())?, store).await
}

/// Like [`engine()`], with these declarations.
///
/// # Errors
///
/// [`StartError`] if the ledger has another kind than configured.
pub async fn engine_of<S: Store>(
    function: Function,
    config: &Config,
    (schema, catalogue): (Arc<Schema>, Arc<Catalogue>),
    store: S,
) -> Result<Engine<S>, StartError> {
    // A function that counts nothing does not use the ledger.
    if function.families().contains(&Family::Additive) {
        claim(&store, &schema.layout, config.ledger).await?;
    }
    let engine = Engine::new(schema, catalogue, function.families(), store, Arc::new(SystemClock));
    let engine = engine.with_ledger(config.ledger).with_limits(config.limits);
    let engine = engine.with_settling(config.settle_ms).with_fan_out(config.fan_out).with_hot_for(config.hot_ms);
    // An observing function does not register.
    Ok(if config.mode == Mode::Apply { engine.watching(RegistryWatch::publishing(LOOK_MS, HOLD)) } else { engine })
}

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A variable is missing or invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A table does not exist, or does not fit.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The declarations cannot be used.
    #[error(transparent)]
    Declared(#[from] DeclaredError),
    /// The ledger has another kind than configured.
    #[error(transparent)]
    Ledger(#[from] SettingsError),
    /// No runtime API invokes the function.
    #[error(
        "the environment variable AWS_LAMBDA_RUNTIME_API is not set, so nobody invokes it: run it in Lambda, or with \
         `cargo lambda watch`"
    )]
    NoLambda,
}

/// The answer to Lambda: the [response], unless a failure lasts until the operator changes the set-up.
///
/// # Errors
///
/// That failure. The invocation then fails as a whole, so that Lambda's own metric `Errors` shows it; applied changes
/// are not applied again.
pub fn answer(handled: &Handled) -> Result<serde_json::Value, StandingFailure> {
    match &handled.account.standing {
        Some(why) => Err(StandingFailure(why.clone())),
        None => Ok(response(handled)),
    }
}

/// A failure that lasts until the operator changes the set-up, such as a missing permission, table or encryption key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the function cannot work until its set-up is changed: {0}")]
pub struct StandingFailure(String);

/// The response to Lambda: the lowest record that is not done, from which Lambda redelivers the batch, and the state of
/// the tumbling window if there is one. Without the state Lambda would count the invocation as failed.
#[must_use]
pub fn response(handled: &Handled) -> serde_json::Value {
    let mut failures = DynamoDbEventResponse::default();
    failures.batch_item_failures.extend(handled.failed_from.iter().map(|number| {
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(number.clone());
        failure
    }));
    let mut answer = json!(failures);
    if let (Some(state), Some(fields)) = (&handled.state, answer.as_object_mut()) {
        // Any JSON object: the type of `aws_lambda_events` allows only strings, and another function may have stored a
        // number.
        let state = serde_json::from_str(state).unwrap_or_else(|_| json!({}));
        fields.insert("state".to_owned(), state);
    }
    answer
}

#[cfg(test)]
mod tests {
    use engine::account::Account;

    use super::*;

    fn answer(failed_from: Option<&str>, state: Option<&str>) -> String {
        let (failed_from, state) = (failed_from.map(str::to_owned), state.map(str::to_owned));
        response(&Handled { changes: Vec::new(), account: Account::default(), failed_from, state }).to_string()
    }

    /// Source: AWS Lambda developer guide, "Configuring partial batch response with DynamoDB and Lambda", and "Tumbling
    /// windows".
    #[test]
    fn an_answer_is_the_text_that_lambda_reads() {
        assert_eq!(answer(None, None), r#"{"batchItemFailures":[]}"#);
        assert_eq!(answer(Some("42"), None), r#"{"batchItemFailures":[{"itemIdentifier":"42"}]}"#);
        assert_eq!(answer(Some(""), None), r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#, "the whole batch");
        assert_eq!(answer(None, Some("{}")), r#"{"batchItemFailures":[],"state":{}}"#);
        let state = r#"{"likes":{"a":5},"n":[1,null]}"#;
        let text = format!(r#"{{"batchItemFailures":[{{"itemIdentifier":"42"}}],"state":{state}}}"#);
        assert_eq!(answer(Some("42"), Some(state)), text);
    }
}

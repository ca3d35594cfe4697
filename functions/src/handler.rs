//! The handler: an event in, a response out. The same for Lambda and for the command line.

use std::{fmt, sync::Arc};

use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use derive::{family::Family, schema::Schema};
use engine::{
    batch::{Engine, Handled},
    clock::SystemClock,
    ledger::settings::{SettingsError, claim},
    registry::{Hold, watch::RegistryWatch},
};
use serde_json::json;
use store::{
    Store,
    dynamo::{DynamoStore, TableNames},
};

use crate::{
    config::{Config, ConfigError},
    declared::{DeclaredError, declared},
    mode::Mode,
    start::TableError,
};

/// How often an instance looks whether the registry says what it has, in milliseconds.
const LOOK_MS: u64 = 60_000;

/// How long an instance may run on without: until it looks again, and for as long as an invocation may take; and how much
/// clocks may differ, with the time in which a call lands that was sent, and that by which an emulator may round the time
/// of a record down. Source: Lambda's quotas, "function timeout", 900 seconds; DynamoDB Local rounds to the minute.
const HOLD: Hold = Hold { hold_ms: LOOK_MS + 900_000, margin_ms: 120_000 };

/// Which function this is. Its name is stable: it is the binary's, the package's and the mapping's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Runs the additive derivations.
    Aggregate,
    /// Runs the level-triggered derivations.
    Propagate,
    /// Runs both, for a stream that has one reader left.
    Combined,
    /// Runs none, but on a schedule lets jobs begin that are due, rings those that stand still, verifies the next slice of
    /// the table again, and collects counters of zero.
    Sweep,
}

impl Function {
    /// The families of derivations that it runs.
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

/// A function's engine over a store, for the table that is configured.
///
/// # Errors
///
/// [`StartError`] when what is declared cannot be used, or the ledger is of another kind than configured.
pub async fn engine<S: Store>(function: Function, config: &Config, store: S) -> Result<Engine<S>, StartError> {
    let (schema, catalogue) = declared(config.choice())?;
    // A function that counts nothing has no use for the ledger's kind.
    if function.families().contains(&Family::Additive) {
        claim(&store, &schema.layout, config.ledger).await?;
    }
    let engine = Engine::new(schema, catalogue, function.families(), store, Arc::new(SystemClock));
    let engine = engine.with_ledger(config.ledger).with_limits(config.limits);
    let engine = engine.with_settling(config.settle_ms).with_fan_out(config.fan_out);
    // One that writes nothing registers nothing.
    Ok(if config.mode == Mode::Apply { engine.watching(RegistryWatch::publishing(LOOK_MS, HOLD)) } else { engine })
}

/// A function that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A variable is missing, or says something that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A table is not there, or does not fit.
    #[error(transparent)]
    Table(#[from] TableError),
    /// What is declared cannot be used.
    #[error(transparent)]
    Declared(#[from] DeclaredError),
    /// The ledger cannot be used as it is configured.
    #[error(transparent)]
    Ledger(#[from] SettingsError),
    /// Nobody is there to invoke it.
    #[error(
        "the environment variable AWS_LAMBDA_RUNTIME_API is not set, so nobody invokes it: run it in Lambda, or with \
         `cargo lambda watch`"
    )]
    NoLambda,
}

/// The answer to Lambda: the lowest record that is not done, from which Lambda sends the batch again, and the state of
/// the tumbling window if there is one. Without the state the invocation would count as failed.
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
        // Any JSON object: the type of `aws_lambda_events` holds texts only, and another function may have counted in it.
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

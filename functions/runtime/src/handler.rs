//! The handler: an event in, a response out. The same for Lambda and for the command line.

use std::{fmt, sync::Arc};

use catalogue::{catalogue, schema};
use derive::{
    catalogue::{Catalogue, CatalogueError},
    derivation::Family,
    schema::Schema,
};
use engine::{
    batch::{Engine, Handled},
    clock::SystemClock,
};
use serde_json::json;
use store::{
    Store,
    dynamo::{DynamoStore, TableNames},
};

use crate::config::Config;

/// Which function this is. Its name is stable: it is the binary's, the package's and the mapping's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Runs the additive derivations.
    Aggregate,
    /// Runs the level-triggered derivations.
    Propagate,
    /// Runs both, for a stream that has one reader left.
    Combined,
}

impl Function {
    /// The families of derivations that it runs.
    #[must_use]
    pub fn families(self) -> Vec<Family> {
        match self {
            Self::Aggregate => vec![Family::Additive],
            Self::Propagate => vec![Family::LevelTriggered],
            Self::Combined => vec![Family::Additive, Family::LevelTriggered],
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aggregate => "aggregate",
            Self::Propagate => "propagate",
            Self::Combined => "combined",
        })
    }
}

/// The shipped schema and catalogue.
///
/// # Errors
///
/// [`CatalogueError`] when they do not fit each other.
pub fn shipped() -> Result<(Arc<Schema>, Arc<Catalogue>), CatalogueError> {
    let schema = schema();
    let catalogue = catalogue(&schema)?;
    Ok((Arc::new(schema), Arc::new(catalogue)))
}

/// The DynamoDB tables of a configuration.
#[must_use]
pub fn dynamo(client: aws_sdk_dynamodb::Client, schema: &Schema, config: &Config) -> DynamoStore {
    let names = TableNames { main: config.table.clone(), ledger: config.ledger_table.clone() };
    DynamoStore::new(client, schema.layout.clone(), names)
}

/// A function's engine over a store, for the shipped table.
///
/// # Errors
///
/// [`CatalogueError`] when schema and catalogue do not fit each other.
pub fn engine<S: Store>(function: Function, store: S) -> Result<Engine<S>, CatalogueError> {
    let (schema, catalogue) = shipped()?;
    Ok(Engine::new(schema, catalogue, function.families(), store, Arc::new(SystemClock)))
}

/// The response that Lambda is given: the lowest record that is not done, from which the batch comes again.
#[must_use]
pub fn response(handled: &Handled) -> serde_json::Value {
    let failures: Vec<_> = handled.failed_from.iter().map(|number| json!({ "itemIdentifier": number })).collect();
    json!({ "batchItemFailures": failures })
}

//! Writes as data, taken from the methods themselves.
//!
//! A pattern's `sample` runs its method with placeholders as inputs, such as `{UserId}`, on a store that records the
//! requests. Keys do not escape braces, so the recorded requests read as templates: `PK = USER#{UserId}`. The table's
//! design shows operation, index, key condition, direction, limit, consistency and number of the recorded requests, so
//! it cannot differ from the code.

use std::error::Error;

use futures::future::BoxFuture;
use store::{
    memory::MemoryStore,
    recording::{Recording, Request},
};

use crate::Queries;

/// The query interface of a sample.
pub type SampleQueries = Queries<Recording<MemoryStore>>;

/// Any error of a method.
pub type SampleError = Box<dyn Error + Send + Sync>;

/// Runs a pattern with placeholders as inputs.
pub type SampleRun = for<'a> fn(&'a SampleQueries) -> BoxFuture<'a, Result<(), SampleError>>;

/// One write of the table's design.
#[derive(Clone, Debug)]
pub struct AccessPattern {
    /// Its row in the table's design, such as `WP-09`.
    pub id: &'static str,
    /// The purpose of the pattern.
    pub title: &'static str,
    /// The caller's input.
    pub input: &'static str,
    /// The result for the caller.
    pub result: &'static str,
    /// Runs the pattern with placeholders.
    pub sample: SampleRun,
}

impl AccessPattern {
    /// The pattern's requests to a store, in order.
    ///
    /// # Errors
    ///
    /// The error of the sample.
    pub async fn requests(&self) -> Result<Vec<Request>, SampleError> {
        let queries = Queries::new(Recording::new(MemoryStore::new(catalogue::schema().layout)), || 0);
        (self.sample)(&queries).await?;
        Ok(queries.store.take())
    }
}

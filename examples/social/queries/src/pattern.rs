//! Patterns as data: what the table's design says of each read and write, taken from the methods themselves.
//!
//! A pattern's `sample` runs its method with placeholders for inputs, such as `{UserId}`, against a store that records
//! what it is asked for. Keys do not escape braces, so the captured requests read as templates: `PK = USER#{UserId}`.
//! Operation, index, key condition, direction, limit, consistency and the number of requests of the design document
//! are those of the requests, and cannot differ from what is really asked.

pub mod row;

use std::error::Error;

use futures::future::BoxFuture;
use keys::item::Item;
use store::{
    memory::MemoryStore,
    recording::{Recording, Request},
};

use crate::{Queries, page::PageRequest, reads, writes};

/// The query interface that a sample runs on.
pub type SampleQueries = Queries<Recording<MemoryStore>>;

/// What stopped a sample: any error of a method.
pub type SampleError = Box<dyn Error + Send + Sync>;

/// Runs a pattern with placeholders.
pub type SampleRun = for<'a> fn(&'a SampleQueries) -> BoxFuture<'a, Result<(), SampleError>>;

/// Limit of a sample's pages. A page's limit is the caller's.
pub const SAMPLE_LIMIT: u32 = 20;

/// One read or write of the table's design.
#[derive(Clone, Debug)]
pub struct AccessPattern {
    /// Its row in the table's design, such as `AP-009`.
    pub id: &'static str,
    /// What it is for.
    pub title: &'static str,
    /// What the caller gives.
    pub input: &'static str,
    /// What the caller gets.
    pub result: &'static str,
    /// In which order; empty where there is none.
    pub order: &'static str,
    /// Runs it with placeholders.
    pub sample: SampleRun,
}

impl AccessPattern {
    /// What the pattern asks of a store, in its order.
    ///
    /// # Errors
    ///
    /// What stopped the sample.
    pub async fn requests(&self) -> Result<Vec<Request>, SampleError> {
        let queries = Queries::new(Recording::new(MemoryStore::new(entities::table::layout())), || 0);
        (self.sample)(&queries).await?;
        Ok(queries.store.take())
    }
}

/// The patterns AP-001 to AP-044, in order.
#[must_use]
pub fn reads() -> Vec<AccessPattern> {
    reads::patterns()
}

/// The patterns WP-01 to WP-19, in order.
#[must_use]
pub fn writes() -> Vec<AccessPattern> {
    writes::patterns()
}

impl SampleQueries {
    /// Puts an item in place that a sample needs, without a request.
    pub(crate) fn given(&self, item: Item) -> Result<(), SampleError> {
        Ok(self.store.inner().put_raw(derive::write::Table::Main, item)?)
    }
}

/// The page that samples ask for.
pub(crate) fn sample_page() -> PageRequest {
    PageRequest::first(SAMPLE_LIMIT)
}

/// A sample of these statements.
macro_rules! sample {
    (|$queries:ident| { $($statements:tt)* }) => {
        |$queries| Box::pin(async move {
            $($statements)*
            Ok(())
        })
    };
}
pub(crate) use sample;

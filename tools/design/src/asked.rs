//! What is asked of a table: a pattern, with the requests that it really makes.

use derive::{
    query::Query,
    write::{Transaction, Write},
};
use keys::key::Key;
use store::recording::Request;

/// A pattern, with the requests of one run with placeholders for its inputs.
#[derive(Clone, Debug)]
pub struct PatternRequests {
    /// Its row in the table's design, such as `AP-009`.
    pub id: String,
    /// What it is for.
    pub title: String,
    /// What the caller gives.
    pub input: String,
    /// What the caller gets.
    pub result: String,
    /// In which order; empty where there is none.
    pub order: String,
    /// What it asks of the table, in its order.
    pub requests: Vec<Request>,
    /// Most actions of its transaction, where that grows with the input and has a bound.
    pub actions_max: Option<usize>,
}

impl PatternRequests {
    /// Its queries.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.requests.iter().filter_map(|request| match request {
            Request::Query(_, query, _) => Some(query),
            _ => None,
        })
    }

    /// The keys that it reads items by.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.requests.iter().flat_map(|request| match request {
            Request::Read(_, keys, _) => keys.as_slice(),
            _ => &[],
        })
    }

    /// Its transactions.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.requests.iter().filter_map(|request| match request {
            Request::Transact(transaction) => Some(transaction),
            _ => None,
        })
    }

    /// Its writes, those of transactions too.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.requests.iter().flat_map(|request| match request {
            Request::Write(write) => std::slice::from_ref(write),
            Request::Transact(transaction) => transaction.writes(),
            _ => &[],
        })
    }

    /// Does it read the whole table?
    #[must_use]
    pub fn scans(&self) -> bool {
        self.requests.iter().any(|request| matches!(request, Request::Scan(_)))
    }

    /// Does it write?
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.writes().next().is_some()
    }
}

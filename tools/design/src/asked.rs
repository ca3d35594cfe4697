//! Access patterns with the requests that they make.

use derive::{
    query::Query,
    write::{Transaction, Write},
};
use keys::key::Key;
use store::recording::Request;

/// The limit of a page in the recorded requests. A caller chooses the limit.
pub const PAGE_LIMIT: u32 = 20;

/// A pattern, with the requests of one run with placeholders for its inputs.
#[derive(Clone, Debug)]
pub struct PatternRequests {
    /// Its row in the table's design, such as `AP-009`.
    pub id: String,
    /// The purpose of the pattern.
    pub title: String,
    /// The caller's input.
    pub input: String,
    /// The result for the caller.
    pub result: String,
    /// The order of the result; empty if there is none.
    pub order: String,
    /// The requests to the table, in order.
    pub requests: Vec<Request>,
    /// Maximum number of actions in its transaction, if that number grows with the input and has a bound.
    pub actions_max: Option<usize>,
}

impl PatternRequests {
    /// The queries among the requests.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.requests.iter().filter_map(|request| match request {
            Request::Query(_, query, _) => Some(query),
            _ => None,
        })
    }

    /// The keys of the items that the pattern gets.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.requests.iter().flat_map(|request| match request {
            Request::Read(_, keys, _) => keys.as_slice(),
            _ => &[],
        })
    }

    /// The transactions among the requests.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.requests.iter().filter_map(|request| match request {
            Request::Transact(transaction) => Some(transaction),
            _ => None,
        })
    }

    /// All writes, including those of transactions.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.requests.iter().flat_map(|request| match request {
            Request::Write(write) => std::slice::from_ref(write),
            Request::Transact(transaction) => transaction.writes(),
            _ => &[],
        })
    }

    /// True if the pattern reads the whole table.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.requests.iter().any(|request| matches!(request, Request::Scan(_)))
    }

    /// True if the pattern writes.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.writes().next().is_some()
    }
}

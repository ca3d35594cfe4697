//! A table's design: the [`document`] that describes it, and its [`review`].
//!
//! *Keeps true*: the document matches the code. The keys come from the declarations, the requests from the patterns,
//! the prices from the store's model, and the bookkeeping items from the code that stores them. A change of any of
//! these changes the page's text.
//!
//! All functions take a [`Design`] of any table.

pub mod cost;
pub mod document;
pub mod price;
pub mod review;
pub mod samples;
pub mod sentence;

use derive::{
    access::{Access, AccessFilter, AccessQuery, AccessReads, AccessRequest, NextField},
    catalogue::Catalogue,
    query::Query,
    schema::Schema,
    write::{Table, Transaction, Write},
};
use engine::bookkeeping::Kept;
use keys::key::Key;
use store::recording::Request;

use crate::{review::FindingAnswer, samples::Samples};

/// A table, with the known facts about its use.
#[derive(Clone, Debug)]
pub struct Design {
    /// Keys, indexes and entities.
    pub schema: Schema,
    /// The derivations.
    pub catalogue: Catalogue,
    /// An item of each entity.
    pub samples: Samples,
    /// The access patterns; empty if they are unknown.
    pub patterns: Vec<PatternRequests>,
    /// The items that Ripple keeps for itself.
    pub kept: Vec<Kept>,
    /// The answers to findings of the review.
    pub answers: Vec<FindingAnswer>,
}

impl Design {
    /// A design from the declarations alone. Its patterns are the declared reads.
    #[must_use]
    pub fn declared(schema: Schema, catalogue: Catalogue) -> Self {
        let (samples, kept) =
            (Samples::made_up(&schema).as_read_by(&schema, &catalogue), engine::bookkeeping::kept(&schema.layout));
        let patterns = schema.accesses.iter().map(|access| PatternRequests::declared(&schema, access)).collect();
        Self { patterns, schema, catalogue, samples, kept, answers: Vec::new() }
    }

    /// True if the entities are rows of a table's design, with ids of their own. Entities of a manifest have only
    /// names.
    fn has_rows(&self) -> bool {
        self.schema.entities().any(|entity| entity.id != entity.name)
    }
}

// ---- access patterns with the requests that they make ----

/// A pattern, with the requests of one run with placeholders for its inputs.
#[derive(Clone, Debug)]
pub struct PatternRequests {
    /// Its own name.
    pub name: String,
    /// Its row in the table's design, such as `AP-009`; several patterns can be one row.
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
    /// Which of the items are returned; `None` for all.
    pub filter: Option<AccessFilter>,
    /// Maximum number of actions in its transaction, if that number grows with the input and has a bound.
    pub actions_max: Option<usize>,
}

impl PatternRequests {
    /// A declared pattern.
    #[must_use]
    pub fn declared(schema: &Schema, access: &Access) -> Self {
        let request = |request| match request {
            AccessRequest::Get(keys) => Request::Read(Table::Main, keys, access.consistency),
            AccessRequest::Query(query) => Request::Query(Table::Main, query, None),
        };
        let fields = |entity: &str| schema.entity(entity).map(|it| it.key.field_names().join(", ")).unwrap_or_default();
        let (input, result, order) = match &access.reads {
            AccessReads::Get(entity) => (fields(entity), format!("{entity}, if there"), String::new()),
            AccessReads::BatchGet(entity) => (
                format!("list of {}", fields(entity)),
                format!("each {entity} that is there, and the missing keys"),
                String::new(),
            ),
            AccessReads::Counts(entity) => (fields(entity), "count and sum by derivation".to_owned(), String::new()),
            AccessReads::Query(query) => {
                (inputs(schema, query), format!("page of {}", query.entities.join(", ")), order(schema, query))
            }
        };
        let filter = match &access.reads {
            AccessReads::Query(query) => query.filter.clone(),
            _ => None,
        };
        Self {
            name: access.name.clone(),
            id: access.id.clone(),
            title: access.about.clone(),
            input,
            result,
            order,
            requests: access.requests(schema).into_iter().map(request).collect(),
            filter,
            actions_max: None,
        }
    }

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

/// What the caller of a query gives.
fn inputs(schema: &Schema, query: &AccessQuery) -> String {
    let fields = query.partition_fields(schema).into_iter().chain(query.fields.iter().map(String::as_str));
    let mut inputs: Vec<String> = fields.map(str::to_owned).collect();
    match &query.next {
        NextField::Any => {}
        NextField::Between(field) => inputs.push(format!("{field} from low to high")),
        NextField::Below(field) => inputs.push(field.clone()),
    }
    inputs.extend(query.filter.iter().flat_map(AccessFilter::inputs).map(str::to_owned));
    inputs.join(", ")
}

/// The fields of the sort key behind those that the caller gives.
fn order(schema: &Schema, query: &AccessQuery) -> String {
    let entity = query.entities.first().and_then(|entity| schema.entity(entity));
    let Some(key) = entity.and_then(|entity| query.key_of(entity)) else { return String::new() };
    if query.entities.len() > 1 {
        return "sort key".to_owned();
    }
    let names = key.sk.field_names();
    names.into_iter().filter(|name| !query.fields.iter().any(|field| field == name)).collect::<Vec<_>>().join(", ")
}

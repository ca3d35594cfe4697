//! Rows of the table's design that describe requests.

use derive::query::{Consistency, Order, Query, SortKeys};
use keys::{key::Key, layout::Layout};
use store::recording::Request;

/// Requests of one form: a single one, or one for each suffix of a spread partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation, as DynamoDB names it.
    pub operation: &'static str,
    /// The index; `None` for the table itself.
    pub index: Option<String>,
    /// The keys, or the key condition.
    pub keys: String,
    /// The order of a query.
    pub order: Option<Order>,
    /// Maximum number of items in a query's response, if it has a limit.
    pub limit: Option<u32>,
    /// The consistency of the read.
    pub consistency: Option<Consistency>,
    /// The number of requests.
    pub n_requests: usize,
}

/// The rows of these requests, in order. Requests that differ only in the suffix of a spread key are one row with
/// `{spread}` in its key.
#[must_use]
pub fn rows(layout: &Layout, requests: &[Request]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut at = 0;
    while let Some(request) = requests.get(at) {
        let alike = requests.iter().skip(at).zip(0..).take_while(|(other, suffix)| is_suffix(request, other, *suffix));
        let n_requests = alike.count().max(1);
        let row = if n_requests > 1 { row(layout, &spread(request)) } else { row(layout, request) };
        rows.push(Row { n_requests, ..row });
        at += n_requests;
    }
    rows
}

/// True if `other` is the same query on the suffix with this number.
fn is_suffix(first: &Request, other: &Request, suffix: u32) -> bool {
    let (Request::Query(_, query, _), Request::Query(_, other, _)) = (first, other) else { return false };
    let Some(start) = query.pk.strip_suffix("#00") else { return false };
    let pk = format!("{start}#{suffix:02}");
    Query { pk, ..query.clone() } == *other
}

fn spread(request: &Request) -> Request {
    match request {
        Request::Query(table, query, after) => {
            let pk = format!("{}#{{spread}}", query.pk.strip_suffix("#00").unwrap_or(&query.pk));
            Request::Query(*table, Query { pk, ..query.clone() }, after.clone())
        }
        other => other.clone(),
    }
}

fn row(layout: &Layout, request: &Request) -> Row {
    let of = |operation, keys: String| Row {
        operation,
        index: None,
        keys,
        order: None,
        limit: None,
        consistency: None,
        n_requests: 1,
    };
    let texts = |keys: Vec<&Key>| {
        let text = |key: &Key| format!("{} = {}, {} = {}", layout.pk, key.pk, layout.sk, key.sk);
        keys.into_iter().map(text).collect::<Vec<_>>().join("; ")
    };
    match request {
        Request::Read(_, keys, consistency) => {
            let operation = if keys.len() == 1 { "GetItem" } else { "BatchGetItem" };
            Row { consistency: Some(*consistency), ..of(operation, texts(keys.iter().collect())) }
        }
        Request::Query(_, query, _) => Row {
            index: query.index.clone(),
            order: Some(query.order),
            limit: query.limit,
            consistency: Some(query.consistency),
            ..of("Query", condition(layout, query))
        },
        Request::Scan(_) => of("Scan", String::new()),
        Request::Write(write) => of(store::operation(&write.action), texts(vec![&write.key])),
        Request::Transact(transaction) => {
            of("TransactWriteItems", texts(transaction.writes().iter().map(|write| &write.key).collect()))
        }
    }
}

fn condition(layout: &Layout, query: &Query) -> String {
    let index = query.index.as_deref().and_then(|name| layout.index(name));
    let (pk, sk) = index.map_or((&layout.pk, &layout.sk), |index| (&index.pk, &index.sk));
    let of_pk = format!("{pk} = {}", query.pk);
    match &query.sk {
        SortKeys::All => of_pk,
        SortKeys::Prefix(prefix) => format!("{of_pk} and begins_with({sk}, '{prefix}')"),
        SortKeys::Between(first, last) if first == last => format!("{of_pk} and {sk} = '{first}'"),
        SortKeys::Between(first, last) => format!("{of_pk} and {sk} between '{first}' and '{last}'"),
        SortKeys::After(first) => format!("{of_pk} and {sk} > '{first}'"),
    }
}

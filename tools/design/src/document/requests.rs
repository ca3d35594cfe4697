//! The requests of the access patterns: as rows, and the sections on reads and on writes.

use derive::{
    guard::Ask,
    query::{Consistency, Order, Query, SortKeys},
    write::{Action, Update, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::recording::Request;

use super::{code, codes, plain, table, value};
use crate::{Design, PatternRequests, review::patterns::repeated};

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
            ..of("Query", key_condition(layout, query))
        },
        Request::Scan(_) => of("Scan", String::new()),
        Request::Write(write) => of(store::operation(&write.action), texts(vec![&write.key])),
        Request::Transact(transaction) => {
            of("TransactWriteItems", texts(transaction.writes().iter().map(|write| &write.key).collect()))
        }
    }
}

fn key_condition(layout: &Layout, query: &Query) -> String {
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

// ---- reads: each pattern with its requests ----

const READS_HEAD: [&str; 11] =
    ["ID", "pattern", "input", "result", "operation", "index", "key condition", "order", "limit", "consistency", "n"];

pub(super) fn reads(design: &Design) -> String {
    let reads = design.patterns.iter().filter(|pattern| !pattern.is_write());
    let rows: Vec<Vec<String>> = reads.flat_map(|pattern| pattern_rows(design, pattern)).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "## Reads\n\n\
         One row for each form of request of a first page; `n` is the number of such requests.\n\
         The caller may choose another limit, order and consistency.\n\
         A read of an index is always eventually consistent.\n\n{}",
        table(&READS_HEAD, &rows)
    )
}

fn pattern_rows(design: &Design, pattern: &PatternRequests) -> Vec<Vec<String>> {
    let asked = rows(&design.schema.layout, &pattern.requests);
    let row = |(at, row): (usize, &Row)| {
        let first = |text: &str| if at == 0 { plain(text) } else { "″".to_owned() };
        let order = match row.order {
            None => String::new(),
            Some(direction) => format!("{}{}", arrow(direction), order_words(pattern)),
        };
        vec![
            pattern.id.clone(),
            first(&pattern.title),
            first(&pattern.input),
            first(&pattern.result),
            row.operation.to_owned(),
            row.index.clone().unwrap_or_default(),
            condition(pattern, row),
            order,
            row.limit.map(|limit| limit.to_string()).unwrap_or_default(),
            row.consistency.map(consistency).unwrap_or_default().to_owned(),
            row.n_requests.to_string(),
        ]
    };
    asked.iter().enumerate().map(row).collect()
}

fn condition(pattern: &PatternRequests, row: &Row) -> String {
    let filter = pattern.filter.as_ref().map(|filter| format!(", only items with {}", code(&filter.text)));
    code(&row.keys) + &filter.unwrap_or_default()
}

fn order_words(pattern: &PatternRequests) -> String {
    if pattern.order.is_empty() { String::new() } else { format!(" {}", pattern.order) }
}

fn arrow(order: Order) -> &'static str {
    match order {
        Order::Ascending => "↑",
        Order::Descending => "↓",
    }
}

fn consistency(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Strong => "strong",
        Consistency::Eventual => "eventual",
    }
}

// ---- writes: each pattern with its transaction and its conditions, in words and in DynamoDB's notation ----

const WRITES_HEAD: [&str; 5] = ["operation", "item", "what it does", "only if", "condition as sent"];

pub(super) fn writes(design: &Design) -> String {
    let writes: Vec<&PatternRequests> = design.patterns.iter().filter(|pattern| pattern.is_write()).collect();
    if writes.is_empty() {
        return String::new();
    }
    let mut text = "## Writes\n\n\
         In the order in which the pattern sends them.\n\
         A transaction does all of its actions or none. DynamoDB reports failed conditions by position, so a refusal \
         names the condition that failed.\n"
        .to_owned();
    for pattern in writes {
        text.extend([format!("\n### {} {}\n\n", pattern.id, pattern.title)]);
        text.extend([format!("Input: {}. Result: {}.", plain(&pattern.input), plain(&pattern.result))]);
        if let Some(n) = pattern.actions_max.filter(|_| !repeated(&design.schema, pattern).is_empty()) {
            text.extend([format!(" At most {n} actions.")]);
        }
        let rows: Vec<Vec<String>> =
            pattern.requests.iter().flat_map(|request| request_rows(&design.schema.layout, request)).collect();
        text.extend([format!("\n\n{}", table(&WRITES_HEAD, &rows))]);
    }
    text
}

fn request_rows(layout: &Layout, request: &Request) -> Vec<Vec<String>> {
    match request {
        Request::Write(write) => vec![write_row(layout, store::operation(&write.action).to_owned(), write)],
        Request::Transact(transaction) => {
            let n = transaction.writes().len();
            let row = |(at, write): (usize, &Write)| {
                let operation = store::operation(&write.action).trim_end_matches("Item");
                write_row(layout, format!("TransactWriteItems {}/{n}: {operation}", at + 1), write)
            };
            transaction.writes().iter().enumerate().map(row).collect()
        }
        read => rows(layout, std::slice::from_ref(read)).iter().map(read_row).collect(),
    }
}

fn read_row(row: &Row) -> Vec<String> {
    let index = row.index.as_ref().map(|index| format!(" of {index}")).unwrap_or_default();
    vec![format!("{}{index}", row.operation), code(&row.keys), "reads".to_owned(), String::new(), String::new()]
}

fn write_row(layout: &Layout, operation: String, write: &Write) -> Vec<String> {
    let (words, sent) = match &write.guard {
        None => (String::new(), String::new()),
        Some(guard) => {
            let asks: Vec<String> = guard.asks.iter().map(words).collect();
            let condition = guard.condition(&layout.pk);
            let names = condition.names.iter().map(|(mark, name)| format!("`{mark}` = `{name}`"));
            let values = condition.values.iter().map(|(mark, stored)| format!("`{mark}` = `{}`", value(stored)));
            let legend: Vec<String> = names.chain(values).collect();
            (asks.join(", and "), format!("{}; {}", code(&condition.expression), legend.join(", ")))
        }
    };
    vec![operation, code(&write.key.to_string()), done(layout, &write.action), words, sent]
}

fn done(layout: &Layout, action: &Action) -> String {
    match action {
        Action::Put(item) => {
            let names = item.keys().filter(|name| *name != layout.pk && *name != layout.sk);
            format!("puts {}", codes(names))
        }
        Action::Update(update) => updated(update),
        Action::Delete => "deletes it".to_owned(),
        Action::Check => "checks it".to_owned(),
    }
}

fn updated(update: &Update) -> String {
    let amounts = |verb: &str, join: &str, amounts: &Item| -> Vec<String> {
        amounts.iter().map(|(name, amount)| format!("{verb} `{}` {join} `{name}`", value(amount))).collect()
    };
    let mut parts = Vec::new();
    if !update.set.is_empty() {
        parts.push(format!("sets {}", codes(update.set.keys())));
    }
    if !update.remove.is_empty() {
        parts.push(format!("removes {}", codes(&update.remove)));
    }
    parts.extend(amounts("adds", "to", &update.add));
    parts.extend(amounts("takes", "out of", &update.delete));
    parts.join("; ")
}

/// A condition in words.
fn words(ask: &Ask) -> String {
    match ask {
        Ask::Absent => "nothing is there".to_owned(),
        Ask::Present => "it is there".to_owned(),
        Ask::Lacks(attribute) => format!("it has no `{attribute}`"),
        Ask::Equal(attribute, stored) => format!("its `{attribute}` is {}", code(&value(stored))),
        Ask::Differs(attribute, stored) => format!("its `{attribute}` is not {}", code(&value(stored))),
        Ask::AtLeast(attribute, stored) => format!("its `{attribute}` is at least {}", code(&value(stored))),
        Ask::LacksOrEqual(attribute, stored) => format!("its `{attribute}` is {} or not there", code(&value(stored))),
        Ask::BelowOrLacksBoth(attribute, stored, other) => {
            format!("its `{attribute}` is below {} or not there, nor is `{other}`", code(&value(stored)))
        }
        Ask::LacksOrBelow(attribute, stored) => {
            format!("its `{attribute}` is below {} or not there", code(&value(stored)))
        }
    }
}

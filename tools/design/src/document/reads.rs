//! The section on reads: each pattern with its requests.

use derive::query::{Consistency, Order};

use super::{
    markdown::{code, plain, table},
    requests::{Row, rows},
};
use crate::{Design, asked::PatternRequests};

const HEAD: [&str; 11] =
    ["ID", "pattern", "input", "result", "operation", "index", "key condition", "order", "limit", "consistency", "n"];

pub(super) fn section(design: &Design) -> String {
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
        table(&HEAD, &rows)
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

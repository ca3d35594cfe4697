//! `ripple design --filters`: which records of the stream each function needs.

use design::{
    Design,
    filters::{Needed, StreamTable, criteria, needed, yaml},
};
use functions::handler::Function;
use serde_json::Value;

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

fn each(design: &Design) -> impl Iterator<Item = (String, Needed)> {
    let needed = |table, function: Function| needed(table, &design.catalogue, &function.families());
    // The command is of one table.
    let tables = StreamTable::all(&design.schema).take(1);
    tables.flat_map(move |table| READERS.map(|function| (function.to_string(), needed(table, function))))
}

/// The filters of each function in the form of a template.
pub(super) fn as_text(design: &Design) -> String {
    let text = each(design).map(|(name, needed)| format!("# {name}\n{}", yaml(&needed)));
    text.collect::<Vec<_>>().join("\n")
}

/// The filters of each function in the form of the API.
pub(super) fn as_json(design: &Design) -> Value {
    Value::Object(each(design).map(|(name, needed)| (name, criteria(&needed))).collect())
}

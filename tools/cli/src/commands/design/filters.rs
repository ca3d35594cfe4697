//! `ripple design --filters`: which records of the stream each function needs.

use design::{
    Design,
    filters::{Needed, criteria, needed, yaml},
};
use functions::handler::Function;
use serde_json::Value;

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

fn each(design: &Design) -> impl Iterator<Item = (String, Needed)> {
    let needed = |function: Function| needed(&design.schema, &design.catalogue, &function.families());
    READERS.into_iter().map(move |function| (function.to_string(), needed(function)))
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

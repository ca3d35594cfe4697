//! `ripple design --filters`: which records of the stream each function needs.

use design::{
    Design,
    filters::{criteria, needed, yaml},
};
use functions::handler::Function;
use serde_json::{Map, Value};

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

/// The filters of each function: in the form of a template, or as one JSON object in the form of the API.
pub(super) fn as_text(design: &Design, json: bool) -> String {
    let each =
        READERS.map(|function| (function.to_string(), needed(&design.schema, &design.catalogue, &function.families())));
    if json {
        let all: Map<String, Value> = each.iter().map(|(name, needed)| (name.clone(), criteria(needed))).collect();
        return Value::Object(all).to_string();
    }
    let text = each.iter().map(|(name, needed)| format!("# {name}\n{}", yaml(needed)));
    text.collect::<Vec<_>>().join("\n")
}

//! Tests on the embedded DynamoDB: the model of it, the patterns of the table, and the price of actions.

mod at_work;
mod audit;
mod console_patterns;
mod contract;
mod cost;
mod patterns;
mod tables;
mod why;
/// The writes that the demonstration draws.
#[path = "../../tools/cli/src/commands/demo/workload/mod.rs"]
mod workload;
mod writes;

use serde_dynamo::AttributeValue;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

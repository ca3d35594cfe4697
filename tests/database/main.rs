//! Tests on the embedded DynamoDB: the model of it, the patterns of the table, and the price of actions.

mod at_work;
mod audit;
mod console_patterns;
mod contract;
mod cost;
mod crowd;
mod not_found;
mod patterns;
mod renamed;
mod sweep;
mod tables;
mod why;
/// The writes that the demonstration draws.
#[path = "../../tools/cli/src/commands/demo/workload/mod.rs"]
mod workload;
mod writes;

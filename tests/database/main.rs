//! Tests on the embedded DynamoDB: the model of it, the patterns of the table, and the price of actions.

mod contract;
mod cost;
mod patterns;
mod renamed;
mod tables;
mod why;
mod writes;

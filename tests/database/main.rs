//! What is held against the embedded DynamoDB: the model of it, the patterns of the table, and what actions cost.

mod contract;
mod cost;
mod patterns;
mod writes;

//! Tests without a database: declarations, stored keys and attributes, templates, and the functions on the model of a
//! table.

mod cases;
mod functions;
mod infra;
mod records;
mod shipped;
mod supply;
mod tidy;

//! Tests without a database: declarations, stored keys and attributes, templates, and the functions on the model of a
//! table.

mod cases;
mod design;
mod events;
mod infra;
mod keys;
mod observe;
mod own_table;
mod records;
mod sqlite;
mod supply;
mod tidy;

//! What is held without a database: what is declared, what is stored, and the functions on the model of a table.

mod design;
mod events;
mod infra;
mod keys;
mod observe;
mod own_table;
mod records;
mod tidy;

//! Support for several kinds of tests: records of a stream, event filters, databases and tables, a clock that a test
//! moves, commands that run as child processes, servers, and JSON Schemas.

pub mod clock;
pub mod command;
pub mod database;
pub mod record;
pub mod schema;
pub mod server;

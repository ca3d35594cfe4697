//! Support for several kinds of tests: records of a stream, event filters, databases and tables, a clock that a test
//! moves, and commands that run as child processes.

pub mod clock;
pub mod command;
pub mod database;
pub mod matching;
pub mod record;
pub mod tables;

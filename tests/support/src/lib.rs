//! What several kinds of tests need: the records of a stream, databases and tables, a clock that is moved by hand, and
//! commands that run as child processes.

pub mod clock;
pub mod command;
pub mod database;
pub mod record;
pub mod tables;

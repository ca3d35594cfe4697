//! What the functions share: configuration from the environment, what is checked at start, logging, and the handler.
//!
//! A function's `main.rs` only says which derivations it runs. The command line calls the same [`handler`] in its own
//! process.

pub mod config;
pub mod declared;
pub mod described;
pub mod handler;
pub mod lambda;
pub mod logging;
pub mod metrics;
pub mod mode;
pub mod start;

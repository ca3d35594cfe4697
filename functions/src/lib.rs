//! The Lambda functions: configuration, the checks at start, logging, metrics, and the handler.
//!
//! Each file in `src/bin` only names its function. The command line calls the same [`handler`] in its own process.

pub mod config;
pub mod declared;
pub mod handler;
pub mod lambda;
pub mod logging;
pub mod metrics;
pub mod start;

//! Structured logs: JSON in Lambda, readable on a terminal. No attribute value of any item is ever logged.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

/// How much is logged where `RUST_LOG` does not say.
const DEFAULT_FILTER: &str = "info,aws_config=warn,aws_smithy_runtime=warn,hyper=warn,lambda_runtime=warn";

/// Logs as JSON to standard output, as Lambda collects it. The first call in a process counts.
pub fn json() {
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_env_filter(filter());
    let _already_set = subscriber.try_init();
}

/// Logs for a person to standard error, by `default` where `RUST_LOG` does not say. The first call in a process counts.
pub fn readable(default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let subscriber = tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_target(false)
        .with_env_filter(filter);
    let _already_set = subscriber.try_init();
}

/// As [`json`] inside Lambda, else as [`readable`].
pub fn for_function() {
    if std::env::var_os("AWS_EXECUTION_ENV").is_some() || std::env::var_os("LAMBDA_TASK_ROOT").is_some() {
        json();
    } else {
        readable(DEFAULT_FILTER);
    }
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER))
}

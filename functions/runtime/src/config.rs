//! Configuration of a function, from its environment.

use std::{env, time::Duration};

use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};

/// Name of the variable that holds the application's table. Stable.
pub const TABLE_NAME: &str = "TABLE_NAME";

/// Name of the variable that holds the ledger's table. Stable.
pub const LEDGER_TABLE_NAME: &str = "LEDGER_TABLE_NAME";

/// Longest wait for one answer, in seconds: short against an invocation, so that there is time to send again.
const ANSWER_S_MAX: u64 = 5;

/// Longest wait for a connection, in seconds.
const CONNECT_S_MAX: u64 = 2;

/// What a function must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the application's table, which has the stream.
    pub table: String,
    /// Name of the ledger's table.
    pub ledger_table: String,
}

/// A function that cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A variable is not set, or empty.
    #[error("the environment variable {name} is not set: set it to the name of {meaning}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What it names.
        meaning: &'static str,
    },
}

impl Config {
    /// The configuration in the environment.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] naming the variable and what to set it to.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let get = |name, meaning| {
            variable(name).filter(|value| !value.is_empty()).ok_or(ConfigError::Missing { name, meaning })
        };
        Ok(Self {
            table: get(TABLE_NAME, "the application's table")?,
            ledger_table: get(LEDGER_TABLE_NAME, "the ledger's table")?,
        })
    }
}

/// The SDK's configuration from the standard AWS environment, with time-outs that leave time to send again.
pub async fn sdk_config() -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(CONNECT_S_MAX))
        .operation_attempt_timeout(Duration::from_secs(ANSWER_S_MAX))
        .build();
    aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(2))
        .load()
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_variable_is_named_with_what_it_is_for() {
        let error = Config::from_variables(|name| (name == TABLE_NAME).then(|| "t".to_owned())).unwrap_err();
        let text = "the environment variable LEDGER_TABLE_NAME is not set: set it to the name of the ledger's table";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_empty_variable_is_a_missing_one() {
        assert!(Config::from_variables(|_| Some(String::new())).is_err());
    }
}

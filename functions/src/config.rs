//! Configuration of a function, from its environment.

use std::{env, path::PathBuf, str::FromStr, time::Duration};

use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use engine::{
    batch::SETTLE_MS,
    batch::limits::BrakeLimits,
    fan_out,
    ledger::LedgerKind,
    sweep::{DRIFT_WAIT_MS, ITEMS_MAX},
};

use crate::{declared::Choice, mode::Mode};

/// Name of the variable that holds the application's table. Stable.
pub const TABLE_NAME: &str = "TABLE_NAME";

/// Name of the variable that holds the ledger's table. Stable.
pub const LEDGER_TABLE_NAME: &str = "LEDGER_TABLE_NAME";

/// Name of the variable that says which ledger: `receipts`, also where it is not set, or `checkpoint`. Stable.
pub const LEDGER: &str = "LEDGER";

/// Name of the variable that says how much of a batch may be unreadable before nothing of it is applied, in percent.
/// Stable.
pub const UNREADABLE_PERCENT_MAX: &str = "UNREADABLE_PERCENT_MAX";

/// Name of the variable that says how long such a batch is held, in hours. Stable.
pub const UNREADABLE_HOLD_HOURS: &str = "UNREADABLE_HOLD_HOURS";

/// Name of the variable that holds the path of a manifest, such as `ripple.toml` in the function's package; the shipped
/// table where it is not set. Stable.
pub const CONFIG: &str = "CONFIG";

/// Name of the variable that says how long after a removal a cascade begins, in seconds: longer than a stream is kept
/// where it is not set. Stable.
pub const SETTLE_SECONDS: &str = "SETTLE_SECONDS";

/// Name of the variable that names derivations that are switched off, with commas between. `ground` stands for all that
/// delete or move the application's own items. Stable.
pub const DISABLED: &str = "DISABLED";

/// Name of the variable that says how many items a sweep reads of the table; 5,000 where it is not set. Stable.
pub const SWEEP_ITEMS: &str = "SWEEP_ITEMS";

/// Name of the variable that says how long an item must have differed in the very same way before it has drifted, in
/// seconds; 900 where it is not set. Stable.
pub const DRIFT_WAIT_SECONDS: &str = "DRIFT_WAIT_SECONDS";

/// Name of the variable that says how many write units a second a fan-out's job may consume; as many as there are where it
/// is not set. Stable.
pub const FAN_OUT_UNITS_PER_SECOND: &str = "FAN_OUT_UNITS_PER_SECOND";

/// Name of the variable that says how long an index may lag, in seconds, before what it was searched for is searched for
/// again; 900 where it is not set. Stable.
pub const INDEX_LAG_SECONDS: &str = "INDEX_LAG_SECONDS";

/// Name of the variable that says whether the function writes: `apply`, also where it is not set, or `observe`, which
/// plans, reads, logs and counts, and writes nothing. Stable.
pub const MODE: &str = "MODE";

/// Longest wait for one answer, in seconds: short against an invocation, so that there is time to send again.
const ANSWER_S_MAX: u64 = 5;

/// Longest wait for a connection, in seconds.
const CONNECT_S_MAX: u64 = 2;

/// The settings of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the application's table, which has the stream.
    pub table: String,
    /// Name of the ledger's table.
    pub ledger_table: String,
    /// Which ledger.
    pub ledger: LedgerKind,
    /// When a batch is held since much of it cannot be read.
    pub limits: BrakeLimits,
    /// The manifest that declares the table; the shipped table where there is none.
    pub manifest: Option<PathBuf>,
    /// Names of derivations that are switched off.
    pub disabled: Vec<String>,
    /// How long after a removal a cascade begins, in milliseconds.
    pub settle_ms: u64,
    /// How much a fan-out does at once.
    pub fan_out: fan_out::limits::FanOutLimits,
    /// How many items a sweep reads of the table.
    pub sweep_items: usize,
    /// How long an item must have differed before it has drifted, in milliseconds.
    pub drift_wait_ms: u64,
    /// Whether it writes.
    pub mode: Mode,
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
    /// A variable has a value that means nothing.
    #[error("the environment variable {name} is {value:?}: set it to {wanted}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        wanted: &'static str,
    },
}

impl Config {
    /// These tables, with everything else as it is where nothing is said.
    #[must_use]
    pub fn of(table: String, ledger_table: String) -> Self {
        let (ledger, limits) = (LedgerKind::Receipts, BrakeLimits::default());
        Self {
            table,
            ledger_table,
            ledger,
            limits,
            settle_ms: SETTLE_MS,
            manifest: None,
            disabled: Vec::new(),
            fan_out: fan_out::limits::FanOutLimits::default(),
            sweep_items: ITEMS_MAX,
            drift_wait_ms: DRIFT_WAIT_MS,
            mode: Mode::Apply,
        }
    }

    /// What is declared, as it is configured.
    #[must_use]
    pub fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.manifest.as_deref(), disabled: &self.disabled }
    }

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
        let (table, ledger_table) =
            (get(TABLE_NAME, "the application's table")?, get(LEDGER_TABLE_NAME, "the ledger's table")?);
        let mut config = Self::of(table, ledger_table);
        if let Some(ledger) = parsed(&variable, LEDGER, "receipts or checkpoint")? {
            config.ledger = ledger;
        }
        if let Some(percent) = parsed(&variable, UNREADABLE_PERCENT_MAX, "a whole number of percent")? {
            config.limits.unreadable_percent_max = percent;
        }
        if let Some(hours) = parsed::<u32>(&variable, UNREADABLE_HOLD_HOURS, "a whole number of hours")? {
            config.limits.unreadable_hold_ms = u64::from(hours) * MS_AN_HOUR;
        }
        let disabled = variable(DISABLED).unwrap_or_default();
        let names = disabled.split(',').map(str::trim).filter(|name| !name.is_empty());
        config.disabled = names.map(str::to_owned).collect();
        config.manifest = variable(CONFIG).filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(seconds) = parsed::<u32>(&variable, SETTLE_SECONDS, "a whole number of seconds")? {
            config.settle_ms = u64::from(seconds) * 1_000;
        }
        if let Some(items) = parsed(&variable, SWEEP_ITEMS, "a whole number of items")? {
            config.sweep_items = items;
        }
        if let Some(seconds) = parsed::<u32>(&variable, DRIFT_WAIT_SECONDS, "a whole number of seconds")? {
            config.drift_wait_ms = u64::from(seconds) * 1_000;
        }
        config.fan_out.units_per_second = parsed(&variable, FAN_OUT_UNITS_PER_SECOND, "a whole number of write units")?;
        if let Some(seconds) = parsed::<u32>(&variable, INDEX_LAG_SECONDS, "a whole number of seconds")? {
            // A real index lags, if only for a moment.
            config.fan_out.index_lag_ms = u64::from(seconds.max(1)) * 1_000;
        }
        if let Some(mode) = parsed(&variable, MODE, "apply or observe")? {
            config.mode = mode;
        }
        Ok(config)
    }
}

/// The value of a variable that need not be set.
fn parsed<T: FromStr>(
    variable: impl Fn(&str) -> Option<String>,
    name: &'static str,
    wanted: &'static str,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.parse() {
        Ok(parsed) => Ok(Some(parsed)),
        Err(_) => Err(ConfigError::Invalid { name, value, wanted }),
    }
}

/// Milliseconds of an hour.
const MS_AN_HOUR: u64 = 3_600_000;

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

    fn with(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
        Config::from_variables(|asked| match asked {
            TABLE_NAME | LEDGER_TABLE_NAME => Some("t".to_owned()),
            _ => (asked == name).then(|| value.to_owned()),
        })
    }

    #[test]
    fn the_ledger_is_one_of_receipts_where_nothing_is_said() {
        assert_eq!(with(LEDGER, "").unwrap().ledger, LedgerKind::Receipts);
        assert_eq!(with(LEDGER, "checkpoint").unwrap().ledger, LedgerKind::Checkpoint);
        let error = with(LEDGER, "offsets").unwrap_err().to_string();
        assert_eq!(error, "the environment variable LEDGER is \"offsets\": set it to receipts or checkpoint");
    }

    #[test]
    fn a_function_writes_where_nothing_is_said() {
        assert_eq!(with(MODE, "").unwrap().mode, Mode::Apply);
        assert_eq!(with(MODE, "apply").unwrap().mode, Mode::Apply);
        assert_eq!(with(MODE, "observe").unwrap().mode, Mode::Observe);
        let error = with(MODE, "Observe").unwrap_err().to_string();
        assert_eq!(error, "the environment variable MODE is \"Observe\": set it to apply or observe");
    }

    #[test]
    fn limits_are_read_in_percent_and_hours() {
        assert_eq!(with(UNREADABLE_PERCENT_MAX, "100").unwrap().limits.unreadable_percent_max, 100);
        assert_eq!(with(UNREADABLE_HOLD_HOURS, "2").unwrap().limits.unreadable_hold_ms, 7_200_000);
        assert!(with(UNREADABLE_HOLD_HOURS, "-1").is_err());
    }

    #[test]
    fn a_manifest_is_a_path_and_the_shipped_table_is_none() {
        assert_eq!(with(CONFIG, "").unwrap().manifest, None);
        assert_eq!(with(CONFIG, "own/ripple.toml").unwrap().manifest, Some(PathBuf::from("own/ripple.toml")));
    }

    #[test]
    fn derivations_are_switched_off_by_their_names() {
        assert_eq!(with(DISABLED, "").unwrap().disabled, [""; 0]);
        assert_eq!(with(DISABLED, "user-cascade, post-cascade,").unwrap().disabled, ["user-cascade", "post-cascade"]);
    }

    #[test]
    fn a_cascade_waits_for_longer_than_a_stream_is_kept_where_nothing_is_said() {
        assert_eq!(with(LEDGER, "").unwrap().settle_ms, 25 * 3_600_000);
        assert_eq!(with(SETTLE_SECONDS, "5").unwrap().settle_ms, 5_000);
        assert!(with(SETTLE_SECONDS, "soon").is_err());
    }

    #[test]
    fn a_sweep_reads_5000_items_and_waits_15_minutes_where_nothing_is_said() {
        let config = with(LEDGER, "").unwrap();
        assert_eq!((config.sweep_items, config.drift_wait_ms), (5_000, 900_000));
        assert_eq!(with(SWEEP_ITEMS, "100").unwrap().sweep_items, 100);
        assert_eq!(with(DRIFT_WAIT_SECONDS, "60").unwrap().drift_wait_ms, 60_000);
        let error = with(SWEEP_ITEMS, "all").unwrap_err().to_string();
        assert_eq!(error, "the environment variable SWEEP_ITEMS is \"all\": set it to a whole number of items");
        let error = with(DRIFT_WAIT_SECONDS, "-1").unwrap_err().to_string();
        assert_eq!(error, "the environment variable DRIFT_WAIT_SECONDS is \"-1\": set it to a whole number of seconds");
    }

    #[test]
    fn a_fan_out_has_no_limit_and_an_index_a_quarter_of_an_hour_where_nothing_is_said() {
        let fan_out = with(LEDGER, "").unwrap().fan_out;
        assert_eq!((fan_out.units_per_second, fan_out.index_lag_ms), (None, 900_000));
        assert_eq!(with(FAN_OUT_UNITS_PER_SECOND, "300").unwrap().fan_out.units_per_second, Some(300));
        assert_eq!(with(INDEX_LAG_SECONDS, "60").unwrap().fan_out.index_lag_ms, 60_000);
        assert!(with(FAN_OUT_UNITS_PER_SECOND, "-1").is_err());
    }

    #[test]
    fn an_empty_variable_is_a_missing_one() {
        assert!(Config::from_variables(|_| Some(String::new())).is_err());
    }
}

//! The configuration of a function, from its environment.

use std::{env, fmt, path::PathBuf, str::FromStr, time::Duration};

use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use engine::{
    batch::SETTLE_MS,
    ledger::LedgerKind,
    limits::{BrakeLimits, FanOutLimits},
    sweep::{DRIFT_WAIT_MS, ITEMS_MAX},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated, observing::Observing};
use tokio::sync::{Mutex, MutexGuard};

use crate::declared::Choice;

/// Variable with the name of the application's table; if the manifest has several, of the table of Ripple's own items.
/// Stable.
pub const TABLE_NAME: &str = "TABLE_NAME";

/// Variable with the DynamoDB names of the manifest's tables, as `NAME=TABLE,NAME=TABLE` (default: the names in the
/// manifest). Stable.
pub const TABLES: &str = "TABLES";

/// Variable with the name of the ledger's table. Stable.
pub const LEDGER_TABLE_NAME: &str = "LEDGER_TABLE_NAME";

/// Variable with the ARN of the stream that the functions read, or of several separated by commas, which `sweep`
/// compares with the tables' streams (default: no comparison). Stable.
pub const STREAM_ARN: &str = "STREAM_ARN";

/// Variable with the kind of the ledger: `watermarks` (default) or `receipts`. Stable.
pub const LEDGER: &str = "LEDGER";

/// Variable with the percentage of a batch's items that may be unreadable before the brake, a circuit breaker, stops
/// the batch. Stable.
pub const UNREADABLE_PERCENT_MAX: &str = "UNREADABLE_PERCENT_MAX";

/// Variable with the hours for which the circuit breaker stops a batch, and batches for one reason. Stable.
pub const UNREADABLE_HOLD_HOURS: &str = "UNREADABLE_HOLD_HOURS";

/// Variable with the path of a manifest, such as `/opt/ripple.toml` of a layer (default: the shipped table).
/// Stable.
pub const CONFIG: &str = "CONFIG";

/// Variable with the seconds between a removal and its cascade (default: longer than a stream keeps records). Stable.
pub const SETTLE_SECONDS: &str = "SETTLE_SECONDS";

/// Variable with the names of derivations to switch off, separated by commas. `ground` stands for all that delete the
/// application's own items. Stable.
pub const DISABLED: &str = "DISABLED";

/// Variable with the number of items that a sweep reads (default: 5,000). Stable.
pub const SWEEP_ITEMS: &str = "SWEEP_ITEMS";

/// Variable with the seconds for which an item must differ in the same way before it has drifted (default: 900).
/// Stable.
pub const DRIFT_WAIT_SECONDS: &str = "DRIFT_WAIT_SECONDS";

/// Variable with the limit on the write units a second of a fan-out's job (default: no limit). Stable.
pub const FAN_OUT_UNITS_PER_SECOND: &str = "FAN_OUT_UNITS_PER_SECOND";

/// Variable with the seconds for which a counter is hot after it was counted (default: 0). The record of a hot counter,
/// and not the function that counts, leads to its display. Stable.
pub const HOT_SECONDS: &str = "HOT_SECONDS";

/// Variable with the seconds after which a search of an index is repeated, because the index may lag (default: 900).
/// Stable.
pub const INDEX_LAG_SECONDS: &str = "INDEX_LAG_SECONDS";

/// Variable with the mode: `apply` (default), or `observe`, which plans, reads, logs and counts, but writes nothing.
/// Stable.
pub const MODE: &str = "MODE";

/// Longest wait for one response, in seconds: short compared with an invocation, so that there is time to retry.
const ANSWER_S_MAX: u64 = 5;

/// Longest wait for a connection, in seconds.
const CONNECT_S_MAX: u64 = 2;

/// The settings of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the application's table, which has the stream; if there are several, of the table of Ripple's own items.
    pub table: String,
    /// DynamoDB names of the manifest's tables, `NAME=TABLE` each.
    pub tables: Vec<String>,
    /// Name of the ledger's table.
    pub ledger_table: String,
    /// ARN of the stream that the functions read, if it is known.
    pub stream_arn: Option<String>,
    /// The kind of the ledger.
    pub ledger: LedgerKind,
    /// When the circuit breaker stops a batch.
    pub limits: BrakeLimits,
    /// The manifest that declares the table; `None` for the shipped table.
    pub manifest: Option<PathBuf>,
    /// Names of the derivations that are switched off.
    pub disabled: Vec<String>,
    /// Time between a removal and its cascade, in milliseconds.
    pub settle_ms: u64,
    /// The limits of a fan-out.
    pub fan_out: FanOutLimits,
    /// How long a counter is hot, in milliseconds.
    pub hot_ms: u64,
    /// Number of items that a sweep reads.
    pub sweep_items: usize,
    /// Time for which an item must differ before it has drifted, in milliseconds.
    pub drift_wait_ms: u64,
    /// Whether the function writes.
    pub mode: Mode,
}

/// Why the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A variable is not set, or empty.
    #[error("the environment variable {name} is not set: set it to the name of {meaning}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What the variable means.
        meaning: &'static str,
    },
    /// A variable has an invalid value.
    #[error("the environment variable {name} is {value:?}: set it to {wanted}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        wanted: &'static str,
    },
}

impl Config {
    /// These tables, with the defaults for everything else.
    #[must_use]
    pub fn of(table: String, ledger_table: String) -> Self {
        let (ledger, limits) = (LedgerKind::default(), BrakeLimits::default());
        Self {
            table,
            tables: Vec::new(),
            ledger_table,
            stream_arn: None,
            ledger,
            limits,
            settle_ms: SETTLE_MS,
            manifest: None,
            disabled: Vec::new(),
            fan_out: FanOutLimits::default(),
            hot_ms: 0,
            sweep_items: ITEMS_MAX,
            drift_wait_ms: DRIFT_WAIT_MS,
            mode: Mode::Apply,
        }
    }

    /// The choice of declarations.
    #[must_use]
    pub fn choice(&self) -> Choice<'_> {
        Choice { manifest: self.manifest.as_deref(), tables: &self.tables, disabled: &self.disabled }
    }

    /// Reads the configuration from the environment.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the variable and what to set it to.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(variable)
    }

    /// Reads the configuration from variables by name. It asks for every variable of this module once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the variable and what to set it to.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let get = |name, meaning| {
            variable(name).filter(|value| !value.is_empty()).ok_or(ConfigError::Missing { name, meaning })
        };
        let (table, ledger_table) =
            (get(TABLE_NAME, "the application's table")?, get(LEDGER_TABLE_NAME, "the ledger's table")?);
        let mut config = Self::of(table, ledger_table);
        config.stream_arn = variable(STREAM_ARN).filter(|arn| !arn.is_empty());
        if let Some(ledger) = parsed(&variable, LEDGER, "receipts or watermarks")? {
            config.ledger = ledger;
        }
        config.limits = brake_limits(&variable)?.unwrap_or_default();
        let listed = |name: &str| -> Vec<String> {
            let list = variable(name).unwrap_or_default();
            list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        (config.disabled, config.tables) = (listed(DISABLED), listed(TABLES));
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
        if let Some(seconds) = parsed::<u32>(&variable, HOT_SECONDS, "a whole number of seconds")? {
            config.hot_ms = u64::from(seconds) * 1_000;
        }
        if let Some(seconds) = parsed::<u32>(&variable, INDEX_LAG_SECONDS, "a whole number of seconds")? {
            // A real index always lags, if only for a moment.
            config.fan_out.index_lag_ms = u64::from(seconds.max(1)) * 1_000;
        }
        if let Some(mode) = parsed(&variable, MODE, "apply or observe")? {
            config.mode = mode;
        }
        Ok(config)
    }
}

/// A variable of the environment. A value that is no text gets a replacement character, so that it is refused as
/// invalid.
fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// When the circuit breaker stops a batch, from the environment; `None` if no variable is set.
///
/// # Errors
///
/// [`ConfigError`] with the variable and what to set it to.
pub fn brake_limits_from_env() -> Result<Option<BrakeLimits>, ConfigError> {
    brake_limits(&variable)
}

fn brake_limits(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<BrakeLimits>, ConfigError> {
    let wanted = "a whole number of percent, 0 to 100";
    let percent: Option<u32> = parsed(variable, UNREADABLE_PERCENT_MAX, wanted)?;
    if let Some(percent @ 101..) = percent {
        return Err(ConfigError::Invalid { name: UNREADABLE_PERCENT_MAX, value: percent.to_string(), wanted });
    }
    let hours = parsed::<u32>(variable, UNREADABLE_HOLD_HOURS, "a whole number of hours")?;
    let default = BrakeLimits::default();
    let limits = BrakeLimits {
        unreadable_percent_max: percent.unwrap_or(default.unreadable_percent_max),
        unreadable_hold_ms: hours.map_or(default.unreadable_hold_ms, |hours| u64::from(hours) * MS_AN_HOUR),
        ..default
    };
    Ok((percent.is_some() || hours.is_some()).then_some(limits))
}

/// The value of an optional variable.
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

/// Milliseconds in an hour.
const MS_AN_HOUR: u64 = 3_600_000;

/// The SDK's configuration from the standard AWS environment, with timeouts that leave time to retry. The engine
/// retries, within the time that an invocation has left; the SDK does not.
pub async fn sdk_config() -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(CONNECT_S_MAX))
        .operation_attempt_timeout(Duration::from_secs(ANSWER_S_MAX))
        .build();
    aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::disabled())
        .load()
        .await
}

// ---- Whether a function writes, or only counts what it would write ----

/// What happens to a function's writes. The words are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `apply`: the function writes.
    #[default]
    Apply,
    /// `observe`: the writes are counted, but none is sent, not even those of the ledger.
    Observe,
}

/// An unknown mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mode is apply or observe")]
pub struct UnknownMode;

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "apply" => Ok(Self::Apply),
            "observe" => Ok(Self::Observe),
            _ => Err(UnknownMode),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apply => "apply",
            Self::Observe => "observe",
        })
    }
}

/// A store that writes or only counts the writes.
#[derive(Debug)]
pub enum Moded<S> {
    /// It writes.
    Applied(S),
    /// It counts the writes, of one invocation at a time.
    Observed(Box<Observing<S>>, Mutex<()>),
}

impl<S: Store> Moded<S> {
    /// A store in this mode.
    pub fn new(mode: Mode, store: S, layout: &Layout) -> Self {
        match mode {
            Mode::Apply => Self::Applied(store),
            Mode::Observe => Self::Observed(Box::new(Observing::new(store, layout.clone())), Mutex::default()),
        }
    }

    /// Starts an invocation, which sees the tables as they are, without what an earlier invocation would have written.
    /// Other invocations of the process wait while an observing one has the guard; otherwise each would see the other's
    /// unsent writes.
    pub async fn begin(&self) -> Option<MutexGuard<'_, ()>> {
        let Self::Observed(observing, turn) = self else { return None };
        let turn = turn.lock().await;
        observing.forget();
        Some(turn)
    }
}

impl<S: Store> Store for Moded<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        match self {
            Self::Applied(store) => store.read(table, keys, consistency).await,
            Self::Observed(store, _) => store.read(table, keys, consistency).await,
        }
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.query(table, query, after).await,
            Self::Observed(store, _) => store.query(table, query, after).await,
        }
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        match self {
            Self::Applied(store) => store.scan(table, segment, after).await,
            Self::Observed(store, _) => store.scan(table, segment, after).await,
        }
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        match self {
            Self::Applied(store) => store.write(write).await,
            Self::Observed(store, _) => store.write(write).await,
        }
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        match self {
            Self::Applied(store) => store.update(write).await,
            Self::Observed(store, _) => store.update(write).await,
        }
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        match self {
            Self::Applied(store) => store.transact(transaction).await,
            Self::Observed(store, _) => store.transact(transaction).await,
        }
    }
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
    fn the_ledger_is_one_of_watermarks_where_nothing_is_said() {
        assert_eq!(with(LEDGER, "").unwrap().ledger, LedgerKind::Watermarks);
        assert_eq!(with(LEDGER, "receipts").unwrap().ledger, LedgerKind::Receipts);
        let error = with(LEDGER, "offsets").unwrap_err().to_string();
        assert_eq!(error, "the environment variable LEDGER is \"offsets\": set it to receipts or watermarks");
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
        let error = with(UNREADABLE_PERCENT_MAX, "101").unwrap_err().to_string();
        let wanted = "set it to a whole number of percent, 0 to 100";
        assert_eq!(error, format!("the environment variable UNREADABLE_PERCENT_MAX is \"101\": {wanted}"));
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
    fn no_counter_is_hot_by_default() {
        assert_eq!(with(LEDGER, "").unwrap().hot_ms, 0);
        assert_eq!(with(HOT_SECONDS, "10").unwrap().hot_ms, 10_000);
        assert!(with(HOT_SECONDS, "soon").is_err());
    }

    #[test]
    fn an_empty_variable_is_a_missing_one() {
        assert!(Config::from_variables(|_| Some(String::new())).is_err());
    }

    #[tokio::test]
    async fn the_engine_alone_sends_again() {
        let config = sdk_config().await;
        assert!(!config.retry_config().unwrap().has_retry(), "the SDK sends nothing again");
        let timeouts = config.timeout_config().unwrap();
        assert!(timeouts.operation_attempt_timeout().is_some() && timeouts.connect_timeout().is_some());
    }
}

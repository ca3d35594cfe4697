//! The monthly cost of a table: from the application's write rate to units, invocations, bytes of logs and dollars,
//! each with its formula.
//!
//! No write and no read is calculated here. The [sample run](usage) puts items of the declared entities into the
//! store's model, delivers their records to the engine in the batches that Lambda would gather, and counts what the
//! engine does. Only a fan-out is a product: its items, times the [price](crate::price) of one.

pub mod bed;
pub mod estimate;
pub mod usage;
pub mod world;

use std::{collections::BTreeMap, str::FromStr};

use derive::{declaration::Link, derivation::Derivation, family::Family, kind::Shape};
use engine::ledger::LedgerKind;
use infra::mapping::TUMBLING_WINDOW_S;

use crate::{
    Design,
    cost::bed::{Gathering, table_of},
};

// ---- prices ----

/// The Region of the prices.
pub const REGION: &str = "us-east-1";

/// When the prices were noted.
pub const NOTED: &str = "February 2026";

/// A price: its name for `--price`, the amount that it covers, and the dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitPrice {
    /// Its name. Stable.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// Number of units that the dollars cover.
    pub per: f64,
    /// Dollars.
    pub dollars: f64,
}

/// Defines the prices, with their index.
macro_rules! prices {
    ($($(#[$source:meta])* $what:ident: $name:literal, $unit:literal, $per:literal, $dollars:literal;)+) => {
        /// What AWS bills.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Paid {
            $($(#[$source])* $what,)+
        }

        /// The prices, by their position in [`Paid`].
        pub const PRICES: &[UnitPrice] =
            &[$(UnitPrice { name: $name, unit: $unit, per: $per, dollars: $dollars },)+];
    };
}

prices! {
    /// Published at aws.amazon.com/dynamodb/pricing/on-demand, Standard table class.
    WriteUnits: "write-unit", "write units", 1_000_000.0, 0.625;
    /// As above.
    ReadUnits: "read-unit", "read units", 1_000_000.0, 0.125;
    /// As above; free for the first 25 GB of an account, which is not deducted.
    Storage: "storage", "GB", 1.0, 0.25;
    /// As above, point-in-time recovery.
    Recovery: "recovery", "GB", 1.0, 0.20;
    /// Published at aws.amazon.com/lambda/pricing; free for the first million of an account, which is not deducted.
    Invocations: "invocation", "invocations", 1_000_000.0, 0.20;
    /// As above, Arm, the first 7.5 billion; the free 400,000 are not deducted.
    GigabyteSeconds: "gb-second", "GB-seconds", 1.0, 0.000_013_333_4;
    /// Published at aws.amazon.com/cloudwatch/pricing, standard logs of Lambda, the first 10 TB; the free 5 GB are not deducted.
    Logs: "log", "GB", 1.0, 0.50;
    /// As above, the first 10,000 metrics; only metrics with data are billed.
    Metrics: "metric", "metrics", 1.0, 0.30;
    /// As above, standard resolution, for each metric of an alarm.
    Alarms: "alarm", "metrics of alarms", 1.0, 0.10;
    /// As above.
    Dashboards: "dashboard", "dashboards", 1.0, 3.00;
}

/// The prices in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices(Vec<UnitPrice>);

impl Default for Prices {
    fn default() -> Self {
        Self(PRICES.to_vec())
    }
}

impl Prices {
    /// Replaces the dollars of the price with this name; `false` if there is none.
    pub fn set(&mut self, name: &str, dollars: f64) -> bool {
        let price = self.0.iter_mut().find(|price| price.name == name);
        price.map(|price| price.dollars = dollars).is_some()
    }

    /// All prices.
    pub fn iter(&self) -> impl Iterator<Item = &UnitPrice> {
        self.0.iter()
    }

    /// The unit, and the dollars for this amount.
    #[must_use]
    pub fn of(&self, paid: Paid, amount: f64) -> (&'static str, f64) {
        let price = self.0.get(paid as usize);
        price.map_or(("", 0.0), |price| (price.unit, amount / price.per * price.dollars))
    }
}

// ---- the load: the application's write rates and Ripple's settings ----

/// The application's write rates and Ripple's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// New items a second, by entity.
    pub rates: BTreeMap<String, f64>,
    /// Number of targets over which the items spread, by count or roll-up. Without an entry, each item has its own
    /// target.
    pub targets: BTreeMap<String, u32>,
    /// Fan-outs, by derivation.
    pub fan_outs: BTreeMap<String, FanOutRate>,
    /// The application's declared reads: full pages a second, by name.
    pub reads: BTreeMap<String, f64>,
    /// The ledger.
    pub ledger: LedgerKind,
    /// Shards of the stream that are open at a time: one for each partition of the table.
    pub n_shards: u32,
    /// Seconds for which Lambda gathers records for a batch.
    pub window_seconds: f64,
    /// Maximum number of records in a batch.
    pub n_batch_max: u32,
    /// Concurrent batches of a shard, for the function that counts nothing.
    pub n_lanes: u32,
    /// Memory of a function, in megabytes.
    pub memory_mb: u32,
    /// Time of a call to DynamoDB, in milliseconds.
    pub call_ms: f64,
}

/// The rate of a source's changes, and the number of items that each change affects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FanOutRate {
    /// Changes a second.
    pub rate: f64,
    /// Number of items that a change affects.
    pub n_items: u32,
}

/// Why a load cannot be estimated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LoadError {
    /// The load has neither a rate nor a fan-out nor a read.
    #[error("no rate is given: give the new items a second of an entity, as in `--rate {0}=10`")]
    Empty(String),
    /// The entity does not exist, or Ripple writes it.
    #[error("the application writes no {name}: {there_are}")]
    Entity {
        /// The name.
        name: String,
        /// The entities.
        there_are: String,
    },
    /// The derivation does not exist, or has no targets or fan-out.
    #[error("{name} is no derivation with {what}: {there_are}")]
    Derivation {
        /// The name.
        name: String,
        /// Targets or fan-out.
        what: &'static str,
        /// The derivations that have it.
        there_are: String,
    },
    /// The read is not declared.
    #[error("no read {name} is declared by [access.{name}]: {there_are}")]
    Read {
        /// The name.
        name: String,
        /// The declared reads.
        there_are: String,
    },
    /// No sample item can be made for an entity.
    #[error("no item of {0} can be made up: its key needs values that the manifest does not tell")]
    Sample(String),
}

impl FromStr for FanOutRate {
    type Err = String;

    /// Reads `0.01x200`: changes a second, and items.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "it must be CHANGES_A_SECONDxITEMS, such as 0.01x200".to_owned();
        let (rate, n_items) = text.split_once('x').ok_or_else(wanted)?;
        let rate = rate.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0).ok_or_else(wanted)?;
        let n_items = n_items.parse().ok().filter(|n_items| *n_items > 0).ok_or_else(wanted)?;
        Ok(Self { rate, n_items })
    }
}

impl Load {
    /// New items a second, of all entities.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rates.values().sum()
    }

    /// The load of each table, because each batch has items of a single table.
    #[must_use]
    pub fn by_table(&self, design: &Design) -> Vec<Self> {
        let mut by_table: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for (name, rate) in &self.rates {
            let key = design.samples.item(name).and_then(|item| design.schema.layout.key(item));
            let table = key.map(|key| table_of(&design.schema, &key)).unwrap_or_default();
            by_table.entry(table).or_default().insert(name.clone(), *rate);
        }
        by_table.into_values().map(|rates| Self { rates, ..self.clone() }).collect()
    }

    /// New items that come together: the first one opens the batching window, and others join it.
    #[must_use]
    pub fn batch(&self) -> f64 {
        let joining = self.rate() / f64::from(self.n_shards) * self.window_seconds;
        (1.0 + joining).min(self.n_batch_max.into())
    }

    /// How the function of this family gathers its batches, as [`infra::mapping`] deploys it.
    fn gathering(&self, family: Family) -> Gathering {
        let counts = family == Family::Additive;
        let is_tumbling = counts && self.ledger == LedgerKind::Watermarks;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a batching window is short")]
        let window_ms = (self.window_seconds * 1_000.0) as u64;
        Gathering {
            window_ms,
            n_batch_max: usize::try_from(self.n_batch_max).unwrap_or(usize::MAX),
            n_lanes: if counts { 1 } else { usize::try_from(self.n_lanes).unwrap_or(1) },
            tumbling_ms: is_tumbling.then(|| u64::from(TUMBLING_WINDOW_S) * 1_000),
        }
    }

    /// Checks the names.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the load is empty, or names an unknown entity or derivation.
    pub fn check(&self, design: &Design) -> Result<(), LoadError> {
        let ground = design.schema.entities().filter(|entity| !entity.derived);
        let ground: Vec<&str> = ground.map(|entity| entity.name.as_str()).collect();
        if self.rates.is_empty() && self.fan_outs.is_empty() && self.reads.is_empty() {
            return Err(LoadError::Empty(ground.first().copied().unwrap_or("Entity").to_owned()));
        }
        if let Some(name) = self.rates.keys().find(|name| !ground.contains(&name.as_str())) {
            return Err(LoadError::Entity { name: name.clone(), there_are: there_are(&ground) });
        }
        let declared: Vec<&str> = design.schema.accesses.iter().map(|access| access.name.as_str()).collect();
        if let Some(name) = self.reads.keys().find(|name| !declared.contains(&name.as_str())) {
            return Err(LoadError::Read { name: name.clone(), there_are: there_are(&declared) });
        }
        let has_targets = |derivation: &&Derivation| spread(derivation).is_some();
        known(design, self.targets.keys(), "targets", has_targets)?;
        known(design, self.fan_outs.keys(), "a fan-out", |it| !it.kind.outline(&design.schema).finds.is_empty())
    }
}

/// Refuses a name that is not one of the derivations that `is` selects.
fn known<'a>(
    design: &Design,
    mut names: impl Iterator<Item = &'a String>,
    what: &'static str,
    is: impl Fn(&&Derivation) -> bool,
) -> Result<(), LoadError> {
    let all: Vec<&str> = design.catalogue.derivations().filter(is).map(Derivation::label).collect();
    match names.find(|name| !all.contains(&name.as_str())) {
        Some(name) => Err(LoadError::Derivation { name: name.clone(), what, there_are: there_are(&all) }),
        None => Ok(()),
    }
}

fn there_are(names: &[&str]) -> String {
    if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// The source entity of a count or roll-up, and how its items name their target.
pub(super) fn spread(derivation: &Derivation) -> Option<(&str, &Link)> {
    match derivation.kind.shape() {
        Shape::Count(count) => Some((&count.source, &count.link)),
        Shape::Rollup(rollup) => Some((&rollup.source, &rollup.link)),
        _ => None,
    }
}

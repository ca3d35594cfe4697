//! The monthly cost of a table: from the application's write rate to units, invocations, bytes of logs and dollars,
//! each with its formula.
//!
//! No write and no read is calculated here. The [sample run](usage) puts items of the declared entities into the store's
//! model, delivers their records to the engine in the batches that Lambda would gather, and counts what the
//! engine does. Only a fan-out is a product: its items, times the [price](crate::price) of one.

pub mod bed;
pub mod cast;
pub mod estimate;
pub mod load;
mod pace;
pub mod usage;
mod world;

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

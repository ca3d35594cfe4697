//! The arguments of `ripple cost`.

use clap::Args as Group;
use design::cost::load::FanOutRate;
use infra::mapping::{BATCH_SIZE, BATCHING_WINDOW_S, LANES};

use super::manifest::ManifestFile;

/// `ripple cost`
#[derive(Debug, Group)]
pub(crate) struct CostArgs {
    /// New items a second of an entity, such as `Like=10`. Repeat the option for each entity that the application
    /// writes.
    #[arg(long, value_name = "ENTITY=N", value_parser = named::<f64>)]
    pub(crate) rate: Vec<(String, f64)>,
    /// Number of targets over which the items of a count or roll-up spread, such as `like-count=100` (default: each
    /// item has its own target).
    #[arg(long, value_name = "DERIVATION=N", value_parser = named::<u32>)]
    pub(crate) targets: Vec<(String, u32)>,
    /// Changes a second of a source, and the number of items that each change affects, such as
    /// `comment-author=0.01x200`.
    #[arg(long, value_name = "DERIVATION=RATExITEMS", value_parser = fan_out)]
    pub(crate) fan_out: Vec<(String, FanOutRate)>,
    /// Full pages a second of a declared read (`[access.NAME]`), such as `comments-of-post=20`. A full `batch-get` has 100
    /// keys.
    #[arg(long, value_name = "READ=N", value_parser = named::<f64>)]
    pub(crate) read: Vec<(String, f64)>,
    /// Number of partitions of the table. Each has one open shard of the stream.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) shards: u32,
    /// Seconds for which Lambda gathers records (`BatchingWindowSeconds`).
    #[arg(long, value_name = "SECONDS", default_value_t = BATCHING_WINDOW_S, value_parser = clap::value_parser!(u32).range(..=300))]
    pub(crate) window: u32,
    /// Most records of a batch (`BatchSize`).
    #[arg(long, value_name = "N", default_value_t = BATCH_SIZE, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
    /// Concurrent batches of a shard for `propagate` (`Lanes`).
    #[arg(long, value_name = "N", default_value_t = LANES, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) lanes: u32,
    /// Memory of a function (`MemoryMegabytes`).
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=10_240))]
    pub(crate) memory: u32,
    /// Assumed time of a call to DynamoDB, in milliseconds. Not measured on AWS.
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) call_ms: u32,
    /// Price in dollars that replaces the default, such as `write-unit=0.7`. The output of --json lists the names and
    /// units.
    #[arg(long, value_name = "NAME=DOLLARS", value_parser = price)]
    pub(crate) price: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) manifest: ManifestFile,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A positive number that an option accepts.
trait Positive: std::str::FromStr {
    fn is_positive(&self) -> bool;
}

impl Positive for f64 {
    fn is_positive(&self) -> bool {
        self.is_finite() && *self > 0.0
    }
}

impl Positive for u32 {
    fn is_positive(&self) -> bool {
        *self > 0
    }
}

fn named<T: Positive>(text: &str) -> Result<(String, T), String> {
    number(text, T::is_positive).ok_or_else(|| "it must be NAME=NUMBER, with a number above 0".to_owned())
}

fn price(text: &str) -> Result<(String, f64), String> {
    let is_price = |dollars: &f64| dollars.is_finite() && *dollars >= 0.0;
    number(text, is_price).ok_or_else(|| "it must be NAME=DOLLARS, with a number of at least 0".to_owned())
}

fn number<T: std::str::FromStr>(text: &str, is: impl FnOnce(&T) -> bool) -> Option<(String, T)> {
    let (name, number) = text.split_once('=')?;
    Some((name.to_owned(), number.parse().ok().filter(is)?))
}

fn fan_out(text: &str) -> Result<(String, FanOutRate), String> {
    let (name, rate) = text.split_once('=').ok_or("it must be DERIVATION=CHANGES_A_SECONDxITEMS")?;
    Ok((name.to_owned(), rate.parse()?))
}

//! The bill of a month, line by line, each with its formula.

use derive::{
    access::{Access, AccessReads, AccessRequest},
    catalogue::Catalogue,
    derivation::Derivation,
    family::Family,
    query::{Consistency, SortKeys},
    schema::Schema,
};
use engine::ledger::{LedgerKind, receipt};
use infra::mapping::{Needed, StreamTable, TUMBLING_WINDOW_S, needed};
use keys::size::item_bytes;

use super::{
    FanOutRate, Load, LoadError, Paid, Prices,
    bed::read_units,
    usage::{HEARTBEATS, InvocationUsage, LoadUsage, LogBytes, heartbeat, usage},
};
use crate::{Design, price::price};

/// Seconds of a month: 730 hours.
pub const MONTH_SECONDS: f64 = 2_628_000.0;

/// Bytes that DynamoDB adds to each item for the price of its storage. Source: DynamoDB, "Pricing".
pub const ITEM_OVERHEAD_BYTES: usize = 100;

/// Days for which a receipt is kept.
const RECEIPT_DAYS: f64 = 15.0;

/// Bytes of a gigabyte, as AWS bills it.
const GIGABYTE: f64 = 1_073_741_824.0;

/// Sweeps a month: one every 15 minutes.
const SWEEPS: f64 = MONTH_SECONDS / 900.0;

/// Items that a sweep reads, at most: the default of `SWEEP_ITEMS`.
const SWEEP_ITEMS: f64 = 5_000.0;

/// Seconds of a sweep over that many items. Not measured on AWS.
const SWEEP_SECONDS: f64 = 10.0;

/// Maximum number of items of a fan-out that one invocation handles. A larger one becomes a job, which writes without
/// reading the items.
const FAN_OUT_ITEMS_MAX: u32 = 100;

/// Write units of the note that an index must be searched again, and of its removal.
const NOTE_UNITS: f64 = 2.0;

/// Metrics that a stack with two readers writes: 17 of each reader, and 14 of `sweep`.
pub const METRICS: u32 = 2 * 17 + 14;

/// Metrics of the alarms of a stack with two readers, and of the additional alarms of each mapping.
const ALARM_METRICS: (u32, u32) = (18, 3);

/// Metrics of the alarms of a stack with two readers.
#[must_use]
pub fn alarm_metrics(schema: &Schema, catalogue: &Catalogue) -> u32 {
    let mappings = [Family::Additive, Family::LevelTriggered].map(|family| {
        let needs = StreamTable::all(schema).filter(|table| needed(*table, catalogue, &[family]) != Needed::Nothing);
        // A function without derivations has one mapping, whose filter passes nothing.
        u32::try_from(needs.count()).unwrap_or(u32::MAX).max(1)
    });
    ALARM_METRICS.0 + ALARM_METRICS.1 * mappings.iter().sum::<u32>()
}

/// The lines of the logs.
const LOGS: &str = "logs";
const ZEROS: &str = "logs, all metrics once a minute";

/// Seconds between two lines of an instance that have all metrics.
const ZEROS_SECONDS: f64 = 60.0;

/// A line of the bill.
#[derive(Clone, Debug, PartialEq)]
pub struct CostLine {
    /// What AWS bills.
    pub what: String,
    /// The amount a month.
    pub amount: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The formula of the amount.
    pub formula: String,
    /// Dollars a month.
    pub dollars: f64,
}

/// The bill of a month.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Its lines.
    pub lines: Vec<CostLine>,
    /// Average number of new application items in a batch.
    pub batch: f64,
}

impl Estimate {
    /// Dollars a month.
    #[must_use]
    pub fn dollars(&self) -> f64 {
        self.lines.iter().map(|line| line.dollars).sum()
    }

    /// Bytes of logs.
    #[must_use]
    pub fn log_bytes(&self) -> f64 {
        self.lines
            .iter()
            .filter(|line| [LOGS, ZEROS].contains(&line.what.as_str()))
            .map(|line| line.amount * GIGABYTE)
            .sum()
    }

    /// The total amount of this unit.
    #[must_use]
    pub fn amount(&self, unit: &str) -> f64 {
        self.lines.iter().filter(|line| line.unit == unit).map(|line| line.amount).sum()
    }
}

/// Collects lines.
struct Bill<'a> {
    prices: &'a Prices,
    lines: Vec<CostLine>,
}

impl Bill<'_> {
    fn add(&mut self, paid: Paid, what: &str, amount: f64, formula: String) {
        let (unit, dollars) = self.prices.of(paid, amount);
        if amount > 0.0 {
            self.lines.push(CostLine { what: what.to_owned(), amount, unit, formula, dollars });
        }
    }

    /// Adds a line for an amount a second.
    fn each_second(&mut self, paid: Paid, what: &str, a_second: f64, formula: &str) {
        self.add(paid, what, a_second * MONTH_SECONDS, format!("{formula} × {MONTH_SECONDS} seconds"));
    }
}

/// Estimates the monthly cost of a load.
///
/// # Errors
///
/// The errors of [`usage`].
pub async fn estimate(design: &Design, load: &Load, prices: &Prices, log: LogBytes<'_>) -> Result<Estimate, LoadError> {
    let (used, rate) = (usage(design, load, log).await?, load.rate());
    let beat = heartbeat(design, load, log).await;
    let mut bill = Bill { prices, lines: Vec::new() };
    let each = |a_second: f64, unit: &str| each_item(a_second, unit, rate);
    for (part, units) in &used.write_units {
        bill.each_second(Paid::WriteUnits, part, *units, &each(*units, "write units"));
    }
    let units: f64 = beat.write_units.values().sum();
    bill.add(Paid::WriteUnits, HEARTBEATS, units * SWEEPS, format!("{units} write units × {SWEEPS} sweeps"));
    for (name, fan_out) in &load.fan_outs {
        if let Some(derivation) = design.catalogue.derivations().find(|it| it.label() == name) {
            fanned_out(&mut bill, design, derivation, *fan_out);
        }
    }
    for (name, rate) in &load.reads {
        if let Some(access) = design.schema.accesses.iter().find(|access| access.name == *name) {
            let units = page_units(design, access);
            let pages = match access.reads {
                AccessReads::BatchGet(_) => "requests of 100 keys",
                _ => "pages",
            };
            let formula = format!("{rate} {pages} a second × {units} read units");
            bill.each_second(Paid::ReadUnits, &format!("{name}, of the application"), rate * units, &formula);
        }
    }
    bill.each_second(Paid::ReadUnits, "reads", used.read_units, &each(used.read_units, "read units"));
    let formula = format!("{SWEEP_ITEMS} items at most × {SWEEPS} sweeps");
    bill.add(Paid::ReadUnits, "sweep", SWEEP_ITEMS * SWEEPS, formula);
    if load.ledger == LedgerKind::Receipts {
        stored(&mut bill, design, used.receipts);
    }
    invoked(&mut bill, load, &used, beat.all_invocations());
    bill.add(Paid::Metrics, "metrics", METRICS.into(), "two readers and the sweep".to_owned());
    let alarms = alarm_metrics(&design.schema, &design.catalogue);
    bill.add(Paid::Alarms, "alarms", alarms.into(), "two readers and the sweep".to_owned());
    bill.add(Paid::Dashboards, "dashboard", 1.0, "one".to_owned());
    let tables = load.by_table(design);
    let batch = tables.iter().map(|table| table.batch() * table.rate()).sum::<f64>() / rate;
    Ok(Estimate { lines: bill.lines, batch: if rate > 0.0 { batch } else { load.batch() } })
}

/// Keys of a full `BatchGetItem`. Source: DynamoDB API reference.
const BATCH_KEYS_MAX: f64 = 100.0;

/// Read units of a full page of a declared read, by the sample items of its entities.
#[must_use]
pub fn page_units(design: &Design, access: &Access) -> f64 {
    let sizes: Vec<usize> =
        access.entities().iter().filter_map(|entity| design.samples.item(entity)).map(item_bytes).collect();
    let bytes = sizes.iter().sum::<usize>().div_ceil(sizes.len().max(1));
    let units = |request: AccessRequest| match request {
        AccessRequest::Get(_) if matches!(access.reads, AccessReads::BatchGet(_)) => {
            read_units(bytes, access.consistency) * BATCH_KEYS_MAX
        }
        AccessRequest::Get(_) => read_units(bytes, access.consistency),
        AccessRequest::Query(query) => {
            let is_one = matches!(&query.sk, SortKeys::Between(first, last) if first == last);
            let limit = if is_one { 1 } else { query.limit.unwrap_or(1) };
            let n_items = usize::try_from(limit).unwrap_or(usize::MAX);
            read_units(bytes.saturating_mul(n_items), query.consistency)
        }
    };
    access.requests(&design.schema).into_iter().map(units).sum()
}

/// The invocations of the functions, with their time and what they log.
fn invoked(bill: &mut Bill<'_>, load: &Load, used: &LoadUsage, beat: InvocationUsage) {
    let rate = load.rate();
    let each = |a_second: f64, unit: &str| each_item(a_second, unit, rate);
    for (family, batches) in &used.invocations {
        let records = rounded(batches.n_records / batches.n);
        let formula = format!("{}, each with {records} records", each(batches.n, "batches"));
        bill.each_second(Paid::Invocations, function_of(*family), batches.n, &formula);
    }
    let ends = used.window_ends.n;
    let length_s = TUMBLING_WINDOW_S;
    let formula = format!("{} windows of {length_s} seconds with a record in {} shards", rounded(ends), load.n_shards);
    bill.each_second(Paid::Invocations, "aggregate, ends of windows", ends, &formula);
    let formula = "one after each sweep".to_owned();
    bill.add(Paid::Invocations, "propagate, heartbeats", beat.n * SWEEPS, formula);
    bill.add(Paid::Invocations, "sweep", SWEEPS, "one every 15 minutes".to_owned());
    let gigabytes = f64::from(load.memory_mb) / 1_024.0;
    let mut all = used.all_invocations();
    all.add(beat, SWEEPS / MONTH_SECONDS);
    let seconds = all.duration_ms / 1_000.0;
    let formula = format!("{} seconds of invocations a second × {gigabytes} GB", rounded(seconds));
    bill.each_second(Paid::GigabyteSeconds, "time of invocations", seconds * gigabytes, &formula);
    let formula = format!("{SWEEP_SECONDS} seconds × {gigabytes} GB × {SWEEPS} sweeps");
    bill.add(Paid::GigabyteSeconds, "sweep", SWEEP_SECONDS * gigabytes * SWEEPS, formula);
    let formula = format!("{} bytes a line × {} lines a second", rounded(all.log_bytes / all.n), rounded(all.n));
    bill.each_second(Paid::Logs, LOGS, all.log_bytes / GIGABYTE, &formula);
    let mut aggregate = used.invocations.get(&Family::Additive).copied().unwrap_or_default();
    aggregate.add(used.window_ends, 1.0);
    let mut propagate = used.invocations.get(&Family::LevelTriggered).copied().unwrap_or_default();
    propagate.add(beat, SWEEPS / MONTH_SECONDS);
    let more = zeros_bytes(aggregate) + zeros_bytes(propagate);
    let formula = format!("{} bytes a second of metrics that are 0", rounded(more));
    bill.each_second(Paid::Logs, ZEROS, more / GIGABYTE, &formula);
}

/// The function that runs a family.
fn function_of(family: Family) -> &'static str {
    match family {
        Family::Additive => "aggregate",
        Family::LevelTriggered => "propagate",
    }
}

/// Bytes a second of the metrics that are 0, for a second's invocations of a function. It has an instance for each
/// invocation that is in progress, and one more; each logs them with the first invocation after a minute.
fn zeros_bytes(a_second: InvocationUsage) -> f64 {
    if a_second.n <= 0.0 {
        return 0.0;
    }
    let instances = 1.0 + a_second.duration_ms / 1_000.0;
    let apart_s = ZEROS_SECONDS + instances / a_second.n;
    a_second.zeros_bytes / a_second.n * instances / apart_s
}

/// The storage of receipts.
fn stored(bill: &mut Bill<'_>, design: &Design, receipts: f64) {
    let bytes = receipt_bytes(design) + ITEM_OVERHEAD_BYTES;
    let n = receipts * RECEIPT_DAYS * 86_400.0;
    let gigabytes = n * f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / GIGABYTE;
    let formula = format!("{} receipts of {RECEIPT_DAYS} days × {bytes} bytes", n.round());
    bill.add(Paid::Storage, "receipts", gigabytes, formula.clone());
    bill.add(Paid::Recovery, "recovery of receipts", gigabytes, formula);
}

/// Bytes of a receipt, without what DynamoDB adds.
#[must_use]
pub fn receipt_bytes(design: &Design) -> usize {
    match receipt(&design.schema.layout, &"0".repeat(32), 1_700_000_000_000).action {
        derive::write::Action::Put(item) => item_bytes(&item),
        _ => 0,
    }
}

/// Adds the lines of a fan-out: each item is written once, at the price of the derivation.
fn fanned_out(bill: &mut Bill<'_>, design: &Design, derivation: &Derivation, fan_out: FanOutRate) {
    let FanOutRate { rate, n_items } = fan_out;
    let (name, finds) = (derivation.label(), derivation.kind.outline(&design.schema).finds);
    let each = price(design, derivation).map_or(1.0, |price| price.total());
    let note = if finds.iter().any(|find| find.query.index.is_some()) { NOTE_UNITS } else { 0.0 };
    let formula = format!("{rate} changes a second × ({n_items} items × {each} + {note} for the note of an index)");
    let units = rate * (f64::from(n_items) * each + note);
    bill.each_second(Paid::WriteUnits, &format!("{name}, fan-out"), units, &formula);
    // Reads: the search, the read before each write (if the fan-out is not a job), and the refresh after the record of
    // each write.
    let found = finds.iter().map(|find| {
        let strength = if find.query.index.is_some() { Consistency::Eventual } else { Consistency::Strong };
        let bytes = design.samples.item(&find.via).map_or(0, item_bytes);
        read_units(bytes * usize::try_from(n_items).unwrap_or(usize::MAX), strength)
    });
    let searched: f64 = found.sum();
    let looks = if n_items > FAN_OUT_ITEMS_MAX { 1.0 } else { 2.0 };
    let formula = format!("{rate} changes a second × ({n_items} items × {looks} looks + {searched} for the search)");
    let units = rate * (f64::from(n_items) * looks + searched);
    bill.each_second(Paid::ReadUnits, &format!("{name}, fan-out"), units, &formula);
}

/// Rounds to an integer from 100 on, and to four decimals below.
fn each_item(a_second: f64, unit: &str, rate: f64) -> String {
    format!("{} {unit} × {} new items a second", rounded(a_second / rate), rounded(rate))
}

fn rounded(value: f64) -> f64 {
    let scale = if value.abs() >= 100.0 { 1.0 } else { 10_000.0 };
    (value * scale).round() / scale
}

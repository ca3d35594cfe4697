//! `ripple cost`: the monthly cost of a table under either ledger, with the formula of each line. `ripple rates` measures
//! what an application writes, for `ripple cost`.

use std::collections::BTreeMap;

use derive::family::Family;
use design::cost::{
    Load, NOTED, Prices, REGION,
    estimate::{Estimate, estimate},
    usage::SampleEngine,
};
use engine::{batch::Handled, ledger::LedgerKind};
use functions::{
    config::{self, Config},
    logging,
    metrics::{LineOf, Zeros},
};
use operate::{
    rates::{Rates, rates},
    words::counted,
};
use serde_json::{Value, json};

use crate::{
    args::{offline::CostArgs, tables::RatesArgs},
    commands::{LOG_FILTER, design::declared_design},
    exit::{Completion, Usage, print, print_json, report},
    opened::open,
};

/// The ledgers. The default of the templates comes first.
const LEDGERS: [LedgerKind; 2] = [LedgerKind::Watermarks, LedgerKind::Receipts];

pub(crate) async fn run(args: &CostArgs) -> anyhow::Result<Completion> {
    let design = declared_design(args.manifest.file_or_said())?;
    let prices = prices(args)?;
    let config = Config::from_variables(|name| {
        [config::TABLE_NAME, config::LEDGER_TABLE_NAME].contains(&name).then(|| "table".to_owned())
    })?;
    let log = |engine: &SampleEngine, families: &[Family], handled: &Handled, has_zeros: bool| {
        let zeros = if has_zeros { Zeros::Shown } else { Zeros::LeftOut };
        // The line's end is a byte.
        LineOf::sample(&config, engine, families, handled, zeros).to_string().len() + 1
    };
    let mut estimates = Vec::new();
    for ledger in LEDGERS {
        let estimated = estimate(&design, &load(args, ledger)?, &prices, &log).await;
        estimates.push((ledger, estimated.map_err(|error| Usage(error.to_string()))?));
    }
    if args.json {
        print_json(as_json(&estimates, &prices));
    } else {
        print(&as_text(&estimates));
    }
    Ok(Completion::InStep)
}

fn load(args: &CostArgs, ledger: LedgerKind) -> Result<Load, Usage> {
    Ok(Load {
        rates: each_once("--rate", &args.rate)?,
        targets: each_once("--targets", &args.targets)?,
        fan_outs: each_once("--fan-out", &args.fan_out)?,
        reads: each_once("--read", &args.read)?,
        ledger,
        n_shards: args.shards,
        window_seconds: args.window.into(),
        n_batch_max: args.batch,
        n_lanes: args.lanes,
        memory_mb: args.memory,
        call_ms: args.call_ms.into(),
    })
}

/// The values of an option by their names. One that is given twice would count once only.
fn each_once<T: Copy>(option: &str, given: &[(String, T)]) -> Result<BTreeMap<String, T>, Usage> {
    let mut values = BTreeMap::new();
    for (name, value) in given {
        if values.insert(name.clone(), *value).is_some() {
            return Err(Usage(format!("{option} gives {name} twice: add the numbers up, or leave one out")));
        }
    }
    Ok(values)
}

fn prices(args: &CostArgs) -> Result<Prices, Usage> {
    let mut prices = Prices::default();
    for (name, dollars) in each_once("--price", &args.price)? {
        if !prices.set(&name, dollars) {
            let names: Vec<&str> = prices.iter().map(|price| price.name).collect();
            return Err(Usage(format!("there is no price {name}; there are {}", names.join(", "))));
        }
    }
    Ok(prices)
}

/// The estimates as text.
fn as_text(estimates: &[(LedgerKind, Estimate)]) -> String {
    let mut lines = Vec::new();
    for (ledger, estimate) in estimates {
        lines.push(format!("{ledger}: ${:.2} a month", estimate.dollars()));
        for line in &estimate.lines {
            let amount = match line.amount {
                amount if amount >= 100.0 => format!("{amount:.0}"),
                amount => format!("{amount:.3}"),
            };
            let what = format!("{amount:>14} {}", line.unit);
            lines.push(format!("  ${:>9.2}  {what:<32} {}: {}", line.dollars, line.what, line.formula));
        }
        lines.push(String::new());
    }
    let batch = estimates.first().map_or(1.0, |(_, estimate)| estimate.batch);
    lines.push(format!("about {batch:.1} new items in a batch; prices of {REGION}, {NOTED}, without free tiers"));
    lines.join("\n")
}

/// The names are stable.
fn as_json(estimates: &[(LedgerKind, Estimate)], prices: &Prices) -> Value {
    let ledger = |(ledger, estimate): &(LedgerKind, Estimate)| {
        let lines = estimate.lines.iter().map(|line| {
            json!({
                "what": line.what,
                "amount": line.amount,
                "unit": line.unit,
                "formula": line.formula,
                "dollars": line.dollars,
            })
        });
        json!({
            "ledger": ledger.to_string(),
            "dollars": estimate.dollars(),
            "write_units": estimate.amount("write units"),
            "read_units": estimate.amount("read units"),
            "invocations": estimate.amount("invocations"),
            "gb_seconds": estimate.amount("GB-seconds"),
            "log_bytes": estimate.log_bytes(),
            "lines": lines.collect::<Vec<_>>(),
        })
    };
    let price = |price: &design::cost::UnitPrice| json!({ "name": price.name, "unit": price.unit, "per": price.per, "dollars": price.dollars });
    json!({
        "region": REGION,
        "prices_noted": NOTED,
        "batch": estimates.first().map(|(_, estimate)| estimate.batch),
        "ledgers": estimates.iter().map(ledger).collect::<Vec<_>>(),
        "prices": prices.iter().map(price).collect::<Vec<_>>(),
    })
}

// ---- `ripple rates` ----

/// Measures what the application writes.
pub(crate) async fn measure(args: &RatesArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open(&args.connection).await?;
    let measured = Box::pin(rates(&opened.tables())).await?;
    if args.json {
        print_json(object(&measured));
        return Ok(Completion::InStep);
    }
    if measured.entities.is_empty() && measured.fan_outs.is_empty() {
        let records = counted(measured.n_records, "record");
        let what =
            format!("the stream has {records}, and none is a change that a derivation reads: write something first");
        return Err(Usage(what).into());
    }
    let (records, changes) = (counted(measured.n_records, "record"), counted(measured.n_changes, "change"));
    report(&format!("{records} in {:.0} s, with {changes} that derivations read", measured.seconds));
    print(&options(&measured).join(" "));
    Ok(Completion::InStep)
}

/// The options of `ripple cost`. A fan-out that affected no item is left out.
fn options(rates: &Rates) -> Vec<String> {
    let entities = rates.entities.iter().map(|(entity, rate)| format!("--rate {entity}={}", rounded(*rate)));
    let targets = rates.targets.iter().map(|(derivation, n)| format!("--targets {derivation}={n}"));
    let fan_outs = rates.fan_outs.iter().filter(|(_, (_, n_items))| *n_items > 0.0);
    let fan_outs = fan_outs.map(|(derivation, (rate, n_items))| {
        format!("--fan-out {derivation}={}x{:.0}", rounded(*rate), n_items.ceil())
    });
    entities.chain(targets).chain(fan_outs).collect()
}

/// Rounds to about three significant digits, and never to 0.
fn rounded(rate: f64) -> String {
    let places = if rate >= 100.0 {
        0
    } else if rate >= 1.0 {
        2
    } else {
        6
    };
    format!("{rate:.places$}")
}

/// The names are stable.
fn object(rates: &Rates) -> Value {
    let entities = rates.entities.iter().map(|(entity, rate)| json!({ "entity": entity, "a_second": rate }));
    let targets = rates.targets.iter().map(|(name, n)| json!({ "derivation": name, "targets": n }));
    let fan_outs = rates
        .fan_outs
        .iter()
        .map(|(name, (rate, n_items))| json!({ "derivation": name, "a_second": rate, "items": n_items }));
    json!({
        "seconds": rates.seconds,
        "records": rates.n_records,
        "changes": rates.n_changes,
        "fanned_out": rates.n_fanned_out,
        "entities": entities.collect::<Vec<_>>(),
        "targets": targets.collect::<Vec<_>>(),
        "fan_outs": fan_outs.collect::<Vec<_>>(),
    })
}

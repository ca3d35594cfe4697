//! `ripple rates`: measures what an application writes, for `ripple cost`.

use functions::logging;
use operate::rates::{Rates, rates};
use serde_json::{Value, json};

use super::LOG_FILTER;
use crate::{
    args::RatesArgs,
    exit::{Completion, Usage, print, report},
    opened::open,
    words::{counted, print_json},
};

pub(crate) async fn run(args: &RatesArgs) -> anyhow::Result<Completion> {
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

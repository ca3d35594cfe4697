//! `ripple preflight`: do the application's tables fit the declarations, before the service is attached to them?
//!
//! Reads a part of each table and writes nothing. [`plan`](derive::plan::plan), given an insert of each item, decides
//! what the item is and which derivations cannot interpret it. The checks of the table are those of a function at its
//! start. The report contains keys, but no value of an attribute.

pub(super) mod cost;
mod fitting;
mod links;
mod report;
pub(super) mod sample;
mod surroundings;

use functions::logging;

use self::{
    cost::BackfillCost,
    links::CheckedLink,
    sample::{SampleLimits, SampledTable},
    surroundings::Surroundings,
};
use super::LOG_FILTER;
use crate::{
    args::preflight::Preflight,
    bar::progress,
    exit::{Completion, print},
    json::print_json,
    opened::open_to_attach,
};

/// The observations of the tables.
struct Preflighted {
    surroundings: Surroundings,
    /// What was read of each table.
    sampled: Vec<SampledTable>,
    links: Vec<CheckedLink>,
    backfill: BackfillCost,
}

pub(crate) async fn run(args: &Preflight) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_to_attach(&args.connection).await?;
    let surroundings = Surroundings::look(&opened, &args.connection).await?;
    let limits =
        SampleLimits { n_items_max: args.items, segments: args.segment_of, units_per_second: args.units_per_second };
    let bar = progress(args.json);
    let has_key = |table: &str| surroundings.tables.iter().any(|it| it.table == table && it.has_key);
    let sampled = SampledTable::read_all(&opened, limits, has_key, |n_items| bar.set_position(n_items)).await?;
    bar.finish_and_clear();
    let links = CheckedLink::check_all(&opened, &sampled).await?;
    let backfill = BackfillCost::estimate(&opened, &sampled);
    let seen = Preflighted { surroundings, sampled, links, backfill };
    let to_do = seen.to_do();
    if args.json {
        print_json(seen.json(&to_do));
    } else {
        print(&seen.text(&to_do));
    }
    Ok(if to_do.is_empty() { Completion::InStep } else { Completion::Findings })
}

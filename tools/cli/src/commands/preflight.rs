//! `ripple preflight`: does a table fit the declarations, before the service is attached to it?
//!
//! Reads a part of the table and writes nothing. [`plan`](derive::plan::plan), given an insert of each item, decides
//! what the item is and which derivations cannot interpret it. The checks of the table are those of a function at its
//! start. The report contains keys, but no value of an attribute.

pub(super) mod cost;
pub(super) mod fitting;
mod report;
pub(super) mod sample;
mod surroundings;

use functions::logging;

use self::{
    cost::BackfillCost,
    fitting::Fitting,
    sample::{SampleLimits, TableSample},
    surroundings::Surroundings,
};
use super::LOG_FILTER;
use crate::{
    args::preflight::Preflight,
    bar::progress,
    exit::{Completion, print},
    json::print_json,
    opened::{Opened, open_whatever_it_is},
    opening::of_one_table,
};

/// The observations of a table.
struct Preflighted {
    surroundings: Surroundings,
    sample: TableSample,
    fitting: Fitting,
    backfill: BackfillCost,
}

pub(crate) async fn run(args: &Preflight) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_whatever_it_is(&args.connection).await?;
    of_one_table(&opened.schema, "ripple preflight")?;
    let surroundings = Surroundings::look(&opened, &args.connection).await?;
    let mut fitting = Fitting::default();
    let mut sample = TableSample::default();
    if surroundings.has_key {
        let bounds = SampleLimits {
            n_items_max: args.items,
            segments: args.segment_of,
            units_per_second: args.units_per_second,
        };
        let bar = progress(args.json);
        sample = TableSample::read(&opened, bounds, |items| {
            for item in items {
                fitting.add(&opened.schema, &opened.catalogue, item);
            }
            bar.set_position(fitting.n_items);
        })
        .await?;
        bar.finish_and_clear();
    }
    let seen = seen(&opened, surroundings, sample, fitting);
    let to_do = seen.to_do(&opened.schema.layout);
    if args.json {
        print_json(seen.json(&to_do));
    } else {
        print(&seen.text(&to_do));
    }
    Ok(if to_do.is_empty() { Completion::InStep } else { Completion::Findings })
}

fn seen(opened: &Opened, surroundings: Surroundings, sample: TableSample, fitting: Fitting) -> Preflighted {
    let share = sample.share(surroundings.n_items);
    let backfill = BackfillCost::estimate(opened, &fitting, share, surroundings.bytes);
    Preflighted { surroundings, sample, fitting, backfill }
}

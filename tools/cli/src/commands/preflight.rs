//! `ripple preflight`: does a table fit what is declared, before the service is attached to it?
//!
//! Reads a part of the table and writes nothing. What an item is, and who cannot interpret it, is what
//! [`plan`](derive::plan::plan) says of its insert; what the table lacks is what a function would say at its start. No
//! value of an attribute is shown, only keys.

pub(super) mod cost;
pub(super) mod fitting;
pub(super) mod sample;
mod surroundings;
mod told;

use functions::logging;

use self::{
    cost::Backfill,
    fitting::Fitting,
    sample::{Bounds, Sample},
    surroundings::Surroundings,
};
use super::LOG_FILTER;
use crate::{
    args::preflight::Preflight,
    bar::progress,
    exit::{Ended, print},
    opened::{Opened, open},
};

/// What was seen of a table.
struct Seen {
    surroundings: Surroundings,
    sample: Sample,
    fitting: Fitting,
    backfill: Backfill,
}

/// Looks at the table, reads a part of it, and says what fits.
pub(crate) async fn run(args: &Preflight) -> anyhow::Result<Ended> {
    logging::readable(LOG_FILTER);
    let opened = open(&args.connection).await?;
    let surroundings = Surroundings::look(&opened).await?;
    let mut fitting = Fitting::default();
    let mut sample = Sample::default();
    if surroundings.has_key {
        let bounds =
            Bounds { n_items_max: args.items, segments: args.segment_of, units_per_second: args.units_per_second };
        let bar = progress(args.json);
        sample = Sample::read(&opened, bounds, |items| {
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
    print(&if args.json { seen.json(&to_do).to_string() } else { seen.text(&to_do) });
    Ok(if to_do.is_empty() { Ended::InStep } else { Ended::Findings })
}

fn seen(opened: &Opened, surroundings: Surroundings, sample: Sample, fitting: Fitting) -> Seen {
    let share = sample.share(surroundings.n_items);
    let backfill = Backfill::estimate(opened, &fitting, share, surroundings.bytes);
    Seen { surroundings, sample, fitting, backfill }
}

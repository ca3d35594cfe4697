//! Reads some items of each segment of a table, within a limit of read units a second.

use std::{collections::HashMap, pin::pin, time::Duration};

use anyhow::Context as _;
use aws_sdk_dynamodb::{Client, error::ProvideErrorMetadata as _, types::AttributeValue};
use draft::shape::{Extent, Sample, TableShape};
use futures::future::join_all;
use tokio::time::{Instant, sleep_until};

use crate::{
    args::init::Init,
    bar::progress,
    commands::{
        dev::stop_signal,
        preflight::sample::{PAGE_ITEMS, Page, page},
    },
};

/// Segments that are read in turn. One partition with very many items fills at most one of them.
const SEGMENTS: u32 = 8;

/// Where the next page of a segment starts; `None` before the first.
type Cursor = Option<HashMap<String, AttributeValue>>;

/// Reads the sample. It ends early on Ctrl-C, and if the caller may not scan.
pub(super) async fn read(client: &Client, shape: &TableShape, args: &Init) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    let mut open: Vec<(u32, Cursor)> = (0..SEGMENTS).map(|segment| (segment, None)).collect();
    let (mut n_read, mut units, started) = (0_u32, 0.0, Instant::now());
    let bar = progress(false);
    bar.set_length(shape.n_items.filter(|n| *n > 0).unwrap_or(u64::MAX).min(u64::from(args.items)));
    let mut stopped = pin!(stop_signal()?);
    while !open.is_empty() && n_read < args.items {
        let n_open = u32::try_from(open.len())?;
        let limit = (args.items - n_read).div_ceil(n_open).min(PAGE_ITEMS);
        let calls =
            open.iter().map(|(segment, after)| page(client, &shape.name, (*segment, SEGMENTS), limit, after.clone()));
        let answers = tokio::select! {
            answers = join_all(calls) => answers,
            () = &mut stopped => return Ok(ended(sample, "you stopped it")),
        };
        let mut next = Vec::new();
        for ((segment, _), answer) in open.into_iter().zip(answers) {
            let Page { items, units: consumed, after } = match answer {
                Ok(page) => page,
                Err(error) if error.code() == Some("AccessDeniedException") => {
                    return Ok(ended(sample, "AWS does not allow these credentials dynamodb:Scan on the table"));
                }
                Err(error) => return Err(error).with_context(|| format!("cannot read the table {}", shape.name)),
            };
            n_read = n_read.saturating_add(u32::try_from(items.len())?);
            units += consumed;
            for item in items {
                sample.add(shape, item);
            }
            next.extend(after.map(|after| (segment, Some(after))));
        }
        open = next;
        bar.set_position(u64::from(n_read));
        bar.set_message(format!("read {n_read} items"));
        tokio::select! {
            () = sleep_until(started + Duration::from_secs_f64(units / f64::from(args.units_per_second))) => {}
            () = &mut stopped => return Ok(ended(sample, "you stopped it")),
        }
    }
    bar.finish_and_clear();
    sample.extent = if open.is_empty() { Extent::Whole } else { Extent::Part };
    for (_, after) in open {
        // The rest of this partition is not in the sample.
        if let Some(AttributeValue::S(text) | AttributeValue::N(text)) =
            after.and_then(|mut it| it.remove(&shape.pk.name))
        {
            sample.cut.insert(text);
        }
    }
    Ok(sample)
}

fn ended(sample: Sample, why: &str) -> Sample {
    Sample { extent: Extent::Ended(why.to_owned()), ..sample }
}

//! `ripple wait`: returns when everything that was written before the call is handled, by a `ripple dev` that runs.

use std::time::Duration;

use anyhow::bail;
use engine::clock::{Clock as _, SystemClock};
use functions::logging;
use serde_json::json;
use tokio::time::Instant;

use super::LOG_FILTER;
use crate::{
    args::check::Wait,
    caught_up::{ProgressReport, wait},
    exit::{Completion, Usage, print},
    json::print_json,
    opened::{agreed, open_with_ledger},
    time,
};

pub(crate) async fn run(args: &Wait) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let (called_ms, deadline) = (SystemClock.now_ms(), Instant::now() + Duration::from_secs(args.timeout));
    if args.connection.aws {
        return Err(Usage("wait goes with `ripple dev`: on AWS, watch the iterator age instead".to_owned()).into());
    }
    let opened = agreed(open_with_ledger(&args.connection).await?, &args.connection).await?;
    let (report, is_handled) = wait(&opened.store, called_ms, deadline).await?;
    let until = report.and_then(|report| report.handled_until_ms).map(time::text);
    if !is_handled {
        bail!("not everything was handled within {} s: {}", args.timeout, why(report, called_ms, &opened.config.table));
    }
    let until = until.unwrap_or_default();
    if args.json {
        print_json(json!({ "handled_until": until }));
    } else {
        print(&format!("everything written before {until} is handled"));
    }
    Ok(Completion::InStep)
}

/// Why the wait was in vain.
fn why(report: Option<ProgressReport>, called_ms: u64, table: &str) -> String {
    match report {
        None => format!("no `ripple dev` has run on the table {table} with this ledger: start one"),
        Some(report) if report.reported_at_ms <= called_ms => {
            let since = time::text(report.reported_at_ms);
            format!("no `ripple dev` runs on the table {table}: the last one reported at {since}")
        }
        Some(ProgressReport { handled_until_ms: Some(until), .. }) => {
            format!("`ripple dev` runs, and has handled what was written before {}", time::text(until))
        }
        Some(_) => "`ripple dev` runs, and has not yet handled what it found when it started".to_owned(),
    }
}

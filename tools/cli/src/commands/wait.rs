//! `ripple wait`: returns when a running `ripple dev` has handled everything that was written before the call.

use std::time::Duration;

use anyhow::anyhow;
use engine::{
    clock::{Clock as _, SystemClock},
    park::parked,
};
use functions::logging;
use operate::words::counted;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::LOG_FILTER;
use crate::{
    args::check::Wait,
    caught_up::{ProgressReport, WaitOutcome, wait},
    exit::{Completion, Usage, print},
    opened::{agreed, open_with_ledger},
    words::{self, print_json},
};

pub(crate) async fn run(args: &Wait) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let (called_ms, deadline) = (SystemClock.now_ms(), Instant::now() + Duration::from_secs(args.timeout));
    if args.connection.aws {
        return Err(Usage(
            "wait knows only the functions of `ripple dev`: on AWS, watch the iterator age instead".to_owned(),
        )
        .into());
    }
    let in_vain = |why: &str| anyhow!("not everything was handled within {} s: {why}", args.timeout);
    let silent = || in_vain(&format!("the database at {} does not respond", args.connection.endpoint));
    let opening = async { agreed(open_with_ledger(&args.connection).await?, &args.connection).await };
    let opened = timeout_at(deadline, opening).await.map_err(|_| silent())??;
    let table = &opened.config.table;
    let until = match wait(&opened.store, table, called_ms, deadline).await? {
        WaitOutcome::Handled { until_ms } => words::time(until_ms),
        WaitOutcome::InVain { last } => return Err(in_vain(&why(last, called_ms, table))),
        WaitOutcome::Silent => return Err(silent()),
    };
    let n_parked = timeout_at(deadline, parked(&opened.store)).await.map_err(|_| silent())??.len();
    if args.json {
        print_json(json!({ "handled_until": until, "parked": n_parked }));
        return Ok(Completion::InStep);
    }
    print(&format!("everything written before {until} is handled"));
    if n_parked > 0 {
        let (changes, are) = (counted(n_parked, "change"), if n_parked == 1 { "it is" } else { "they are" });
        print(&format!("what follows from {changes} is missing, since {are} parked: see `ripple parked`"));
    }
    Ok(Completion::InStep)
}

/// Why the wait timed out.
fn why(report: Option<ProgressReport>, called_ms: u64, table: &str) -> String {
    match report {
        None => format!("no `ripple dev` has run on the table {table} with this ledger: start one"),
        Some(report) if report.reported_at_ms <= called_ms => {
            let since = words::time(report.reported_at_ms);
            format!("no `ripple dev` runs on the table {table}: the last one reported at {since}")
        }
        Some(ProgressReport { handled_until_ms: Some(until), .. }) => {
            format!("`ripple dev` runs, and has handled what was written before {}", words::time(until))
        }
        Some(_) => "`ripple dev` runs, and has not yet handled what it found when it started".to_owned(),
    }
}

//! `ripple wait`: returns when a running `ripple dev` has handled everything that was written before the call.
//!
//! `ripple dev` reports its progress: the time before which all writes are handled. The report is one item of the
//! ledger's table. The application never sees it, and any process that can reach the tables can read it. Its times come
//! from the clock of the machine that runs `dev`, so `wait` must run on the same machine.
//!
//! The report is correct whichever service wrote it. If two services run on one table, each handles all records and
//! reports only its own progress. If a service dies, its last report grows old, and it never reports a later time.
//!
//! *Example*: an application writes at 10:00:00.100 and calls `ripple wait` at 10:00:00.105. At 10:00:00.400 `dev`
//! reports that everything written before 10:00:00.390 is handled. That is after the call, so `wait` returns.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use derive::write::{Action, Table, Write};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
    jobs::sweep::jobs,
    ledger::ledger_item,
    park::parked,
};
use functions::logging;
use keys::{item::Item, key::Key, layout::Layout};
use operate::words::{self, counted};
use serde_dynamo::AttributeValue;
use serde_json::json;
use store::{Store as _, StoreError, dynamo::DynamoStore};
use tokio::time::{Instant, timeout_at};

use crate::{
    args::Wait,
    commands::LOG_FILTER,
    exit::{Completion, Usage, print, print_json},
    opened::{agreed, open_with_ledger},
    service::{Watch, Witness},
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
    let jobs = jobs(opened.store.as_ref(), &opened.schema.layout);
    let n_jobs = timeout_at(deadline, jobs).await.map_err(|_| silent())??.len();
    if args.json {
        print_json(json!({ "handled_until": until, "parked": n_parked, "jobs": n_jobs }));
        return Ok(Completion::InStep);
    }
    print(&format!("everything written before {until} is handled"));
    if n_parked > 0 {
        let (changes, are) = (counted(n_parked, "change"), if n_parked == 1 { "it is" } else { "they are" });
        print(&format!("what follows from {changes} is missing, since {are} parked: see `ripple parked`"));
    }
    if n_jobs > 0 {
        let (jobs, are) = (counted(n_jobs, "job"), if n_jobs == 1 { "is" } else { "are" });
        print(&format!("{jobs} {are} paused or waiting: see `ripple jobs`"));
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

// ---- The report ----

/// Attributes of the report, both in milliseconds since the epoch. Stored, so they are stable.
const HANDLED_UNTIL: &str = "HandledUntil";
const REPORTED_AT: &str = "ReportedAt";

/// Time between two reports, unless a service becomes quiet earlier.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Time between two reads of the report by `ripple wait`.
const READ_EVERY: Duration = Duration::from_millis(50);

/// A report, in milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProgressReport {
    /// Everything that was written before this time is handled. Unknown until a service has handled the records that it
    /// found at its start.
    handled_until_ms: Option<u64>,
    reported_at_ms: u64,
}

impl ProgressReport {
    /// The last report of any service on this table.
    async fn read(store: &DynamoStore, table: &str) -> Result<Option<Self>, StoreError> {
        let items = store.get(Table::Ledger, &[key(table)]).await?;
        Ok(items.first().and_then(|(_, item)| Self::of(item)))
    }

    fn of(item: &Item) -> Option<Self> {
        let ms = |name: &str| match item.get(name) {
            Some(AttributeValue::N(number)) => number.parse().ok(),
            _ => None,
        };
        Some(Self { handled_until_ms: ms(HANDLED_UNTIL), reported_at_ms: ms(REPORTED_AT)? })
    }

    fn item(self, layout: &Layout, table: &str) -> Item {
        let number = |ms: u64| AttributeValue::N(ms.to_string());
        let handled = self.handled_until_ms.map(|ms| (HANDLED_UNTIL, number(ms)));
        ledger_item(layout, &key(table), handled.into_iter().chain([(REPORTED_AT, number(self.reported_at_ms))]))
    }

    /// The time before which everything is handled, if it is later than this millisecond.
    fn handled_after(self, moment_ms: u64) -> Option<u64> {
        self.handled_until_ms.filter(|until_ms| *until_ms > moment_ms)
    }
}

/// How a wait ended.
enum WaitOutcome {
    /// Everything that was written before `until_ms` is handled, in milliseconds since the epoch.
    Handled { until_ms: u64 },
    /// The deadline passed. `last` is the last report.
    InVain { last: Option<ProgressReport> },
    /// The deadline passed, and the database never responded.
    Silent,
}

/// Reads the reports on a table until everything that was written before a moment is handled, or until the deadline.
async fn wait(store: &DynamoStore, table: &str, moment_ms: u64, deadline: Instant) -> Result<WaitOutcome, StoreError> {
    let mut before = None;
    loop {
        let Ok(last) = timeout_at(deadline, ProgressReport::read(store, table)).await else {
            return Ok(before.map_or(WaitOutcome::Silent, |last| WaitOutcome::InVain { last }));
        };
        let last = last?;
        before = Some(last);
        if let Some(until_ms) = last.and_then(|report| report.handled_after(moment_ms)) {
            return Ok(WaitOutcome::Handled { until_ms });
        }
        if Instant::now() + READ_EVERY >= deadline {
            return Ok(WaitOutcome::InVain { last });
        }
        tokio::time::sleep(READ_EVERY).await;
    }
}

/// Writes reports while a service runs, and reports to the witness whether the database responds. Returns only if the
/// database has a permanent storage fault.
pub(crate) async fn report(
    store: Arc<DynamoStore>,
    table: String,
    layout: Layout,
    watch: Arc<Watch>,
    witness: Arc<dyn Witness>,
) -> StorageFault {
    loop {
        let now_ms = SystemClock.now_ms();
        let until = watch.handled_until().map(|moment| moment.elapsed().as_millis());
        // Both times were rounded down, so one more millisecond is subtracted. A time that is too early is never wrong.
        let until = until.map(|ms| now_ms.saturating_sub(u64::try_from(ms).unwrap_or(u64::MAX)).saturating_sub(1));
        let item = ProgressReport { handled_until_ms: until, reported_at_ms: now_ms }.item(&layout, &table);
        let write = Write { table: Table::Ledger, key: key(&table), action: Action::Put(item), guard: None };
        match store.write(&write).await {
            Ok(_) => witness.responds(true),
            Err(error) if error.is_unreachable() => witness.responds(false),
            Err(error) => {
                if let Some(fault) = StorageFault::of(&error) {
                    return fault;
                }
                // The next report replaces this one.
                tracing::debug!(%error, "the progress is not reported");
            }
        }
        let _early = tokio::time::timeout(REPORT_EVERY, watch.next_quiet()).await.is_ok();
    }
}

/// Error texts of the embedded database, or of another one on SQLite, for a full, broken or read-only disk.
const STORAGE_FAULTS: [&str; 3] = ["database or disk is full", "disk I/O error", "readonly database"];

/// A database that cannot be written any more.
#[derive(Debug, thiserror::Error)]
#[error("the database cannot be written any more ({0}): is its disk full or read-only? Make room, then start again")]
pub(crate) struct StorageFault(&'static str);

impl StorageFault {
    fn of(error: &StoreError) -> Option<Self> {
        let said = describe(error);
        STORAGE_FAULTS.into_iter().find(|fault| said.contains(fault)).map(Self)
    }
}

/// The key of the report on a table. Several tables may share a ledger. Stored, so it is stable.
fn key(table: &str) -> Key {
    Key::new("DEV", format!("PROGRESS#{table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back_and_says_nothing_of_the_millisecond_in_which_it_ends() {
        let layout = functions::declared::declared(functions::declared::Choice::default()).unwrap().0.layout.clone();
        for handled_until_ms in [None, Some(1_705_314_600_417)] {
            let report = ProgressReport { handled_until_ms, reported_at_ms: 1_705_314_600_500 };
            assert_eq!(ProgressReport::of(&report.item(&layout, "app")), Some(report));
            assert_eq!(report.handled_after(1_705_314_600_417), None);
            assert_eq!(report.handled_after(1_705_314_600_416), handled_until_ms);
        }
    }
}

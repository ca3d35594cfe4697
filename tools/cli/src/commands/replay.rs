//! `ripple replay`: hands captured records to the service again.
//!
//! All files are read before anything is applied. The records are applied in slices, each with its own deadline.
//! Nothing is tried after a slice that is not done, because the database does not respond then.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use aws_sdk_dynamodb::types::TableDescription;
use engine::{
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    ledger::{LedgerKind, settings::recorded},
    record::{event::Lane, table_of},
};
use functions::{declared::declared, logging};
use keys::layout::Layout;
use serde_json::{json, value::RawValue};
use store::dynamo::DynamoStore;

use super::QUIET_LOG_FILTER;
use crate::{
    args::Replay,
    capture::Capture,
    exit::{Completion, Usage, file_text, print},
    json::print_json,
    opened::{Opened, agreed, open_to_write},
};

mod report;

use report::FileReport;

const SLICE_RECORDS_MAX: usize = 500;

/// Time limit for a slice, in milliseconds: the rename of a famous user looks at thousands of items.
const SLICE_MS_MAX: u64 = 300_000;

pub(crate) async fn run(args: &Replay) -> anyhow::Result<Completion> {
    logging::readable(QUIET_LOG_FILTER);
    let given = Lane { stream_arn: args.stream.clone(), shard: args.shard.clone() };
    let layout = declared(args.writing.connection.choice())?.0.layout.clone();
    let captures = args.files.iter().map(|file| read(file, &given, &layout)).collect::<anyhow::Result<Vec<_>>>()?;
    let opened = agreed(open_to_write(&args.writing).await?, &args.writing.connection).await?;
    let ledger = recorded(&opened.store)
        .await?
        .context("no service has used this ledger's table yet, so its kind is unknown and nothing can be replayed")?;
    let captures: Vec<(&PathBuf, Capture)> = args.files.iter().zip(captures).collect();
    for (file, capture) in &captures {
        fits(file, capture, ledger, &opened, args)?;
    }
    let engine = opened.engine().with_ledger(ledger);
    let mut files: Vec<FileReport> = Vec::new();
    for (file, capture) in &captures {
        let is_away = files.iter().any(FileReport::is_unfinished);
        let mut report = replay(&engine, file, capture, is_away).await?;
        let targets = report.refused.iter_mut().flat_map(|refused| &mut refused.targets);
        targets.for_each(|target| opened.catalogue.relabel(&mut target.derivation));
        if !args.json {
            print(&report.as_text());
        }
        files.push(report);
    }
    if args.json {
        let files: Vec<_> = files.iter().map(FileReport::as_json).collect();
        print_json(json!({ "ledger": ledger.to_string(), "files": files }));
    }
    Ok(if files.iter().any(FileReport::is_unfinished) {
        Completion::Unfinished
    } else if files.iter().any(FileReport::has_findings) {
        Completion::Findings
    } else {
        Completion::InStep
    })
}

fn read(file: &Path, given: &Lane, layout: &Layout) -> anyhow::Result<Capture> {
    let name = file.display();
    let text = file_text(file)?;
    let capture = Capture::read(&text, given, layout);
    Ok(capture.map_err(|error| Usage(format!("{name}: {}", describe(&error))))?)
}

/// Are the records of these tables, and does the ledger get the stream and shard that it requires?
fn fits(file: &Path, capture: &Capture, ledger: LedgerKind, opened: &Opened, args: &Replay) -> anyhow::Result<()> {
    if capture.records.is_empty() {
        return Ok(());
    }
    let lane = &capture.origin.lane;
    let file = file.display();
    let tables = || [&opened.table].into_iter().chain(&opened.others);
    // An emulator says another region and account than a record that was captured elsewhere.
    let is_aws = args.writing.connection.aws;
    let is_in = |stream: &str, table: &TableDescription| {
        if is_aws {
            return table.table_arn.as_deref().is_some_and(|arn| is_of(stream, arn));
        }
        table_of(stream).is_some_and(|name| table.table_name.as_deref() == Some(name))
    };
    let is_ours = |stream: &str| tables().any(|table| is_in(stream, table));
    if let Some(stream) = capture.streams.iter().find(|stream| !is_ours(stream)) {
        let named = |table: &TableDescription| {
            if is_aws { table.table_arn.clone() } else { table.table_name.clone() }.unwrap_or_default()
        };
        let ours = tables().map(named).collect::<Vec<_>>().join(", ");
        return Err(Usage(format!(
            "{file} has records of {stream}, which is not a stream of {ours}: replay it into the table of that stream"
        ))
        .into());
    }
    let missing = match lane {
        Lane { stream_arn: None, .. } => "the stream of its records: give it with --stream",
        Lane { shard: None, .. } if ledger == LedgerKind::Watermarks => {
            "the shard of its records: give it with --shard"
        }
        _ => return Ok(()),
    };
    Err(Usage(format!("a ledger of {ledger} needs more than {file} contains: {missing}")).into())
}

fn is_of(stream_arn: &str, table_arn: &str) -> bool {
    stream_arn.strip_prefix(table_arn).is_some_and(|rest| rest.starts_with("/stream/"))
}

async fn replay(
    engine: &Engine<Arc<DynamoStore>>,
    file: &Path,
    capture: &Capture,
    is_away: bool,
) -> anyhow::Result<FileReport> {
    let mut report = FileReport::new(file);
    for slice in capture.records.chunks(SLICE_RECORDS_MAX) {
        if is_away || report.is_unfinished() {
            report.not_tried(slice.len());
            continue;
        }
        let deadline_ms = SystemClock.now_ms().saturating_add(SLICE_MS_MAX);
        engine.publish(deadline_ms).await?;
        let handled = engine.replay(&event(slice), &capture.origin, deadline_ms).await;
        let handled = handled.with_context(|| file.display().to_string())?;
        report.add(slice, &handled.account);
    }
    Ok(report)
}

fn event(slice: &[Box<RawValue>]) -> String {
    let records: Vec<&str> = slice.iter().map(|record| record.get()).collect();
    format!("{{\"Records\":[{}]}}", records.join(","))
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn a_stream_is_of_its_table_alone() {
        let table = "arn:aws:dynamodb:eu-west-1:123456789012:table/app";
        assert!(is_of(&format!("{table}/stream/2024-01-15T09:00:00.000"), table));
        assert!(!is_of(&format!("{table}-test/stream/2024-01-15T09:00:00.000"), table));
        assert!(!is_of("arn:aws:dynamodb:eu-west-1:999999999999:table/app/stream/2024-01-15T09:00:00.000", table));
    }
}

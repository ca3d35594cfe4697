//! Captured records: `ripple replay` applies them again, and `ripple explain` prints the effects that they would have.
//!
//! `replay` reads all files before it applies anything. It applies the records in slices, each with its own deadline.
//! After an unfinished slice no other slice is tried, because the database does not respond.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use aws_sdk_dynamodb::types::TableDescription;
use derive::{
    catalogue::Catalogue,
    effect::Effect,
    family::Family,
    plan::{Planned, RecordKind, plan},
    write::Table,
};
use engine::{
    account::{Account, Refused},
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    ledger::{LedgerKind, recorded},
    record::{Lane, decode, head, table_of},
};
use functions::{
    declared::{Choice, declared},
    logging,
};
use keys::{key::Key, layout::Layout};
use operate::{
    objects::{effect_object, key},
    words::counted,
};
use serde_json::{Value, json, value::RawValue};
use store::dynamo::DynamoStore;

use crate::{
    args::{offline::Explain, tables::Replay},
    capture::Capture,
    commands::QUIET_LOG_FILTER,
    exit::{Completion, Usage, file_text, print, print_json},
    opened::{Opened, agreed, open_to_write},
};

const SLICE_RECORDS_MAX: usize = 500;

/// Time limit for a slice, in milliseconds: the rename of a famous user refreshes thousands of items.
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

/// Fails if the records are not from these tables, or if the stream or shard is missing that the ledger requires.
fn fits(file: &Path, capture: &Capture, ledger: LedgerKind, opened: &Opened, args: &Replay) -> anyhow::Result<()> {
    if capture.records.is_empty() {
        return Ok(());
    }
    let lane = &capture.origin.lane;
    let file = file.display();
    let tables = || [&opened.table].into_iter().chain(&opened.others);
    // An emulator has another region and account than a record that was captured elsewhere, so only the names are
    // compared.
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
        report.add(slice, &handled.account, engine.catalogue());
    }
    Ok(report)
}

fn event(slice: &[Box<RawValue>]) -> String {
    let records: Vec<&str> = slice.iter().map(|record| record.get()).collect();
    format!("{{\"Records\":[{}]}}", records.join(","))
}

// ---- The result of replaying one file ----

#[derive(Debug, Default)]
struct FileReport {
    file: String,
    n_records: usize,
    /// Changes that count something and were applied.
    n_counted: usize,
    /// Changes that count something and were already counted.
    n_in_already: usize,
    /// Changes older than the effective time of a count: the backfill counted them.
    n_before_birth: usize,
    /// Records of undeclared types, or without a difference that a derivation reads.
    n_without_effect: usize,
    /// Refreshed items that were correct.
    n_in_step: usize,
    /// Writes to the application's table.
    n_writes: usize,
    /// Of these, writes of level-triggered derivations.
    n_refreshed: usize,
    /// Of these, jobs that were created.
    n_jobs: usize,
    refused: Vec<Refused>,
    /// Ids and causes, each once.
    parked: Vec<(String, String)>,
    /// Ids and reasons.
    undone: Vec<(String, String)>,
    n_not_tried: usize,
}

impl FileReport {
    /// A report without results yet.
    fn new(file: &Path) -> Self {
        Self { file: file.display().to_string(), ..Self::default() }
    }

    /// Adds records that were not tried.
    fn not_tried(&mut self, n_records: usize) {
        self.n_records += n_records;
        self.n_not_tried += n_records;
    }

    /// Adds the result of a slice.
    fn add(&mut self, slice: &[Box<RawValue>], account: &Account, catalogue: &Catalogue) {
        self.n_records += account.n_records;
        self.n_counted += account.received().len();
        self.n_in_already += account.n_duplicates;
        self.n_before_birth += account.n_before_birth;
        self.n_without_effect += account.n_echoes + account.n_ignored;
        self.n_in_step += account.n_in_step;
        let refreshes = |name: &String| catalogue.position(name).is_some_and(|at| catalogue.refresh(at).is_some());
        for commit in account.commits.iter().filter(|commit| commit.table == Table::Main) {
            self.n_writes += 1;
            self.n_jobs += usize::from(commit.action.is_none() && !commit.derivations.is_empty());
            self.n_refreshed += usize::from(commit.action.is_some() && commit.derivations.iter().any(refreshes));
        }
        self.refused.extend(account.refused.iter().cloned());
        for parked in &account.parked {
            let parked = (parked.id.clone(), parked.cause.clone());
            if !self.parked.contains(&parked) {
                self.parked.push(parked);
            }
        }
        for (position, why) in &account.undone {
            let id = slice.get(position.0).and_then(|record| head(record.get()).id);
            self.undone.push((id.unwrap_or_else(|| "without an eventID".to_owned()), why.clone()));
        }
    }

    /// True if records are not done.
    fn is_unfinished(&self) -> bool {
        !self.undone.is_empty() || self.n_not_tried > 0
    }

    /// True if a change was refused or parked.
    fn has_findings(&self) -> bool {
        !self.refused.is_empty() || !self.parked.is_empty()
    }

    fn as_text(&self) -> String {
        let mut line = format!(
            "{}  {} records  {} counted  {} already counted  {} refused  {} refreshed  {} started",
            self.file,
            self.n_records,
            self.n_counted,
            self.n_in_already,
            self.refused.len(),
            counted(self.n_refreshed, "item"),
            counted(self.n_jobs, "job"),
        );
        for (n, note) in
            [(self.parked.len(), "parked"), (self.undone.len(), "not done"), (self.n_not_tried, "not tried")]
        {
            if n > 0 {
                line.extend(["  ".to_owned(), n.to_string(), format!(" {note}")]);
            }
        }
        let mut lines = vec![line];
        lines.extend(self.reasons().map(|(n, why)| format!("  {n:>6}  {why}")));
        for Refused { id, why, targets, .. } in &self.refused {
            lines.push(format!("refused   {id}  {why}"));
            lines.extend(targets.iter().map(|target| format!("  target  {}  {}", target.derivation, target.item)));
        }
        lines.extend(self.parked.iter().map(|(id, cause)| format!("parked    {id}  {cause}")));
        lines.extend(self.undone.iter().map(|(id, why)| format!("not done  {id}  {why}")));
        lines.join("\n")
    }

    /// The reasons why records changed nothing, each with their number.
    fn reasons(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let reasons = [
            (self.n_in_already, "counted already: the ledger has them"),
            (
                self.n_before_birth,
                "older than the last verification or backfill that found every count right, which counted them",
            ),
            (self.refused.len(), "refused, for the reasons below"),
            (self.n_without_effect, "of no declared type, or without a difference that anything is derived from"),
            (self.n_in_step, "items checked were right already"),
        ];
        reasons.into_iter().filter(|(n, _)| *n > 0)
    }

    /// The names are stable.
    fn as_json(&self) -> Value {
        let refused = |refused: &Refused| {
            let targets = refused
                .targets
                .iter()
                .map(|target| json!({ "derivation": target.derivation, "pk": target.item.pk, "sk": target.item.sk }));
            json!({ "id": refused.id, "why": refused.why, "targets": targets.collect::<Vec<_>>() })
        };
        json!({
            "file": self.file,
            "records": self.n_records,
            "applied": self.n_counted,
            "in_already": self.n_in_already,
            "before_birth": self.n_before_birth,
            "without_effect": self.n_without_effect,
            "in_step": self.n_in_step,
            "writes": self.n_writes,
            "refused": self.refused.iter().map(refused).collect::<Vec<_>>(),
            "parked": self.parked.iter().map(|(id, cause)| json!({ "id": id, "cause": cause })).collect::<Vec<_>>(),
            "undone": self.undone.iter().map(|(id, why)| json!({ "id": id, "why": why })).collect::<Vec<_>>(),
            "not_tried": self.n_not_tried,
        })
    }
}

// ---- `ripple explain` ----

pub(crate) fn explain(args: &Explain) -> anyhow::Result<Completion> {
    let file = args.file.display();
    let event = file_text(&args.file)?;
    let capture = Capture::raw(&event, &Lane::default());
    let raw = capture.map_err(|error| Usage(format!("{file}: {}", describe(&error))))?.records;
    let (schema, catalogue) = declared(Choice { manifest: args.manifest.file_or_said(), ..Choice::default() })?;
    let mut explained = Vec::new();
    for record in raw {
        let head = head(record.get());
        let id = head.id.unwrap_or_else(|| "without an eventID".to_owned());
        let families = [Family::Additive, Family::LevelTriggered];
        explained.push(match decode(&schema.layout, record.get()) {
            Err(error) => {
                Explained { id, item: None, what: "parked", why: Some(error.to_string()), effects: Vec::new() }
            }
            Ok(change) => {
                let Planned { record, misfit, effects, .. } = plan(&schema, &catalogue, &families, &change);
                let (what, why) = match misfit {
                    Some(misfit) => ("unreadable", Some(misfit.to_string())),
                    None => said(record),
                };
                let effects =
                    effects.into_iter().map(|(at, effect)| (catalogue.label(at).to_owned(), effect)).collect();
                Explained { id, item: Some(change.key), what, why, effects }
            }
        });
    }
    if args.json {
        print_json(json!({ "records": explained.iter().map(Explained::as_object).collect::<Vec<_>>() }));
    } else if explained.is_empty() {
        print("the event has no records");
    } else {
        print(&explained.iter().map(Explained::as_text).collect::<Vec<_>>().join("\n"));
    }
    Ok(Completion::InStep)
}

/// The effects that a record would have.
struct Explained {
    id: String,
    /// Key of the item; a record that does not decode has none.
    item: Option<Key>,
    /// The outcome of the record, in one word. The words are stable.
    what: &'static str,
    why: Option<String>,
    /// Effects, each with the name of its derivation.
    effects: Vec<(String, Effect)>,
}

fn said(record: RecordKind) -> (&'static str, Option<String>) {
    match record {
        RecordKind::Change => ("change", None),
        RecordKind::Echo => ("echo", None),
        RecordKind::Untyped => ("ignored", Some("the item has no entity type".to_owned())),
        RecordKind::Unknown => ("ignored", Some("the item's entity type is not declared".to_owned())),
    }
}

impl Explained {
    /// The names are stable.
    fn as_object(&self) -> Value {
        json!({
            "event": self.id,
            "item": self.item.as_ref().map(key),
            "record": self.what,
            "why": self.why,
            "effects": self.effects.iter().map(effect_object).collect::<Vec<_>>(),
        })
    }

    fn as_text(&self) -> String {
        let Self { id, item, what, why, effects } = self;
        let item = item.as_ref().map(Key::to_string).unwrap_or_default();
        // The reason for a parked record is long, so it has a line of its own.
        let (why, below) = match why {
            Some(why) if *what == "parked" => (String::new(), format!("\n  {why}")),
            Some(why) => (format!(": {why}"), String::new()),
            None => Default::default(),
        };
        let head = format!("{id}  {what}{why}  {item}");
        let effects = effects.iter().map(|(name, effect)| format!("\n  {name:<24} {effect}"));
        format!("{}{below}{}", head.trim_end(), effects.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_of_its_table_alone() {
        let table = "arn:aws:dynamodb:eu-west-1:123456789012:table/app";
        assert!(is_of(&format!("{table}/stream/2024-01-15T09:00:00.000"), table));
        assert!(!is_of(&format!("{table}-test/stream/2024-01-15T09:00:00.000"), table));
        assert!(!is_of("arn:aws:dynamodb:eu-west-1:999999999999:table/app/stream/2024-01-15T09:00:00.000", table));
    }
}

//! The result of replaying one file.

use std::path::Path;

use derive::write::Table;
use engine::{
    account::{Account, Refused},
    record::head,
};
use serde_json::{Value, json, value::RawValue};

#[derive(Debug, Default)]
pub(super) struct FileReport {
    file: String,
    n_records: usize,
    /// Changes that count something and were applied.
    n_applied: usize,
    /// Changes that count something and were counted before.
    n_in_already: usize,
    /// Changes from before the time from which a count counts change by change.
    n_before_birth: usize,
    /// Records that changed nothing that is derived from.
    n_without_effect: usize,
    /// Items that were looked at and held what they should.
    n_in_step: usize,
    /// Writes to the application's table.
    n_writes: usize,
    pub(super) refused: Vec<Refused>,
    /// Ids and causes, each once.
    parked: Vec<(String, String)>,
    /// Ids and reasons.
    undone: Vec<(String, String)>,
    n_not_tried: usize,
}

impl FileReport {
    /// A report without results yet.
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.display().to_string(), ..Self::default() }
    }

    /// Adds records that were not tried.
    pub(super) fn not_tried(&mut self, n_records: usize) {
        self.n_records += n_records;
        self.n_not_tried += n_records;
    }

    /// Adds the result of a slice.
    pub(super) fn add(&mut self, slice: &[Box<RawValue>], account: &Account) {
        self.n_records += account.n_records;
        self.n_applied += account.received().len();
        self.n_in_already += account.n_duplicates;
        self.n_before_birth += account.n_before_birth;
        self.n_without_effect += account.n_echoes + account.n_ignored;
        self.n_in_step += account.n_in_step;
        self.n_writes += account.commits.iter().filter(|commit| commit.table == Table::Main).count();
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

    /// Are there records that are not done?
    pub(super) fn is_unfinished(&self) -> bool {
        !self.undone.is_empty() || self.n_not_tried > 0
    }

    /// Was a change refused or parked?
    pub(super) fn has_findings(&self) -> bool {
        !self.refused.is_empty() || !self.parked.is_empty()
    }

    pub(super) fn as_text(&self) -> String {
        let mut line = format!(
            "{}  {} records  {} applied  {} in already  {} refused  {} writes",
            self.file,
            self.n_records,
            self.n_applied,
            self.n_in_already,
            self.refused.len(),
            self.n_writes,
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

    /// Why records changed nothing: how many, and the reason.
    fn reasons(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let reasons = [
            (self.n_in_already, "counted already: the ledger has them"),
            (
                self.n_before_birth,
                "older than the last verification or backfill that found every count right, which counted them",
            ),
            (self.refused.len(), "refused, for the reasons below"),
            (self.n_without_effect, "of no declared type, or without a difference that anything is derived from"),
            (self.n_in_step, "items looked at hold what they should"),
        ];
        reasons.into_iter().filter(|(n, _)| *n > 0)
    }

    /// The names are stable.
    pub(super) fn as_json(&self) -> Value {
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
            "applied": self.n_applied,
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

//! The report of a run, as JSON and as text. The JSON's names are stable.

use std::{collections::BTreeMap, time::Duration};

use operate::verify::definition::Comparison;
use serde::Serialize;

use super::{
    figures::{LagFigures, rounded},
    scenario::ScenarioReport,
};
use crate::{
    args::demo::{Demo, Scenario},
    book::Book,
    lag::Lags,
    metered::WriteTotals,
};

#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    scenario: Scenario,
    seed: u64,
    /// Actions of the application, without those that prepare a scenario; some write more than one item.
    writes: u32,
    /// Actions that the query interface refused, such as a taken email address or an item out of stock.
    refused: usize,
    /// Records of ground items that change something a derivation reads.
    changes: usize,
    /// The other records.
    echoes: usize,
    /// Changes and removals of items that count by their insert alone; nothing follows from them.
    late_changes: usize,
    /// Writes of the service to the application's table.
    derived_writes: usize,
    wcu: Wcu,
    /// Only for the mixed workload, because the trace of the lag grows with the run.
    lag_ms: Option<LagFigures>,
    /// Peak memory of the process until the stream was quiet, in MB of 1,048,576 bytes. It includes an embedded
    /// database.
    memory_mb: Option<f64>,
    pub(super) parked: usize,
    pub(super) findings: usize,
    elapsed_ms: u128,
    #[serde(flatten)]
    report: ScenarioReport,
}

/// Write units, as DynamoDB reports them.
#[derive(Debug, Serialize)]
struct Wcu {
    ground: f64,
    derived: f64,
    total: f64,
    /// Derived units per change.
    per_change: f64,
    /// Derived units. The units of a transaction are divided among its writes by item size.
    by_derivation: BTreeMap<String, f64>,
}

/// Measurements at the moment when the stream was quiet.
pub(super) struct Measured {
    pub(super) report: ScenarioReport,
    pub(super) written: WriteTotals,
    pub(super) lags: Option<Lags>,
    pub(super) memory_mb: Option<f64>,
    pub(super) elapsed: Duration,
}

impl RunReport {
    /// Makes the report of the account, the measurements and the verification.
    pub(super) fn of(args: &Demo, book: &Book, measured: Measured, verified: &Comparison) -> Self {
        let Measured { report, written, lags, memory_mb, elapsed } = measured;
        let derived = book.derived_units();
        let n_changes = u32::try_from(book.n_changes).unwrap_or(u32::MAX);
        Self {
            scenario: args.scenario,
            seed: args.seed,
            writes: args.writes,
            refused: written.n_refused,
            changes: book.n_changes,
            echoes: book.n_echoes,
            late_changes: book.n_late_changes,
            derived_writes: book.n_writes,
            wcu: Wcu {
                ground: rounded(written.units),
                derived: rounded(derived),
                total: rounded(written.units + derived),
                per_change: rounded(derived / f64::from(n_changes.max(1))),
                by_derivation: book.units.iter().map(|(name, units)| (name.clone(), rounded(*units))).collect(),
            },
            lag_ms: lags.as_ref().map(LagFigures::from),
            memory_mb,
            parked: book.parked.len(),
            findings: verified.findings.len(),
            elapsed_ms: elapsed.as_millis(),
            report,
        }
    }

    pub(super) fn text(&self, rate: Option<u32>) -> String {
        let Self { seed, writes, refused, changes, echoes, derived_writes, wcu, parked, findings, .. } = self;
        let what = match self.scenario {
            Scenario::Mixed => "writes of an application",
            Scenario::Hot => "likes of one post, each by another user",
            Scenario::Famous => "comments of one user",
        };
        let mut lines =
            vec![format!("{writes} {what} (seed {seed}), {refused} of them refused, in {} ms", self.elapsed_ms)];
        lines.extend(self.report.lines());
        lines.push(format!("  {changes} changes and {echoes} echoes in the stream, {derived_writes} derived writes"));
        if self.late_changes > 0 {
            lines.push(format!("  {} late changes, of items that count by their insert alone", self.late_changes));
        }
        if let Some(lag) = &self.lag_ms {
            let paced = match rate {
                Some(_) => "",
                None => ", while the application writes as fast as it can (--rate 200 slows it down)",
            };
            lines.push(format!("  lag {}{paced}", lag.text()));
        }
        if let Some(memory_mb) = self.memory_mb {
            lines.push(format!("  {memory_mb} MB of memory at most, an embedded database included"));
        }
        lines.push(format!(
            "  write units: {} the application's, {} derived, {} derived a change, by derivation:",
            wcu.ground, wcu.derived, wcu.per_change
        ));
        for (name, units) in &wcu.by_derivation {
            lines.push(format!("    {name:<26} {units:>12.1}"));
        }
        let verdict = if *findings == 0 { "every derived value equals its definition" } else { "not in step" };
        lines.push(format!("{parked} parked, {findings} findings: {verdict}"));
        lines.join("\n")
    }
}

//! Metrics of an invocation, as a line in CloudWatch's embedded metric format.
//!
//! Namespace, names and dimensions are stable, because alarms and dashboards use them. A line contains no key and no
//! value of an item. This file has the metrics of a sweep; [`batch`] has those of a batch.

pub mod batch;

use std::{
    io::{Write as _, stdout},
    sync::atomic::{AtomicU64, Ordering},
};

use engine::{fan_out::again::Again, jobs::ground::sweep::Swept, sweep::Slice};
use serde_json::{Value, json};

use crate::mode::Mode;

/// Namespace of the metrics.
const NAMESPACE: &str = "Ripple";

/// The dimension of all metrics: the application's table.
const TABLE: &str = "Table";

/// Unit of a count. Source: CloudWatch's `MetricDatum`.
const COUNT: &str = "Count";

/// Name of the mode in a line. It is no dimension, so that observing makes no other metrics.
const MODE: &str = "mode";

/// The metric of a stream that is not the one that the functions read: 1 if so, 0 if not, and missing if it is not known.
/// Stable.
pub const STREAM_CHANGED: &str = "StreamChanged";

/// Does a line have the metrics that are 0?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// It has all metrics.
    Shown,
    /// It has only those that are not 0.
    LeftOut,
}

/// Time between two lines of an instance that have all metrics, in milliseconds.
const ZEROS_MS: u64 = 60_000;

/// When an instance last wrote a line with all metrics.
#[derive(Debug, Default)]
pub struct ZerosShown(AtomicU64);

impl ZerosShown {
    /// Has the next line all metrics? It has them once a minute.
    pub fn next(&self, now_ms: u64) -> Zeros {
        let shown_ms = self.0.load(Ordering::Relaxed);
        let is_due = shown_ms == 0 || now_ms.saturating_sub(shown_ms) >= ZEROS_MS;
        // Of two invocations at once in a process, one shows them.
        let takes = is_due && self.0.compare_exchange(shown_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if takes { Zeros::Shown } else { Zeros::LeftOut }
    }
}

/// The metrics of a sweep, published at its end.
#[derive(Clone, Debug, Default)]
pub struct SweepMetrics {
    /// The jobs that were started or restarted.
    pub jobs: Swept,
    /// The searches that were repeated.
    pub again: Again,
    /// The result of the check for drift.
    pub slice: Slice,
    /// Does a mark of a possible loss exist?
    pub may_have_lost: bool,
    /// Is the table's stream disabled, or another than the one that the functions read? `None` if it is not known.
    pub stream_changed: Option<bool>,
}

/// A metric: its name, its unit, and its value, or a list of at most 100.
type Metric = (&'static str, &'static str, Value);

impl SweepMetrics {
    /// The metrics by name.
    fn values(&self) -> [(&'static str, usize); 10] {
        [
            ("Drift", self.slice.drifts.len()),
            ("Suspects", self.slice.n_suspects),
            ("SweptItems", self.slice.n_items),
            ("ZeroCountersCollected", self.slice.n_zero_counters),
            ("JobsBegun", self.jobs.n_begun),
            ("JobsRung", self.jobs.n_rung),
            ("JobsHeld", self.jobs.n_held),
            ("SearchedAgain", self.again.n_done),
            ("FoundAgain", self.again.n_written),
            ("PossibleLoss", usize::from(self.may_have_lost)),
        ]
    }

    /// The line for this table at this time, in milliseconds since the epoch.
    #[must_use]
    pub fn line(&self, table: &str, mode: Mode, now_ms: u64) -> Value {
        let stream_changed = self.stream_changed.map(|has_changed| (STREAM_CHANGED, usize::from(has_changed)));
        let values = self.values().into_iter().chain(stream_changed);
        line(&[(TABLE, table)], mode, values.map(|(name, value)| (name, COUNT, json!(value))), now_ms)
    }
}

/// A line with these metrics and dimensions.
fn line(dimensions: &[(&str, &str)], mode: Mode, metrics: impl IntoIterator<Item = Metric>, now_ms: u64) -> Value {
    let (mut declared, mut fields) = (Vec::new(), serde_json::Map::new());
    for (name, unit, value) in metrics {
        declared.push(json!({ "Name": name, "Unit": unit }));
        fields.insert(name.to_owned(), value);
    }
    let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
    let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [names], "Metrics": declared });
    fields.insert("_aws".to_owned(), json!({ "Timestamp": now_ms, "CloudWatchMetrics": [directive] }));
    fields.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    fields.insert(MODE.to_owned(), json!(mode.to_string()));
    Value::Object(fields)
}

/// Writes a line to standard output, where Lambda collects it.
///
/// # Errors
///
/// An I/O error if standard output is closed.
pub fn publish(line: &Value) -> std::io::Result<()> {
    writeln!(stdout().lock(), "{line}")
}

#[cfg(test)]
mod tests {
    use engine::sweep::Drift;
    use keys::key::Key;

    use super::*;

    #[test]
    fn an_instance_shows_zeros_once_a_minute() {
        let shown = ZerosShown::default();
        let next: Vec<Zeros> = [1_000, 2_000, 60_999, 61_000, 61_001].map(|now_ms| shown.next(now_ms)).into();
        let (yes, no) = (Zeros::Shown, Zeros::LeftOut);
        assert_eq!(next, [yes, no, no, yes, no]);
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let drift = |id: &str| Drift { item: Key::new(id, "PROFILE"), derivations: vec!["follower-shown".to_owned()] };
        let metrics = SweepMetrics {
            jobs: Swept { n_due: 4, n_begun: 1, n_rung: 3, n_held: 2, ..Swept::default() },
            again: Again { n_done: 9, n_written: 8, ..Again::default() },
            slice: Slice {
                n_items: 5_000,
                n_zero_counters: 7,
                n_suspects: 5,
                drifts: vec![drift("USER#ann"), drift("USER#bob")],
                ..Slice::default()
            },
            may_have_lost: true,
            stream_changed: Some(true),
        };
        let line = metrics.line("ripple", Mode::Observe, 1_705_315_200_000);
        let names = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().iter();
        let declared: Vec<String> =
            names.map(|it| format!("{} {}", it["Name"], line[it["Name"].as_str().unwrap()])).collect();
        expect_test::expect![[r#"
            "Drift" 2
            "Suspects" 5
            "SweptItems" 5000
            "ZeroCountersCollected" 7
            "JobsBegun" 1
            "JobsRung" 3
            "JobsHeld" 2
            "SearchedAgain" 9
            "FoundAgain" 8
            "PossibleLoss" 1
            "StreamChanged" 1"#]]
        .assert_eq(&declared.join("\n"));
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&directive["Namespace"], &directive["Dimensions"]), (&json!("Ripple"), &json!([["Table"]])));
        assert_eq!(directive["Metrics"][0], json!({ "Name": "Drift", "Unit": "Count" }));
        assert_eq!(line["mode"], json!("observe"));
        let unknown = SweepMetrics { stream_changed: None, ..metrics }.line("ripple", Mode::Observe, 0);
        assert_eq!(unknown.get(STREAM_CHANGED), None, "a stream that cannot be compared is no good news");
        assert_eq!((&line["Table"], &line["_aws"]["Timestamp"]), (&json!("ripple"), &json!(1_705_315_200_000_u64)));
    }
}

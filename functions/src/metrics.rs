//! Metrics of an invocation, as a line in CloudWatch's embedded metric format.
//!
//! Namespace, names and dimensions are stable, because alarms and dashboards use them. A line contains no key and no
//! value of an item.
//!
//! # Batch
//!
//! Metrics of a batch.
//!
//! A line has the counts that are not 0. Once a minute it has the others too, so that every metric exists, and a graph
//! shows that the function runs; an alarm treats missing data as 0. The numbers by derivation are the field
//! `Derivations` of the line, and no metrics: CloudWatch Logs Insights reads them for the price of a query, but
//! CloudWatch charges each metric by the month.
//!
//! # Line
//!
//! The one log line of an invocation is JSON: its metrics, and fields that are no metrics.
//!
//! *Keeps true*: an invocation logs only this line, unless something needs an operator. Nothing is in it twice: a
//! metric's field has the metric's name.

use std::{
    collections::BTreeMap,
    io::{Write as _, stdout},
    sync::atomic::{AtomicU64, Ordering},
};

use derive::family::Family;
use engine::{
    account::{Account, Figures},
    batch::{Engine, Handled},
    fan_out::again::Again,
    jobs::sweep::Swept,
    sweep::{Damage, Slice},
};
use serde_json::{Map, Value, json};
use store::Store;

use crate::{
    config::{Config, Mode},
    handler::Function,
};

/// Namespace of the metrics.
const NAMESPACE: &str = "Ripple";

/// The dimension of all metrics: the application's table.
const TABLE: &str = "Table";

/// Unit of a count. Source: CloudWatch's `MetricDatum`.
const COUNT: &str = "Count";

/// Name of the mode in a line. It is no dimension, so observing creates no further metrics.
const MODE: &str = "mode";

/// The metric that is 1 if the table's stream is not the one that the functions read, 0 if it is, and missing if
/// unknown. Stable.
pub const STREAM_CHANGED: &str = "StreamChanged";

/// The gauges: what waits for an operator now. An alarm stands on each. Stable.
pub const GAUGES: [&str; 6] =
    [PARKED_CHANGES, COUNTS_TO_RECOUNT, UNREADABLE_ITEMS, POSSIBLE_LOSSES, BLOCKED_CASCADES, DRIFT];
const PARKED_CHANGES: &str = "ParkedChanges";
const COUNTS_TO_RECOUNT: &str = "CountsToRecount";
const UNREADABLE_ITEMS: &str = "UnreadableItems";
const POSSIBLE_LOSSES: &str = "PossibleLosses";
const BLOCKED_CASCADES: &str = "BlockedCascades";
const DRIFT: &str = "Drift";

/// Whether a line has the metrics that are 0.
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
    /// Whether the next line has all metrics; once a minute it does.
    pub fn next(&self, now_ms: u64) -> Zeros {
        let shown_ms = self.0.load(Ordering::Relaxed);
        let is_due = shown_ms == 0 || now_ms.saturating_sub(shown_ms) >= ZEROS_MS;
        // If a process handles two invocations at once, only one of them takes this turn.
        let takes = is_due && self.0.compare_exchange(shown_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if takes { Zeros::Shown } else { Zeros::LeftOut }
    }
}

/// The metrics of a sweep, published at its end. A step that failed is `None`, and has no metrics: 0 would end an alarm.
#[derive(Clone, Debug, Default)]
pub struct SweepMetrics {
    /// The jobs that were started or restarted.
    pub jobs: Option<Swept>,
    /// The searches that were repeated.
    pub again: Option<Again>,
    /// The result of the check for drift.
    pub slice: Option<Slice>,
    /// What waits for an operator.
    pub damage: Option<Damage>,
    /// True if the table's stream is disabled, or is not the one that the functions read; `None` if unknown.
    pub stream_changed: Option<bool>,
}

/// A metric: its name, its unit, and its value, or a list of at most 100.
type Metric = (&'static str, &'static str, Value);

impl SweepMetrics {
    /// The metrics by name. A gauge is missing while its number is only a lower bound of 0.
    fn values(&self) -> Vec<(&'static str, usize)> {
        let jobs = self.jobs.iter().flat_map(|jobs| {
            let n_blocked = Some(jobs.n_blocked).filter(|n| *n > 0 || !jobs.is_cut);
            [
                Some(("JobsBegun", jobs.n_begun)),
                Some(("JobsWoken", jobs.n_woken)),
                n_blocked.map(|n| (BLOCKED_CASCADES, n)),
            ]
        });
        let again =
            self.again.iter().flat_map(|again| [("SearchedAgain", again.n_done), ("FoundAgain", again.n_written)]);
        let slice = self.slice.iter().flat_map(|slice| {
            let n_drifts = Some(slice.drifts.len()).filter(|n| *n > 0 || slice.has_all_suspects);
            [
                Some(("SweptItems", slice.n_items)),
                Some(("Suspects", slice.n_suspects)),
                Some(("ZeroCountersCollected", slice.n_zero_counters)),
                n_drifts.map(|n| (DRIFT, n)),
            ]
        });
        let damage = self.damage.iter().flat_map(|damage| {
            [
                (PARKED_CHANGES, damage.n_parked),
                (COUNTS_TO_RECOUNT, damage.n_to_recount),
                (UNREADABLE_ITEMS, damage.n_unreadable),
                (POSSIBLE_LOSSES, damage.n_losses),
            ]
        });
        jobs.chain(slice).flatten().chain(again).chain(damage).collect()
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

// ---- Metrics of a batch ----

/// The second dimension: the function.
const FUNCTION: &str = "Function";

/// The metric that every line has. Stable.
const RECORDS: &str = "Records";

/// The metric with a list of values: the age of each change at its last write. Stable.
pub const LAG: &str = "Lag";

/// Unit of a lag. Source: CloudWatch's `MetricDatum`.
const MILLISECONDS: &str = "Milliseconds";

/// Maximum number of values of one metric in a line. Source: CloudWatch user guide, "Specification: Embedded metric
/// format".
const VALUES_MAX: usize = 100;

/// Longest line in bytes: below the 256 KB of a log event, with room for CloudWatch's own fields. Source: as above.
const LINE_BYTES_MAX: usize = 250 * 1024;

/// The metrics of a batch, published at the end of its invocation.
#[derive(Clone, Debug)]
pub struct BatchMetrics {
    counts: [(&'static str, f64); 16],
    lags_ms: Vec<u64>,
    figures: BTreeMap<String, Figures>,
}

impl BatchMetrics {
    /// The metrics of a batch that this engine handled.
    #[must_use]
    pub fn of<S: Store>(engine: &Engine<S>, account: &Account) -> Self {
        let figures = engine.figures(account);
        let n = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
        let met = |count: u64| n(usize::try_from(count).unwrap_or(usize::MAX));
        let counts = [
            (RECORDS, n(account.n_records)),
            ("Changes", n(account.n_changes)),
            ("Effects", n(figures.values().map(|figures| figures.share.n_effects).sum())),
            ("Writes", n(account.commits.len())),
            ("WriteUnits", account.commits.iter().fold(0.0, |sum, commit| sum + commit.units)),
            ("Corrections", n(account.n_corrections())),
            ("Conflicts", met(account.contention.n_conflicts())),
            ("Throttles", met(account.contention.n_throttles())),
            ("Retries", n(account.n_retries)),
            ("Duplicates", n(account.n_duplicates)),
            ("Parked", n(account.parked.len())),
            ("Refused", n(account.refused.len())),
            ("Unreadable", n(account.unreadable.len())),
            ("Undone", n(account.undone.len())),
            ("OutOfOrder", n(account.n_out_of_order)),
            ("PossibleLoss", n(usize::from(account.late_ms.is_some() || account.n_out_of_order > 0))),
        ];
        Self { counts, lags_ms: sampled(account.lags_ms()), figures }
    }

    /// The line for this table and function at this time, in milliseconds since the epoch.
    #[must_use]
    pub fn line(&self, table: &str, function: Function, mode: Mode, now_ms: u64, zeros: Zeros) -> Value {
        let counts = self.counts.iter().filter(|(name, value)| {
            // CloudWatch requires at least one metric.
            zeros == Zeros::Shown || *value != 0.0 || *name == RECORDS
        });
        let counts = counts.map(|(name, value)| (*name, COUNT, number(*value)));
        // CloudWatch refuses an empty list.
        let lag = (!self.lags_ms.is_empty()).then(|| (LAG, MILLISECONDS, json!(self.lags_ms)));
        let dimensions = [(TABLE, table), (FUNCTION, &function.to_string())];
        let mut line = line(&dimensions, mode, counts.chain(lag), now_ms);
        let derivations: Map<String, Value> =
            self.figures.iter().map(|(name, figures)| (name.clone(), shown(figures))).collect();
        if let Some(fields) = line.as_object_mut().filter(|_| !derivations.is_empty()) {
            fields.insert("Derivations".to_owned(), Value::Object(derivations));
            if line.to_string().len() > LINE_BYTES_MAX
                && let Some(fields) = line.as_object_mut()
            {
                fields.remove("Derivations");
            }
        }
        line
    }
}

/// The numbers of a derivation that are not zero, because Insights reads only 200 fields of a line.
fn shown(figures: &Figures) -> Value {
    let count = |count: usize| (count > 0).then(|| json!(count));
    let figures = [
        ("Changes", count(figures.share.n_changes)),
        ("Effects", count(figures.share.n_effects)),
        ("Writes", count(figures.n_writes)),
        ("WriteUnits", (figures.units > 0.0).then(|| number(figures.units))),
        ("Corrections", count(figures.n_corrections)),
        ("Conflicts", (figures.n_conflicts > 0).then(|| json!(figures.n_conflicts))),
        ("Throttles", (figures.n_throttles > 0).then(|| json!(figures.n_throttles))),
        ("Retries", count(figures.share.n_retries)),
        ("Parked", count(figures.share.n_parked)),
        (LAG, figures.lag_ms_max.map(|lag_ms| json!(lag_ms))),
    ];
    let entries = figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(entries.collect())
}

/// A number, without a fraction if it is whole.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(format!("{value}").parse::<u64>().ok()) } else { json!(value) }
}

/// At most as many values as a line may have: evenly spaced in sorted order, with the least and the greatest. So their
/// percentiles are close to those of all values.
fn sampled(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    let n_gaps = VALUES_MAX - 1;
    match values.len() {
        0..=VALUES_MAX => values,
        n_values => (0..=n_gaps).filter_map(|at| values.get(at * (n_values - 1) / n_gaps).copied()).collect(),
    }
}

#[cfg(test)]
mod batch_tests {
    use std::sync::Arc;

    use derive::family::Family;
    use engine::{
        account::{Commit, Share},
        clock::SystemClock,
    };
    use keys::key::Key;
    use store::memory::MemoryStore;

    use super::*;
    use crate::declared::{Choice, declared};

    #[test]
    fn a_sample_keeps_the_least_and_the_greatest_and_its_percentiles() {
        assert_eq!(sampled(vec![3, 1, 2]), [1, 2, 3]);
        let all: Vec<u64> = (0..10_000).rev().collect();
        let sample = sampled(all);
        assert_eq!((sample.len(), sample.first(), sample.last()), (VALUES_MAX, Some(&0), Some(&9_999)));
        assert!(sample[49].abs_diff(5_000) < 100 && sample[98].abs_diff(9_900) < 100, "{sample:?}");
    }

    fn account(derivation: derive::position::DerivationAt) -> Account {
        let commit = |position: usize, at_ms| Commit {
            key: Key::new("USER#ann", "PROFILE"),
            table: derive::write::Table::Main,
            action: None,
            at_ms,
            units: 1.5,
            derivations: vec!["follower-count".to_owned(), "follower-mirror".to_owned()],
            causes: [derive::position::RecordAt(position)].into(),
            is_correction: position == 1,
        };
        let share = Share { n_changes: 2, n_effects: 3, n_retries: 1, n_parked: 0 };
        Account {
            n_records: 2,
            n_changes: 2,
            created_ms: vec![Some(1_000), Some(2_000)],
            shares: [(derivation, share)].into(),
            commits: vec![commit(0, 1_250), commit(1, 2_100), commit(0, 1_400)],
            late_ms: Some(1),
            ..Account::default()
        }
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let (schema, catalogue) = declared(Choice::default()).unwrap();
        let account = account(catalogue.position("follower-count").unwrap());
        let store = MemoryStore::new(schema.layout.clone());
        let engine = Engine::new(schema, catalogue, vec![Family::Additive], store, Arc::new(SystemClock));
        let line = BatchMetrics::of(&engine, &account).line(
            "ripple",
            Function::Aggregate,
            Mode::Apply,
            1_705_315_200_000,
            Zeros::Shown,
        );
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Dimensions"], json!([["Table", "Function"]]));
        assert_eq!((&line["Table"], &line["Function"]), (&json!("ripple"), &json!("aggregate")));
        let entries: Vec<String> = directive["Metrics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| format!("{} {} {}", it["Name"], line[it["Name"].as_str().unwrap()], it["Unit"]))
            .collect();
        expect_test::expect![[r#"
            "Records" 2 "Count"
            "Changes" 2 "Count"
            "Effects" 3 "Count"
            "Writes" 3 "Count"
            "WriteUnits" 4.5 "Count"
            "Corrections" 1 "Count"
            "Conflicts" 0 "Count"
            "Throttles" 0 "Count"
            "Retries" 0 "Count"
            "Duplicates" 0 "Count"
            "Parked" 0 "Count"
            "Refused" 0 "Count"
            "Unreadable" 0 "Count"
            "Undone" 0 "Count"
            "OutOfOrder" 0 "Count"
            "PossibleLoss" 1 "Count"
            "Lag" [100,400] "Milliseconds""#]]
        .assert_eq(&entries.join("\n"));
        let mirror = json!({ "Writes": 3, "WriteUnits": 2.25, "Corrections": 1, "Lag": 400 });
        let mut count = mirror.clone();
        for (name, value) in [("Changes", 2), ("Effects", 3), ("Retries", 1)] {
            count[name] = json!(value);
        }
        assert_eq!(line["Derivations"], json!({ "follower-count": count, "follower-mirror": mirror }));
    }

    #[test]
    fn a_batch_that_did_nothing_has_its_counts_and_no_lag() {
        let (schema, catalogue) = declared(Choice::default()).unwrap();
        let store = MemoryStore::new(schema.layout.clone());
        let engine = Engine::new(schema, catalogue, vec![Family::Additive], store, Arc::new(SystemClock));
        let line = |zeros| {
            BatchMetrics::of(&engine, &Account::default()).line("ripple", Function::Combined, Mode::Apply, 0, zeros)
        };
        let brief = line(Zeros::LeftOut);
        let declared = brief["_aws"]["CloudWatchMetrics"][0]["Metrics"].clone();
        assert_eq!((declared, &brief["Records"]), (json!([{ "Name": "Records", "Unit": "Count" }]), &json!(0)));
        assert_eq!(brief.get("Parked"), None, "a 0 is left out");
        let line = line(Zeros::Shown);
        assert_eq!((&line["Parked"], &line["Refused"], &line["PossibleLoss"]), (&json!(0), &json!(0), &json!(0)));
        assert_eq!((line.get("Lag"), line.get("Derivations")), (None, None));
        let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
        assert!(metrics.iter().all(|it| it["Name"] != "Lag"), "a metric that is named has a value");
    }

    #[test]
    fn a_line_that_would_be_too_long_leaves_the_derivations_out() {
        let figures = Figures { n_writes: 1, ..Figures::default() };
        let figures = (0..10_000).map(|at| (format!("derivation-with-a-name-{at}"), figures)).collect();
        let line = BatchMetrics { counts: [("Records", 1.0); 16], lags_ms: Vec::new(), figures }.line(
            "t",
            Function::Combined,
            Mode::Apply,
            0,
            Zeros::Shown,
        );
        assert!(line.to_string().len() < LINE_BYTES_MAX && line.get("Derivations").is_none());
    }
}

// ---- The one log line of an invocation ----

/// The invocation that a line describes.
#[derive(Clone, Copy, Debug)]
pub struct LineOf<'a> {
    /// The function's configuration.
    pub config: &'a Config,
    /// The function.
    pub function: Function,
    /// The id of the invocation.
    pub request_id: &'a str,
    /// Its trace, if there is one.
    pub xray_trace_id: Option<&'a str>,
    /// The time, in milliseconds since the epoch.
    pub now_ms: u64,
}

impl LineOf<'_> {
    /// The line of a batch.
    #[must_use]
    pub fn batch(&self, metrics: &BatchMetrics, handled: &Handled, zeros: Zeros) -> Value {
        let account = &handled.account;
        let count = |n: usize| (n > 0).then(|| json!(n));
        let busy = account.contention.busy();
        let more = [
            ("echoes", count(account.n_echoes)),
            ("ignored", count(account.n_ignored)),
            ("late_changes", count(account.n_late_changes)),
            ("first_backlog", account.is_first_backlog.then_some(json!(true))),
            ("busy", busy.map(|busy| json!(busy))),
            ("failed_from", handled.failed_from.as_ref().map(|number| json!(number))),
            ("cause", account.undone.values().next().map(|cause| json!(cause))),
        ];
        let line = metrics.line(&self.config.table, self.function, self.config.mode, self.now_ms, zeros);
        self.with("handled a batch", line, more)
    }

    /// The line of a batch by a function with these families; its ids are as long as Lambda's.
    #[must_use]
    pub fn sample<S: Store>(
        config: &Config,
        engine: &Engine<S>,
        families: &[Family],
        handled: &Handled,
        zeros: Zeros,
    ) -> Value {
        let function = if families == [Family::Additive] { Function::Aggregate } else { Function::Propagate };
        let (request_id, now_ms) = ("0".repeat(36), engine.clock().now_ms());
        let line = LineOf { config, function, request_id: &request_id, xray_trace_id: None, now_ms };
        line.batch(&BatchMetrics::of(engine, &handled.account), handled, zeros)
    }

    /// The line of a sweep, for a table with this number of items.
    #[must_use]
    pub fn sweep(&self, metrics: &SweepMetrics, n_table_items: u64) -> Value {
        let (jobs, slice) = (metrics.jobs.as_ref(), metrics.slice.as_ref());
        let round_expected_ms = slice.and_then(|slice| slice.round_expected_ms(n_table_items));
        let more = [
            ("due", jobs.map(|jobs| json!(jobs.n_due))),
            ("is_cut", jobs.filter(|jobs| jobs.is_cut).map(|_| json!(true))),
            ("round_ms", slice.and_then(|slice| slice.round_ms).map(|round_ms| json!(round_ms))),
            ("round_expected_ms", round_expected_ms.map(|round_ms| json!(round_ms))),
        ];
        self.with("swept", metrics.line(&self.config.table, self.config.mode, self.now_ms), more)
    }

    /// The line with the invocation's ids in the same place as in other lines, and with these fields.
    fn with<const N: usize>(&self, message: &str, mut line: Value, more: [(&str, Option<Value>); N]) -> Value {
        let mut span = json!({ "request_id": self.request_id });
        if let (Some(id), Some(span)) = (self.xray_trace_id, span.as_object_mut()) {
            span.insert("xray_trace_id".to_owned(), json!(id));
        }
        if let Some(fields) = line.as_object_mut() {
            let more: Map<String, Value> =
                more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
            fields.extend(more);
            fields.insert("message".to_owned(), json!(message));
            fields.insert("span".to_owned(), span);
        }
        line
    }
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

    fn metrics() -> SweepMetrics {
        let drift = |id: &str| Drift { item: Key::new(id, "PROFILE"), derivations: vec!["follower-shown".to_owned()] };
        SweepMetrics {
            jobs: Some(Swept { n_due: 4, n_begun: 1, n_woken: 3, n_blocked: 2, ..Swept::default() }),
            again: Some(Again { n_done: 9, n_written: 8, ..Again::default() }),
            slice: Some(Slice {
                n_items: 5_000,
                n_zero_counters: 7,
                n_suspects: 5,
                drifts: vec![drift("USER#ann"), drift("USER#bob")],
                ..Slice::default()
            }),
            damage: Some(Damage { n_parked: 10, n_to_recount: 11, n_unreadable: 12, n_losses: 13 }),
            stream_changed: Some(true),
        }
    }

    /// The names of a line's metrics, with their values.
    fn declared(line: &Value) -> Vec<String> {
        let names = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().iter();
        names.map(|it| format!("{} {}", it["Name"].as_str().unwrap(), line[it["Name"].as_str().unwrap()])).collect()
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let line = metrics().line("ripple", Mode::Observe, 1_705_315_200_000);
        expect_test::expect![[r#"
            JobsBegun 1
            JobsWoken 3
            BlockedCascades 2
            SweptItems 5000
            Suspects 5
            ZeroCountersCollected 7
            Drift 2
            SearchedAgain 9
            FoundAgain 8
            ParkedChanges 10
            CountsToRecount 11
            UnreadableItems 12
            PossibleLosses 13
            StreamChanged 1"#]]
        .assert_eq(&declared(&line).join("\n"));
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&directive["Namespace"], &directive["Dimensions"]), (&json!("Ripple"), &json!([["Table"]])));
        assert_eq!(directive["Metrics"][0], json!({ "Name": "JobsBegun", "Unit": "Count" }));
        assert_eq!(line["mode"], json!("observe"));
        assert_eq!((&line["Table"], &line["_aws"]["Timestamp"]), (&json!("ripple"), &json!(1_705_315_200_000_u64)));
    }

    #[test]
    fn what_a_sweep_could_not_count_is_missing_instead_of_0() {
        let gauges = |metrics: &SweepMetrics| {
            let line = metrics.line("ripple", Mode::Apply, 0);
            let named = |entry: &String| GAUGES.iter().any(|gauge| entry.split(' ').next() == Some(gauge));
            declared(&line).into_iter().filter(named).collect::<Vec<_>>()
        };
        assert_eq!(gauges(&metrics()).len(), GAUGES.len());
        let failed = SweepMetrics { jobs: None, slice: None, damage: None, stream_changed: None, ..metrics() };
        assert_eq!(declared(&failed.line("ripple", Mode::Apply, 0)), ["SearchedAgain 9", "FoundAgain 8"]);
        let nothing = |is_complete: bool| SweepMetrics {
            jobs: Some(Swept { is_cut: !is_complete, ..Swept::default() }),
            slice: Some(Slice { has_all_suspects: is_complete, ..Slice::default() }),
            damage: None,
            ..metrics()
        };
        assert_eq!(gauges(&nothing(false)), [""; 0]);
        assert_eq!(gauges(&nothing(true)), ["BlockedCascades 0", "Drift 0"]);
    }
}

//! The one log line of an invocation, in JSON: its metrics, and fields that are no metrics.
//!
//! *Keeps true*: an invocation logs only this line, unless something needs an operator. Nothing is in it twice: a
//! metric's field has the metric's name.

use derive::family::Family;
use engine::batch::{Engine, Handled};
use serde_json::{Map, Value, json};
use store::Store;

use crate::{
    config::Config,
    handler::Function,
    metrics::{BatchMetrics, SweepMetrics, Zeros},
};

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

//! What a sweep did, as metrics: a line in CloudWatch's embedded metric format, of which it makes them.
//!
//! Namespace, names and the dimension are stable: alarms and dashboards name them. No value of any item is in it, and no
//! key.

use std::io::{Write as _, stdout};

use engine::{fan_out::again::Again, ground::sweep::Swept, sweep::Slice};
use serde_json::{Value, json};

/// Namespace of the metrics.
const NAMESPACE: &str = "Ripple";

/// Their one dimension: the application's table.
const TABLE: &str = "Table";

/// What a sweep did, told at the end of it.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// What became of the jobs.
    pub jobs: Swept,
    /// What was searched for again.
    pub again: Again,
    /// What the slice found.
    pub slice: Slice,
}

impl Metrics {
    /// The metrics by their names.
    fn values(&self) -> [(&'static str, usize); 8] {
        [
            ("Drift", self.slice.drifts.len()),
            ("Suspects", self.slice.n_suspects),
            ("SweptItems", self.slice.n_items),
            ("ZeroCountersCollected", self.slice.n_zero_counters),
            ("JobsBegun", self.jobs.n_begun),
            ("JobsRung", self.jobs.n_rung),
            ("SearchedAgain", self.again.n_done),
            ("FoundAgain", self.again.n_written),
        ]
    }

    /// The metrics of this table at this moment, in milliseconds since the epoch, as CloudWatch reads them.
    #[must_use]
    pub fn line(&self, table: &str, now_ms: u64) -> Value {
        let values = self.values();
        let metrics: Vec<Value> = values.iter().map(|(name, _)| json!({ "Name": name, "Unit": "Count" })).collect();
        let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [[TABLE]], "Metrics": metrics });
        let mut line = json!({ "_aws": { "Timestamp": now_ms, "CloudWatchMetrics": [directive] }, TABLE: table });
        if let Some(fields) = line.as_object_mut() {
            fields.extend(values.map(|(name, value)| (name.to_owned(), json!(value))));
        }
        line
    }

    /// Writes the line to standard output, which is where Lambda collects it.
    ///
    /// # Errors
    ///
    /// When standard output is closed.
    pub fn tell(&self, table: &str, now_ms: u64) -> std::io::Result<()> {
        writeln!(stdout().lock(), "{}", self.line(table, now_ms))
    }
}

#[cfg(test)]
mod tests {
    use engine::sweep::Drift;
    use keys::key::Key;

    use super::*;

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let drift = |id: &str| Drift { item: Key::new(id, "PROFILE"), derivations: vec!["follower-shown".to_owned()] };
        let metrics = Metrics {
            jobs: Swept { n_jobs: 4, n_begun: 1, n_rung: 3, ..Swept::default() },
            again: Again { n_done: 9, n_written: 8, ..Again::default() },
            slice: Slice {
                n_items: 5_000,
                n_zero_counters: 7,
                n_suspects: 5,
                drifts: vec![drift("USER#ann"), drift("USER#bob")],
                round_ms: None,
            },
        };
        let line = metrics.line("ripple", 1_705_315_200_000);
        let names = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().iter();
        let told: Vec<String> =
            names.map(|it| format!("{} {}", it["Name"], line[it["Name"].as_str().unwrap()])).collect();
        expect_test::expect![[r#"
            "Drift" 2
            "Suspects" 5
            "SweptItems" 5000
            "ZeroCountersCollected" 7
            "JobsBegun" 1
            "JobsRung" 3
            "SearchedAgain" 9
            "FoundAgain" 8"#]]
        .assert_eq(&told.join("\n"));
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&directive["Namespace"], &directive["Dimensions"]), (&json!("Ripple"), &json!([["Table"]])));
        assert_eq!(directive["Metrics"][0], json!({ "Name": "Drift", "Unit": "Count" }));
        assert_eq!((&line["Table"], &line["_aws"]["Timestamp"]), (&json!("ripple"), &json!(1_705_315_200_000_u64)));
    }
}

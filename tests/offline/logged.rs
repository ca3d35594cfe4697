//! How many bytes the functions log, by the same sample run as `ripple cost`.

use derive::family::Family;
use design::cost::{
    load::Load,
    usage::{SampleEngine, usage},
};
use engine::{batch::Handled, ledger::LedgerKind};
use functions::{
    config::{self, Config},
    line::LineOf,
    metrics::Zeros,
};
use serde_json::json;

/// Lambda's own lines of an invocation as text, without their ids: START, END and REPORT.
const PLATFORM: &str = "START RequestId:  Version: $LATEST\nEND RequestId: \nREPORT RequestId: \tDuration: 12.34 ms\tBilled \
                        Duration: 13 ms\tMemory Size: 512 MB\tMax Memory Used: 23 MB\t\n";

fn line(engine: &SampleEngine, families: &[Family], handled: &Handled, zeros: Zeros) -> serde_json::Value {
    let names = [config::TABLE_NAME, config::LEDGER_TABLE_NAME];
    let config = Config::from_variables(|name| names.contains(&name).then(|| "ripple".to_owned())).unwrap();
    LineOf::sample(&config, engine, families, handled, zeros)
}

/// One line, without zeros, and nothing of Lambda's.
fn now(engine: &SampleEngine, families: &[Family], handled: &Handled) -> usize {
    line(engine, families, handled, Zeros::LeftOut).to_string().len() + 1
}

/// What was logged before: a line of all metrics, a line of the log with most of them again, and Lambda's three.
fn before(engine: &SampleEngine, families: &[Family], handled: &Handled) -> usize {
    let mut metrics = line(engine, families, handled, Zeros::Shown);
    for name in ["message", "span", "echoes", "ignored", "late_changes"] {
        metrics.as_object_mut().unwrap().remove(name);
    }
    let account = &handled.account;
    let id = "0".repeat(36);
    let log = json!({
        "timestamp": "2026-11-25T10:00:00.000000Z", "level": "INFO", "message": "handled a batch",
        "function": "aggregate", "mode": "apply", "request_id": id, "records": account.n_records,
        "changes": account.n_changes, "echoes": account.n_echoes, "ignored": account.n_ignored,
        "late_changes": account.n_late_changes, "duplicates": account.n_duplicates, "writes": account.commits.len(),
        "write_units": account.commits.iter().map(|commit| commit.units).sum::<f64>(), "retries": account.n_retries,
        "parked": account.parked.len(), "refused": account.refused.len(),
        "span": { "function": "aggregate", "request_id": id, "name": "invocation" },
    });
    metrics.to_string().len() + 1 + log.to_string().len() + 1 + PLATFORM.len() + 3 * id.len()
}

#[tokio::test]
async fn a_thousand_changes_log_less_than_half_of_what_they_did() {
    let design = design::shipped::design().await.unwrap();
    for (rate, window_before, window) in [(1.2, 1.0, 5.0), (12.0, 1.0, 5.0), (120.0, 1.0, 5.0)] {
        let load = |window_seconds| Load {
            rates: [("Like", 8.0), ("Comment", 2.0), ("Follow", 2.0)]
                .map(|(name, share)| (name.to_owned(), rate * share / 12.0))
                .into(),
            targets: [("like-count".to_owned(), 100)].into(),
            fan_outs: [].into(),
            ledger: LedgerKind::Watermarks,
            n_shards: 4,
            window_seconds,
            n_batch_max: 500,
            memory_mb: 512,
            call_ms: 5.0,
        };
        let each = |used: design::cost::usage::LoadUsage| used.log_bytes / rate;
        let before_it = each(usage(&design, &load(window_before), &before).await.unwrap());
        let same = each(usage(&design, &load(window_before), &now).await.unwrap());
        let now_it = each(usage(&design, &load(window), &now).await.unwrap());
        assert!(same < before_it / 2.0, "{rate}: {same} of {before_it}");
        println!(
            "{rate} changes a second: {before_it:.0} KB for 1,000 before, {same:.0} in such batches, {now_it:.0} now"
        );
    }
}

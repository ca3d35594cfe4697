//! The text of an event, as Lambda is given it.

use engine::clock::Clock as _;
use serde_json::{Value, json};

use super::{
    scene::Scene,
    stream::{STREAM_ARN, Stream},
};

/// Length of a tumbling window, in milliseconds.
const WINDOW_MS: u64 = 30_000;

/// A batch in a tumbling window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) shard_id: String,
    pub(crate) state: Value,
    pub(crate) is_final: bool,
    pub(crate) is_ended_early: bool,
}

/// An event of these records of the stream; with what a tumbling window adds, where there is one.
pub(crate) fn event(
    scene: &Scene,
    stream: &Stream,
    records: impl Iterator<Item = usize>,
    window: Option<&Window>,
) -> String {
    let records: Vec<&str> = records.map(|at| stream.records[at].json.as_str()).collect();
    let records = records.join(",");
    let Some(window) = window else { return format!(r#"{{"Records":[{records}]}}"#) };
    let start_ms = scene.clock.now_ms() / WINDOW_MS * WINDOW_MS;
    let more = json!({
        "window": {"start": time(start_ms), "end": time(start_ms + WINDOW_MS)},
        "state": window.state,
        "shardId": window.shard_id,
        "eventSourceARN": STREAM_ARN,
        "isFinalInvokeForWindow": window.is_final,
        "isWindowTerminatedEarly": window.is_ended_early,
    });
    let more = more.to_string();
    format!(r#"{{"Records":[{records}],{}"#, &more[1..])
}

/// A time as the platform writes it. The day is always the same: nobody reads it.
fn time(at_ms: u64) -> String {
    let seconds = at_ms / 1000 % 86_400;
    format!("2024-01-15T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

//! The text of an event that Lambda receives.

use engine::clock::Clock as _;
use support::record::{self, Window};

use crate::{platform::stream::Stream, scene::Scene};

/// Length of a tumbling window, in milliseconds.
const WINDOW_MS: u64 = 30_000;

/// An event of these records of the stream, as a version reads them, within a tumbling window if there is one.
pub(crate) fn event(
    stream: &Stream,
    records: impl Iterator<Item = usize>,
    window: Option<&Window>,
    is_old: bool,
) -> String {
    let records: Vec<&str> = records.map(|at| stream.as_read(&stream.records[at], is_old).as_ref()).collect();
    let event = record::event(&records);
    window.map_or_else(|| event.clone(), |window| window.around(&event))
}

/// The start and the end of the current window.
pub(crate) fn bounds(scene: &Scene) -> [String; 2] {
    let start_ms = scene.clock.now_ms() / WINDOW_MS * WINDOW_MS;
    [start_ms, start_ms + WINDOW_MS].map(time)
}

/// A time as the platform writes it. The day is always the same: nobody reads it.
fn time(at_ms: u64) -> String {
    let seconds = at_ms / 1000 % 86_400;
    format!("2024-01-15T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

//! The wait between two tries of the same thing.

use std::time::Duration;

/// The first wait, in milliseconds. Ours: AWS does not say what it waits.
const WAIT_MS_MIN: u64 = 100;

/// The longest wait, in milliseconds. Short, because a person watches.
const WAIT_MS_MAX: u64 = 5_000;

/// Waits that double from 100 ms to 5 s.
#[derive(Debug)]
pub(crate) struct Backoff {
    next_ms: u64,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next_ms: WAIT_MS_MIN }
    }

    /// The next wait.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = Duration::from_millis(self.next_ms);
        self.next_ms = (self.next_ms * 2).min(WAIT_MS_MAX);
        wait
    }

    /// It worked: the next wait is the first again.
    pub(crate) fn reset(&mut self) {
        self.next_ms = WAIT_MS_MIN;
    }
}

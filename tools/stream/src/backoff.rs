//! The wait between two tries of the same thing.

use std::time::Duration;

use keys::backoff::Backoff;

/// Ours: AWS does not say what it waits. The longest is short, because a person watches.
const BACKOFF: Backoff = Backoff { ms_min: 100, ms_max: 5_000 };

/// Waits that double from 100 ms to 5 s.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    n_done: u32,
}

impl Waits {
    /// The next wait.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = Duration::from_millis(BACKOFF.ms(self.n_done));
        self.n_done = self.n_done.saturating_add(1);
        wait
    }

    /// It worked: the next wait is the first again.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

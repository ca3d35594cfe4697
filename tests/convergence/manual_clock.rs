//! A clock that stands still until somebody waits by it.

use std::{
    future::{Future, ready},
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use engine::clock::Clock;

/// The time of a run, in milliseconds since the epoch.
pub(crate) struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows this time, in milliseconds since the epoch.
    pub(crate) fn at(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(u64::try_from(duration.as_millis()).unwrap(), Ordering::Relaxed);
        Box::pin(ready(()))
    }

    fn chance(&self, below: u64) -> u64 {
        below / 2
    }
}

//! Time and randomness, passed in from outside, so that a run can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;

/// Maximum difference between the clocks of functions, operators and the database, in milliseconds: five minutes.
/// Source: Signature Version 4, with which AWS refuses a call whose time differs by more.
pub const CLOCKS_DIFFER_MS: u64 = 5 * 60 * 1_000;

/// The age of this time, in milliseconds; `None` if the time is unknown, or ahead by more than clocks differ, so that
/// any age is possible.
pub(crate) fn age_ms(at_ms: Option<u64>, now_ms: u64) -> Option<u64> {
    at_ms.filter(|at_ms| *at_ms <= now_ms.saturating_add(CLOCKS_DIFFER_MS)).map(|at_ms| now_ms.saturating_sub(at_ms))
}

/// The engine's source of time and randomness.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;

    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Completes at this time, in milliseconds since the epoch: the time limit of a call.
    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()>;

    /// A number from 0 to `below`, exclusive; 0 if `below` is 0.
    fn chance(&self, below: u64) -> u64;
}

/// The machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()> {
        self.sleep(Duration::from_millis(at_ms.saturating_sub(self.now_ms())))
    }

    fn chance(&self, below: u64) -> u64 {
        if below == 0 { 0 } else { rand::random_range(0..below) }
    }
}

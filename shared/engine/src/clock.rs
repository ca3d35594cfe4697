//! Time and chance, given from outside, so that a run can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;

/// Where the engine takes time and chance from.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;

    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Ends at this time, in milliseconds since the epoch: the time limit of a call.
    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()>;

    /// A number from 0 to `below`, exclusive; 0 when `below` is 0.
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

//! A clock that a test moves, and that moves when somebody waits for it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use engine::clock::Clock;

/// The time of a run, in milliseconds since the epoch. Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Starts at this time, in milliseconds since the epoch.
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        Self(Arc::new(AtomicU64::new(now_ms)))
    }

    /// Sets the time, in milliseconds since the epoch.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }

    /// Moves the time forward by milliseconds.
    pub fn advance(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets other tasks run once; then the time has come.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let now_ms = Arc::clone(&self.0);
        let due_ms = self.now_ms() + u64::try_from(duration.as_millis()).unwrap();
        let mut is_over = false;
        Box::pin(poll_fn(move |context| {
            if std::mem::replace(&mut is_over, true) {
                now_ms.fetch_max(due_ms, Ordering::Relaxed);
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    /// Ends when somebody has moved the time there; it moves nothing.
    fn until(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let now_ms = Arc::clone(&self.0);
        Box::pin(poll_fn(move |_| if now_ms.load(Ordering::Relaxed) < at_ms { Poll::Pending } else { Poll::Ready(()) }))
    }

    fn chance(&self, below: u64) -> u64 {
        below / 2
    }
}

//! The request to stop.

use std::time::Duration;

use tokio::sync::watch;

/// Stopping was asked for: whoever gets this leaves what it is at, with nothing half done behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// The receiving end of the request. A dropped sender counts as the request: nobody is left to make it.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    /// Fails when stopping was asked for already.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if *self.0.borrow() || self.0.has_changed().is_err() { Err(Stopped) } else { Ok(()) }
    }

    /// Waits for the request.
    pub(crate) async fn requested(&mut self) -> Stopped {
        // An error says that the sender is gone, which is the request too.
        drop(self.0.wait_for(|is_requested| *is_requested).await);
        Stopped
    }

    /// Waits for a time, or fails as soon as stopping is asked for.
    pub(crate) async fn sleep(&mut self, duration: Duration) -> Result<(), Stopped> {
        self.or(tokio::time::sleep(duration)).await
    }

    /// Does work that may be dropped at any point, or fails as soon as stopping is asked for.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            stopped = self.requested() => Err(stopped),
            done = work => Ok(done),
        }
    }
}

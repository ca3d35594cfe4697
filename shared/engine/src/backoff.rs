//! Sending again, with jittered backoff, within the time that an invocation has left.

use std::{future::Future, time::Duration};

use keys::backoff::Backoff;
use store::{Busy, StoreError};

use crate::clock::Clock;

/// Bounds of the waits: the SDKs' own first backoff is of the order of the first; the longest is short against an
/// invocation, and long against a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 2_000 };

/// Time that an invocation keeps for its answer, in milliseconds.
const ANSWER_MS: u64 = 500;

/// The time that an invocation has.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// The clock.
    pub clock: &'a dyn Clock,
    /// When the invocation ends, in milliseconds since the epoch.
    pub deadline_ms: u64,
}

/// Waits between tries: full jitter below a bound that doubles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tries {
    n_done: u32,
}

/// Why a call has no outcome at the end.
#[derive(Debug, thiserror::Error)]
pub enum GaveUp {
    /// The invocation's time is over; the batch comes again.
    #[error("no time is left; the records come again")]
    OutOfTime {
        /// The last answer.
        #[source]
        last: Option<StoreError>,
    },
    /// It is refused whenever it comes.
    #[error(transparent)]
    Refused(StoreError),
}

impl Patience<'_> {
    /// Is it time to answer?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.clock.now_ms().saturating_add(ANSWER_MS) >= self.deadline_ms
    }

    /// Waits before the next try; false, without waiting, when there is no time for it.
    pub async fn wait(&self, tries: &mut Tries) -> bool {
        let wait_ms = BACKOFF.ms_min / 2 + self.clock.chance(BACKOFF.ms(tries.n_done));
        tries.n_done += 1;
        if self.clock.now_ms().saturating_add(wait_ms + ANSWER_MS) >= self.deadline_ms {
            return false;
        }
        self.clock.sleep(Duration::from_millis(wait_ms)).await;
        true
    }

    /// Calls until there is an outcome.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the call is refused, or time is over.
    pub async fn call<T, F>(&self, call: impl FnMut() -> F) -> Result<T, GaveUp>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        self.call_meeting(&mut Vec::new(), call).await
    }

    /// The same, and notes each conflict and throttle that the call met.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_meeting<T, F>(&self, met: &mut Vec<Busy>, mut call: impl FnMut() -> F) -> Result<T, GaveUp>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut tries = Tries::default();
        loop {
            match call().await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if !error.is_retry() => return Err(GaveUp::Refused(error)),
                Err(error) => {
                    met.extend(error.busy());
                    tracing::debug!(cause = %describe(&error), "sending again");
                    if !self.wait(&mut tries).await {
                        return Err(GaveUp::OutOfTime { last: Some(error) });
                    }
                }
            }
        }
    }
}

/// An error with its causes, in one line.
#[must_use]
pub fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

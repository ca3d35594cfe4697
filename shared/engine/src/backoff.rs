//! Retries with jittered backoff, within the time that an invocation has left.
//!
//! *Keeps true*: no call outlasts the invocation's deadline, so a function always responds. A call without a response
//! in time is dropped; its effect is unknown, as for every call whose response is lost.
//!
//! This is the only layer that retries: the SDK's own retries are switched off. A failure that lasts until the operator
//! changes the set-up, such as a missing permission, is not retried at all.

use std::{future::Future, pin::pin, sync::OnceLock, time::Duration};

use futures::future::{Either, select};
use keys::backoff::Backoff;
use store::{Busy, StoreError};

use crate::clock::Clock;

/// Bounds of the waits: the SDKs' own first backoff is about as long as the first; the longest is short compared with
/// an invocation, and long compared with a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 2_000 };

/// Time that an invocation reserves for its response, in milliseconds, and the last part of it, in which nothing is
/// written.
const ANSWER_MS: u64 = 500;
const ANSWER_END_MS: u64 = 100;

/// The time limit of an invocation.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    clock: &'a dyn Clock,
    /// When the invocation ends, in milliseconds since the epoch.
    pub deadline_ms: u64,
    /// Stores the first failure that lasts until the operator changes the set-up.
    standing: Option<&'a OnceLock<String>>,
}

/// Waits between retries: full jitter below a bound that doubles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tries {
    n_done: u32,
}

/// Why a call has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum GaveUp {
    /// The invocation's time is over; the batch is redelivered.
    #[error("no time is left; the records come again")]
    OutOfTime {
        /// The last error.
        #[source]
        last: Option<StoreError>,
    },
    /// The failure lasts until the operator changes the set-up; the batch is redelivered.
    #[error("waiting does not help")]
    Standing(#[source] StoreError),
    /// DynamoDB refuses the call, however often it is sent.
    #[error(transparent)]
    Refused(StoreError),
}

impl<'a> Patience<'a> {
    /// The time until this deadline, in milliseconds since the epoch.
    #[must_use]
    pub fn new(clock: &'a dyn Clock, deadline_ms: u64) -> Self {
        Self { clock, deadline_ms, standing: None }
    }

    /// Sets where the first failure is stored that lasts until the operator changes the set-up.
    pub(crate) fn keeping(self, standing: &'a OnceLock<String>) -> Self {
        Self { standing: Some(standing), ..self }
    }

    /// True if it is time to respond.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.clock.now_ms().saturating_add(ANSWER_MS) >= self.deadline_ms
    }

    /// The time that is reserved for the response, for the last writes.
    pub(crate) const fn for_answer(self) -> Self {
        Self { deadline_ms: self.deadline_ms.saturating_add(ANSWER_MS - ANSWER_END_MS), ..self }
    }

    /// Makes one call, and drops it when it is time to respond.
    pub(crate) async fn in_time<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let limit = self.clock.until(self.deadline_ms.saturating_sub(ANSWER_MS));
        let answer = match select(pin!(call), limit).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => Err(StoreError::late()),
        };
        if let (Some(standing), Some(error)) = (self.standing, answer.as_ref().err().filter(|it| it.is_standing())) {
            standing.get_or_init(|| describe(error));
        }
        answer
    }

    /// Waits before the next retry; returns false, without waiting, if there is no time for it.
    pub async fn wait(&self, tries: &mut Tries) -> bool {
        let wait_ms = BACKOFF.ms_min / 2 + self.clock.chance(BACKOFF.ms(tries.n_done));
        tries.n_done += 1;
        if self.clock.now_ms().saturating_add(wait_ms).saturating_add(ANSWER_MS) >= self.deadline_ms {
            return false;
        }
        self.clock.sleep(Duration::from_millis(wait_ms)).await;
        true
    }

    /// Retries a call until it has an outcome.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the call is refused, or time is over.
    pub async fn call<T, F>(&self, call: impl FnMut() -> F) -> Result<T, GaveUp>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        self.call_meeting(&mut Vec::new(), call).await
    }

    /// Like [`call`](Self::call), and collects each conflict and throttle.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call).
    pub async fn call_meeting<T, F>(&self, met: &mut Vec<Busy>, mut call: impl FnMut() -> F) -> Result<T, GaveUp>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut tries = Tries::default();
        loop {
            match self.in_time(call()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if !error.is_retry() => return Err(GaveUp::Refused(error)),
                Err(error) if error.is_standing() => return Err(GaveUp::Standing(error)),
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

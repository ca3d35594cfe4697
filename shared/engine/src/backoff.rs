//! Sending again, with jittered backoff, within the time that an invocation has left.
//!
//! *Keeps true*: no call outlasts the invocation's deadline, so a function always answers. A call that is not answered in
//! time is given up; whether it was done is not known, as for every call whose answer is lost.
//!
//! This is the only layer that sends again: the SDK's own is switched off. What lasts until somebody changes the set-up,
//! such as a missing permission, is not sent again at all.

use std::{future::Future, pin::pin, sync::OnceLock, time::Duration};

use futures::future::{Either, select};
use keys::backoff::Backoff;
use store::{Busy, StoreError};

use crate::clock::Clock;

/// Bounds of the waits: the SDKs' own first backoff is of the order of the first; the longest is short against an
/// invocation, and long against a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 2_000 };

/// Time that an invocation keeps for its answer, in milliseconds, and the end of it in which nothing is written any more.
const ANSWER_MS: u64 = 500;
const ANSWER_END_MS: u64 = 100;

/// The time that an invocation has.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    clock: &'a dyn Clock,
    /// When the invocation ends, in milliseconds since the epoch.
    pub deadline_ms: u64,
    /// Keeps the first failure that lasts until somebody changes the set-up.
    standing: Option<&'a OnceLock<String>>,
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
    /// It lasts until somebody changes the set-up; the batch comes again.
    #[error("waiting does not help")]
    Standing(#[source] StoreError),
    /// It is refused whenever it comes.
    #[error(transparent)]
    Refused(StoreError),
}

impl<'a> Patience<'a> {
    /// The time until this deadline, in milliseconds since the epoch.
    #[must_use]
    pub fn new(clock: &'a dyn Clock, deadline_ms: u64) -> Self {
        Self { clock, deadline_ms, standing: None }
    }

    /// The same, and it keeps the first failure that lasts until somebody changes the set-up.
    pub(crate) fn keeping(self, standing: &'a OnceLock<String>) -> Self {
        Self { standing: Some(standing), ..self }
    }

    /// Is it time to answer?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.clock.now_ms().saturating_add(ANSWER_MS) >= self.deadline_ms
    }

    /// The time that is kept for the answer, for what is written at the very end.
    pub(crate) const fn for_answer(self) -> Self {
        Self { deadline_ms: self.deadline_ms.saturating_add(ANSWER_MS - ANSWER_END_MS), ..self }
    }

    /// One call, until it is time to answer.
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

    /// Waits before the next try; false, without waiting, when there is no time for it.
    pub async fn wait(&self, tries: &mut Tries) -> bool {
        let wait_ms = BACKOFF.ms_min / 2 + self.clock.chance(BACKOFF.ms(tries.n_done));
        tries.n_done += 1;
        if self.clock.now_ms().saturating_add(wait_ms).saturating_add(ANSWER_MS) >= self.deadline_ms {
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

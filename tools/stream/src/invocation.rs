//! One invocation of the function, and what it means for the records of its event.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use crate::function::FunctionError;
use crate::progress::{Invocation, InvocationOutcome};
use crate::response::{ResponseVerdict, judge};
use crate::window::State;
use crate::wiring::{Complaint, Wiring};

/// Invokes the function for one lane of a shard, and notifies the observer.
pub(crate) struct Invoker {
    wiring: Arc<Wiring>,
    shard: String,
    /// Shared by all lanes of the shard, because they invoke the same function.
    unavailable: Arc<Complaint>,
}

/// The result of one invocation.
pub(crate) enum Answer {
    /// The first `n_done` records are done: at least one if the event had records.
    DoneBefore {
        n_done: usize,
        /// The next state of the window; `Some` if and only if the mapping has tumbling windows.
        state: Option<State>,
    },
    /// No record is done.
    Failed { is_function_error: bool },
    /// The function did not run.
    Unavailable,
}

impl Invoker {
    pub(crate) fn new(wiring: Arc<Wiring>, shard: String, unavailable: Arc<Complaint>) -> Self {
        Self { wiring, shard, unavailable }
    }

    /// Invokes the function once. `sequence_numbers` are those of the event's records; `iterator_age` is the age of the
    /// last record.
    pub(crate) async fn invoke(
        &self,
        event: String,
        sequence_numbers: &[&str],
        attempt: u32,
        iterator_age: Option<Duration>,
    ) -> Answer {
        let started = Instant::now();
        let function = &self.wiring.function;
        let invocation = AssertUnwindSafe(async { function.invoke(event).await }).catch_unwind();
        let answer = invocation
            .await
            .unwrap_or_else(|_panic| Err(FunctionError::Unhandled { message: "it panicked".to_owned() }));
        let ended = Instant::now();
        let (outcome, answer) = match answer {
            Ok(response) => self.judge(&response, sequence_numbers),
            Err(FunctionError::Unhandled { message }) => {
                (InvocationOutcome::Failed { message }, Answer::Failed { is_function_error: true })
            }
            Err(error @ FunctionError::Unavailable { .. }) => {
                self.unavailable.report(&self.wiring, &error.to_string());
                return Answer::Unavailable;
            }
        };
        self.unavailable.over();
        self.wiring.observer.invoked(&Invocation {
            mapping: self.wiring.mapping.name.clone(),
            shard: self.shard.clone(),
            n_records: sequence_numbers.len(),
            outcome,
            attempt,
            iterator_age,
            elapsed: ended - started,
            started: started.into_std(),
            ended: ended.into_std(),
        });
        answer
    }

    fn judge(&self, response: &str, sequence_numbers: &[&str]) -> (InvocationOutcome, Answer) {
        let failed = |message: &str| {
            let answer = Answer::Failed { is_function_error: false };
            (InvocationOutcome::Failed { message: message.to_owned() }, answer)
        };
        let state = State::of_response(response);
        let has_windows = self.wiring.mapping.tumbling_window_seconds > 0;
        if has_windows && state.is_none() {
            return failed("the response has no object `state`, which tumbling windows need");
        }
        let state = state.filter(|_| has_windows);
        let is_reported = self.wiring.mapping.report_batch_item_failures;
        match if is_reported { judge(response, sequence_numbers) } else { ResponseVerdict::Success } {
            ResponseVerdict::Success => {
                (InvocationOutcome::Success, Answer::DoneBefore { n_done: sequence_numbers.len(), state })
            }
            ResponseVerdict::FailedFrom(index) => {
                let lowest = sequence_numbers.get(index).copied().unwrap_or_default().to_owned();
                let answer = match index {
                    0 => Answer::Failed { is_function_error: false },
                    n_done => Answer::DoneBefore { n_done, state },
                };
                (InvocationOutcome::Partial { lowest }, answer)
            }
            ResponseVerdict::Failed => {
                failed("the response names no record of the batch, so all of it counts as failed")
            }
        }
    }
}

//! Delivers one batch at a time, until each of its records is done or discarded.
//!
//! The checkpoint moves only past records that the function processed or that were discarded. If the mapping has a
//! destination, it moves after their failure record is written. Whenever it moves, the count of attempts starts again,
//! as in Lambda. Example: 6 records, batches of 3, 3 retries, and a last record that always fails. That record is
//! delivered once in `[4,5,6]` and then four times alone.
//!
//! # The open tumbling window of a shard
//!
//! A window opens with the first invocation that has records of it. It ends with a final invocation, which has no
//! records:
//!
//! | it ends | because |
//! |---|---|
//! | before a batch | the batch belongs to another window |
//! | after an empty read that began after the window's end | no more of its records can be waiting |
//! | with the shard | child shards have their own windows |
//! | early | the state became too large |
//!
//! Source: U6, with AWS's event types for the early end. Where AWS leaves a choice, this mapping decides:
//!
//! - **A final invocation has no records.** A batch is not held back until it is known to be the last one. The final
//!   invocation is retried until it succeeds: "If invocation is unsuccessful, your Lambda function suspends further
//!   processing until a successful invocation." The "existing retry policies" that windows "fully support" limit
//!   batches only: a final invocation has no record to discard. The state that it returns is dropped.
//! - **An idle window ends at its end time**, with the first read that finds no more records. For Kinesis, AWS waits
//!   "for up to 2 minutes before assuming that the window is over". On an emulator, one empty read proves it.
//! - **A late record reopens its window**, with an empty state, because it belongs to no other window.
//! - **A window that ended early continues with an empty state** if more of its records come. Its final invocation got
//!   the large state. AWS's event types say: "Subsequent invoke will continue the same window with a fresh state."
//! - **The state of a partial response is kept if records are done**, because it covers them. If no record is done, the
//!   next attempt gets the same state as the last one.
//! - **A restart loses the state of the open window**, because the state is in memory only. The checkpoint moves with
//!   each batch, as without windows; AWS says only that it moves after the final invocation. After the restart the rest
//!   of the window starts with an empty state. Without more records the window has no final invocation. Stopping does
//!   not end a window either.
//!
//! # The response to a batch
//!
//! With `ReportBatchItemFailures`:
//!
//! | response | result |
//! |---|---|
//! | nothing, `null`, `""`, `{}`, `[]`, no `batchItemFailures`, or `null` or `[]` in it | success |
//! | an `itemIdentifier` that is missing, null, empty or not of this batch | the whole batch failed |
//! | identifiers of this batch | all records from the lowest on failed |
//! | anything else: not JSON, a scalar, an array that is not empty | the whole batch failed |
//!
//! Source: U4, LS. The last line is our decision: a response that cannot be understood must not count as success.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    batch::{Attributes, Held, Phase, State, Window},
    checkpoint::{Frontier, persist},
    event::{event_text, order},
    failure::{DiscardCondition, Failure},
    function::FunctionError,
    mapping::OnFailure,
    poller::{Complaint, Stop, Stopped, Waits, Wiring, chain},
    progress::{Invocation, InvocationOutcome},
};

/// Delivers the batches of one lane of a shard.
pub(crate) struct Delivery {
    wiring: Arc<Wiring>,
    shard: String,
    frontier: Arc<Frontier>,
    stop: Stop,
    invoker: Invoker,
    /// The open tumbling window of the shard.
    open: Option<Open>,
}

impl Delivery {
    pub(crate) fn new(
        wiring: Arc<Wiring>,
        shard: String,
        frontier: Arc<Frontier>,
        unavailable: Arc<Complaint>,
        stop: Stop,
    ) -> Self {
        let invoker = Invoker::new(Arc::clone(&wiring), shard.clone(), unavailable);
        Self { wiring, shard, frontier, stop, invoker, open: None }
    }

    /// Delivers a batch until each of its records is done or discarded.
    ///
    /// Checks for a stop request only between invocations, after the result of the last one is saved.
    pub(crate) async fn deliver(&mut self, batch: Vec<Held>) -> Result<(), Stopped> {
        let mut backoff = Waits::default();
        let mut portion = Portion { records: batch, n_attempts: 0 };
        loop {
            self.stop.check()?;
            let AttemptResult { has_moved, left } = self.attempt(portion).await?;
            if has_moved {
                backoff.reset();
            }
            let Some(left) = left else { return Ok(()) };
            portion = left;
            self.stop.sleep(backoff.wait()).await?;
        }
    }

    /// Tries a portion once, after discarding its expired records.
    async fn attempt(&mut self, mut portion: Portion) -> Result<AttemptResult, Stopped> {
        let n_expired = self.count_expired(&portion.records);
        if n_expired > 0 {
            let rest = portion.records.split_off(n_expired);
            // Lambda reports 1 for records that expired before their first delivery.
            self.discard(&portion.records, DiscardCondition::TooOld, portion.n_attempts.max(1)).await?;
            portion = Portion { records: rest, n_attempts: 0 };
        }
        if portion.records.is_empty() {
            return Ok(AttemptResult { has_moved: true, left: None });
        }
        self.enter_window(&portion.records).await?;
        let mut step = match self.invoke(&portion.records, portion.n_attempts + 1).await {
            Answer::DoneBefore { n_done, state } => {
                let rest = portion.records.split_off(n_done);
                self.frontier.done(&portion.records, &mut self.stop).await?;
                self.keep_state(state).await?;
                let left = (!rest.is_empty()).then_some(Portion { records: rest, n_attempts: 0 });
                AttemptResult { has_moved: true, left }
            }
            Answer::Failed { is_function_error } => {
                self.spend_attempt(portion, DiscardCondition::Exhausted { is_function_error }).await?
            }
            Answer::Unavailable => AttemptResult { has_moved: false, left: Some(portion) },
        };
        step.has_moved |= n_expired > 0;
        Ok(step)
    }

    /// Counts an attempt of a portion. Discards the portion after its last attempt.
    async fn spend_attempt(
        &mut self,
        mut portion: Portion,
        condition: DiscardCondition,
    ) -> Result<AttemptResult, Stopped> {
        portion.n_attempts += 1;
        if self.wiring.mapping.retry_attempts_max.is_none_or(|retries| portion.n_attempts <= retries) {
            return Ok(AttemptResult { has_moved: false, left: Some(portion) });
        }
        self.discard(&portion.records, condition, portion.n_attempts).await?;
        Ok(AttemptResult { has_moved: true, left: None })
    }

    fn count_expired(&self, batch: &[Held]) -> usize {
        let now = (self.wiring.clock)();
        let age_ms_max = self.wiring.mapping.record_age_ms_max;
        age_ms_max.map_or(0, |age_ms_max| batch.iter().take_while(|held| held.is_older(age_ms_max, now)).count())
    }

    async fn invoke(&mut self, batch: &[Held], attempt: u32) -> Answer {
        let sequence_numbers: Vec<&str> = batch.iter().map(|held| held.record.sequence_number.as_str()).collect();
        let age = batch.last().and_then(|last| last.age((self.wiring.clock)()));
        self.invoker.invoke(self.event(batch), &sequence_numbers, attempt, age).await
    }

    /// Writes the failure record if the mapping has a destination. Then the records count as done.
    async fn discard(
        &mut self,
        given_up: &[Held],
        condition: DiscardCondition,
        n_invocations: u32,
    ) -> Result<(), Stopped> {
        let key = match self.wiring.mapping.on_failure {
            Some(kind) => Some(self.keep(given_up, condition, n_invocations, kind).await?),
            None => None,
        };
        let (observer, mapping) = (&self.wiring.observer, &self.wiring.mapping.name);
        observer.discarded(mapping, &self.shard, given_up.len(), key.as_deref());
        self.frontier.done(given_up, &mut self.stop).await
    }

    /// Writes the failure record, retrying until it succeeds. Returns its key.
    async fn keep(
        &mut self,
        given_up: &[Held],
        condition: DiscardCondition,
        n_invocations: u32,
        kind: OnFailure,
    ) -> Result<String, Stopped> {
        let wiring = Arc::clone(&self.wiring);
        let failure = Failure {
            mapping: &wiring.mapping.name,
            stream_arn: &wiring.mapping.stream_arn,
            shard: &self.shard,
            condition,
            n_invocations,
            records: given_up,
            payload: (kind == OnFailure::S3).then(|| self.event(given_up)),
            now: (wiring.clock)(),
        };
        let (key, request_id) = (failure.key(rand::random()), rand::random());
        let attempt = || -> BoxFuture<'_, Result<(), String>> {
            let put = async {
                let body = failure.body(request_id).map_err(|error| chain(&error))?;
                wiring.destination.put(key.clone(), body).await.map_err(|error| chain(&error))
            };
            Box::pin(put)
        };
        persist(&wiring, &mut self.stop, "the failure record cannot be written", attempt).await?;
        Ok(key)
    }
}

/// Records that are tried together: a batch or a part of one.
struct Portion {
    records: Vec<Held>,
    /// Failed attempts so far. An invocation that did not reach the function does not count.
    n_attempts: u32,
}

struct AttemptResult {
    /// Whether records are done or discarded, so that the checkpoint can move.
    has_moved: bool,
    /// The records to try next.
    left: Option<Portion>,
}

// ---- The open tumbling window of a shard ----

/// The open window of a shard.
#[derive(Debug)]
struct Open {
    window: Window,
    /// The state in the last response of this window.
    state: State,
}

impl Delivery {
    fn event(&self, batch: &[Held]) -> String {
        let records = batch.iter().map(|held| &held.record);
        match self.window_of(batch) {
            None => event_text(records),
            Some(window) => {
                let empty = State::empty();
                let open = self.open.as_ref().filter(|open| open.window == window);
                let state = open.map_or(&empty, |open| &open.state);
                self.attributes(window, state, Phase::Aggregate).event_text(records)
            }
        }
    }

    /// Opens the window of a batch. Ends another open window first.
    async fn enter_window(&mut self, batch: &[Held]) -> Result<(), Stopped> {
        let Some(window) = self.window_of(batch) else { return Ok(()) };
        if self.open.as_ref().is_some_and(|open| open.window == window) {
            return Ok(());
        }
        self.end_window().await?;
        self.open = Some(Open { window, state: State::empty() });
        Ok(())
    }

    /// Stores the state of a response. A state that is too large ends the window.
    async fn keep_state(&mut self, state: Option<State>) -> Result<(), Stopped> {
        let (Some(open), Some(state)) = (&mut self.open, state) else { return Ok(()) };
        open.state = state;
        if open.state.is_too_large() { self.invoke_finally(Phase::TerminatedEarly).await } else { Ok(()) }
    }

    /// Ends the open window if it is over at `now`.
    pub(crate) async fn end_window_if_over(&mut self, now: SystemTime) -> Result<(), Stopped> {
        if self.open.as_ref().is_some_and(|open| open.window.is_over(now)) {
            return self.end_window().await;
        }
        Ok(())
    }

    pub(crate) async fn end_window(&mut self) -> Result<(), Stopped> {
        self.invoke_finally(Phase::Final).await
    }

    /// Sends the final invocation of the open window until it succeeds.
    async fn invoke_finally(&mut self, phase: Phase) -> Result<(), Stopped> {
        let Some(Open { window, state }) = &self.open else { return Ok(()) };
        let event = self.attributes(*window, state, phase).event_text([]);
        let mut n_attempts: u32 = 0;
        let mut backoff = Waits::default();
        loop {
            self.stop.check()?;
            match self.invoker.invoke(event.clone(), &[], n_attempts + 1, None).await {
                Answer::DoneBefore { .. } => break,
                Answer::Failed { .. } => n_attempts += 1,
                Answer::Unavailable => {}
            }
            self.stop.sleep(backoff.wait()).await?;
        }
        self.open = None;
        Ok(())
    }

    fn window_of(&self, batch: &[Held]) -> Option<Window> {
        batch.first()?.window(self.wiring.mapping.tumbling_window_seconds)
    }

    fn attributes<'a>(&'a self, window: Window, state: &'a State, phase: Phase) -> Attributes<'a> {
        Attributes { window, state, shard: &self.shard, stream_arn: &self.wiring.mapping.stream_arn, phase }
    }
}

// ---- One invocation of the function, and what it means for the records of its event ----

/// Invokes the function for one lane of a shard, and notifies the observer.
struct Invoker {
    wiring: Arc<Wiring>,
    shard: String,
    /// Shared by all lanes of the shard, because they invoke the same function.
    unavailable: Arc<Complaint>,
}

/// The result of one invocation.
enum Answer {
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
    fn new(wiring: Arc<Wiring>, shard: String, unavailable: Arc<Complaint>) -> Self {
        Self { wiring, shard, unavailable }
    }

    /// Invokes the function once. `sequence_numbers` are those of the event's records; `iterator_age` is the age of the
    /// last record.
    async fn invoke(
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

// ---- The response to a batch ----

/// The result of a batch by its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseVerdict {
    /// The batch is done.
    Success,
    /// The records before this index are done; this one and those after it are not.
    FailedFrom(usize),
    /// No record of the batch counts as done.
    Failed,
}

/// Interprets a response. `sequence_numbers` are those of the batch, in its order.
fn judge(response: &str, sequence_numbers: &[&str]) -> ResponseVerdict {
    if response.trim().is_empty() {
        return ResponseVerdict::Success;
    }
    let failures = match serde_json::from_str(response) {
        Ok(Value::Null) => return ResponseVerdict::Success,
        Ok(Value::String(text)) if text.is_empty() => return ResponseVerdict::Success,
        Ok(Value::Array(items)) if items.is_empty() => return ResponseVerdict::Success,
        Ok(Value::Object(mut object)) => object.remove("batchItemFailures").unwrap_or(Value::Null),
        _ => return ResponseVerdict::Failed,
    };
    match failures {
        Value::Null => ResponseVerdict::Success,
        Value::Array(items) => lowest(&items, sequence_numbers),
        _ => ResponseVerdict::Failed,
    }
}

fn lowest(items: &[Value], sequence_numbers: &[&str]) -> ResponseVerdict {
    let mut lowest: Option<usize> = None;
    for item in items {
        let failed = item.get("itemIdentifier").and_then(Value::as_str).filter(|text| !text.is_empty());
        let index = failed.and_then(|failed| sequence_numbers.iter().position(|number| order(number) == order(failed)));
        match index {
            None => return ResponseVerdict::Failed,
            Some(index) => lowest = Some(lowest.map_or(index, |lowest| lower(lowest, index, sequence_numbers))),
        }
    }
    lowest.map_or(ResponseVerdict::Success, ResponseVerdict::FailedFrom)
}

/// The index with the lower sequence number. A batch is already in that order; this compares the numbers, not the
/// positions.
fn lower(a: usize, b: usize, sequence_numbers: &[&str]) -> usize {
    let at = |index: usize| sequence_numbers.get(index).map(|number| order(number));
    if at(b) < at(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::{ResponseVerdict, judge};

    const BATCH: [&str; 3] = ["82000000", "168300000", "0257400000"];

    fn failures(identifiers: &[&str]) -> String {
        let items: Vec<_> = identifiers.iter().map(|id| serde_json::json!({ "itemIdentifier": id })).collect();
        serde_json::json!({ "batchItemFailures": items }).to_string()
    }

    /// Source: U4, LS.
    #[test]
    fn empty_responses_are_success() {
        for response in
            ["", " ", "null", "\"\"", "{}", "[]", r#"{"batchItemFailures":null}"#, r#"{"batchItemFailures":[]}"#]
        {
            assert_eq!(judge(response, &BATCH), ResponseVerdict::Success, "{response:?}");
        }
        assert_eq!(judge(r#"{"statusCode":200}"#, &BATCH), ResponseVerdict::Success);
    }

    /// Source: U4, LS.
    #[test]
    fn identifiers_that_are_not_of_the_batch_fail_all_of_it() {
        for response in [
            r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
            r#"{"batchItemFailures":[{"foo":"82000000"}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":"123"}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":"168300000"},{"itemIdentifier":"123"}]}"#,
            r#"{"batchItemFailures":"168300000"}"#,
            "true",
            "[1]",
            "not json",
        ] {
            assert_eq!(judge(response, &BATCH), ResponseVerdict::Failed, "{response:?}");
        }
    }

    /// Source: U4.
    #[test]
    fn the_lowest_sequence_number_counts_as_an_integer_not_as_text() {
        assert_eq!(judge(&failures(&["0257400000", "168300000"]), &BATCH), ResponseVerdict::FailedFrom(1));
        assert_eq!(judge(&failures(&["168300000", "82000000"]), &BATCH), ResponseVerdict::FailedFrom(0));
        assert_eq!(judge(&failures(&["257400000"]), &BATCH), ResponseVerdict::FailedFrom(2));
    }
}

//! One batch at a time, to the function until it is done with or given up on.
//!
//! The checkpoint moves only behind records that the function answered for or whose failure record is written. Whenever
//! it moves, the count of attempts starts over, as Lambda's does: with 6 records, batches of 3 and 3 retries, a last
//! record that always fails is delivered once in `[4,5,6]` and then four times alone.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::backoff::Backoff;
use crate::batch::Held;
use crate::failure::{Condition, Failure};
use crate::frontier::Frontier;
use crate::invocation::{Answer, Invoker};
use crate::persist::persist;
use crate::stop::{Stop, Stopped};
use crate::wiring::{Complaint, Wiring, chain};

mod tumbling;

/// Delivers the batches of one lane of a shard.
pub(crate) struct Delivery {
    wiring: Arc<Wiring>,
    shard: String,
    frontier: Arc<Frontier>,
    stop: Stop,
    invoker: Invoker,
    /// The tumbling window that the shard is in.
    open: Option<tumbling::Open>,
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

    /// Delivers a batch until it is done with or given up on.
    ///
    /// Stopping is looked for between invocations only, and never before what an invocation did is saved.
    pub(crate) async fn deliver(&mut self, mut batch: Vec<Held>) -> Result<(), Stopped> {
        let mut n_attempts: u32 = 0;
        let mut backoff = Backoff::new();
        loop {
            self.stop.check()?;
            let n_expired = self.count_expired(&batch);
            if n_expired > 0 {
                let rest = batch.split_off(n_expired);
                // Lambda says 1 for records that expired before their first delivery.
                self.discard(&batch, Condition::TooOld, n_attempts.max(1)).await?;
                batch = rest;
                n_attempts = 0;
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.enter_window(&batch).await?;
            match self.invoke(&batch, n_attempts + 1).await {
                Answer::DoneBefore { n_done, state } => {
                    let rest = batch.split_off(n_done);
                    self.frontier.done(&batch, &mut self.stop).await?;
                    self.keep_state(state).await?;
                    batch = rest;
                    n_attempts = 0;
                    backoff.reset();
                }
                Answer::Failed { is_function_error } => {
                    n_attempts += 1;
                    if self.wiring.mapping.retry_attempts_max.is_some_and(|retries| n_attempts > retries) {
                        let condition = Condition::Exhausted { is_function_error };
                        return self.discard(&batch, condition, n_attempts).await;
                    }
                }
                Answer::Unavailable => {}
            }
            if !batch.is_empty() {
                self.stop.sleep(backoff.wait()).await?;
            }
        }
    }

    fn count_expired(&self, batch: &[Held]) -> usize {
        let now = (self.wiring.clock)();
        let age_ms_max = self.wiring.mapping.record_age_ms_max;
        age_ms_max.map_or(0, |age_ms_max| batch.iter().take_while(|held| held.is_older(age_ms_max, now)).count())
    }

    async fn invoke(&mut self, batch: &[Held], attempt: u32) -> Answer {
        let sequence_numbers: Vec<&str> = batch.iter().map(|held| held.record.sequence_number.as_str()).collect();
        self.invoker.invoke(self.event(batch), &sequence_numbers, attempt).await
    }

    /// Writes the failure record of these records, then they are done.
    async fn discard(&mut self, given_up: &[Held], condition: Condition, n_invocations: u32) -> Result<(), Stopped> {
        let wiring = Arc::clone(&self.wiring);
        let shard = self.shard.clone();
        let failure = Failure {
            mapping: &wiring.mapping.name,
            stream_arn: &wiring.mapping.stream_arn,
            shard: &shard,
            condition,
            n_invocations,
            records: given_up,
            payload: self.event(given_up),
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
        wiring.observer.discarded(&wiring.mapping.name, &shard, given_up.len(), &key);
        self.frontier.done(given_up, &mut self.stop).await
    }
}

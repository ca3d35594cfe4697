//! One batch at a time, to the function until it is done with or given up on.
//!
//! The checkpoint moves only behind records that the function answered for or whose failure record is written. Whenever
//! it moves, the count of attempts starts over, as Lambda's does: with 6 records, batches of 3 and 3 retries, a last
//! record that always fails is delivered once in `[4,5,6]` and then four times alone.
//!
//! With bisecting, a batch of eight of which one is poison goes as 8, 4, 2 and 1, and only the poison is given up on: an
//! invocation that leads to a split counts as no attempt.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::backoff::Waits;
use crate::batch::Held;
use crate::failure::{DiscardCondition, Failure};
use crate::frontier::Frontier;
use crate::invocation::{Answer, Invoker};
use crate::mapping::OnFailure;
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
    pub(crate) async fn deliver(&mut self, batch: Vec<Held>) -> Result<(), Stopped> {
        let mut backoff = Waits::default();
        // The last is the next.
        let mut pieces = vec![Portion { records: batch, n_attempts: 0 }];
        while let Some(piece) = pieces.pop() {
            self.stop.check()?;
            let AttemptResult { has_moved, left } = self.attempt(piece).await?;
            if has_moved {
                for piece in &mut pieces {
                    piece.n_attempts = 0;
                }
                backoff.reset();
            }
            if !left.is_empty() {
                pieces.extend(left.into_iter().rev());
                self.stop.sleep(backoff.wait()).await?;
            }
        }
        Ok(())
    }

    /// Tries a piece once, without what is too old by now.
    async fn attempt(&mut self, mut piece: Portion) -> Result<AttemptResult, Stopped> {
        let n_expired = self.count_expired(&piece.records);
        if n_expired > 0 {
            let rest = piece.records.split_off(n_expired);
            // Lambda says 1 for records that expired before their first delivery.
            self.discard(&piece.records, DiscardCondition::TooOld, piece.n_attempts.max(1)).await?;
            piece = Portion { records: rest, n_attempts: 0 };
        }
        if piece.records.is_empty() {
            return Ok(AttemptResult { has_moved: true, left: Vec::new() });
        }
        self.enter_window(&piece.records).await?;
        let mut step = match self.invoke(&piece.records, piece.n_attempts + 1).await {
            Answer::DoneBefore { n_done, state } => {
                let rest = piece.records.split_off(n_done);
                self.frontier.done(&piece.records, &mut self.stop).await?;
                self.keep_state(state).await?;
                let left = if rest.is_empty() { Vec::new() } else { vec![Portion { records: rest, n_attempts: 0 }] };
                AttemptResult { has_moved: true, left }
            }
            Answer::Failed { is_function_error, is_located } => {
                let does_bisect = self.wiring.mapping.bisect_batch_on_function_error && !is_located;
                if does_bisect && piece.records.len() > 1 {
                    AttemptResult { has_moved: false, left: piece.halves().into() }
                } else {
                    self.spend_attempt(piece, DiscardCondition::Exhausted { is_function_error }).await?
                }
            }
            Answer::Unavailable => AttemptResult { has_moved: false, left: vec![piece] },
        };
        step.has_moved |= n_expired > 0;
        Ok(step)
    }

    /// Counts an attempt of a piece, and gives up on it if that was the last.
    async fn spend_attempt(
        &mut self,
        mut piece: Portion,
        condition: DiscardCondition,
    ) -> Result<AttemptResult, Stopped> {
        piece.n_attempts += 1;
        if self.wiring.mapping.retry_attempts_max.is_none_or(|retries| piece.n_attempts <= retries) {
            return Ok(AttemptResult { has_moved: false, left: vec![piece] });
        }
        self.discard(&piece.records, condition, piece.n_attempts).await?;
        Ok(AttemptResult { has_moved: true, left: Vec::new() })
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

    /// Writes the failure record of these records where the mapping has a destination, then they are done.
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

    /// Writes the failure record of these records, for as long as it takes. Its key.
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

/// Records that are tried together: a batch, or a part of one.
struct Portion {
    records: Vec<Held>,
    /// The invocations that count against the retries.
    n_attempts: u32,
}

impl Portion {
    /// The halves of two records or more, the first with the odd one less. They keep the attempts: splitting spends none.
    fn halves(mut self) -> [Self; 2] {
        let rest = self.records.split_off(self.records.len() / 2);
        let n_attempts = self.n_attempts;
        [self, Self { records: rest, n_attempts }]
    }
}

/// What came of one attempt.
struct AttemptResult {
    /// Whether records are done with, so that the checkpoint can move.
    has_moved: bool,
    /// What is to be tried next, in order.
    left: Vec<Portion>,
}

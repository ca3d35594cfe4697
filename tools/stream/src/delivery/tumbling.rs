//! The tumbling window that a shard is in.
//!
//! A window opens with the first invocation that has records of it, and ends with a final invocation, which has none:
//!
//! | it ends | because |
//! |---|---|
//! | before a batch | the batch is of another window |
//! | after an empty read that began behind the window's end | nothing of it can be waiting any more |
//! | with the shard | children have windows of their own |
//! | early | the state became too large |
//!
//! Source: reference B7 and AWS's pages on stateful stream processing in Lambda. What they leave open is chosen so:
//!
//! - **A final invocation has no records**, since a batch is not held back until it is known to be the last.
//!   It is tried until it succeeds: "If invocation is unsuccessful, your Lambda function suspends further processing
//!   until a successful invocation." The "existing retry policies" that windows "fully support" limit the batches: there
//!   is no record in a final invocation to give up on. The state that it returns is dropped.
//! - **An idle window ends at its end**, with the first read that finds nothing more. For Kinesis, AWS waits "for up to 2
//!   minutes before assuming that the window is over"; an empty read of an emulator says it at once.
//! - **A record that comes after its window ended opens it again**, with an empty state: it is a record of no other.
//! - **A window that ended early goes on with an empty state** if more of its records come; the final invocation that
//!   ended it had the large state. AWS's event types say so: "Subsequent invoke will continue the same window with a
//!   fresh state."
//! - **A partial response's state is kept if the checkpoint moved**, because it speaks for the records that are done. If
//!   nothing was done the next try has the state of the last.
//! - **A restart forgets the window that was open**, since the state is nowhere but here: the checkpoint moves with each
//!   batch as it does without windows (AWS says no more than that it moves after the final invocation), and what is left
//!   of the window begins with an empty state. A window without more records then has no final invocation. Stopping does
//!   not end a window either.

use std::time::SystemTime;

use super::Delivery;
use crate::backoff::Waits;
use crate::batch::Held;
use crate::event::event_text;
use crate::invocation::Answer;
use crate::stop::Stopped;
use crate::window::{Attributes, Phase, State, Window};

/// The open window of a shard.
#[derive(Debug)]
pub(super) struct Open {
    window: Window,
    /// What the last response of this window returned.
    state: State,
}

impl Delivery {
    /// The event of a batch.
    pub(super) fn event(&self, batch: &[Held]) -> String {
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

    /// Opens the window of a batch, after the one that was open has ended.
    pub(super) async fn enter_window(&mut self, batch: &[Held]) -> Result<(), Stopped> {
        let Some(window) = self.window_of(batch) else { return Ok(()) };
        if self.open.as_ref().is_some_and(|open| open.window == window) {
            return Ok(());
        }
        self.end_window().await?;
        self.open = Some(Open { window, state: State::empty() });
        Ok(())
    }

    /// Keeps the state that a response returned. One that is too large ends the window.
    pub(super) async fn keep_state(&mut self, state: Option<State>) -> Result<(), Stopped> {
        let (Some(open), Some(state)) = (&mut self.open, state) else { return Ok(()) };
        open.state = state;
        if open.state.is_too_large() { self.invoke_finally(Phase::TerminatedEarly).await } else { Ok(()) }
    }

    /// Ends the window that is open, if it is over at this time of day.
    pub(crate) async fn end_window_if_over(&mut self, now: SystemTime) -> Result<(), Stopped> {
        if self.open.as_ref().is_some_and(|open| open.window.is_over(now)) {
            return self.end_window().await;
        }
        Ok(())
    }

    /// Ends the window that is open.
    pub(crate) async fn end_window(&mut self) -> Result<(), Stopped> {
        self.invoke_finally(Phase::Final).await
    }

    /// The final invocation of the window that is open, until it succeeds.
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

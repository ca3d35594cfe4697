//! An operator's orders for jobs: pause, resume, cancel.
//!
//! *Keeps true*: an order reaches the job that was meant, or does nothing. An ended job stays ended: the order writes
//! nothing in its place, and treats a job that was created later as another job.
//!
//! Pausing and resuming a job raise its revision, as every order does. So a page in progress cannot move the cursor of
//! a paused job, and a paused job stays at its position. An order whose call arrives late, after other orders, does
//! nothing.

pub mod ground;
pub mod pulse;

use std::collections::BTreeSet;

use derive::write::{Action, Table, Update, Write};
use keys::{
    item::Item,
    job::{MOVES, PAUSED},
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store};

use crate::{
    attribute::n,
    backoff::{GaveUp, Patience, Tries},
    context::Context,
    fan_out,
    job::{Job, MOVED_AT, Task},
};

/// An order for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// Pauses the job, whatever its state.
    Pause,
    /// The job continues from where it was paused.
    Resume,
    /// Cancels the job: the rest of its work stays undone.
    Cancel,
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Obeyed {
    /// It is done; with the job as it was just before.
    Done(Box<Job>),
    /// The job already had the ordered state.
    Already,
    /// The job has ended meanwhile.
    Gone,
}

impl Job {
    /// The write that carries out the order; `None` if the job already has the ordered state.
    fn obeys(&self, order: JobOrder, now_ms: u64) -> Option<Write> {
        let moves = (MOVES.to_owned(), n(self.n_moves + 1));
        let action = match order {
            JobOrder::Pause if self.is_paused => return None,
            JobOrder::Resume if !self.is_paused => return None,
            JobOrder::Pause => {
                let held = (PAUSED.to_owned(), AttributeValue::Bool(true));
                Action::Update(Update::set(Item::from([moves, held])))
            }
            JobOrder::Resume => {
                // As if the job had just moved, so that no sweep treats it as stalled.
                let set = Item::from([moves, (MOVED_AT.to_owned(), n(now_ms))]);
                let remove = BTreeSet::from([PAUSED.to_owned()]);
                Action::Update(Update { set, remove, ..Update::default() })
            }
            JobOrder::Cancel => Action::Delete,
        };
        Some(Write { table: Table::Main, key: self.key.clone(), action, guard: Some(self.unmoved()) })
    }
}

/// True if the job searches an index. The sweep then [repeats](crate::fan_out::again) the whole search when the index
/// has had time to catch up, which creates another such job, cancelled or not.
#[must_use]
pub(crate) fn is_searched_again<S: Store>(context: &Context<S>, job: &Job) -> bool {
    let position = context.catalogue.position(&job.derivation).filter(|_| matches!(job.task, Task::FanOut(_)));
    let find = position.and_then(|position| fan_out::search_of(context, position, job.origin()));
    find.is_some_and(|find| find.query.index.is_some())
}

/// Carries out an order for a job that was read before.
pub(crate) async fn order<S: Store>(
    context: &Context<S>,
    job: &Job,
    order: JobOrder,
    deadline_ms: u64,
) -> Result<Obeyed, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    let (keys, mut tries) = ([job.key.clone()], Tries::default());
    loop {
        let held = patience.call(|| context.store.get(Table::Main, &keys)).await?.into_iter().next();
        let held = held.and_then(|(_, item)| Job::of(&context.schema.layout, &item));
        let Some(held) = held.filter(|held| held.started_at_ms == job.started_at_ms) else {
            return Ok(Obeyed::Gone);
        };
        let Some(write) = held.obeys(order, context.clock.now_ms()) else { return Ok(Obeyed::Already) };
        match patience.call(|| context.store.write(&write)).await? {
            Outcome::Done { .. } => return Ok(Obeyed::Done(Box::new(held))),
            // The job moved on, or has ended.
            Outcome::GuardFailed if patience.wait(&mut tries).await => {}
            Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
        }
    }
}

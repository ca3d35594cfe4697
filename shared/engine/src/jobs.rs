//! What an operator asks of jobs: to be held, to go on, to be given up.
//!
//! *Keeps true*: an order is done to the job that was meant, or not at all. A job that has ended meanwhile stays ended:
//! nothing is written in its place, and the one that began after it is another.
//!
//! Holding a job and letting it go on raise its revision, as every order does. So a page that is under
//! way moves the cursor no more once the job is held, and a job that is held stays where it is; and an order whose call
//! lands late, when others came after it, does nothing.

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

/// What is asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// It is held, whatever its state.
    Pause,
    /// It goes on from where it was held.
    Resume,
    /// It is given up: what it has not done stays undone.
    Cancel,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Obeyed {
    /// It is done; with the job as it was just before.
    Done(Box<Job>),
    /// It was so before.
    Already,
    /// The job has ended meanwhile.
    Gone,
}

impl Job {
    /// The write that does what is asked; `None` when it is so already.
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
                // As if it had just moved, so that no sweep takes it for one that stands still.
                let set = Item::from([moves, (MOVED_AT.to_owned(), n(now_ms))]);
                let remove = BTreeSet::from([PAUSED.to_owned()]);
                Action::Update(Update { set, remove, ..Update::default() })
            }
            JobOrder::Cancel => Action::Delete,
        };
        Some(Write { table: Table::Main, key: self.key.clone(), action, guard: Some(self.unmoved()) })
    }
}

/// Does the job go by an index? Then all of it is [searched for again](crate::fan_out::again) when the index has had
/// time, which begins another such job, cancelled or not.
#[must_use]
pub(crate) fn is_searched_again<S: Store>(context: &Context<S>, job: &Job) -> bool {
    let position = context.catalogue.position(&job.derivation).filter(|_| matches!(job.task, Task::FanOut(_)));
    let find = position.and_then(|position| fan_out::search_of(context, position, job.origin()));
    find.is_some_and(|find| find.query.index.is_some())
}

/// Does what is asked of a job that was read before.
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
            // It moved on, or has ended.
            Outcome::GuardFailed if patience.wait(&mut tries).await => {}
            Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
        }
    }
}

//! Moving a job on: from where it was read, and under the revision that was read.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::job::MOVES;

use crate::{
    attribute::n,
    fan_out::progress::{FREE_AT, ROUND, UNTIL},
    jobs::job::{Job, PAGE, STARTED_AT, Task},
};

impl Job {
    /// The write that moves it to where `next` is, as long as nobody else moved it.
    pub(crate) fn moves_to(&self, next: &Self) -> Write {
        let set = next.progress();
        let optional: &[&str] = match next.task {
            Task::FanOut(_) => &[UNTIL, ROUND, FREE_AT],
            Task::Cascade { .. } => &[PAGE],
        };
        let remove = optional.iter().filter(|name| set.get(name).is_none()).map(|name| (*name).to_owned()).collect();
        let action = Action::Update(Update { set, remove, ..Update::default() });
        Write { table: Table::Main, key: self.key.clone(), action, guard: Some(self.unmoved()) }
    }

    /// It is as it was read, and none that began after it under the same key, which has the same revisions.
    pub(crate) fn unmoved(&self) -> Guard {
        let read = [(STARTED_AT, self.started_at_ms), (MOVES, self.n_moves)];
        Guard::as_read(Purpose::Job, read.map(|(name, number)| (name, Some(n(number)))))
    }
}

//! Fan-out: looking at all items that follow from a source, however many they are.
//!
//! *Keeps true*: after a source has changed, each item that a search of it finds is looked at, with a value that is at
//! least as new as the change; or there is a job that will.
//!
//! A search whose first page is all of it is done with its batch. A larger one becomes a *job*: an item that holds the
//! derivation, the source's key and a cursor. Its record in the stream does a page of it and moves the cursor, which
//! makes the next record; so a crash goes on at the cursor, and other records come in between. The source is read anew
//! for every page.
//!
//! *A newer change* finds the job at some cursor. It does not start over, or a busy source would never reach its last
//! items: it notes that the job shall go on to the end, then from the start to where it is now. That raises the job's
//! revision, and a page moves the cursor only under the revision that it read; else it is done again.
//!
//! *Copies* are written without reading the item (module `unread`), on the condition that the item names the source.
//!
//! *An index that lags* may not show an item yet. So each search of an index, small or large, is made [`again`]
//! when it has had time.

pub mod again;
pub mod limits;
pub(crate) mod note;
pub(crate) mod page;
pub mod progress;
pub(crate) mod search;
pub(crate) mod underway;
mod unread;

use std::collections::BTreeSet;

use derive::{
    declaration::found_by::through,
    effect::Find,
    guard::{Guard, Purpose},
    position::DerivationAt,
    query::Query,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    job::JobKey,
    key::Key,
    layout::Layout,
};
use store::{Outcome, Store, Units};

use crate::{
    backoff::{GaveUp, Patience, Tries},
    context::Context,
    fan_out::{
        note::{Note, mark, marked_to},
        progress::{FanOut, id_of},
    },
    jobs::job::{Job, Task},
    protocol::ProtocolStep,
};

/// A write that was done, and what it consumed.
pub(crate) type FanOutWrite = (Table, Key, Units);

/// Begins fan-outs, and knows what they search for.
pub(crate) struct FanOuts<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> FanOuts<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> FanOuts<'_, S> {
    /// The item to which a found item leads.
    pub(crate) fn leads_to(&self, item: &Item, find: &Find) -> Option<Key> {
        let key = self.context.schema.layout.key(item)?;
        let schema = &self.context.schema;
        let own = schema.image(&key, item).filter(|image| image.is(&find.via));
        let is_way = find.via != find.target && self.context.takes(ProtocolStep::OccupiedWay);
        let via = own.or_else(|| schema.under_key_of(&find.via, &key, item).filter(|_| is_way))?;
        through(schema, &via, &find.target)
    }

    /// What a derivation searches for when a source of this key changes.
    pub(crate) fn search_of(&self, derivation: DerivationAt, source: &Key) -> Option<Find> {
        self.context.catalogue.derivation(derivation)?.kind.refresh()?.find_from(&self.context.schema, source)
    }

    /// Has all items looked at that follow from a source: begins a job, or changes the one that there is. What it
    /// wrote is in `written`, also if it gives up.
    pub(crate) async fn fan_out(
        &self,
        derivation: DerivationAt,
        source: &Key,
        patience: Patience<'_>,
        written: &mut Vec<FanOutWrite>,
    ) -> Result<(), GaveUp> {
        let job_key = JobKey { derivation: self.context.catalogue.name(derivation).to_owned(), id: id_of(source) };
        let key = job_key.key();
        let mut tries = Tries::default();
        loop {
            let keys = [key.clone()];
            let held = patience.call(|| self.context.store.get(Table::Main, &keys)).await?.into_iter().next();
            let now_ms = self.context.clock.now_ms();
            let write = if let Some(job) = held.and_then(|(_, item)| Job::of(&self.context.schema.layout, &item)) {
                let Some(write) = self.circle(&job, now_ms) else { return Ok(()) };
                write
            } else {
                let job = Job::running(&job_key, Task::FanOut(FanOut::of_all(source)), now_ms);
                let due = job.entry().put(&self.context.schema.layout);
                if let Outcome::Done { units } = patience.call(|| self.context.store.write(&due)).await? {
                    written.push((Table::Ledger, due.key, units));
                }
                let action = Action::Put(job.item(&self.context.schema.layout));
                Write { table: Table::Main, key: key.clone(), action, guard: Some(Guard::absent(Purpose::NewJob)) }
            };
            match patience.call(|| self.context.store.write(&write)).await? {
                Outcome::Done { units } => {
                    written.push((Table::Main, key, units));
                    return Ok(());
                }
                // It moved on, ended, or was begun meanwhile.
                Outcome::GuardFailed if patience.wait(&mut tries).await => {}
                Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
            }
        }
    }

    /// The write that makes a job take up a newer change: it goes on to the end, and from the start to where it is now.
    fn circle(&self, job: &Job, now_ms: u64) -> Option<Write> {
        if !self.context.takes(ProtocolStep::Circle) {
            return None;
        }
        let Task::FanOut(fan_out) = &job.task else { return None };
        let find = self.search_of(self.context.catalogue.position(&job.derivation)?, job.origin());
        let sort_key = find.as_ref().and_then(|find| self.sort_key_name(&find.query));
        let until = job.after.as_ref().zip(sort_key).and_then(|(after, name)| text(&after.0, name).map(str::to_owned));
        let fan_out = FanOut { until, is_round: false, ..fan_out.clone() };
        let mut next = Job { n_moves: job.n_moves + 1, task: Task::FanOut(fan_out), ..job.clone() };
        next.moved_at_ms = now_ms;
        Some(job.moves_to(&next))
    }

    /// Name of the sort key by which a query gives its items.
    fn sort_key_name(&self, query: &Query) -> Option<&str> {
        let layout = &self.context.schema.layout;
        match &query.index {
            Some(index) => layout.index(index).map(|index| index.sk.as_str()),
            None => Some(&layout.sk),
        }
    }
}

/// A job, a note and a mark, as they are written.
pub(crate) fn samples(layout: &Layout, derivation: &str, source: &Key) -> (Write, [Write; 2]) {
    let key = JobKey { derivation: derivation.to_owned(), id: id_of(source) };
    let fan_out = FanOut { until: Some("{Until}".to_owned()), is_round: true, free_at_ms: 1, ..FanOut::of_all(source) };
    let job = Job::running(&key, Task::FanOut(fan_out), 0);
    let put = Action::Put(job.item(layout));
    let note = Note { item: source.clone(), derivations: BTreeSet::from([derivation.to_owned()]) };
    let mark = marked_to(layout, &mark(), "{Last}");
    (Write { table: Table::Main, key: job.key, action: put, guard: None }, [note.write(0, 0), mark])
}

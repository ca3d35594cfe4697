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
mod page;
mod search;
mod unread;

use std::collections::BTreeSet;

use again::Note;
use derive::{
    effect::Find,
    guard::Guard,
    query::Query,
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    job::{JobKey, MOVES},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, Units};

use crate::{
    attribute::{n, number, s},
    backoff::{GaveUp, Patience, Tries},
    batch::Engine,
    jobs::job::{Job, STARTED_AT, Task},
    look::listing::checksum,
    protocol::ProtocolStep,
};

// Attributes of a job that fans out. Stored, so they are stable.
const SOURCE_PK: &str = "SourcePK";
const SOURCE_SK: &str = "SourceSK";
const UNTIL: &str = "Until";
const ROUND: &str = "Round";
const FREE_AT: &str = "FreeAt";

/// Longest key of a source that is spelled out in a job's key, in bytes: escaped, it still fits in a sort key.
const SPELLED_OUT_MAX: usize = 256;

/// How much is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most items that are looked at with the batch that asks for it.
    pub direct_max: u32,
    /// Items that are read and looked at together.
    pub page_items: u32,
    /// How long a page goes on, in milliseconds, when nothing but jobs was done for as long.
    pub page_ms: u64,
    /// The same when something else was, since others may wait behind it.
    pub page_beside_ms: u64,
    /// Write units a second that a job may consume; as many as there are where nothing is said.
    pub units_per_second: Option<u32>,
    /// How long an index may lag, in milliseconds: a search of it is made again after that. 0 where an index is part of
    /// its table, as an emulator's is: then no search is made again, which would send a job around once more.
    pub index_lag_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            direct_max: 100,
            page_items: 500,
            page_ms: 1_000,
            page_beside_ms: 100,
            units_per_second: None,
            // An index follows within a second, but it has no bound: throttled, it falls behind. The sweeper comes
            // every 15 minutes.
            index_lag_ms: 15 * 60 * 1_000,
        }
    }
}

/// What a job of this kind works at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// The source that changed.
    pub source: Key,
    /// Sort key up to which the job goes on when it has been to the end, since the source changed meanwhile.
    pub until: Option<String>,
    /// Has it been to the end?
    pub is_round: bool,
    /// From when on it may write again, in milliseconds since the epoch, where its rate is limited.
    pub free_at_ms: u64,
}

impl FanOut {
    /// All of a source's search.
    fn of_all(source: &Key) -> Self {
        let source = source.clone();
        Self { source, until: None, is_round: false, free_at_ms: 0 }
    }

    /// What an item of a job says; `None` when it is no job of this kind.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        Some(Self {
            source: Key::new(text(item, SOURCE_PK)?, text(item, SOURCE_SK)?),
            until: text(item, UNTIL).map(str::to_owned),
            is_round: item.get(ROUND) == Some(&AttributeValue::Bool(true)),
            free_at_ms: number(item, FREE_AT).unwrap_or(0),
        })
    }

    /// The attributes that stay as they are.
    pub(crate) fn origin(&self) -> Item {
        Item::from([(SOURCE_PK.to_owned(), s(&self.source.pk)), (SOURCE_SK.to_owned(), s(&self.source.sk))])
    }

    /// The attributes that say how far it is, as far as there is something to say.
    pub(crate) fn progress(&self) -> Item {
        let until = self.until.as_ref().map(|until| (UNTIL.to_owned(), s(until)));
        let free_at = (self.free_at_ms > 0).then(|| (FREE_AT.to_owned(), n(self.free_at_ms)));
        let round = self.is_round.then(|| (ROUND.to_owned(), AttributeValue::Bool(true)));
        [until, round, free_at].into_iter().flatten().collect()
    }
}

impl Job {
    /// The write that moves it to where `next` is, as long as nobody else moved it.
    pub(crate) fn moves_to(&self, next: &Self) -> Write {
        let set = next.progress();
        let optional = [UNTIL, ROUND, FREE_AT].into_iter().filter(|name| set.get(name).is_none());
        let remove: BTreeSet<String> = match next.task {
            Task::FanOut(_) => optional.map(str::to_owned).collect(),
            Task::Cascade { .. } => BTreeSet::new(),
        };
        let action = Action::Update(Update { set, remove, ..Update::default() });
        Write { table: Table::Main, key: self.key.clone(), action, guard: Some(self.unmoved()) }
    }

    /// It is as it was read, and none that began after it under the same key, which has the same revisions.
    pub(crate) fn unmoved(&self) -> Guard {
        let read = [(STARTED_AT, self.started_at_ms), (MOVES, self.n_moves)];
        Guard::SourceAsRead(read.map(|(name, number)| (name.to_owned(), Some(n(number)))).into())
    }
}

impl<S: Store> Engine<S> {
    /// What a derivation searches for when a source of this key changes.
    pub(crate) fn search_of(&self, derivation: usize, source: &Key) -> Option<Find> {
        self.catalogue.derivation(derivation)?.kind.find_from(&self.schema, source)
    }

    /// Has all items looked at that follow from a source: begins a job, or tells the one that there is.
    pub(crate) async fn fan_out(
        &self,
        derivation: usize,
        source: &Key,
        patience: Patience<'_>,
    ) -> Result<Option<(Key, Units)>, GaveUp> {
        let job_key = JobKey { derivation: self.catalogue.name(derivation).to_owned(), id: id_of(source) };
        let key = job_key.key();
        let mut tries = Tries::default();
        loop {
            let keys = [key.clone()];
            let held = patience.call(|| self.store.get(Table::Main, &keys)).await?.into_iter().next();
            let now_ms = self.clock.now_ms();
            let write = if let Some(job) = held.and_then(|(_, item)| Job::of(&self.schema.layout, &item)) {
                let Some(write) = self.circle(&job, now_ms) else { return Ok(None) };
                write
            } else {
                let job = Job::running(&job_key, Task::FanOut(FanOut::of_all(source)), now_ms);
                let action = Action::Put(job.item(&self.schema.layout));
                Write { table: Table::Main, key: key.clone(), action, guard: Some(Guard::Absent) }
            };
            match patience.call(|| self.store.write(&write)).await? {
                Outcome::Done { units } => return Ok(Some((key, units))),
                // It moved on, ended, or was begun meanwhile.
                Outcome::GuardFailed if patience.wait(&mut tries).await => {}
                Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
            }
        }
    }

    /// The write that tells a job of a newer change: it goes on to the end, and from the start to where it is now.
    fn circle(&self, job: &Job, now_ms: u64) -> Option<Write> {
        if !self.takes(ProtocolStep::Circle) {
            return None;
        }
        let Task::FanOut(fan_out) = &job.task else { return None };
        let find = self.search_of(self.catalogue.position(&job.derivation)?, job.origin());
        let sort_key = find.as_ref().and_then(|find| self.sort_key_name(&find.query));
        let until = job.after.as_ref().zip(sort_key).and_then(|(after, name)| text(&after.0, name).map(str::to_owned));
        let fan_out = FanOut { until, is_round: false, ..fan_out.clone() };
        let mut next = Job { n_moves: job.n_moves + 1, task: Task::FanOut(fan_out), ..job.clone() };
        next.moved_at_ms = now_ms;
        Some(job.moves_to(&next))
    }

    /// Name of the sort key by which a query gives its items.
    fn sort_key_name(&self, query: &Query) -> Option<&str> {
        let layout = &self.schema.layout;
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
    let mark = again::marked_to(layout, &again::mark(), "{Last}");
    (Write { table: Table::Main, key: job.key, action: put, guard: None }, [note.write(0, 0), mark])
}

/// Id of the job of a source. No two sources have the same: the length tells where the one key ends.
fn id_of(source: &Key) -> String {
    let id = format!("{}:{}|{}", source.pk.len(), source.pk, source.sk);
    if id.len() <= SPELLED_OUT_MAX {
        return id;
    }
    let end = id.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}~{:08x}", id.get(..end).unwrap_or_default(), checksum(&id))
}

//! Fan-out: refreshes all items that depend on a source, however many they are.
//!
//! *Keeps true*: after a source has changed, each item that a search of the source finds is refreshed, with a value at
//! least as new as the change; or a job exists that will refresh it.
//!
//! If the first page of a search has all results, the batch handles them. A larger search becomes a *job*: an item with
//! the derivation, the source's key and a cursor. The job's stream record does a page and moves the cursor, which
//! creates the next record. So after a crash the job continues at the cursor, and other records are handled between
//! pages. The engine reads the source again for every page.
//!
//! *A newer change* finds the job at some cursor. The job does not start over, because then a busy source would never
//! reach its last items. Instead, the change makes it continue to the end, then from the start to its current position.
//! That raises the job's revision. A page moves the cursor only under the revision that it read; otherwise it is
//! repeated.
//!
//! *Copies* are written without reading the item, on the condition that the item names the source.
//!
//! *An index may lag* and not return an item yet. So each search of an index, small or large, is repeated (module
//! [`again`]) after the index has had time to catch up.

pub mod again;
pub(crate) mod for_batch;
pub(crate) mod page;
pub(crate) mod search;
pub(crate) mod underway;

use std::collections::BTreeSet;

use derive::{
    declaration::through,
    effect::Find,
    guard::{Guard, Purpose},
    position::DerivationAt,
    query::Query,
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    job::JobKey,
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, Units};

use crate::{
    attribute::{checksum, s},
    backoff::{GaveUp, Patience, Tries},
    clock::CLOCKS_DIFFER_MS,
    context::Context,
    job::{FanOut, Job, Task, id_of},
    ledger::ledger_item,
    protocol::ProtocolStep,
};

/// A completed write, with its table, key and units.
pub(crate) type FanOutWrite = (Table, Key, Units);

/// The item that a found item leads to.
pub(crate) fn leads_to<S: Store>(context: &Context<S>, item: &Item, find: &Find) -> Option<Key> {
    let key = context.schema.layout.key(item)?;
    let schema = &context.schema;
    let own = schema.image(&key, item).filter(|image| image.is(&find.via));
    let is_way = find.via != find.target && context.takes(ProtocolStep::OccupiedWay);
    let via = own.or_else(|| schema.under_key_of(&find.via, &key, item).filter(|_| is_way))?;
    through(schema, &via, &find.target)
}

/// The search of a derivation after a source with this key changes.
pub(crate) fn search_of<S: Store>(context: &Context<S>, derivation: DerivationAt, source: &Key) -> Option<Find> {
    context.catalogue.derivation(derivation)?.kind.refresh()?.find_from(&context.schema, source)
}

/// Refreshes all items that depend on a source: creates a job, or changes the existing one. `written` lists its writes,
/// even if it fails.
pub(crate) async fn fan_out<S: Store>(
    context: &Context<S>,
    derivation: DerivationAt,
    source: &Key,
    patience: Patience<'_>,
    written: &mut Vec<FanOutWrite>,
) -> Result<(), GaveUp> {
    let job_key = JobKey { derivation: context.catalogue.name(derivation).to_owned(), id: id_of(source) };
    let key = job_key.key();
    let mut tries = Tries::default();
    loop {
        let keys = [key.clone()];
        let held = patience.call(|| context.store.get(Table::Main, &keys)).await?.into_iter().next();
        let now_ms = context.clock.now_ms();
        let write = if let Some(job) = held.and_then(|(_, item)| Job::of(&context.schema.layout, &item)) {
            let Some(write) = circle(context, &job, now_ms) else { return Ok(()) };
            write
        } else {
            let job = Job::running(&job_key, Task::FanOut(FanOut::of_all(source)), now_ms);
            let due = job.entry().put(&context.schema.layout);
            if let Outcome::Done { units } = patience.call(|| context.store.write(&due)).await? {
                written.push((Table::Ledger, due.key, units));
            }
            let action = Action::Put(job.item(&context.schema.layout));
            Write { table: Table::Main, key: key.clone(), action, guard: Some(Guard::absent(Purpose::NewJob)) }
        };
        match patience.call(|| context.store.write(&write)).await? {
            Outcome::Done { units } => {
                written.push((Table::Main, key, units));
                return Ok(());
            }
            // The job moved on, ended, or was created meanwhile.
            Outcome::GuardFailed if patience.wait(&mut tries).await => {}
            Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
        }
    }
}

/// The write that adds a newer change to a job: the job continues to the end, then from the start to its current
/// position.
fn circle<S: Store>(context: &Context<S>, job: &Job, now_ms: u64) -> Option<Write> {
    if !context.takes(ProtocolStep::Circle) {
        return None;
    }
    let Task::FanOut(fan_out) = &job.task else { return None };
    let find = search_of(context, context.catalogue.position(&job.derivation)?, job.origin());
    let sort_key = find.as_ref().and_then(|find| sort_key_name(context, &find.query));
    let until = job.after.as_ref().zip(sort_key).and_then(|(after, name)| text(&after.0, name).map(str::to_owned));
    let fan_out = FanOut { until, is_round: false, ..fan_out.clone() };
    let mut next = Job { n_moves: job.n_moves + 1, task: Task::FanOut(fan_out), ..job.clone() };
    next.moved_at_ms = now_ms;
    Some(job.moves_to(&next))
}

/// Name of the sort key that orders a query's results.
fn sort_key_name<'a, S: Store>(context: &'a Context<S>, query: &Query) -> Option<&'a str> {
    let layout = &context.schema.layout;
    match &query.index {
        Some(index) => layout.index(index).map(|index| index.sk.as_str()),
        None => Some(&layout.sk),
    }
}

/// Samples of a job, a note and a mark, as they are written.
pub(crate) fn samples(layout: &Layout, derivation: &str, source: &Key) -> (Write, [Write; 2]) {
    let key = JobKey { derivation: derivation.to_owned(), id: id_of(source) };
    let fan_out = FanOut { until: Some("{Until}".to_owned()), is_round: true, free_at_ms: 1, ..FanOut::of_all(source) };
    let job = Job::running(&key, Task::FanOut(fan_out), 0);
    let put = Action::Put(job.item(layout));
    let note = Note { item: source.clone(), derivations: BTreeSet::from([derivation.to_owned()]) };
    let mark = marked_to(layout, &mark(), "{Last}");
    (Write { table: Table::Main, key: job.key, action: put, guard: None }, [note.write(0, 0), mark])
}

// ---- The note that a search is to be repeated ----

// Attributes of a note. Stored, so they are stable.
const ITEM_PK: &str = "ItemPK";
const ITEM_SK: &str = "ItemSK";
const DERIVATIONS: &str = "Derivations";

/// Partitions that notes are spread over. Stored in keys, so it is stable.
pub(crate) const PARTITIONS: u32 = 8;

/// The lag of an index is divided into this many parts; notes of an item within one part are one note.
const TOGETHER: u64 = 16;

/// Digits of a time in milliseconds in a note's key.
pub(crate) const DIGITS: usize = 15;

/// A note that a search is to be repeated, or an item to be refreshed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The source of the search; or the item, for derivations without a search.
    pub(crate) item: Key,
    /// Names of the derivations.
    pub(crate) derivations: BTreeSet<String>,
}

impl Note {
    /// The write that adds the note, or merges it into the item's note from about the same time.
    pub(crate) fn write(&self, now_ms: u64, lag_ms: u64) -> Write {
        let together_ms = (lag_ms / TOGETHER).max(1);
        let due_at_ms = (now_ms.saturating_add(lag_ms) / together_ms).saturating_add(1).saturating_mul(together_ms);
        self.due_at(due_at_ms)
    }

    /// The write of the note of an item that is to be refreshed at this time, which is later than now. The note is due
    /// when it is later by every clock, so no function adds to a note that a sweep may be handling.
    pub(crate) fn at(&self, at_ms: u64) -> Write {
        self.due_at(at_ms.saturating_add(CLOCKS_DIFFER_MS))
    }

    fn due_at(&self, due_at_ms: u64) -> Write {
        let id = id_of(&self.item);
        let key = Key::new(partition(checksum(&id) % PARTITIONS), format!("{due_at_ms:0DIGITS$}#{id}"));
        let [pk, sk] =
            [(ITEM_PK, &self.item.pk), (ITEM_SK, &self.item.sk)].map(|(name, text)| (name.to_owned(), s(text)));
        let names = AttributeValue::Ss(self.derivations.iter().cloned().collect());
        let add = Item::from([(DERIVATIONS.to_owned(), names)]);
        let action = Action::Update(Update { set: Item::from([pk, sk]), add, ..Update::default() });
        Write { table: Table::Ledger, key, action, guard: None }
    }

    pub(crate) fn of(item: &Item) -> Option<Self> {
        let names = match item.get(DERIVATIONS) {
            Some(AttributeValue::Ss(names)) => names.as_slice(),
            _ => &[],
        };
        Some(Self {
            item: Key::new(text(item, ITEM_PK)?, text(item, ITEM_SK)?),
            derivations: names.iter().cloned().collect(),
        })
    }
}

/// Sort key of a partition's mark, after those of all notes. Stored, so it is stable.
pub(crate) const MARK: &str = "~";

/// Attribute of a mark: sort key of the last note that was begun. Stored, so it is stable.
pub(crate) const LAST: &str = "Last";

/// The write that marks notes as begun, up to this one.
pub(crate) fn marked_to(layout: &Layout, mark: &Key, last: &str) -> Write {
    let put = Action::Put(ledger_item(layout, mark, [(LAST, s(last))]));
    Write { table: Table::Ledger, key: mark.clone(), action: put, guard: None }
}

/// Key of the mark of a partition, for a sample.
pub(crate) fn mark() -> Key {
    Key::new(partition(0), MARK)
}

/// Partition key of some of the notes. Stored, so it is stable.
pub(crate) fn partition(number: u32) -> String {
    format!("AGAIN#{number:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_was_written() {
        let names = ["comment-author", "review-author"].map(str::to_owned);
        let note = Note { item: Key::new("USER#ann", "PROFILE"), derivations: names.into() };
        let write = note.write(5, 16_000);
        let Action::Update(update) = &write.action else { panic!("{write:?}") };
        let item: Item = update.set.iter().chain(update.add.iter()).map(|(n, v)| (n.to_owned(), v.clone())).collect();
        assert_eq!(Note::of(&item), Some(note));
        assert_eq!(write.key, Key::new("AGAIN#01", "000000000017000#8:USER#ann|PROFILE"));
    }

    #[test]
    fn notes_of_about_a_time_are_one_and_due_after_each_of_them_has_waited() {
        let note = Note { item: Key::new("USER#ann", "PROFILE"), derivations: BTreeSet::new() };
        let at = |now_ms| note.write(now_ms, 16_000).key.sk;
        assert_eq!(at(0), at(999));
        assert!(at(999).starts_with("000000000017000#") && at(1_000).starts_with("000000000018000#"));
        assert!(note.write(5, 0).key.sk.starts_with("000000000000006#"), "nobody adds to what is due");
    }
}

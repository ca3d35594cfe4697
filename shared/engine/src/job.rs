//! Jobs, as they are stored: the task of each, and its progress. A job stores keys but no values.
//!
//! A job is stored in the application's table. Each write of the job creates a stream record. The handling of that
//! record does a part of the job and moves its cursor, which creates the next record. So a job continues wherever it
//! was interrupted.
//!
//! # Due
//!
//! Jobs that are due later have a queue in the ledger's table, in the order of their due times.
//!
//! *Keeps true*: every job has an entry. The entry of a waiting job is due when the job is. The entry of a running job
//! is due when the job would have stalled for [`STALLED_MS`] at the earliest.
//!
//! The entry is written before the job, or in one transaction with it. An entry without a job, or of a job that is due
//! later, is therefore no error: the sweep deletes it. If an entry is lost nevertheless, the sweep's round over the
//! table restores it.
//!
//! *Example*: `POST#p1` is removed at noon. The job `JOBS#05 / post-cascade#e1` waits until 13:00 of the next day, with
//! the entry `DUE#05 / {13:00 in milliseconds}#post-cascade#e1`. A sweep reads all entries up to now.

pub(crate) mod touch;

use std::collections::HashMap;

use derive::{
    effect::Removal,
    guard::{Guard, Purpose},
    query::{Query, SortKeys},
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    job::{self, JOB, JobKey, MOVES, PAUSED, RUNNING, STATE, WAITING},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Cursor;

use crate::{
    attribute::{checksum, n, number, s},
    ledger::ledger_item,
};

// Attributes of a job. Stored, so they are stable.
const OWNER_PK: &str = "OwnerPK";
const OWNER_SK: &str = "OwnerSK";
const ABSENT: &str = "Absent";
const NAMED: &str = "Named";
const STEP: &str = "Step";
const AFTER: &str = "After";
const N_PAGES: &str = "Pages";
const PAGE: &str = "Page";
const TOUCHED: &str = "Touched";
pub(crate) const DUE_AT: &str = "DueAt";
const PK: &str = "PK";
const SK: &str = "SK";
pub(crate) const STARTED_AT: &str = "StartedAt";
pub(crate) const MOVED_AT: &str = "MovedAt";

/// The sweep wakes a job whose cursor has not moved for this time, in milliseconds: longer than an invocation may take.
pub const STALLED_MS: u64 = 20 * 60 * 1_000;

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its key.
    pub key: Key,
    /// Name of the derivation.
    pub derivation: String,
    /// What it does.
    pub task: Task,
    /// True if it has begun.
    pub is_running: bool,
    /// True if an operator paused it.
    pub is_paused: bool,
    /// When it was started, in milliseconds since the epoch.
    pub started_at_ms: u64,
    /// When it may begin, in milliseconds since the epoch.
    pub due_at_ms: u64,
    /// When its cursor moved last, in milliseconds since the epoch.
    pub moved_at_ms: u64,
    /// How often it moved on or received an order or a newer change; this is its revision.
    pub n_moves: u64,
    /// Items that it has deleted, changed or refreshed.
    pub n_touched: u64,
    /// Where the next page begins.
    pub after: Option<Cursor>,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Deletes the dependent items of a removed item.
    Cascade {
        /// The removal that started it.
        removal: Removal,
        /// Its current position in the declaration's list of dependent items.
        step: usize,
        /// Whether it lists items, or deletes listed items.
        pass: Pass,
    },
    /// Refreshes all items that depend on a source.
    FanOut(FanOut),
}

/// The pass of a cascade: it lists first, and deletes only listed items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// It lists the dependent items of the removed item.
    Lists {
        /// Pages listed so far.
        n_pages: u64,
    },
    /// It deletes the listed items.
    Deletes {
        /// The next page, from 0.
        page: u64,
        /// Pages listed.
        n_pages: u64,
    },
}

impl Job {
    /// A cascade that waits until it is due.
    pub(crate) fn waiting(key: &JobKey, removal: Removal, now_ms: u64, due_at_ms: u64) -> Self {
        let task = Task::Cascade { removal, step: 0, pass: Pass::Lists { n_pages: 0 } };
        Self { is_running: false, due_at_ms, ..Self::running(key, task, now_ms) }
    }

    /// A job that begins at once.
    pub(crate) fn running(key: &JobKey, task: Task, now_ms: u64) -> Self {
        Self {
            key: key.key(),
            derivation: key.derivation.clone(),
            task,
            is_running: true,
            is_paused: false,
            started_at_ms: now_ms,
            due_at_ms: now_ms,
            moved_at_ms: now_ms,
            n_moves: 0,
            n_touched: 0,
            after: None,
        }
    }

    /// Key of the item that it starts from: the removed item, or the changed source.
    #[must_use]
    pub fn origin(&self) -> &Key {
        match &self.task {
            Task::Cascade { removal, .. } => &removal.owner,
            Task::FanOut(fan_out) => &fan_out.source,
        }
    }

    /// The job of an item; `None` if the item is no readable job.
    #[must_use]
    pub fn of(layout: &Layout, item: &Item) -> Option<Self> {
        let key = layout.key(item)?;
        let derivation = JobKey::parse(&key)?.derivation;
        let after = match item.get(AFTER) {
            Some(AttributeValue::M(map)) if !map.is_empty() => {
                Some(Cursor(map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()))
            }
            _ => None,
        };
        Some(Self {
            key,
            derivation,
            task: match FanOut::of(item) {
                Some(fan_out) => Task::FanOut(fan_out),
                None => cascade_of(item)?,
            },
            is_running: text(item, STATE) == Some(RUNNING),
            is_paused: item.get(PAUSED).is_some(),
            started_at_ms: number(item, STARTED_AT)?,
            due_at_ms: number(item, DUE_AT)?,
            moved_at_ms: number(item, MOVED_AT)?,
            n_moves: number(item, MOVES)?,
            n_touched: number(item, TOUCHED)?,
            after,
        })
    }

    /// The complete item.
    pub(crate) fn item(&self, layout: &Layout) -> Item {
        let state = if self.is_running { RUNNING } else { WAITING };
        let mut item = layout.key_item(&self.key);
        item.extend([
            (STATE.to_owned(), s(state)),
            (STARTED_AT.to_owned(), n(self.started_at_ms)),
            (DUE_AT.to_owned(), n(self.due_at_ms)),
        ]);
        match &self.task {
            Task::Cascade { removal, .. } => item.extend(of_removal(removal)),
            Task::FanOut(fan_out) => item.extend(fan_out.origin()),
        }
        item.extend(layout.type_of(JOB));
        item.extend(self.progress());
        item
    }

    /// The attributes with its progress.
    pub(crate) fn progress(&self) -> Item {
        let mut item = Item::from([
            (MOVES.to_owned(), n(self.n_moves)),
            (MOVED_AT.to_owned(), n(self.moved_at_ms)),
            (TOUCHED.to_owned(), n(self.n_touched)),
        ]);
        let after = self.after.as_ref().map(|Cursor(after)| after.clone()).unwrap_or_default();
        item.insert(AFTER.to_owned(), AttributeValue::M(after.into_iter().collect()));
        match &self.task {
            Task::Cascade { step, pass, .. } => {
                // A cascade waits twice, so its state and due time are part of its progress.
                let state = if self.is_running { RUNNING } else { WAITING };
                let (page, n_pages) = match pass {
                    Pass::Lists { n_pages } => (None, n_pages),
                    Pass::Deletes { page, n_pages } => (Some(page), n_pages),
                };
                item.extend([
                    (STATE.to_owned(), s(state)),
                    (DUE_AT.to_owned(), n(self.due_at_ms)),
                    (STEP.to_owned(), n_of(*step)),
                    (N_PAGES.to_owned(), n(*n_pages)),
                ]);
                item.extend(page.map(|page| (PAGE.to_owned(), n(*page))));
            }
            Task::FanOut(fan_out) => item.extend(fan_out.progress()),
        }
        item
    }
}

fn cascade_of(item: &Item) -> Option<Task> {
    let absent = list(item, ABSENT).filter_map(|value| key_of(value).map(|(key, _)| key)).collect();
    let named = list(item, NAMED).filter_map(|value| key_of(value).map(|(key, step)| (step, key))).collect();
    let owner = Key::new(text(item, OWNER_PK)?, text(item, OWNER_SK)?);
    let step = usize::try_from(number(item, STEP)?).ok()?;
    // A version without listing started this job, so nothing is listed.
    let n_pages = number(item, N_PAGES).unwrap_or_default();
    let pass = number(item, PAGE).map_or(Pass::Lists { n_pages }, |page| Pass::Deletes { page, n_pages });
    Some(Task::Cascade { removal: Removal { owner, absent, named }, step, pass })
}

fn of_removal(removal: &Removal) -> [(String, AttributeValue); 4] {
    let keys = |keys: &mut dyn Iterator<Item = (&Key, usize)>| AttributeValue::L(keys.map(value_of).collect());
    [
        (OWNER_PK.to_owned(), s(&removal.owner.pk)),
        (OWNER_SK.to_owned(), s(&removal.owner.sk)),
        (ABSENT.to_owned(), keys(&mut removal.absent.iter().map(|key| (key, 0)))),
        (NAMED.to_owned(), keys(&mut removal.named.iter().map(|(step, key)| (key, *step)))),
    ]
}

fn n_of(number: usize) -> AttributeValue {
    n(u64::try_from(number).unwrap_or(u64::MAX))
}

fn list<'a>(item: &'a Item, name: &str) -> impl Iterator<Item = &'a AttributeValue> {
    match item.get(name) {
        Some(AttributeValue::L(values)) => values.as_slice(),
        _ => &[],
    }
    .iter()
}

fn value_of((key, step): (&Key, usize)) -> AttributeValue {
    AttributeValue::M(HashMap::from([
        (PK.to_owned(), s(&key.pk)),
        (SK.to_owned(), s(&key.sk)),
        (STEP.to_owned(), n_of(step)),
    ]))
}

fn key_of(value: &AttributeValue) -> Option<(Key, usize)> {
    let AttributeValue::M(map) = value else { return None };
    let text = |name: &str| match map.get(name) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    let step = match map.get(STEP) {
        Some(AttributeValue::N(text)) => text.parse().ok()?,
        _ => return None,
    };
    Some((Key { pk: text(PK)?, sk: text(SK)? }, step))
}

// ---- Moving a job on: from the position and under the revision that were read ----

impl Job {
    /// The write that moves it to `next`, on the condition that no other invocation moved it.
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

    /// The guard that the job has not moved since it was read, and is not a later job under the same key, which has the
    /// same revisions.
    pub(crate) fn unmoved(&self) -> Guard {
        let read = [(STARTED_AT, self.started_at_ms), (MOVES, self.n_moves)];
        Guard::as_read(Purpose::Job, read.map(|(name, number)| (name, Some(n(number)))))
    }
}

// ---- The progress of a fan-out: the part of its job that no other job has ----

// Attributes of a job that fans out. Stored, so they are stable.
const SOURCE_PK: &str = "SourcePK";
const SOURCE_SK: &str = "SourceSK";
pub(crate) const UNTIL: &str = "Until";
pub(crate) const ROUND: &str = "Round";
const FREE_AT: &str = "FreeAt";

/// Longest source key that is part of a job's key unchanged, in bytes: escaped, it still fits in a sort key.
const SPELLED_OUT_MAX: usize = 256;

/// The task of a fan-out job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// The source that changed.
    pub source: Key,
    /// Sort key at which the second round ends, if the source changed meanwhile.
    pub until: Option<String>,
    /// True if it is in the second round.
    pub is_round: bool,
    /// When it may write again, in milliseconds since the epoch, if its rate is limited.
    pub free_at_ms: u64,
}

impl FanOut {
    /// A fan-out over the whole search of a source.
    pub(crate) fn of_all(source: &Key) -> Self {
        let source = source.clone();
        Self { source, until: None, is_round: false, free_at_ms: 0 }
    }

    /// The fan-out in a job's item; `None` if the job is no fan-out.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        Some(Self {
            source: Key::new(text(item, SOURCE_PK)?, text(item, SOURCE_SK)?),
            until: text(item, UNTIL).map(str::to_owned),
            is_round: item.get(ROUND) == Some(&AttributeValue::Bool(true)),
            free_at_ms: number(item, FREE_AT).unwrap_or(0),
        })
    }

    /// The attributes that do not change.
    pub(crate) fn origin(&self) -> Item {
        Item::from([(SOURCE_PK.to_owned(), s(&self.source.pk)), (SOURCE_SK.to_owned(), s(&self.source.sk))])
    }

    /// The attributes with its progress; those without a value are omitted.
    pub(crate) fn progress(&self) -> Item {
        let until = self.until.as_ref().map(|until| (UNTIL.to_owned(), s(until)));
        let free_at = (self.free_at_ms > 0).then(|| (FREE_AT.to_owned(), n(self.free_at_ms)));
        let round = self.is_round.then(|| (ROUND.to_owned(), AttributeValue::Bool(true)));
        [until, round, free_at].into_iter().flatten().collect()
    }
}

/// Id of the job of a source. No two sources have the same id, because the length marks the end of the first key part.
pub(crate) fn id_of(source: &Key) -> String {
    let id = format!("{}:{}|{}", source.pk.len(), source.pk, source.sk);
    if id.len() <= SPELLED_OUT_MAX {
        return id;
    }
    let end = id.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}~{:08x}", id.get(..end).unwrap_or_default(), checksum(&id))
}

// ---- The queue of jobs that are due later ----

/// Digits of a time in milliseconds in a key, so that times sort as texts. Stored, so it is stable.
pub(crate) const DIGITS: usize = 15;

/// Entries that are read together: the maximum number of keys in one `BatchGetItem`.
const ENTRIES_AT_ONCE: u32 = 100;

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueEntry {
    /// When the sweep is to check the job, in milliseconds since the epoch.
    pub(crate) due_at_ms: u64,
    /// Key of the job.
    pub(crate) job: Key,
}

impl DueEntry {
    /// The entry that a key names; `None` if it is no entry's key.
    pub(crate) fn of(key: &Key) -> Option<Self> {
        let number = key.pk.strip_prefix(PARTITION)?;
        let (due, sk) = key.sk.split_once('#')?;
        Some(Self { due_at_ms: due.parse().ok()?, job: Key::new(format!("{}{number}", job::PARTITION), sk) })
    }

    pub(crate) fn key(&self) -> Key {
        let number = self.job.pk.strip_prefix(job::PARTITION).unwrap_or_default();
        Key::new(format!("{PARTITION}{number}"), format!("{:0DIGITS$}#{}", self.due_at_ms, self.job.sk))
    }

    /// The write of the entry.
    pub(crate) fn put(&self, layout: &Layout) -> Write {
        let key = self.key();
        let item = ledger_item(layout, &key, [] as [(&str, _); 0]);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }

    /// The write that deletes it.
    pub(crate) fn deleted(&self) -> Write {
        Write { table: Table::Ledger, key: self.key(), action: Action::Delete, guard: None }
    }

    /// The query of a partition's due entries.
    pub(crate) fn due(partition: u32, now_ms: u64) -> Query {
        let due = SortKeys::Between("0".to_owned(), format!("{now_ms:0DIGITS$}~"));
        Query { limit: Some(ENTRIES_AT_ONCE), ..Query::of(None, format!("{PARTITION}{partition:02}"), due) }
    }
}

/// Prefix of the queue's partition keys; the numbers are those of the jobs' partitions. Stored, so it is stable.
const PARTITION: &str = "DUE#";

impl Job {
    /// Its entry with this due time.
    pub(crate) fn entry_at(&self, due_at_ms: u64) -> DueEntry {
        DueEntry { due_at_ms, job: self.key.clone() }
    }

    /// Its entry: due when it may begin or, if it runs, when it would have stalled.
    pub(crate) fn entry(&self) -> DueEntry {
        self.entry_at(if self.is_running { self.moved_at_ms.saturating_add(STALLED_MS) } else { self.due_at_ms })
    }

    /// The entry of a job in the table that has been due so long that its entry must be lost.
    pub(crate) fn lost_entry(layout: &Layout, item: &Item, now_ms: u64) -> Option<DueEntry> {
        Self::of(layout, item)
            .map(|job| job.entry())
            .filter(|entry| entry.due_at_ms.saturating_add(STALLED_MS) < now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let layout = Layout { entity_type: Some("Type".into()), ..Layout::of("pk", "sk") };
        let key = JobKey { derivation: "user-cascade".into(), id: "e1".into() };
        let owner = Key::new("USER#ann", "PROFILE");
        let named = vec![(3, Key::new("EMAIL#a", "CLAIM"))];
        let removal = Removal { owner: owner.clone(), absent: vec![owner, Key::new("x", "y")], named };
        let mut job = Job::waiting(&key, removal.clone(), 7, 9);
        assert_eq!(Job::of(&layout, &job.item(&layout)), Some(job.clone()));
        let pass = Pass::Deletes { page: 1, n_pages: 3 };
        (job.is_running, job.task, job.n_moves) = (true, Task::Cascade { removal, step: 2, pass }, 5);
        job.after = Some(Cursor(Item::from([("pk".to_owned(), s("p"))])));
        assert_eq!(Job::of(&layout, &job.item(&layout)), Some(job));
    }

    #[test]
    fn an_entry_reads_back_from_its_key() {
        let entry = DueEntry { due_at_ms: 1_705_315_200_000, job: Key::new("JOBS#05", "post-cascade#e1") };
        assert_eq!(entry.key(), Key::new("DUE#05", "001705315200000#post-cascade#e1"));
        assert_eq!(DueEntry::of(&entry.key()), Some(entry));
        assert_eq!(DueEntry::of(&Key::new("AGAIN#05", "001705315200000#x")), None);
    }
}

//! The queue of jobs that are due later, in the ledger's table, in the order of their due times.
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

use derive::{
    query::{Query, SortKeys},
    write::{Action, Table, Write},
};
use keys::{item::Item, job, key::Key, layout::Layout};

use crate::{
    job::{Job, STALLED_MS},
    ledger::ledger_item,
};

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
    fn an_entry_reads_back_from_its_key() {
        let entry = DueEntry { due_at_ms: 1_705_315_200_000, job: Key::new("JOBS#05", "post-cascade#e1") };
        assert_eq!(entry.key(), Key::new("DUE#05", "001705315200000#post-cascade#e1"));
        assert_eq!(DueEntry::of(&entry.key()), Some(entry));
        assert_eq!(DueEntry::of(&Key::new("AGAIN#05", "001705315200000#x")), None);
    }
}

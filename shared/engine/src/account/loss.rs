//! Possible loss: a stream that is handled so late that it may have dropped records.
//!
//! *Keeps true*: when a batch comes whose oldest record is 20 hours old or older, the ledger holds a *mark*, until a
//! whole verify that began after it was last seen ends without a finding. A stream keeps records for 24 hours, and what
//! it drops no ledger knows of: what is older than the mark, or came while the lag lasted, may be missing in what is
//! derived, and only reading the table tells.
//!
//! *Cheap*. An engine puts the mark of a lane once an hour at most, and only with a batch that asks for something. A mark
//! that a verify takes away goes only as it was read: one that was seen again meanwhile stays.
//!
//! *Example*: a mapping was off for 22 hours. Its first batch leaves `LOSS / additive#{stream}#{shard}`; `ripple verify`
//! an hour later finds nothing, and takes it away.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use derive::{
    derivation::Family,
    guard::Guard,
    query::Query,
    write::{Action, Table, Write},
};
use keys::{item::Item, item::text, key::Key, layout::Layout};
use store::{Outcome, Store, StoreError};

use crate::{
    account::Account,
    attribute::{n, number, s},
    backoff::{GaveUp, describe},
    batch::{Batch, Engine},
    ledger::ledger_item,
    look::listing::fitted,
    park::lists::all,
    record::event::Lane,
};

/// Age of a record from which on others of its stream may be lost, in milliseconds: 20 hours, four less than a stream
/// keeps them, which is the time that there is to do something.
pub const POSSIBLE_LOSS_MS: u64 = 20 * 3_600 * 1_000;

/// How often an engine puts the mark of a lane, in milliseconds: once an hour.
const PUT_EVERY_MS: u64 = 3_600 * 1_000;

/// Partition key of all marks. Stored, so it is stable.
const LOSS: &str = "LOSS";

// Attributes of a mark. Stored, so they are stable.
const SINCE: &str = "Since";
const UNTIL: &str = "Until";
const LATE_MS: &str = "LateMs";
const FAMILIES: &str = "Families";
const STREAM: &str = "Stream";
const SHARD: &str = "Shard";

/// A mark that records of a lane may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Families of derivations that the function runs, joined by `+`.
    pub families: String,
    /// ARN of the stream; empty where no event said it.
    pub stream: String,
    /// Name of the shard; empty where the function is not told it.
    pub shard: String,
    /// When it was first seen, in milliseconds since the epoch.
    pub since_ms: u64,
    /// When it was last seen, in milliseconds since the epoch.
    pub until_ms: u64,
    /// The greatest age of a record that was seen, in milliseconds.
    pub late_ms: u64,
}

/// When an engine last put the mark of each lane.
#[derive(Debug, Default)]
pub(crate) struct Put(Mutex<BTreeMap<Key, u64>>);

impl Put {
    /// Is it time to put this mark again?
    fn is_due(&self, key: &Key, now_ms: u64) -> bool {
        let mut put = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        put.retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < PUT_EVERY_MS);
        !put.contains_key(key)
    }

    fn is_put(&self, key: Key, now_ms: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now_ms);
    }
}

impl Mark {
    /// A mark that is seen for the first time.
    pub(crate) fn new(families: &[Family], lane: &Lane, late_ms: u64, now_ms: u64) -> Self {
        let families: Vec<String> = families.iter().map(ToString::to_string).collect();
        let [stream, shard] = [&lane.stream_arn, &lane.shard].map(|text| text.clone().unwrap_or_default());
        Self { families: families.join("+"), stream, shard, since_ms: now_ms, until_ms: now_ms, late_ms }
    }

    /// Label of its stream, which is the time at which that was made.
    #[must_use]
    pub fn stream_label(&self) -> &str {
        self.stream.split_once("/stream/").map_or("", |(_, label)| label)
    }

    fn key(&self) -> Key {
        Key::new(LOSS, fitted(format!("{}#{}#{}", self.families, self.stream_label(), self.shard)))
    }

    /// The write that puts it.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let attributes = [
            (FAMILIES, s(&self.families)),
            (STREAM, s(&self.stream)),
            (SHARD, s(&self.shard)),
            (SINCE, n(self.since_ms)),
            (UNTIL, n(self.until_ms)),
            (LATE_MS, n(self.late_ms)),
        ];
        let key = self.key();
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }

    /// The write that takes it away, if it is as it was read.
    fn clearing(&self) -> Write {
        let read = [(SINCE, n(self.since_ms)), (UNTIL, n(self.until_ms)), (LATE_MS, n(self.late_ms))];
        let read = read.map(|(name, value)| (name.to_owned(), Some(value))).into();
        let guard = Some(Guard::SourceAsRead(read));
        Write { table: Table::Ledger, key: self.key(), action: Action::Delete, guard }
    }

    fn of(item: &Item) -> Self {
        let field = |name: &str| text(item, name).unwrap_or_default().to_owned();
        let number = |name: &str| number(item, name).unwrap_or(0);
        Self {
            families: field(FAMILIES),
            stream: field(STREAM),
            shard: field(SHARD),
            since_ms: number(SINCE),
            until_ms: number(UNTIL),
            late_ms: number(LATE_MS),
        }
    }
}

/// All marks that there are.
///
/// # Errors
///
/// [`StoreError`] when the ledger cannot be read.
pub async fn marks<S: Store>(store: &S) -> Result<Vec<Mark>, StoreError> {
    Ok(all(store, Table::Ledger, LOSS).await?.iter().map(Mark::of).collect())
}

/// Takes a mark away, after a whole verify that found nothing and began when the mark was read. Says whether it did: a
/// mark that was seen again since stays.
///
/// # Errors
///
/// [`StoreError`] when the ledger cannot be written.
pub async fn clear<S: Store>(store: &S, mark: &Mark) -> Result<bool, StoreError> {
    Ok(matches!(store.write(&mark.clearing()).await?, Outcome::Done { .. }))
}

impl<S: Store> Engine<S> {
    /// Is there any mark?
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the ledger cannot be read.
    pub async fn may_have_lost(&self) -> Result<bool, StoreError> {
        let any = Query { limit: Some(1), ..Query::prefix(None, LOSS, "") };
        Ok(!self.store.query(Table::Ledger, &any, None).await?.items.is_empty())
    }

    /// Sees how late a batch comes, and puts the mark where others may be lost.
    pub(crate) async fn see_loss(&self, asks: bool, batch: &Batch<'_>, account: &mut Account) {
        let now_ms = self.clock.now_ms();
        let oldest_ms = account.created_ms.iter().flatten().min();
        let late_ms = oldest_ms.map(|created_ms| now_ms.saturating_sub(*created_ms));
        account.late_ms = late_ms.filter(|late_ms| *late_ms >= POSSIBLE_LOSS_MS);
        let Some(late_ms) = account.late_ms.filter(|_| asks) else { return };
        let mark = Mark::new(&self.families, &batch.lane, late_ms, now_ms);
        let key = mark.key();
        if !self.loss_put.is_due(&key, now_ms) {
            return;
        }
        let hours = late_ms / (3_600 * 1_000);
        tracing::warn!(late_ms, hours, shard = batch.lane.shard, "records may be lost: the stream is handled too late");
        match self.put_mark(mark, batch, account).await {
            Ok(()) => self.loss_put.is_put(key, now_ms),
            Err(error) => tracing::warn!(cause = %describe(&error), "the mark of a possible loss cannot be put"),
        }
    }

    async fn put_mark(&self, seen: Mark, batch: &Batch<'_>, account: &mut Account) -> Result<(), GaveUp> {
        let keys = [seen.key()];
        let held = batch.patience.call(|| self.store.get(Table::Ledger, &keys)).await?;
        let held = held.first().map(|(_, item)| Mark::of(item));
        let (since_ms, late_ms) = held.map_or((seen.since_ms, 0), |held| (held.since_ms, held.late_ms));
        let mark = Mark { since_ms, late_ms: late_ms.max(seen.late_ms), ..seen };
        let write = mark.write(&self.schema.layout);
        if let Outcome::Done { units } = batch.patience.call(|| self.store.write(&write)).await? {
            account.commits.push(self.bookkeeping(&write.key, units, 0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use store::memory::MemoryStore;

    use super::*;
    use crate::fixture::layout;

    fn mark(now_ms: u64) -> Mark {
        let stream_arn = Some("arn:aws:dynamodb:r:1:table/t/stream/2024-03-01T00:00:00.000".to_owned());
        let lane = Lane { stream_arn, shard: Some("shard-1".to_owned()) };
        Mark::new(&[Family::Additive], &lane, POSSIBLE_LOSS_MS, now_ms)
    }

    #[tokio::test]
    async fn a_mark_reads_back_and_goes_only_as_it_was_read() {
        let store = MemoryStore::new(layout());
        assert_eq!(marks(&store).await.unwrap(), []);
        store.write(&mark(5).write(&layout())).await.unwrap();
        let read = marks(&store).await.unwrap();
        assert_eq!(read, [mark(5)]);
        assert_eq!(read[0].key().to_string(), "LOSS / additive#2024-03-01T00:00:00.000#shard-1");

        // It is seen again while a verify runs.
        store.write(&Mark { until_ms: 6, ..mark(5) }.write(&layout())).await.unwrap();
        assert!(!clear(&store, &read[0]).await.unwrap());
        let read = marks(&store).await.unwrap();
        assert!(clear(&store, &read[0]).await.unwrap());
        assert_eq!(marks(&store).await.unwrap(), []);
        assert!(!clear(&store, &read[0]).await.unwrap(), "it is gone already");
    }

    #[test]
    fn a_mark_is_put_once_an_hour_by_lane() {
        let put = Put::default();
        assert!(put.is_due(&mark(0).key(), 0));
        put.is_put(mark(0).key(), 0);
        assert!(!put.is_due(&mark(0).key(), PUT_EVERY_MS - 1));
        assert!(put.is_due(&Key::new(LOSS, "another"), 1));
        assert!(put.is_due(&mark(0).key(), PUT_EVERY_MS));
    }
}

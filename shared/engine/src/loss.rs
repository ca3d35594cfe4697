//! Possible loss: a stream is handled so late that it may have dropped records.
//!
//! *Keeps true*: when a batch arrives whose oldest record is 20 hours old or older, the ledger stores a *mark* for each
//! family of derivations that the function runs. The mark stays until a whole verify that began after its last sighting
//! finds nothing of that family that can be corrected. A stream keeps records for 24 hours, and no ledger shows what it
//! drops. Changes from before the mark, or during the lag, may be missing in derived data, and only reading the table
//! shows that.
//!
//! A difference that cannot be corrected keeps no mark: a value in a loop of the application's items, or a count whose
//! sources are gone. Every verify reports it, with or without a mark.
//!
//! *The first backlog* leaves no mark. A mapping that begins at the start of a stream delivers records from before the
//! first instance published its derivations ([registry](crate::registry)). They are up to 24 hours old, nothing was
//! derived from earlier records, and filling the table makes up for all of them. If a cascade is declared, the mark of
//! its family is written nevertheless, because nothing restores the items that a cascade deletes.
//!
//! *Cheap*. An engine writes the mark of a shard once an hour at most, and only with a batch that needs work. A verify
//! deletes a mark only if it is as it was read: a mark that was seen again meanwhile stays.
//!
//! *Example*: a mapping was disabled for 22 hours. Its first batch leaves `LOSS / additive#{stream}#{shard}`. An hour
//! later, `ripple verify` finds nothing and deletes the mark.

use derive::{
    derivation::Derivation,
    family::Family,
    guard::{Guard, Purpose},
    kind::Shape,
    position::RecordAt,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use store::{Outcome, Store, StoreError};

use crate::{
    account::Account,
    attribute::{all, fitted, n, number, s},
    backoff::{GaveUp, describe},
    context::Context,
    input::Batch,
    ledger::ledger_item,
    record::Lane,
};

/// Age of a record from which others of its stream may be lost, in milliseconds: 20 hours, four less than a stream
/// keeps them. The operator has these four hours to react.
pub const POSSIBLE_LOSS_MS: u64 = 20 * 3_600 * 1_000;

/// Partition key of all marks. Stored, so it is stable.
pub(crate) const LOSS: &str = "LOSS";

// Attributes of a mark. Stored, so they are stable.
const SINCE: &str = "Since";
const UNTIL: &str = "Until";
const LATE_MS: &str = "LateMs";
const FAMILY: &str = "Family";
const STREAM: &str = "Stream";
const SHARD: &str = "Shard";

/// A mark that records of a stream shard may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Family of the derivations from which changes may be missing.
    pub family: String,
    /// ARN of the stream; empty if no event stated it.
    pub stream: String,
    /// Name of the shard; empty if the event does not state it.
    pub shard: String,
    /// When it was first seen, in milliseconds since the epoch.
    pub since_ms: u64,
    /// When it was last seen, in milliseconds since the epoch.
    pub until_ms: u64,
    /// The greatest age of a late record, in milliseconds; 0 if an operator discarded a change.
    pub late_ms: u64,
}

impl Mark {
    /// A mark at its first sighting.
    pub(crate) fn new(family: Family, lane: &Lane, late_ms: u64, now_ms: u64) -> Self {
        let [stream, shard] = [&lane.stream_arn, &lane.shard].map(|text| text.clone().unwrap_or_default());
        Self { family: family.to_string(), stream, shard, since_ms: now_ms, until_ms: now_ms, late_ms }
    }

    /// True if changes may be missing from the derivations of this family.
    #[must_use]
    pub fn is_of(&self, family: Family) -> bool {
        self.family == family.to_string()
    }

    /// Label of its stream, which is the stream's creation time.
    #[must_use]
    pub fn stream_label(&self) -> &str {
        self.stream.split_once("/stream/").map_or("", |(_, label)| label)
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(LOSS, fitted(format!("{}#{}#{}", self.family, self.stream_label(), self.shard)))
    }

    /// The write of the mark.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let attributes = [
            (FAMILY, s(&self.family)),
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

    /// The write that deletes it, if it is as it was read.
    fn clearing(&self) -> Write {
        let read = [(SINCE, n(self.since_ms)), (UNTIL, n(self.until_ms)), (LATE_MS, n(self.late_ms))];
        let guard = Some(Guard::as_read(Purpose::LossMark, read.map(|(name, value)| (name, Some(value)))));
        Write { table: Table::Ledger, key: self.key(), action: Action::Delete, guard }
    }

    pub(crate) fn of(item: &Item) -> Self {
        let field = |name: &str| text(item, name).unwrap_or_default().to_owned();
        let number = |name: &str| number(item, name).unwrap_or(0);
        Self {
            family: field(FAMILY),
            stream: field(STREAM),
            shard: field(SHARD),
            since_ms: number(SINCE),
            until_ms: number(UNTIL),
            late_ms: number(LATE_MS),
        }
    }
}

/// All marks.
///
/// # Errors
///
/// [`StoreError`] if the ledger cannot be read.
pub async fn marks<S: Store>(store: &S) -> Result<Vec<Mark>, StoreError> {
    Ok(all(store, Table::Ledger, LOSS).await?.iter().map(Mark::of).collect())
}

/// The first mark of this family, if there is one.
pub(crate) async fn first_of<S: Store>(store: &S, family: Family) -> Result<Option<Mark>, StoreError> {
    Ok(marks(store).await?.into_iter().find(|mark| mark.is_of(family)))
}

/// Deletes a mark, after a whole verify that began when the mark was read. Returns true if it did: a mark that was seen
/// again since stays.
///
/// # Errors
///
/// [`StoreError`] if the ledger cannot be written.
pub async fn clear<S: Store>(store: &S, mark: &Mark) -> Result<bool, StoreError> {
    Ok(matches!(store.write(&mark.clearing()).await?, Outcome::Done { .. }))
}

// ---- Writing the mark when a batch is late ----

/// How often an engine writes the mark of a stream shard, in milliseconds: once an hour.
pub(crate) const PUT_EVERY_MS: u64 = 3_600 * 1_000;

/// Checks the age of a batch, and writes the mark if other records may be lost.
pub(crate) async fn see_loss<S: Store>(context: &Context<S>, asks: bool, batch: &Batch<'_>, account: &mut Account) {
    let now_ms = context.clock.now_ms();
    let Some(oldest_ms) = account.created_ms.iter().flatten().min().copied() else { return };
    let late_ms = Some(now_ms.saturating_sub(oldest_ms)).filter(|late_ms| *late_ms >= POSSIBLE_LOSS_MS);
    let watch = context.watch.as_ref().filter(|_| late_ms.is_some());
    let is_first_backlog = watch.is_some_and(|watch| watch.is_first_backlog(oldest_ms));
    account.is_first_backlog = is_first_backlog;
    account.late_ms = late_ms.filter(|_| !is_first_backlog);
    let Some(late_ms) = late_ms.filter(|_| asks) else { return };
    let is_due = |mark: &Mark| !context.loss_put.has(&mark.key(), now_ms);
    let is_kept = |mark: &Mark| !is_first_backlog || holds_cascades(context, mark);
    let due: Vec<Mark> = marks_of_lane(context, late_ms, batch).filter(is_kept).filter(is_due).collect();
    if due.is_empty() {
        return;
    }
    let hours = late_ms / (3_600 * 1_000);
    tracing::warn!(late_ms, hours, shard = batch.lane.shard, "records may be lost: the stream is handled too late");
    for mark in due {
        let key = mark.key();
        match put_mark(context, mark, batch, account).await {
            Ok(()) => context.loss_put.note(key, now_ms),
            Err(error) => tracing::warn!(cause = %describe(&error), "the mark of a possible loss cannot be put"),
        }
    }
}

/// True if this mark blocks a declared cascade. Such a mark is written for the first backlog too: a cascade deletes
/// items of the application, and filling the table does not restore them.
fn holds_cascades<S: Store>(context: &Context<S>, mark: &Mark) -> bool {
    let is_cascade = |it: &Derivation| matches!(it.kind.shape(), Shape::Cascade(_));
    mark.is_of(Family::LevelTriggered) && context.catalogue.derivations().any(is_cascade)
}

/// New marks of the batch's stream shard: one for each family that the function runs.
pub(crate) fn marks_of_lane<S: Store>(
    context: &Context<S>,
    late_ms: u64,
    batch: &Batch<'_>,
) -> impl Iterator<Item = Mark> {
    let now_ms = context.clock.now_ms();
    context.families.iter().map(move |family| Mark::new(*family, &batch.lane, late_ms, now_ms))
}

/// Writes a mark, or notes in the existing one that it was seen again.
pub(crate) async fn put_mark<S: Store>(
    context: &Context<S>,
    seen: Mark,
    batch: &Batch<'_>,
    account: &mut Account,
) -> Result<(), GaveUp> {
    let stored = context.item(Table::Ledger, &seen.key(), batch.patience).await?.as_ref().map(Mark::of);
    let (since_ms, late_ms) = stored.map_or((seen.since_ms, 0), |stored| (stored.since_ms, stored.late_ms));
    let mark = Mark { since_ms, late_ms: late_ms.max(seen.late_ms), ..seen };
    let write = mark.write(&context.schema.layout);
    if let Outcome::Done { units } = batch.patience.call(|| context.store.write(&write)).await? {
        account.commits.push(context.ledger_commit(&write.key, units, RecordAt(0)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::memory::MemoryStore;

    use super::*;
    use crate::fixture::layout;

    fn mark(now_ms: u64) -> Mark {
        let stream_arn = Some("arn:aws:dynamodb:r:1:table/t/stream/2024-03-01T00:00:00.000".to_owned());
        let lane = Lane { stream_arn, shard: Some("shard-1".to_owned()) };
        Mark::new(Family::Additive, &lane, POSSIBLE_LOSS_MS, now_ms)
    }

    #[tokio::test]
    async fn a_mark_reads_back_and_goes_only_as_it_was_read() {
        let store = MemoryStore::new(layout());
        assert_eq!(marks(&store).await.unwrap(), []);
        store.write(&mark(5).write(&layout())).await.unwrap();
        let read = marks(&store).await.unwrap();
        assert_eq!(read, [mark(5)]);
        assert_eq!(read[0].key().to_string(), "LOSS / additive#2024-03-01T00:00:00.000#shard-1");

        // The mark is seen again while a verify runs.
        store.write(&Mark { until_ms: 6, ..mark(5) }.write(&layout())).await.unwrap();
        assert!(!clear(&store, &read[0]).await.unwrap());
        let read = marks(&store).await.unwrap();
        assert!(clear(&store, &read[0]).await.unwrap());
        assert_eq!(marks(&store).await.unwrap(), []);
        assert!(!clear(&store, &read[0]).await.unwrap(), "it is gone already");
    }
}

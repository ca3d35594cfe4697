//! Parking: a change that can never be applied is stored whole, with its cause, and blocks no other change.
//!
//! *Keeps true*: a change is either applied or parked, never both and never neither: for the additive family, one
//! transaction writes the parked items and the ledger's proof. A level-triggered change has no proof, because applying
//! it twice is harmless.
//!
//! The record is stored unchanged and compressed, in parts if an item would be too large. A [redrive](crate::redrive)
//! applies parked changes.

use std::io::{Read as _, Write as _};

use derive::{
    coalesce::Amount,
    family::Family,
    guard::Guard,
    position::{DerivationAt, RecordAt},
    query::Query,
    write::{Action, Table, Write},
};
use flate2::{Compression, Crc, read::GzDecoder, write::GzEncoder};
use keys::{
    counter::CounterKey,
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Store, StoreError};

use crate::{
    account::{Account, Parked, undone},
    attribute::{checksum, n, number, s},
    backoff::describe,
    context::Context,
    input::Batch,
    ledger::{ledger_item, parked_partition},
    record::{Head, Lane},
};

/// Largest part of a record in one item, in bytes: below the 400 KB of an item, with names and cause.
const PART_BYTES_MAX: usize = 350 * 1024;

/// Longest id that is used unchanged to park a record, in bytes. Source: an event's id has 32.
const ID_BYTES_MAX: usize = 128;

/// Longest cause that is stored, in bytes: a panic's message can have any length.
const CAUSE_BYTES_MAX: usize = 4 * 1024;

/// A record to park.
#[derive(Clone, Debug)]
pub struct Parking<'a> {
    /// What could be read of the record.
    pub head: &'a Head,
    /// The original record, JSON.
    pub record: &'a str,
    /// Why it cannot be applied.
    pub cause: &'a str,
    /// The family that it is parked for.
    pub family: Family,
    /// Its origin.
    pub lane: &'a Lane,
    /// The counter or bucket that it is parked for; `None` if it is parked for the whole family.
    pub counter: Option<&'a Key>,
    /// The exception of its shard that prevents its application, if there is one.
    pub exception: Option<ExceptionKind>,
}

/// Why a change is an exception of its stream shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionKind {
    /// It could not be read, so no counter counts it.
    Uncounted,
    /// A counter may count it: invocations died while it was in progress, or another item had the counter's key, or it
    /// was written before the last instance that may have been able to read it had ended.
    Unsure,
}

impl ExceptionKind {
    const ALL: [Self; 2] = [Self::Uncounted, Self::Unsure];

    /// Its name. Stored, so it is stable.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uncounted => "uncounted",
            Self::Unsure => "unsure",
        }
    }

    /// The kind of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Parking<'_> {
    /// The writes that park it, all on items of their own.
    #[must_use]
    pub fn writes(&self, layout: &Layout, now_ms: u64) -> Vec<Write> {
        let id = id(self.head, self.record);
        let compressed = compressed(self.record);
        let parts: Vec<&[u8]> = compressed.chunks(PART_BYTES_MAX).collect();
        let cause = self.cause.get(..self.cause.floor_char_boundary(CAUSE_BYTES_MAX)).unwrap_or_default();
        let put = |(at, part): (usize, &&[u8])| {
            let key = key(self.family, &own_id(&id, self.counter), at);
            let attributes = [
                (EVENT_ID, s(&id)),
                (FAMILY, s(&self.family.to_string())),
                (CAUSE, s(cause)),
                (PARKED_AT, n(now_ms)),
                (SEQUENCE_NUMBER, s(self.head.sequence_number.as_deref().unwrap_or_default())),
                (STREAM, s(self.lane.stream_arn.as_deref().unwrap_or_default())),
                (SHARD, s(self.lane.shard.as_deref().unwrap_or_default())),
                (PARTS, n(u64::try_from(parts.len()).unwrap_or(u64::MAX))),
                (RECORD, AttributeValue::B(part.to_vec())),
            ];
            let mut item = ledger_item(layout, &key, attributes);
            if let Some(counter) = self.counter {
                item.extend([(COUNTER_PK.to_owned(), s(&counter.pk)), (COUNTER_SK.to_owned(), s(&counter.sk))]);
            }
            if let Some(kind) = self.exception {
                item.insert(EXCEPTION.to_owned(), s(kind.name()));
            }
            Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
        };
        parts.iter().enumerate().map(put).collect()
    }
}

// Attributes of a parked item. Stored, so they are stable.
const EVENT_ID: &str = "EventId";
pub(crate) const FAMILY: &str = "Family";
const CAUSE: &str = "Cause";
const PARKED_AT: &str = "ParkedAt";
const SEQUENCE_NUMBER: &str = "SequenceNumber";
pub(crate) const STREAM: &str = "Stream";
pub(crate) const SHARD: &str = "Shard";
const PARTS: &str = "Parts";
pub(crate) const RECORD: &str = "Record";
const COUNTER_PK: &str = "CounterPK";
pub(crate) const COUNTER_SK: &str = "CounterSK";
pub(crate) const EXCEPTION: &str = "Exception";

/// End of the sort key of a parked record's first part; see [`key`].
pub(crate) const FIRST_PART: &str = "#00";

/// Key of a part of a parked record, counted from 0.
pub(crate) fn key(family: Family, id: &str, part: usize) -> Key {
    Key::new(parked_partition(family), format!("{id}#{part:02}"))
}

/// Id of a parked change: its event's id, with the counter if the change is parked for one.
pub(crate) fn own_id(id: &str, counter: Option<&Key>) -> String {
    let of_counter = |counter: &Key| format!("{id}@{:08x}", checksum(&format!("{}\n{}", counter.pk, counter.sk)));
    counter.map_or_else(|| id.to_owned(), of_counter)
}

/// The ledger's id of a record: the event's id, or a checksum of the record if that id cannot be read.
#[must_use]
pub fn id(head: &Head, record: &str) -> String {
    let is_fit = |id: &String| !id.is_empty() && id.len() <= ID_BYTES_MAX;
    head.id.clone().filter(is_fit).unwrap_or_else(|| {
        let mut crc = Crc::new();
        crc.update(record.as_bytes());
        format!("unnamed-{:08x}-{}", crc.sum(), record.len())
    })
}

fn compressed(record: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a Vec cannot fail; if it did, the record would be stored uncompressed.
    match encoder.write_all(record.as_bytes()).and_then(|()| encoder.finish()) {
        Ok(compressed) => compressed,
        Err(_) => record.as_bytes().to_vec(),
    }
}

/// Parks a record for these level-triggered derivations, as far as they are known, or notes that the record is not
/// done.
pub(crate) async fn park<S: Store>(
    context: &Context<S>,
    position: RecordAt,
    derivations: impl IntoIterator<Item = DerivationAt> + Send,
    cause: &str,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    let Some(record) = batch.record(position) else { return };
    let parking = Parking {
        head: &record.head,
        record: record.text,
        cause,
        family: Family::LevelTriggered,
        lane: &batch.lane,
        counter: None,
        exception: None,
    };
    for write in parking.writes(&context.schema.layout, context.clock.now_ms()) {
        match batch.patience.call(|| context.store.write(&write)).await {
            Ok(Outcome::Done { units }) => {
                account.commits.push(context.ledger_commit(&write.key, units, position));
            }
            Ok(Outcome::GuardFailed) => {}
            Err(error) => return undone(account, [position], &describe(&error)),
        }
    }
    let id = id(&record.head, record.text);
    account.parked_for(derivations);
    report(Parked { position, id, cause: cause.to_owned() }, Family::LevelTriggered, batch, account);
}

/// Logs a parked change, with its item unless the record cannot be decoded, and adds it to the account.
pub(crate) fn report(parked: Parked, family: Family, batch: &Batch<'_>, account: &mut Account) {
    let change = batch.record(parked.position).and_then(|record| record.change.as_ref().ok());
    let item = change.map(|change| change.key.for_log());
    let Parked { id, cause, .. } = &parked;
    tracing::error!(event_id = id, %family, item, cause, "parked a change that cannot be applied");
    account.parked.push(parked);
}

/// The record from its parked parts, in their order.
pub(crate) fn record(parts: &[Item]) -> Result<String, std::io::Error> {
    let bytes = parts.iter().filter_map(|part| match part.get(RECORD) {
        Some(AttributeValue::B(bytes)) => Some(bytes.as_slice()),
        _ => None,
    });
    let compressed: Vec<u8> = bytes.flatten().copied().collect();
    let mut record = String::new();
    GzDecoder::new(compressed.as_slice()).read_to_string(&mut record)?;
    Ok(record)
}

/// A change that is parked for a family.
#[derive(Clone, Debug, PartialEq)]
pub struct ParkedChange {
    /// Id of its event.
    pub id: String,
    /// The family that it is parked for.
    pub family: Family,
    /// Why it was parked.
    pub cause: String,
    /// When it was parked, in milliseconds since the epoch.
    pub parked_at_ms: u64,
    /// Its sequence number; empty if it could not be read.
    pub sequence_number: String,
    /// Its origin.
    pub lane: Lane,
    /// Number of its parts.
    pub n_parts: usize,
    /// The counter or bucket that it is parked for; `None` if it is parked for the whole family.
    pub counter: Option<Key>,
    /// The exception of its shard that prevents its application, if there is one.
    pub exception: Option<ExceptionKind>,
    /// Its stored items.
    parts: Vec<Item>,
}

impl ParkedChange {
    /// The original record, JSON.
    ///
    /// # Errors
    ///
    /// If its parts do not fit together.
    pub fn record(&self) -> Result<String, std::io::Error> {
        record(&self.parts)
    }

    fn of(family: Family, parts: Vec<Item>) -> Option<Self> {
        let first = parts.first()?;
        let field = |name: &str| text(first, name).unwrap_or_default().to_owned();
        let given = |name: &str| Some(field(name)).filter(|text| !text.is_empty());
        let number = |name: &str| number(first, name).unwrap_or(0);
        Some(Self {
            id: field(EVENT_ID),
            family,
            cause: field(CAUSE),
            parked_at_ms: number(PARKED_AT),
            sequence_number: field(SEQUENCE_NUMBER),
            lane: Lane { stream_arn: given(STREAM), shard: given(SHARD) },
            n_parts: usize::try_from(number(PARTS)).unwrap_or(0),
            counter: text(first, COUNTER_PK).map(|pk| Key::new(pk, field(COUNTER_SK))),
            exception: text(first, EXCEPTION).and_then(ExceptionKind::of),
            parts,
        })
    }

    /// True if this amount is parked. The counter may have another number of shards by now.
    pub(crate) fn is_for(&self, amount: &Amount) -> bool {
        let Some(counter) = &self.counter else { return true };
        let count_of = |key: &Key| CounterKey::parse(key).map(|counter| (counter.target, counter.derivation));
        *counter == amount.item || count_of(counter).is_some_and(|count| count_of(&amount.item) == Some(count))
    }

    /// Number of its parts that were read.
    #[cfg(test)]
    fn n_held_parts(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn deletions(&self, guard: Option<Guard>) -> impl Iterator<Item = Write> {
        let id = own_id(&self.id, self.counter.as_ref());
        (0..self.parts.len()).map(move |part| Write {
            table: Table::Ledger,
            key: key(self.family, &id, part),
            action: Action::Delete,
            guard: guard.clone(),
        })
    }
}

// ---- pages ----

/// Reads the parked changes of a family, in order of the events' ids.
///
/// The caller reads the page of [`next`](Self::next), and passes it to [`take`](Self::take).
#[derive(Debug)]
pub struct ParkedPages {
    family: Family,
    query: Query,
    after: Option<Cursor>,
    is_end: bool,
    /// Parts of a change that may continue on the next page.
    parts: Vec<Item>,
}

impl ParkedPages {
    /// Begins with the first page.
    #[must_use]
    pub fn of(family: Family) -> Self {
        let query = Query::prefix(None, parked_partition(family), "");
        Self { family, query, after: None, is_end: false, parts: Vec::new() }
    }

    /// The query of the next page in the ledger's table, and its start; `None` at the end.
    #[must_use]
    pub fn next(&self) -> Option<(Query, Option<Cursor>)> {
        (!self.is_end).then(|| (self.query.clone(), self.after.clone()))
    }

    /// The changes that are complete with this page.
    pub fn take(&mut self, page: Page) -> Vec<ParkedChange> {
        let mut changes = Vec::new();
        for item in page.items {
            // Parts of one change are consecutive.
            let differs = |first: &Item| {
                [EVENT_ID, COUNTER_PK, COUNTER_SK].iter().any(|name| text(first, name) != text(&item, name))
            };
            if self.parts.first().is_some_and(differs) {
                changes.extend(ParkedChange::of(self.family, std::mem::take(&mut self.parts)));
            }
            self.parts.push(item);
        }
        self.is_end = page.next.is_none();
        self.after = page.next;
        if self.is_end {
            changes.extend(ParkedChange::of(self.family, std::mem::take(&mut self.parts)));
        }
        changes
    }
}

/// All parked changes, by family and in order of the events' ids, for an operator's command. The command has all of
/// them in memory; a function reads them page by page.
///
/// # Errors
///
/// [`StoreError`] if the ledger cannot be read.
pub async fn parked<S: Store>(store: &S) -> Result<Vec<ParkedChange>, StoreError> {
    let mut changes = Vec::new();
    for family in [Family::Additive, Family::LevelTriggered] {
        let mut pages = ParkedPages::of(family);
        while let Some((query, after)) = pages.next() {
            changes.extend(pages.take(store.query(Table::Ledger, &query, after).await?));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod pages_tests {
    use serde_dynamo::AttributeValue;

    use super::*;

    fn part(id: &str) -> Item {
        Item::from([(EVENT_ID.to_owned(), AttributeValue::S(id.to_owned()))])
    }

    #[test]
    fn a_change_whose_parts_are_on_two_pages_is_one_change_and_no_earlier_page_is_kept() {
        let mut pages = ParkedPages::of(Family::Additive);
        let all = [&["a", "b"][..], &["b"], &["b", "c", "d"], &[]];
        let mut taken = Vec::new();
        for (at, ids) in all.iter().enumerate() {
            let (_, after) = pages.next().unwrap();
            assert_eq!(after, (at > 0).then(|| Cursor(part(&at.to_string()))));
            let next = (at + 1 < all.len()).then(|| Cursor(part(&(at + 1).to_string())));
            let changes = pages.take(Page { items: ids.iter().map(|id| part(id)).collect(), next });
            let lengths = changes.iter().map(|change| (change.id.clone(), change.n_held_parts()));
            taken.push((lengths.collect::<Vec<_>>(), pages.parts.len()));
        }
        let change = |id: &str, n_parts: usize| (id.to_owned(), n_parts);
        let expected = [
            (vec![change("a", 1)], 1),
            (vec![], 2),
            (vec![change("b", 3), change("c", 1)], 1),
            (vec![change("d", 1)], 0),
        ];
        assert_eq!(taken, expected);
        assert_eq!(pages.next(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::layout;

    #[test]
    fn a_record_that_passes_an_item_is_split_and_reads_back() {
        let layout = layout();
        // Text that does not compress below one part.
        let mut state = 1_u64;
        let record: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from(state >> 58).unwrap_or(0))
        })
        .take(800_000)
        .collect();
        let head = Head { id: Some("e1".into()), ..Head::default() };
        let lane = Lane::default();
        let parking = Parking {
            head: &head,
            record: &record,
            cause: "c",
            family: Family::Additive,
            lane: &lane,
            counter: None,
            exception: None,
        };
        let writes = parking.writes(&layout, 0);
        let keys: Vec<String> = writes.iter().map(|write| write.key.to_string()).collect();
        assert_eq!(keys, ["PARKED#additive / e1#00", "PARKED#additive / e1#01"]);
        let item = |write: &Write| match &write.action {
            Action::Put(item) => item.clone(),
            other => panic!("{other:?}"),
        };
        let parts: Vec<Item> = writes.iter().map(item).collect();
        assert_eq!(super::record(&parts).unwrap(), record);
    }
}

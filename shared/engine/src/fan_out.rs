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
//!
//! # Underway
//!
//! An item that a fan-out in progress has still to reach is *pending*: that it differs is no finding.
//!
//! *Keeps true*: an item behind the fan-out's cursor that differs is not pending. Otherwise a source that changes all
//! the time would hide for good every error in the items that depend on it.
//!
//! *Example*: `ann` is renamed, and the job has copied the name to the comments of her partition up to `COMMENT#5`. A
//! wrong name in `COMMENT#3` is a finding; one in `COMMENT#7` is pending.

pub mod again;
pub(crate) mod page;
pub(crate) mod search;

use std::collections::BTreeSet;

use derive::{
    clock,
    declaration::through,
    effect::Find,
    guard::{Guard, Purpose},
    position::{DerivationAt, RecordAt},
    query::{Query, SortKeys},
    schema::Unreadable,
    sources::{Source, Sources},
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
    account::{Account, Commit, ListedItem, undone},
    attribute::{checksum, s},
    backoff::{GaveUp, Patience, Tries},
    clock::CLOCKS_DIFFER_MS,
    context::Context,
    fan_out::search::Notes,
    input::Batch,
    job::{FanOut, Job, Task, id_of},
    ledger::ledger_item,
    look::{
        self, is_correction,
        listing::{self, entry_key},
        only_undoes,
    },
    park,
    protocol::ProtocolStep,
    requests::{LookRequest, Looked, OccupiedKey, OwnImages, RefreshRequests, RequestedRefresh, WrittenItem},
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
        let stored = context.item(Table::Main, &key, patience).await?;
        let now_ms = context.clock.now_ms();
        let write = if let Some(job) = stored.and_then(|item| Job::of(&context.schema.layout, &item)) {
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
const LAST: &str = "Last";

/// The write that marks notes as begun, up to this one.
fn marked_to(layout: &Layout, mark: &Key, last: &str) -> Write {
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

// ---- Refreshing items for a batch ----

/// Refreshes all items that a batch requested.
pub(crate) async fn look<S: Store>(
    context: &Context<S>,
    mut requests: RefreshRequests,
    images: Option<&OwnImages>,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    let listed = listing::recall(context, &mut requests, batch.patience, account).await;
    let searched = search::search(context, &mut requests, Notes::Taken, batch.patience).await;
    account.commits.extend(searched.commits);
    for (causes, why) in searched.undone {
        undone(account, causes, &why);
    }
    for (derivations, causes, cause) in searched.refused {
        park(context, &derivations, causes, &cause, batch, account).await;
    }
    let mut sources = Sources::default();
    for items in requests.parts() {
        let request = LookRequest { items, images, patience: batch.patience };
        let looked = look::look_in_time(context, request, &mut sources).await;
        settle(context, looked, batch, account).await;
    }
    listing::take_off(context, listed, batch.patience, account).await;
}

/// Reports a derived item that waits for its key.
fn report_occupied<S: Store>(
    context: &Context<S>,
    requested: &RequestedRefresh,
    derivation: DerivationAt,
    units: Units,
    account: &mut Account,
) {
    let name = context.catalogue.label(derivation);
    let item = requested.look.item.for_log();
    tracing::warn!(derivation = name, item, "an item that is not Ripple's has the key of a derived item, which waits");
    let Some(position) = requested.causes.first().copied() else { return };
    let key = entry_key(context.catalogue.name(derivation), &requested.look.item);
    account.commits.push(context.ledger_commit(&key, units, position));
    let attribute = context.schema.layout.type_name().to_owned();
    let why = "is not that of the derived item that waits for the key".to_owned();
    account.unreadable.push(ListedItem {
        position,
        key: requested.look.item.clone(),
        derivation: name.to_owned(),
        why: Unreadable { attribute, why },
    });
}

/// Adds the results of refreshes to the account, and parks the records whose items are refused.
async fn settle<S: Store>(context: &Context<S>, looked: Looked, batch: &Batch<'_>, account: &mut Account) {
    let name = |at: DerivationAt| context.catalogue.label(at);
    account.n_in_step += looked.n_in_step;
    account.commits.extend(looked.clock.map(|(causes, units)| Commit {
        key: clock::key(),
        table: Table::Main,
        action: None,
        at_ms: context.clock.now_ms(),
        units,
        derivations: Vec::new(),
        causes,
        is_correction: false,
    }));
    for (derivation, busy) in looked.met {
        account.contention.met(derivation.map(name), busy);
    }
    for derivations in looked.sent_again {
        account.sends_again(derivations);
    }
    for written in looked.written {
        context.corrections.note(&written, only_undoes(&written.requested, &written.write, batch));
        let WrittenItem { requested, write, derivations, at_ms, units } = written;
        account.commits.push(Commit {
            is_correction: is_correction(&requested, &write, batch),
            key: write.key,
            table: write.table,
            action: Some(write.action),
            at_ms,
            units,
            derivations: derivations.into_iter().map(|at| name(at).to_owned()).collect(),
            causes: requested.causes,
        });
    }
    for OccupiedKey { requested, derivation, units } in looked.occupied {
        report_occupied(context, &requested, derivation, units, account);
    }
    for (requested, why) in looked.undone {
        undone(account, requested.causes, &why);
    }
    for (requested, cause) in looked.refused {
        park(context, &requested.look.derivations, requested.causes, &cause, batch, account).await;
    }
}

async fn park<S: Store>(
    context: &Context<S>,
    derivations: &BTreeSet<DerivationAt>,
    causes: BTreeSet<RecordAt>,
    cause: &str,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    for position in causes {
        park::park(context, position, derivations.iter().copied(), cause, batch, account).await;
    }
}

// ---- A fan-out in progress: the items that it has still to reach ----

/// A fan-out in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnderwayFanOut {
    /// The sort key of its job.
    pub(crate) job: String,
    /// True if an operator paused the job.
    pub(crate) is_paused: bool,
    /// The derivation of the items that it refreshes.
    pub(crate) derivation: DerivationAt,
    /// The source whose change started it.
    source: Key,
    /// The search; `None` if it leads to items with other keys than those that it finds.
    search: Option<Search>,
}

/// The search of a fan-out, and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Search {
    /// Attributes of the partition key and of the sort key of the index; `None` in the table.
    index: Option<(String, String)>,
    pk: String,
    sk: SortKeys,
    /// Sort key of the last item that was refreshed in this round.
    after: Option<String>,
    /// Sort key at which the second round ends.
    until: Option<String>,
    is_round: bool,
}

impl UnderwayFanOut {
    /// The fan-out of a job; `None` if the job is no fan-out, or has no search.
    pub(crate) fn of<S: store::Store>(context: &Context<S>, job: &Job) -> Option<Self> {
        let Task::FanOut(fan_out) = &job.task else { return None };
        let derivation = context.catalogue.position(&job.derivation)?;
        let find = search_of(context, derivation, &fan_out.source)?;
        let Query { index, pk, sk, .. } = find.query;
        let layout = &context.schema.layout;
        let index = index.and_then(|name| layout.index(&name)).map(|index| (index.pk.clone(), index.sk.clone()));
        let name = index.as_ref().map_or(&layout.sk, |(_, sk)| sk);
        let after = job.after.as_ref().and_then(|after| text(&after.0, name)).map(str::to_owned);
        let (until, is_round) = (fan_out.until.clone(), fan_out.is_round);
        let search = (find.via == find.target).then_some(Search { index, pk, sk, after, until, is_round });
        Some(Self {
            job: job.key.sk.clone(),
            is_paused: job.is_paused,
            derivation,
            source: fan_out.source.clone(),
            search,
        })
    }

    /// True if the fan-out will still reach this item, which was decided by these sources. `stored` is the stored item.
    /// No fan-out creates an item. If the found keys do not show the progress, every item that its source decides may
    /// be ahead.
    pub(crate) fn still_reaches(&self, item: &Key, stored: Option<&Item>, sources: &[&Source]) -> bool {
        stored.is_some_and(|stored| match &self.search {
            Some(search) => search.is_ahead_of(item, stored),
            // One source of a range may stand for others in it.
            None => sources.iter().any(|source| match source {
                Source::First(of) => of.query.pk == self.source.pk,
                source => source.may_be(&self.source),
            }),
        })
    }
}

impl Search {
    fn is_ahead_of(&self, item: &Key, stored: &Item) -> bool {
        match &self.index {
            None => self.is_ahead(&item.pk, &item.sk),
            Some((pk, sk)) => text(stored, pk).zip(text(stored, sk)).is_some_and(|(pk, sk)| self.is_ahead(pk, sk)),
        }
    }

    /// Several items may have the last sort key, so an item with that key is still ahead.
    fn is_ahead(&self, pk: &str, sk: &str) -> bool {
        let is_behind_cursor = self.after.as_deref().is_some_and(|after| sk < after);
        let is_in_round = self.until.as_deref().is_none_or(|until| sk <= until);
        let is_left = match (self.is_round, self.until.is_some()) {
            (true, _) => !is_behind_cursor && is_in_round,
            (false, true) => !is_behind_cursor || is_in_round,
            (false, false) => !is_behind_cursor,
        };
        self.pk == pk && self.sk.holds(sk) && is_left
    }
}

#[cfg(test)]
mod tests {
    use derive::sources::FirstOf;

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

    fn search(after: Option<&str>, until: Option<&str>, is_round: bool) -> Search {
        let [after, until] = [after, until].map(|text| text.map(str::to_owned));
        Search { index: None, pk: "p".into(), sk: SortKeys::Prefix("C#".into()), after, until, is_round }
    }

    #[test]
    fn what_it_has_been_to_is_behind_until_it_goes_round_once_more() {
        let ahead = |after, until, is_round| {
            let is_ahead = |sk: &&str| search(after, until, is_round).is_ahead("p", sk);
            ["C#1", "C#3", "C#5", "C#7"].into_iter().filter(is_ahead).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ahead(None, None, false), "C#1 C#3 C#5 C#7");
        assert_eq!(ahead(Some("C#5"), None, false), "C#5 C#7", "others may have the last sort key");
        assert_eq!(ahead(Some("C#5"), Some("C#3"), false), "C#1 C#3 C#5 C#7");
        assert_eq!(ahead(Some("C#5"), Some("C#1"), false), "C#1 C#5 C#7");
        assert_eq!(ahead(None, Some("C#3"), true), "C#1 C#3");
        assert_eq!(ahead(Some("C#2"), Some("C#3"), true), "C#3");
        assert!(!search(None, None, false).is_ahead("q", "C#1"), "it is in another partition");
        assert!(!search(None, None, false).is_ahead("p", "D#1"), "it is not searched for");
    }

    #[test]
    fn an_item_is_found_in_an_index_by_its_index_keys() {
        let index = Some(("gpk".to_owned(), "gsk".to_owned()));
        let search = Search { index, ..search(Some("C#5"), None, false) };
        let source = Key::new("p", "source");
        let (job, is_paused) = (String::new(), false);
        let fan_out = UnderwayFanOut {
            job,
            is_paused,
            derivation: DerivationAt(0),
            source: source.clone(),
            search: Some(search),
        };
        let (key, stored) = (Key::new("a", "b"), |sk: &str| {
            Item::from([("gpk", "p"), ("gsk", sk)].map(|(name, value)| (name.to_owned(), crate::attribute::s(value))))
        });
        let reaches = |stored: Option<&Item>| fan_out.still_reaches(&key, stored, &[&Source::Item(source.clone())]);
        assert!(reaches(Some(&stored("C#7"))));
        assert!(!reaches(Some(&stored("C#3"))));
        assert!(!reaches(Some(&Item::default())), "the search never finds it");
        assert!(!reaches(None), "no fan-out makes it");
    }

    #[test]
    fn what_is_found_through_others_is_ahead_if_the_source_decides_it() {
        let (source, key, stored) = (Key::new("USER#ann", "PROFILE"), Key::new("a", "b"), Item::default());
        let (job, is_paused) = (String::new(), false);
        let fan_out =
            UnderwayFanOut { job, is_paused, derivation: DerivationAt(0), source: source.clone(), search: None };
        let first = |pk: &str| {
            let query = Query { limit: Some(9), ..Query::prefix(None, pk, "MSG#") };
            Source::First(FirstOf { query, entity: "Message".to_owned(), is_counted: true })
        };
        let [source, own] = [source, key.clone()].map(Source::Item);
        assert!(fan_out.still_reaches(&key, Some(&stored), &[&own, &source]));
        assert!(!fan_out.still_reaches(&key, Some(&stored), &[&own]), "it follows another");
        assert!(!fan_out.still_reaches(&key, None, &[&source]), "no fan-out makes it");
        assert!(fan_out.still_reaches(&key, Some(&stored), &[&first("USER#ann")]), "it may be in its range");
        assert!(!fan_out.still_reaches(&key, Some(&stored), &[&first("USER#bob")]), "it is in another range");
    }
}

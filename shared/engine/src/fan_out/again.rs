//! Repeats a search of an index, when the index has had time to catch up, and refreshes items whose definition changes
//! at a known time.
//!
//! *Keeps true*: each search of an index that may lag is repeated after the index has had time to catch up. The
//! repeated search finds an item that was written before a source changed and that the index did not return at first.
//! The record of an item that was written after the change refreshes the item from the source itself.
//!
//! A search leaves a *note* in the ledger, with the key of its source and the derivations. Notes are sorted by due
//! time, so a sweep reads only the due ones; it deletes those that are done. Several sweeps at once are harmless, and
//! so is a note that is done twice. Searches from one key at about the same time share a note. The note is due a little
//! later than all of them, so no function adds to a note that a sweep may be handling.
//!
//! A note of a derivation without a search names an item, such as one with the sum of the last days: the sweep refreshes
//! it when a day begins or has left.
//!
//! A sweep that dies on a note, by time or memory, would die on it each time, and never reach later notes. So the sweep
//! *marks* the notes that it is about to do. Notes that it finds marked go to jobs, whose crashing records are parked.
//! A search also becomes a job if it finds an item that refuses the write, such as an item without room for a longer
//! name.

use std::collections::BTreeSet;

use derive::{
    effect::RefreshRequest,
    query::{Query, SortKeys},
    sources::Sources,
    write::{Action, Table, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience, describe},
    clock::CLOCKS_DIFFER_MS,
    context::Context,
    fan_out::{
        self, DIGITS, LAST, MARK, Note, PARTITIONS, marked_to, partition,
        search::{self, Notes},
    },
    look,
    requests::{LookRequest, RefreshRequests},
};

/// Notes that are read together, and partitions that are handled at once.
const NOTES_AT_ONCE: u32 = 50;
const PARTITIONS_AT_ONCE: usize = 4;

/// The totals of a run of repeated searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Notes that were done.
    pub n_done: usize,
    /// Notes that are due and could not be done now.
    pub n_left: usize,
    /// Items that were written.
    pub n_written: usize,
}

/// The result of one note.
#[derive(Default)]
struct NoteOutcome {
    /// Items that were written.
    n_written: usize,
    /// Why the note is not done, if it is not.
    why_not: Option<String>,
}

/// Repeats the searches that are due, until this time in milliseconds since the epoch; the next run does the rest.
pub(crate) async fn search_again<S: Store>(context: &Context<S>, deadline_ms: u64) -> Result<Again, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    // The first partition is random, so that sweeps that end early still reach all partitions in turn.
    let first = u32::try_from(context.clock.chance(u64::from(PARTITIONS))).unwrap_or(0);
    let parts: Vec<BoxFuture<'_, _>> =
        (first..PARTITIONS).chain(0..first).map(|number| search_partition(context, number, patience).boxed()).collect();
    let mut parts = stream::iter(parts).buffer_unordered(PARTITIONS_AT_ONCE);
    let mut all = Again::default();
    while let Some((of_one, ended)) = parts.next().await {
        all.n_done += of_one.n_done;
        all.n_left += of_one.n_left;
        all.n_written += of_one.n_written;
        ended?;
    }
    Ok(all)
}

async fn search_partition<S: Store>(
    context: &Context<S>,
    number: u32,
    patience: Patience<'_>,
) -> (Again, Result<(), GaveUp>) {
    let mut all = Again::default();
    let ended = search_notes(context, number, patience, &mut all).await;
    (all, ended)
}

async fn search_notes<S: Store>(
    context: &Context<S>,
    number: u32,
    patience: Patience<'_>,
    all: &mut Again,
) -> Result<(), GaveUp> {
    let mark = Key::new(partition(number), MARK);
    let marked = context.item(Table::Ledger, &mark, patience).await?;
    let deadly = marked.as_ref().and_then(|item| text(item, LAST)).map(str::to_owned);
    let due = Query { limit: Some(NOTES_AT_ONCE), ..Query::of(None, partition(number), until(context.clock.now_ms())) };
    let mut after = None;
    while !patience.is_over() {
        let page = patience.call(|| context.store.query(Table::Ledger, &due, after.clone())).await?;
        let notes: Vec<Key> = page.items.iter().filter_map(|item| context.schema.layout.key(item)).collect();
        if let Some(last) = notes.last() {
            let begun = marked_to(&context.schema.layout, &mark, &last.sk);
            patience.call(|| context.store.write(&begun)).await?;
        }
        for (key, item) in notes.into_iter().zip(&page.items) {
            let is_deadly = deadly.as_ref().is_some_and(|deadly| key.sk <= *deadly);
            if !patience.is_over() {
                do_again(context, key, item, is_deadly, patience, all).await?;
            }
        }
        let unmark = Write { table: Table::Ledger, key: mark.clone(), action: Action::Delete, guard: None };
        if !page.items.is_empty() {
            patience.call(|| context.store.write(&unmark)).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(())
}

/// A search that is to be repeated, or an item that is to be refreshed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueItem {
    /// The source of the search; or the item.
    pub item: Key,
    /// Names of the derivations.
    pub derivations: BTreeSet<String>,
    /// When it is due, in milliseconds since the epoch.
    pub due_ms: u64,
}

/// When the last of the searches that are noted now is repeated, in milliseconds since the epoch. An item may be noted for
/// a day that is far ahead.
pub(crate) fn soon<S>(context: &Context<S>) -> u64 {
    context.clock.now_ms().saturating_add(2 * context.fan_out.index_lag_ms + 2 * CLOCKS_DIFFER_MS)
}

/// What is due until a time in milliseconds since the epoch, as far as it is asked for; with a limit, the first of each
/// partition.
pub(crate) async fn due<S: Store>(
    context: &Context<S>,
    until_ms: u64,
    limit: Option<u32>,
    is_asked: impl Fn(&Key) -> bool,
    patience: Patience<'_>,
) -> Result<Vec<DueItem>, GaveUp> {
    let mut items = Vec::new();
    for number in 0..PARTITIONS {
        let notes = Query { limit, ..Query::of(None, partition(number), until(until_ms)) };
        let mut after = None;
        loop {
            let page = patience.call(|| context.store.query(Table::Ledger, &notes, after.clone())).await?;
            items.extend(page.items.iter().filter_map(|note| {
                let Note { item, derivations } = Note::of(note).filter(|note| is_asked(&note.item))?;
                let due_ms = context.schema.layout.key(note)?.sk.split('#').next()?.parse().ok()?;
                Some(DueItem { item, derivations, due_ms })
            }));
            after = page.next.filter(|_| limit.is_none());
            if after.is_none() {
                break;
            }
        }
    }
    Ok(items)
}

/// The sort keys of the notes that are due until a time in milliseconds since the epoch.
fn until(ms: u64) -> SortKeys {
    SortKeys::Between("0".to_owned(), format!("{ms:0DIGITS$}~"))
}

async fn do_again<S: Store>(
    context: &Context<S>,
    key: Key,
    item: &Item,
    is_deadly: bool,
    patience: Patience<'_>,
    all: &mut Again,
) -> Result<(), GaveUp> {
    let mut done = NoteOutcome::default();
    if let Some(note) = Note::of(item) {
        let has_search = |name: &String| {
            let at = context.catalogue.position(name);
            at.is_none_or(|at| fan_out::search_of(context, at, &note.item).is_some())
        };
        // The refresh of one item is no more than any batch does.
        if is_deadly && note.derivations.iter().all(has_search) {
            tracing::warn!(
                item = note.item.for_log(),
                "a sweep died on what is to be searched for again, so jobs do it"
            );
            done = give_to_jobs(context, &note, patience).await;
        } else {
            done = search_for(context, &note, patience).await;
        }
    }
    all.n_written += done.n_written;
    if let Some(why) = done.why_not {
        tracing::warn!(
            item = key.for_log(),
            why,
            "what an index may have missed is searched for again at the next run"
        );
        all.n_left += 1;
        return Ok(());
    }
    all.n_done += 1;
    let delete = Write { table: Table::Ledger, key, action: Action::Delete, guard: None };
    patience.call(|| context.store.write(&delete)).await.map(drop)
}

async fn give_to_jobs<S: Store>(context: &Context<S>, note: &Note, patience: Patience<'_>) -> NoteOutcome {
    let mut done = NoteOutcome::default();
    for derivation in note.derivations.iter().filter_map(|name| context.catalogue.position(name)) {
        if let Err(error) = fan_out::fan_out(context, derivation, &note.item, patience, &mut Vec::new()).await {
            done.why_not.get_or_insert(describe(&error));
        }
    }
    done
}

async fn search_for<S: Store>(context: &Context<S>, note: &Note, patience: Patience<'_>) -> NoteOutcome {
    let mut requests = RefreshRequests::default();
    for derivation in note.derivations.iter().filter_map(|name| context.catalogue.position(name)) {
        if let Some(find) = fan_out::search_of(context, derivation, &note.item) {
            requests.find(find, derivation, &note.item, None);
        } else if let Some(refresh) = context.catalogue.refresh(derivation) {
            requests.request(RefreshRequest::of(note.item.clone(), refresh.target()), derivation, &note.item, None);
        }
    }
    let searched = search::search(context, &mut requests, Notes::NotTaken, patience).await;
    let n_begun = searched.commits.iter().filter(|commit| commit.table == Table::Main).count();
    let why_not = searched.undone.into_iter().map(|(_, why)| why).next();
    let mut done = NoteOutcome { n_written: n_begun, why_not };
    let (mut sources, mut is_refused) = (Sources::default(), !searched.refused.is_empty());
    for items in requests.parts() {
        let request = LookRequest { items, images: None, patience };
        let looked = Box::pin(look::look_in_time(context, request, &mut sources)).await;
        done.n_written += looked.written.len();
        is_refused |= !looked.refused.is_empty();
        done.why_not = done.why_not.or(looked.undone.into_iter().map(|(_, why)| why).next());
    }
    if is_refused {
        let given = give_to_jobs(context, note, patience).await;
        done.why_not = done.why_not.or(given.why_not);
    }
    done
}

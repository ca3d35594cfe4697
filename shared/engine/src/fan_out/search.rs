//! Searches for the items that depend on changed sources.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    effect::Find,
    position::{DerivationAt, RecordAt},
    query::Query,
    write::{Table, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::key::Key;
use store::{Outcome, Store};

use crate::{
    account::Commit,
    backoff::{GaveUp, Patience, describe},
    context::Context,
    fan_out::{self, FanOutWrite, Note},
    protocol::ProtocolStep,
    reading::CALLS_AT_ONCE,
    requests::RefreshRequests,
};

/// Maximum number of items from the searches of one batch; a search that would exceed it becomes a job. Bounds memory.
const ITEMS_MAX: usize = 10_000;

/// Whether a search of an index leaves a note, so that the search is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notes {
    /// It does.
    Taken,
    /// It does not: this is the second search.
    NotTaken,
}

/// The results of the searches.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    /// Jobs that were created, and notes that were written.
    pub(crate) commits: Vec<Commit>,
    /// Searches that could not be done now: the positions of the records that requested each, and the reason.
    pub(crate) undone: Vec<(BTreeSet<RecordAt>, String)>,
    /// Searches that can never be done, with their derivations.
    pub(crate) refused: Vec<(BTreeSet<DerivationAt>, BTreeSet<RecordAt>, String)>,
}

impl Searched {
    /// Notes that a search, or the start of one, ended without an outcome.
    fn gave_up(&mut self, derivations: BTreeSet<DerivationAt>, causes: BTreeSet<RecordAt>, why: &GaveUp) {
        match why {
            GaveUp::Refused(_) => self.refused.push((derivations, causes, describe(why))),
            GaveUp::OutOfTime { .. } | GaveUp::Standing(_) => self.undone.push((causes, describe(why))),
        }
    }
}

/// The first page of a source's search.
enum FirstPage {
    /// All results.
    All(Vec<Key>),
    /// More results than a batch refreshes.
    Many,
}

/// The write of the note that this search is to be repeated, if it is.
pub(crate) fn noted<S: Store>(
    context: &Context<S>,
    item: &Key,
    derivations: impl IntoIterator<Item = DerivationAt>,
) -> Option<Write> {
    let note = note_of(context, item, derivations);
    let lags = context.fan_out.index_lag_ms > 0 && context.takes(ProtocolStep::SearchAgain);
    let is_noted = lags && !note.derivations.is_empty();
    is_noted.then(|| note.write(context.clock.now_ms(), context.fan_out.index_lag_ms))
}

/// The note that an item is to be refreshed for these derivations.
pub(crate) fn note_of<S: Store>(
    context: &Context<S>,
    item: &Key,
    derivations: impl IntoIterator<Item = DerivationAt>,
) -> Note {
    let names = derivations.into_iter().map(|at| context.catalogue.name(at).to_owned());
    Note { item: item.clone(), derivations: names.collect() }
}

/// Each search once, with one of its sources: several may have one search, as the messages of a room have.
fn each_once(
    finds: BTreeMap<(DerivationAt, Key), (Find, BTreeSet<RecordAt>)>,
) -> BTreeMap<(DerivationAt, Query), (Key, Find, BTreeSet<RecordAt>)> {
    let mut searches = BTreeMap::new();
    for ((derivation, source), (find, causes)) in finds {
        let of = (derivation, find.query.clone());
        let (_, _, of_all) = searches.entry(of).or_insert_with(|| (source, find, BTreeSet::new()));
        of_all.extend(causes);
    }
    searches
}

/// Finds the items that depend on changed sources, and requests their refresh; a search with many results becomes a
/// job.
pub(crate) async fn search<S: Store>(
    context: &Context<S>,
    requests: &mut RefreshRequests,
    notes: Notes,
    patience: Patience<'_>,
) -> Searched {
    let mut searched = Searched::default();
    let finds = std::mem::take(&mut requests.finds);
    let mut indexed: BTreeMap<Key, (BTreeSet<DerivationAt>, BTreeSet<RecordAt>)> = BTreeMap::new();
    for ((derivation, source), (find, causes)) in &finds {
        if find.query.index.is_some() {
            let (derivations, of_all) = indexed.entry(source.clone()).or_default();
            derivations.insert(*derivation);
            of_all.extend(causes);
        }
    }
    let searches = each_once(finds).into_iter().map(|((derivation, _), (source, find, causes))| {
        async move {
            let page = first_page(context, &find, patience).await;
            (derivation, source, find, causes, page)
        }
        .boxed()
    });
    let searches: Vec<BoxFuture<'_, _>> = searches.collect();
    let mut searches = stream::iter(searches).buffer_unordered(CALLS_AT_ONCE);
    let mut many = Vec::new();
    while let Some((derivation, source, find, causes, page)) = searches.next().await {
        match page {
            Ok(FirstPage::All(items)) if requests.requested.len() < ITEMS_MAX => {
                for item in items {
                    requests.add(item, find.target.clone(), Vec::new(), &BTreeSet::from([derivation]), &causes);
                }
            }
            Ok(FirstPage::All(_) | FirstPage::Many) => many.push((derivation, source, causes)),
            Err(error) => searched.gave_up(BTreeSet::from([derivation]), causes, &error),
        }
    }
    let begun = many.into_iter().map(|(derivation, source, causes)| {
        async move {
            let mut written = Vec::new();
            let ended = fan_out::fan_out(context, derivation, &source, patience, &mut written).await;
            (written, ended, BTreeSet::from([derivation]), causes)
        }
        .boxed()
    });
    let noted = notes_of(context, requests, indexed, notes).into_iter().map(|(note, derivations, causes)| {
        async move {
            let mut written = Vec::new();
            let ended = write_note(context, note, patience, &mut written).await;
            (written, ended, derivations, causes)
        }
        .boxed()
    });
    let written: Vec<BoxFuture<'_, _>> = begun.chain(noted).collect();
    let mut written = stream::iter(written).buffer_unordered(CALLS_AT_ONCE);
    while let Some((written, ended, derivations, causes)) = written.next().await {
        let at_ms = context.clock.now_ms();
        searched.commits.extend(written.into_iter().map(|(table, key, units)| Commit {
            key,
            table,
            action: None,
            at_ms,
            units,
            derivations: if table == Table::Main { labels(context, &derivations) } else { Vec::new() },
            causes: causes.clone(),
            is_correction: false,
        }));
        if let Err(error) = ended {
            searched.gave_up(derivations, causes, &error);
        }
    }
    searched
}

fn labels<S: Store>(context: &Context<S>, derivations: &BTreeSet<DerivationAt>) -> Vec<String> {
    derivations.iter().map(|at| context.catalogue.label(*at).to_owned()).collect()
}

async fn first_page<S: Store>(context: &Context<S>, find: &Find, patience: Patience<'_>) -> Result<FirstPage, GaveUp> {
    // One more than the limit, to detect whether there are more.
    let query = Query { limit: Some(context.fan_out.direct_max.saturating_add(1)), ..find.query.clone() };
    let page = patience.call(|| context.store.query(Table::Main, &query, None)).await?;
    Ok(match page.next {
        Some(_) => FirstPage::Many,
        None => FirstPage::All(page.items.iter().filter_map(|item| fan_out::leads_to(context, item, find)).collect()),
    })
}

/// The notes of these searches of an index, which are repeated once, and of the items that are to be refreshed later; each
/// with its derivations and records.
fn notes_of<S: Store>(
    context: &Context<S>,
    requests: &mut RefreshRequests,
    indexed: BTreeMap<Key, (BTreeSet<DerivationAt>, BTreeSet<RecordAt>)>,
    notes: Notes,
) -> Vec<(Option<Write>, BTreeSet<DerivationAt>, BTreeSet<RecordAt>)> {
    // A repeated search is not noted again.
    let again = indexed.into_iter().filter(|_| notes == Notes::Taken);
    let again = again.map(|(source, (derivations, causes))| {
        (noted(context, &source, derivations.iter().copied()), derivations, causes)
    });
    let later = std::mem::take(&mut requests.later).into_iter();
    let later = later.map(|((item, at_ms), (derivations, causes))| {
        (Some(note_of(context, &item, derivations.iter().copied()).at(at_ms)), derivations, causes)
    });
    again.chain(later).collect()
}

/// Writes a note, if there is one to write.
async fn write_note<S: Store>(
    context: &Context<S>,
    note: Option<Write>,
    patience: Patience<'_>,
    written: &mut Vec<FanOutWrite>,
) -> Result<(), GaveUp> {
    let Some(write) = note else { return Ok(()) };
    if let Outcome::Done { units } = patience.call(|| context.store.write(&write)).await? {
        written.push((write.table, write.key, units));
    }
    Ok(())
}

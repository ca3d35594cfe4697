//! Refreshes items: reads their sources, and writes the items that differ from their definition.
//!
//! *Keeps true*: after a refresh request the item matches its sources at some later moment, or the record is returned
//! as failed and Lambda retries it.
//!
//! Little is read if nothing differs: each source is read once a batch, in batched reads, and an item's own record may
//! show that the item is correct. Before a write the engine reads the item itself, consistently. A large fan-out that
//! only copies values writes without reading, on the condition that the item still names the source. If a write's guard
//! fails, another writer changed the item, and the engine refreshes it once more.
//!
//! An item that is not Ripple's stays and is [listed](listing).
//!
//! # Correction
//!
//! A correction is a write that restores a derived part that another writer changed.
//!
//! *Keeps true*: a write counts as a correction if only records of the item itself requested it, and one of them
//! changed an attribute that it writes. So a record counts if it gives the item a wrong name, or overwrites the item
//! with an older version. A change of a source does not count, nor does a new item without its derived attributes.
//!
//! The engine cannot distinguish another writer's change from a write of its own that was right when it was decided and
//! was overtaken by its source. So some corrections are normal if sources change fast. Many, over a long time, point to
//! another process that writes the same attributes.

pub mod listing;

use std::{collections::BTreeSet, sync::atomic::Ordering};

use derive::{
    change::Change,
    clock::{HOUR_MS, moves_to},
    kind::Refresh,
    position::{DerivationAt, RecordAt},
    refresh::{Step, Verdict, step},
    sources::{Source, Sources},
    write::{Action, Write},
};
use futures::{StreamExt, stream};
use keys::{item::Item, value::same};
use store::{Outcome, Store, Units};

use crate::{
    backoff::{GaveUp, Patience, describe},
    context::Context,
    corrections::STEPS_BACK_MAX,
    input::{Batch, caught},
    job::touch::TouchFailure,
    protocol::ProtocolStep,
    reading::{self, CALLS_AT_ONCE, StoredItems},
    requests::{DecidedLooks, LookRequest, Looked, OccupiedKey, OwnState, RequestedRefresh, WrittenItem},
};

/// How often an item is refreshed again after a failed guard, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// Refreshes these items if there is time left.
pub(crate) async fn look_in_time<S: Store>(
    context: &Context<S>,
    request: LookRequest<'_>,
    sources: &mut Sources,
) -> Looked {
    let mut looked = Looked::default();
    if request.patience.is_over() {
        looked.not_now(request.items, "no time is left for all that it asks for");
    } else {
        look_at(context, request, sources, &mut looked).await;
    }
    looked
}

/// Refreshes these items.
pub(crate) async fn look_at<S: Store>(
    context: &Context<S>,
    request: LookRequest<'_>,
    sources: &mut Sources,
    looked: &mut Looked,
) {
    let LookRequest { items, images, patience } = request;
    match moved_clock(context, &items, patience).await {
        Ok(clock) => looked.clock = clock,
        Err(error) => return looked.not_now(items, &describe(&error)),
    }
    let shown = |requested: &RequestedRefresh| {
        let stored = match images?.shown(&requested.look.item, &requested.causes) {
            OwnState::NotShown => return None,
            OwnState::Absent => None,
            OwnState::Present(item) => Some(item.clone()),
        };
        Some((requested.look.item.clone(), stored))
    };
    let stored: StoredItems = items.iter().filter_map(shown).collect();
    let (seen, unseen) = items.into_iter().partition(|requested| stored.contains_key(&requested.look.item));
    let decided = differing(context, seen, &stored, sources, patience, looked).await;
    let occupied = decided.occupied.into_iter().map(|(requested, _)| requested);
    let to_write = decided.differing.into_iter().map(|(requested, _)| requested);
    let mut waiting: Vec<RequestedRefresh> = to_write.chain(occupied).chain(unseen).collect();
    let mut fresh = Sources::default();
    for n_rounds in 0..ROUNDS_MAX {
        if waiting.is_empty() {
            return;
        }
        // The first round uses the sources from the start of the batch. After a failed guard, all sources are read
        // again.
        let sources = if n_rounds == 0 { &mut *sources } else { &mut fresh };
        let keys = waiting.iter().map(|requested| requested.look.item.clone()).collect();
        let (stored, refused) = match reading::stored_each(context, keys, patience).await {
            Ok(read) => read,
            Err(error) => return looked.not_now(waiting, &describe(&error)),
        };
        let own = |requested: &RequestedRefresh| refused.get(&requested.look.item);
        waiting = looked.without_refused(waiting.into_iter().map(|requested| (own(&requested), requested)));
        let decided = differing(context, waiting, &stored, sources, patience, looked).await;
        waiting = write_all(context, decided.differing, patience, looked).await;
        waiting.extend(list_all(context, decided.occupied, &stored, patience, looked).await);
        fresh = Sources::default();
    }
    looked.not_now(waiting, "other writers were at the item all the time");
}

/// Moves the [clock](derive::clock) to the current hour, if one of these items depends on it and this engine has not done
/// so yet. Returns the records of the first such item, and the write units.
async fn moved_clock<S: Store>(
    context: &Context<S>,
    items: &[RequestedRefresh],
    patience: Patience<'_>,
) -> Result<Option<(BTreeSet<RecordAt>, Units)>, GaveUp> {
    let hour = context.clock.now_ms() / HOUR_MS;
    if context.hour.load(Ordering::Relaxed) >= hour {
        return Ok(None);
    }
    let reads_clock = |at: &DerivationAt| context.catalogue.refresh(*at).is_some_and(Refresh::reads_clock);
    let mut items = items.iter();
    let Some(first) = items.find(|requested| requested.look.derivations.iter().any(reads_clock)) else {
        return Ok(None);
    };
    let write = moves_to(hour);
    let outcome = patience.call(|| context.store.write(&write)).await?;
    context.hour.fetch_max(hour, Ordering::Relaxed);
    Ok(match outcome {
        Outcome::Done { units } => Some((first.causes.clone(), units)),
        Outcome::GuardFailed => None,
    })
}

/// The items that differ from their definition.
pub(crate) async fn differing<S: Store>(
    context: &Context<S>,
    items: Vec<RequestedRefresh>,
    stored: &StoredItems,
    sources: &mut Sources,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> DecidedLooks {
    let (mut undecided, mut decided) = (items, DecidedLooks::default());
    while !undecided.is_empty() {
        let mut wanted: BTreeSet<Source> = BTreeSet::new();
        let mut waiting = Vec::new();
        for requested in undecided {
            let item = stored.get(&requested.look.item).and_then(Option::as_ref);
            let stepping = || step(&context.schema, &context.catalogue, &requested.look, item, sources);
            match caught("looking at what it asks for", stepping) {
                Ok(Step::Read(more)) => {
                    wanted.extend(more.iter().cloned());
                    waiting.push((requested, more));
                }
                Ok(Step::Decided(Verdict::InStep)) => looked.n_in_step += 1,
                Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                    decided.differing.push((requested, (*write, derivations)));
                }
                Ok(Step::Decided(Verdict::Occupied(at))) => decided.occupied.push((requested, at)),
                Err(cause) => looked.refused.push((requested, cause)),
            }
        }
        let refused = match reading::read_each(context, wanted, sources, patience).await {
            Ok(refused) => refused,
            Err(error) => {
                looked.not_now(waiting.into_iter().map(|(requested, _)| requested).collect(), &describe(&error));
                return decided;
            }
        };
        let of_sources = |more: Vec<Source>| more.iter().find_map(|source| refused.get(source));
        undecided = looked.without_refused(waiting.into_iter().map(|(requested, more)| (of_sources(more), requested)));
    }
    decided
}

/// Lists items that are not Ripple's, and returns those whose key has become free meanwhile.
async fn list_all<S: Store>(
    context: &Context<S>,
    occupied: Vec<(RequestedRefresh, DerivationAt)>,
    stored: &StoredItems,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> Vec<RequestedRefresh> {
    let mut again = Vec::new();
    for (requested, at) in occupied {
        let item = stored.get(&requested.look.item).and_then(Option::as_ref);
        match listing::list_occupied(context, &requested.look, at, item, patience).await {
            Ok(Some(units)) => looked.occupied.push(OccupiedKey { requested, derivation: at, units }),
            Ok(None) => again.push(requested),
            Err(TouchFailure::NotNow(why)) => looked.undone.push((requested, why)),
            Err(TouchFailure::Refused(cause)) => looked.refused.push((requested, cause)),
        }
    }
    again
}

/// Sends the writes, and returns the items whose guard failed.
pub(crate) async fn write_all<S: Store>(
    context: &Context<S>,
    differing: Vec<(RequestedRefresh, (Write, Vec<DerivationAt>))>,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> Vec<RequestedRefresh> {
    let differing = go_on(context, differing, looked);
    let writes = differing.into_iter().map(|(requested, (write, derivations))| async move {
        let mut met = Vec::new();
        let outcome = patience.call_meeting(&mut met, || context.store.write(&write)).await;
        (WrittenItem { requested, write, derivations, at_ms: context.clock.now_ms(), units: 0.0 }, outcome, met)
    });
    let mut again = Vec::new();
    let mut done = stream::iter(writes).buffer_unordered(CALLS_AT_ONCE);
    while let Some((written, outcome, met)) = done.next().await {
        looked.met.extend(met.into_iter().map(|busy| (written.derivations.first().copied(), busy)));
        match outcome {
            Ok(Outcome::Done { units }) => {
                looked.written.push(WrittenItem { units, ..written });
            }
            Ok(Outcome::GuardFailed) => {
                looked.sent_again.push(written.derivations);
                again.push(written.requested);
            }
            Err(GaveUp::Refused(error)) => looked.refused.push((written.requested, describe(&error))),
            Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => {
                looked.undone.push((written.requested, describe(&error)));
            }
        }
    }
    again
}
/// The writes without those that would keep changing an item back and forth, which are refused.
fn go_on<S: Store>(
    context: &Context<S>,
    differing: Vec<(RequestedRefresh, (Write, Vec<DerivationAt>))>,
    looked: &mut Looked,
) -> Vec<(RequestedRefresh, (Write, Vec<DerivationAt>))> {
    let now_ms = context.clock.now_ms();
    let mut going_on = Vec::new();
    for (requested, (write, derivations)) in differing {
        let corrections = &context.corrections;
        let disagree = corrections.disagree(&requested, &write, now_ms);
        match disagree.filter(|_| context.takes(ProtocolStep::BackAndForth)) {
            None => going_on.push((requested, (write, derivations))),
            Some(disagree) => {
                let names: Vec<&str> = disagree.into_iter().map(|at| context.catalogue.label(at)).collect();
                let cause = format!(
                    "the item {} is written back and forth, {STEPS_BACK_MAX} times in a row, here by {}: it is not written \
                     any more; see that only one derivation, of one deployment, and nobody else decides what it is, and \
                     redrive this change",
                    write.key.for_log(),
                    names.join(" and ")
                );
                looked.refused.push((requested, cause));
            }
        }
    }
    going_on
}

// ---- Corrections: writes that restore a derived part, requested by the item's own record ----

/// True if this write is a correction.
pub(crate) fn is_correction(requested: &RequestedRefresh, write: &Write, batch: &Batch<'_>) -> bool {
    let records = requested.causes.iter().filter_map(|position| batch.record(*position));
    let mut changes = records.filter_map(|record| record.change.as_ref().ok());
    requested.is_own && changes.any(|change| has_touched(change, write))
}

/// True if the change altered an attribute that the write sets or removes.
fn has_touched(change: &Change, write: &Write) -> bool {
    let (old, new) = (change.old_image(), change.new_image());
    let value = |image: Option<&'_ Item>, name: &str| image.and_then(|image| image.get(name)).cloned();
    let differs = |name: &str| !same(value(old, name).as_ref(), value(new, name).as_ref());
    match &write.action {
        Action::Put(item) => item.keys().any(differs),
        Action::Update(update) => update.set.keys().chain(update.remove.iter().map(String::as_str)).any(differs),
        // Another writer put an item that should not exist.
        Action::Delete => new.is_some(),
        Action::Check => false,
    }
}

/// True if this write undoes changes by other writers, and these writers changed nothing else. A series of such writes
/// never ends.
pub(crate) fn only_undoes(requested: &RequestedRefresh, write: &Write, batch: &Batch<'_>) -> bool {
    let records = requested.causes.iter().filter_map(|position| batch.record(*position));
    let is_undone = |change: &Change| match (&write.action, change.old_image(), change.new_image()) {
        (Action::Update(update), Some(old), Some(new)) => {
            let is_written = |name: &str| update.set.contains_key(name) || update.remove.iter().any(|it| it == name);
            old.keys().chain(new.keys()).all(|name| is_written(name) || same(old.get(name), new.get(name)))
        }
        (Action::Put(_), Some(_), _) | (Action::Delete, _, Some(_)) => true,
        _ => false,
    };
    let mut changes = records.map(|record| record.change.as_ref().ok()).peekable();
    requested.is_own && changes.peek().is_some() && changes.all(|change| change.is_some_and(is_undone))
}

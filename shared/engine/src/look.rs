//! Looking at items: reads what the refresh asks for, and writes what it decides.
//!
//! *Keeps true*: an item whose bell rang holds, at some moment after that, what its sources held; or the bell's record
//! is reported as not done and comes again.
//!
//! Cheap where nothing is to be done: sources are read once a batch, in batches, and an item's own record may show that
//! it is in step. Before a write the item itself is read, consistently; but an item that a large
//! fan-out finds, of which it is known what it takes from its source, is written unread, and the write asks that it does
//! name that source. A write whose guard fails met another writer: the item is looked at once more.
//!
//! An item that is not Ripple's stays, and is listed (module `occupied`).
//!
//! # Correction
//!
//! Corrections: writes by which an item's own bell puts right what was made of its derived part.
//!
//! *Keeps true*: a write counts when nothing but records of the item itself rang for it, and one of them changed an
//! attribute that it writes. So the record of an item that comes with a wrong name, or is put back as it was long ago,
//! counts; one whose source changed does not, nor does a new item that lacks what is derived.
//!
//! What somebody else wrote cannot be distinguished from a write of our own that was right when it was decided, and was overtaken
//! by its source. So some are normal where sources change fast; many, and for long, are somebody's own trigger.

pub mod listing;
pub(crate) mod occupied;

use std::collections::BTreeSet;

use derive::{
    change::Change,
    position::DerivationAt,
    refresh::{Step, Verdict, step},
    sources::{Source, Sources},
    write::{Action, Write},
};
use futures::{StreamExt, stream};
use keys::{item::Item, value::same};
use store::{Outcome, Store};

use crate::{
    backoff::{GaveUp, Patience, describe},
    bells::{DecidedLooks, LookRequest, Looked, OccupiedKey, OwnState, Rung, WrittenItem},
    context::Context,
    corrections::STEPS_BACK_MAX,
    input::{Batch, caught},
    job::touch::TouchFailure,
    protocol::ProtocolStep,
    reading::{self, CALLS_AT_ONCE, HeldItems},
};

/// How often an item is looked at anew after its guard failed, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// Looks at these items if there is time left.
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

/// Looks at these items.
pub(crate) async fn look_at<S: Store>(
    context: &Context<S>,
    request: LookRequest<'_>,
    sources: &mut Sources,
    looked: &mut Looked,
) {
    let LookRequest { items, images, patience } = request;
    let shown = |rung: &Rung| {
        let held = match images?.shown(&rung.look.item, &rung.causes) {
            OwnState::NotShown => return None,
            OwnState::Absent => None,
            OwnState::Present(item) => Some(item.clone()),
        };
        Some((rung.look.item.clone(), held))
    };
    let held: HeldItems = items.iter().filter_map(shown).collect();
    let (seen, unseen) = items.into_iter().partition(|rung| held.contains_key(&rung.look.item));
    let decided = differing(context, seen, &held, sources, patience, looked).await;
    let occupied = decided.occupied.into_iter().map(|(rung, _)| rung);
    let to_write = decided.differing.into_iter().map(|(rung, _)| rung);
    let mut waiting: Vec<Rung> = to_write.chain(occupied).chain(unseen).collect();
    let mut fresh = Sources::default();
    for n_rounds in 0..ROUNDS_MAX {
        if waiting.is_empty() {
            return;
        }
        // What was read at the start of the batch serves until a guard fails: then all is read anew.
        let sources = if n_rounds == 0 { &mut *sources } else { &mut fresh };
        let keys = waiting.iter().map(|rung| rung.look.item.clone()).collect();
        let (held, refused) = match reading::held_each(context, keys, patience).await {
            Ok(read) => read,
            Err(error) => return looked.not_now(waiting, &describe(&error)),
        };
        let own = |rung: &Rung| refused.get(&rung.look.item);
        waiting = looked.without_refused(waiting.into_iter().map(|rung| (own(&rung), rung)));
        let decided = differing(context, waiting, &held, sources, patience, looked).await;
        waiting = write_all(context, decided.differing, patience, looked).await;
        waiting.extend(list_all(context, decided.occupied, &held, patience, looked).await);
        fresh = Sources::default();
    }
    looked.not_now(waiting, "other writers were at the item all the time");
}

/// Those of the items that are not in step.
pub(crate) async fn differing<S: Store>(
    context: &Context<S>,
    items: Vec<Rung>,
    held: &HeldItems,
    sources: &mut Sources,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> DecidedLooks {
    let (mut undecided, mut decided) = (items, DecidedLooks::default());
    while !undecided.is_empty() {
        let mut wanted: BTreeSet<Source> = BTreeSet::new();
        let mut waiting = Vec::new();
        for rung in undecided {
            let item = held.get(&rung.look.item).and_then(Option::as_ref);
            let stepping = || step(&context.schema, &context.catalogue, &rung.look, item, sources);
            match caught("looking at what it asks for", stepping) {
                Ok(Step::Read(more)) => {
                    wanted.extend(more.iter().cloned());
                    waiting.push((rung, more));
                }
                Ok(Step::Decided(Verdict::InStep)) => looked.n_in_step += 1,
                Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                    decided.differing.push((rung, (*write, derivations)));
                }
                Ok(Step::Decided(Verdict::Occupied(at))) => decided.occupied.push((rung, at)),
                Err(cause) => looked.refused.push((rung, cause)),
            }
        }
        let refused = match reading::read_each(context, wanted, sources, patience).await {
            Ok(refused) => refused,
            Err(error) => {
                looked.not_now(waiting.into_iter().map(|(rung, _)| rung).collect(), &describe(&error));
                return decided;
            }
        };
        let of_sources = |more: Vec<Source>| more.iter().find_map(|source| refused.get(source));
        undecided = looked.without_refused(waiting.into_iter().map(|(rung, more)| (of_sources(more), rung)));
    }
    decided
}

/// Lists items that are not Ripple's, and gives back those that have left the key meanwhile.
async fn list_all<S: Store>(
    context: &Context<S>,
    occupied: Vec<(Rung, DerivationAt)>,
    held: &HeldItems,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> Vec<Rung> {
    let mut again = Vec::new();
    for (rung, at) in occupied {
        let item = held.get(&rung.look.item).and_then(Option::as_ref);
        match occupied::list(context, &rung.look, at, item, patience).await {
            Ok(Some(units)) => looked.occupied.push(OccupiedKey { rung, derivation: at, units }),
            Ok(None) => again.push(rung),
            Err(TouchFailure::NotNow(why)) => looked.undone.push((rung, why)),
            Err(TouchFailure::Refused(cause)) => looked.refused.push((rung, cause)),
        }
    }
    again
}

/// Does the writes, and gives back those whose guard failed.
pub(crate) async fn write_all<S: Store>(
    context: &Context<S>,
    differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> Vec<Rung> {
    let differing = go_on(context, differing, looked);
    let writes = differing.into_iter().map(|(rung, (write, derivations))| async move {
        let mut met = Vec::new();
        let outcome = patience.call_meeting(&mut met, || context.store.write(&write)).await;
        (WrittenItem { rung, write, derivations, at_ms: context.clock.now_ms(), units: 0.0 }, outcome, met)
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
                again.push(written.rung);
            }
            Err(GaveUp::Refused(error)) => looked.refused.push((written.rung, describe(&error))),
            Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => {
                looked.undone.push((written.rung, describe(&error)));
            }
        }
    }
    again
}
/// The writes without those that would go on changing an item back and forth, which are refused.
fn go_on<S: Store>(
    context: &Context<S>,
    differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
    looked: &mut Looked,
) -> Vec<(Rung, (Write, Vec<DerivationAt>))> {
    let now_ms = context.clock.now_ms();
    let mut going_on = Vec::new();
    for (rung, (write, derivations)) in differing {
        let corrections = &context.corrections;
        let disagree = corrections.disagree(&rung, &write, now_ms);
        match disagree.filter(|_| context.takes(ProtocolStep::BackAndForth)) {
            None => going_on.push((rung, (write, derivations))),
            Some(disagree) => {
                let names: Vec<&str> = disagree.into_iter().map(|at| context.catalogue.label(at)).collect();
                let cause = format!(
                    "the item {} is written back and forth, {STEPS_BACK_MAX} times in a row, here by {}: it is not written \
                     any more; see that only one derivation, of one deployment, and nobody else decides what it is, and \
                     redrive this change",
                    write.key.for_log(),
                    names.join(" and ")
                );
                looked.refused.push((rung, cause));
            }
        }
    }
    going_on
}

// ---- Corrections: writes by which an item's own bell puts right what was made of its derived part ----

/// Is this write a correction?
pub(crate) fn is_correction(rung: &Rung, write: &Write, batch: &Batch<'_>) -> bool {
    let records = rung.causes.iter().filter_map(|position| batch.record(*position));
    let mut changes = records.filter_map(|record| record.change.as_ref().ok());
    rung.is_own && changes.any(|change| has_touched(change, write))
}

/// Did the change touch what the write writes?
fn has_touched(change: &Change, write: &Write) -> bool {
    let (old, new) = (change.old_image(), change.new_image());
    let value = |image: Option<&'_ Item>, name: &str| image.and_then(|image| image.get(name)).cloned();
    let differs = |name: &str| !same(value(old, name).as_ref(), value(new, name).as_ref());
    match &write.action {
        Action::Put(item) => item.keys().any(differs),
        Action::Update(update) => update.set.keys().chain(update.remove.iter().map(String::as_str)).any(differs),
        // What should not be there was put there.
        Action::Delete => new.is_some(),
        Action::Check => false,
    }
}

/// Does this write undo what other writers did, and did they do nothing else? A series of such writes comes to no end.
pub(crate) fn only_undoes(rung: &Rung, write: &Write, batch: &Batch<'_>) -> bool {
    let records = rung.causes.iter().filter_map(|position| batch.record(*position));
    let is_undone = |change: &Change| match (&write.action, change.old_image(), change.new_image()) {
        (Action::Update(update), Some(old), Some(new)) => {
            let is_written = |name: &str| update.set.contains_key(name) || update.remove.iter().any(|it| it == name);
            old.keys().chain(new.keys()).all(|name| is_written(name) || same(old.get(name), new.get(name)))
        }
        (Action::Put(_), Some(_), _) | (Action::Delete, _, Some(_)) => true,
        _ => false,
    };
    let mut changes = records.map(|record| record.change.as_ref().ok()).peekable();
    rung.is_own && changes.peek().is_some() && changes.all(|change| change.is_some_and(is_undone))
}

//! Pending work: an item that differs has not drifted if pending work will still change it.
//!
//! A parked change is applied by its redrive, an unreadable item counts once it is corrected, and a job continues by
//! itself. Each is reported elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use derive::{family::Family, position::DerivationAt, query::Query, sources::Source, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    attribute::sort_key,
    backoff::{GaveUp, Patience},
    context::Context,
    counters::Target,
    fan_out::{
        again::{self, DueItem},
        underway::UnderwayFanOut,
    },
    input::Batch,
    jobs::ground::sweep::jobs,
    look::listing::{ALL_DERIVATIONS, UNREADABLE},
    park::{ParkedChange, ParkedPages},
    plan,
    protocol::ProtocolStep,
    record::Decoded,
    redrive::in_ledger::CountsOf,
};

/// How long items and counts stay pending for a parked change whose item is unknown, in milliseconds: a day. After
/// that, differences are reported. A count is then reported with the [doubt](Waiting::doubt), and no repair adds to it:
/// the redrive would add the change a second time.
const UNKNOWN_MS: u64 = 24 * 3_600 * 1_000;

/// What may still change an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingWork {
    /// A parked change.
    Parked,
    /// The sweep, at this time in milliseconds since the epoch.
    Sweep {
        /// The time.
        due_ms: u64,
    },
    /// A fan-out.
    Job {
        /// The sort key of the job.
        key: String,
        /// True if an operator paused it.
        is_paused: bool,
    },
}

/// Items and counts that are pending because of parked changes and jobs.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Items that parked changes belong to, or would refresh.
    items: BTreeSet<Key>,
    /// Items whose searches of an index are to be repeated, and those that are to be refreshed about now, with the
    /// derivations, by their positions, and when the last one is due, in milliseconds since the epoch.
    noted: BTreeMap<Key, (BTreeSet<DerivationAt>, u64)>,
    /// Derivations of pending searches by parked changes; by their positions.
    derivations: BTreeSet<DerivationAt>,
    /// Fan-outs in progress.
    fan_outs: Vec<UnderwayFanOut>,
    /// Counts that parked changes would add to.
    counts: CountsOf,
    /// True if a change with an unknown item is parked, so that it may belong to any item.
    is_any_item: bool,
    /// Id of a change that may add to any count, and has been parked so long that no count is pending for it.
    unknown: Option<String>,
}

impl Waiting {
    /// What may still change an item whose part of these derivations differs, as these sources decided it; `None` if
    /// nothing is pending. A fan-out whose cursor is past an item does not change it. `held` is the stored item, which has
    /// its index keys.
    #[must_use]
    pub fn pending<'a>(
        &self,
        item: &Key,
        held: Option<&Item>,
        sources: impl IntoIterator<Item = &'a Source>,
        derivations: impl IntoIterator<Item = &'a DerivationAt>,
    ) -> Option<PendingWork> {
        let sources: Vec<&Source> = sources.into_iter().collect();
        let derivations: Vec<DerivationAt> = derivations.into_iter().copied().collect();
        let is_parked = |source: &&Source| match source {
            Source::Item(key) => self.items.contains(key),
            Source::First(of) => self.items.range(of.begin()..).take_while(|key| of.may_be(key)).next().is_some(),
            Source::Counters(_) => false,
        };
        if self.is_any_item
            || self.items.contains(item)
            || sources.iter().any(is_parked)
            || derivations.iter().any(|at| self.derivations.contains(at))
        {
            return Some(PendingWork::Parked);
        }
        let due = |(of_note, due_ms): &(BTreeSet<DerivationAt>, u64)| {
            derivations.iter().any(|at| of_note.contains(at)).then_some(*due_ms)
        };
        let noted = |source: &&Source| match source {
            Source::Item(key) => self.noted.get(key).and_then(due),
            Source::First(of) => {
                let mut noted = self.noted.range(of.begin()..).take_while(|(key, _)| of.may_be(key));
                noted.find_map(|(_, note)| due(note))
            }
            Source::Counters(_) => None,
        };
        if let Some(due_ms) = self.noted.get(item).and_then(due).or_else(|| sources.iter().find_map(noted)) {
            return Some(PendingWork::Sweep { due_ms });
        }
        let mut fan_outs = self.fan_outs.iter().filter(|fan_out| derivations.contains(&fan_out.derivation));
        let fan_out = fan_outs.find(|fan_out| fan_out.still_reaches(item, held, &sources))?;
        Some(PendingWork::Job { key: fan_out.job.clone(), is_paused: fan_out.is_paused })
    }

    /// True if any item that a query of the table would return is pending.
    pub(crate) fn has_any_of(&self, query: &Query) -> bool {
        self.items.iter().any(|item| item.pk == query.pk && query.sk.holds(&item.sk))
    }

    /// Why a count that is not pending may not be repaired, if there is a reason.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let id = self.unknown.as_ref()?;
        Some(format!(
            "the parked change {id} may add to it, and its key cannot be read: see `ripple parked {id}`, and run \
             `ripple parked --discard {id}` before a repair"
        ))
    }

    /// True if this count is pending.
    #[must_use]
    pub fn has_target(&self, target: &Target) -> bool {
        self.counts.has(target)
    }
}

/// The pending work. A parked record that cannot be read does not show which item it belongs to. There may be a million
/// searches to repeat, because an index may lag: only those that `is_asked` selects are returned.
pub(crate) async fn what_is_under_way<S: Store>(
    context: &Context<S>,
    is_asked: impl Fn(&Key) -> bool,
    patience: Patience<'_>,
) -> Result<Waiting, GaveUp> {
    let mut waiting = Waiting::default();
    if !context.takes(ProtocolStep::Underway) {
        return Ok(waiting);
    }
    parked_of(context, Family::Additive, patience, &mut waiting).await?;
    parked_of(context, Family::LevelTriggered, patience, &mut waiting).await?;
    let jobs = patience.call(|| jobs(&context.store, &context.schema.layout)).await?;
    waiting.fan_outs = jobs.iter().filter_map(|job| UnderwayFanOut::of(context, job)).collect();
    let due = again::due(context, again::soon(context), None, is_asked, patience).await?;
    for DueItem { item, derivations, due_ms } in due {
        let positions = derivations.iter().filter_map(|name| context.catalogue.position(name));
        let (of_note, last_ms) = waiting.noted.entry(item).or_default();
        of_note.extend(positions);
        *last_ms = due_ms.max(*last_ms);
    }
    Ok(waiting)
}

/// The pending work that changes counts. Jobs and parked changes of other families change no count.
pub(crate) async fn what_counts_wait_for<S: Store>(
    context: &Context<S>,
    patience: Patience<'_>,
) -> Result<Waiting, GaveUp> {
    let mut waiting = Waiting::default();
    if context.takes(ProtocolStep::Underway) {
        parked_of(context, Family::Additive, patience, &mut waiting).await?;
    }
    Ok(waiting)
}

/// Adds the pending items and counts of a family's parked changes.
async fn parked_of<S: Store>(
    context: &Context<S>,
    family: Family,
    patience: Patience<'_>,
    waiting: &mut Waiting,
) -> Result<(), GaveUp> {
    let mut pages = ParkedPages::of(family);
    while let Some((query, after)) = pages.next() {
        let page = patience.call(|| context.store.query(Table::Ledger, &query, after.clone())).await?;
        for parked in pages.take(page) {
            waits_for(context, &parked, patience, waiting);
        }
    }
    Ok(())
}

/// Adds the pending items and counts of a parked change.
fn waits_for<S: Store>(context: &Context<S>, parked: &ParkedChange, patience: Patience<'_>, waiting: &mut Waiting) {
    let text = parked.record().unwrap_or_default();
    let record = Decoded::of(&context.schema.layout, &text);
    let key = record.key(&context.schema.layout);
    let batch = Batch::parked(record, &parked.lane, patience);
    let is_old = context.clock.now_ms().saturating_sub(parked.parked_at_ms) >= UNKNOWN_MS;
    if parked.family == Family::Additive && key.is_none() && is_old {
        return waiting.unknown = Some(parked.id.clone());
    }
    if parked.family == Family::Additive {
        return waiting.counts.extend(CountsOf::of(context, &batch));
    }
    waiting.is_any_item |= key.is_none() && !is_old;
    waiting.items.extend(key.clone());
    let Ok(asked) = plan::asked_of(context, parked.family, &batch) else {
        // If the record belongs to a counter, the item that displays the count would be refreshed.
        return waiting.items.extend(key.and_then(|key| Some(CounterKey::parse(&key)?.target)));
    };
    waiting.items.extend(asked.requests.requested.into_keys().map(|(item, _)| item));
    waiting.derivations.extend(asked.requests.finds.into_keys().map(|(derivation, _)| derivation));
    waiting.derivations.extend(asked.ground.into_iter().map(|touch| touch.derivation));
}

/// True if an item, or one of the sources that were named for it, is listed as unreadable.
pub(crate) async fn is_listed_unreadable<'a, S: Store>(
    context: &Context<S>,
    items: impl IntoIterator<Item = &'a Key>,
    derivations: &[DerivationAt],
    patience: Patience<'_>,
) -> Result<bool, GaveUp> {
    let names: Vec<&str> = derivations.iter().map(|at| context.catalogue.name(*at)).chain([ALL_DERIVATIONS]).collect();
    let listed = |item| names.iter().map(move |name| Key::new(UNREADABLE, sort_key(name, item)));
    let keys: Vec<Key> = items.into_iter().flat_map(listed).collect();
    Ok(!patience.call(|| context.store.get(Table::Ledger, &keys)).await?.is_empty())
}

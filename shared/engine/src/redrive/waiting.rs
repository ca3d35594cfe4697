//! What is under way, so that an item that differs is none that has drifted: it waits.
//!
//! A change that is parked is applied when somebody redrives it, an item that cannot be read counts when somebody mends
//! it, and a job goes on by itself. Each is reported elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use derive::{family::Family, position::DerivationAt, query::Query, write::Table};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store;

use crate::{
    attribute::sort_key,
    backoff::{GaveUp, Patience},
    context::Context,
    counters::Target,
    fan_out::{again, underway::UnderwayFanOut},
    input::Batch,
    jobs::ground::sweep::jobs,
    look::listing::{ALL_DERIVATIONS, UNREADABLE},
    park::{ParkedChange, ParkedPages},
    plan,
    protocol::ProtocolStep,
    record::Decoded,
    redrive::in_ledger::CountsOf,
};

/// For how long what is derived waits for a parked change of which not even the item is known, in milliseconds: a day.
/// After that, what differs is reported. A count is reported then with the [doubt](Waiting::doubt), and no repair adds
/// to it: what the change adds when it is redriven would be added twice.
const UNKNOWN_MS: u64 = 24 * 3_600 * 1_000;

/// What waits for changes that are parked, and for jobs.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Items that parked changes are of, or would refresh.
    items: BTreeSet<Key>,
    /// Items from which an index is still to be searched again, with the derivations for which it is; by their
    /// positions.
    noted: BTreeMap<Key, BTreeSet<DerivationAt>>,
    /// Derivations whose items are still to be found by a parked change; by their positions.
    derivations: BTreeSet<DerivationAt>,
    /// Fan-outs that are under way.
    fan_outs: Vec<UnderwayFanOut>,
    /// Counts that parked changes would add to.
    counts: CountsOf,
    /// Is a change parked of which not even the item is known, so that it may be of anything?
    is_any_item: bool,
    /// Id of a change that may add to any count, and has been parked for so long that none waits for it.
    unknown: Option<String>,
}

impl Waiting {
    /// Does this item wait, whose part of these derivations differs and which was decided by these sources? A fan-out
    /// that has been to the item is no reason to wait: `held` is the item as it is held, which has its index keys.
    #[must_use]
    pub fn has<'a>(
        &self,
        item: &Key,
        held: Option<&Item>,
        sources: impl IntoIterator<Item = &'a Key>,
        derivations: impl IntoIterator<Item = &'a DerivationAt>,
    ) -> bool {
        let sources: Vec<&Key> = sources.into_iter().collect();
        let reaches = |at: DerivationAt| {
            let mut fan_outs = self.fan_outs.iter().filter(|fan_out| fan_out.derivation == at);
            fan_outs.any(|fan_out| fan_out.still_reaches(item, held, &sources))
        };
        let derivations: Vec<DerivationAt> = derivations.into_iter().copied().collect();
        let is_noted = |source: &Key| {
            self.noted.get(source).is_some_and(|of_note| derivations.iter().any(|at| of_note.contains(at)))
        };
        self.is_any_item
            || self.items.contains(item)
            || sources.iter().any(|source| self.items.contains(source) || is_noted(source))
            || derivations.iter().any(|at| self.derivations.contains(at) || reaches(*at))
    }

    /// Does any of the items wait that a query of the table would give?
    pub(crate) fn has_any_of(&self, query: &Query) -> bool {
        self.items.iter().any(|item| item.pk == query.pk && query.sk.holds(&item.sk))
    }

    /// Why a count that does not wait may not be repaired, if there is a reason.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let id = self.unknown.as_ref()?;
        Some(format!(
            "the parked change {id} may add to it, of which not even the key can be read: see `ripple parked {id}`, and \
             delete the parked item before a repair"
        ))
    }

    /// Does this count wait?
    #[must_use]
    pub fn has_target(&self, target: &Target) -> bool {
        self.counts.has(target)
    }
}

/// What is under way. A parked record that cannot be read says nothing of what it is of. Of what is still to be
/// searched again, since an index may lag, there may be a million: only what `is_asked` for is given.
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
    for (item, names) in again::noted(context, is_asked, patience).await? {
        let positions = names.iter().filter_map(|name| context.catalogue.position(name));
        waiting.noted.entry(item).or_default().extend(positions);
    }
    Ok(waiting)
}

/// What counts wait for. Jobs and parked changes of other families change no count.
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

/// Adds what waits for the parked changes of a family.
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

/// Adds what waits for a parked change.
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
        // Where it is a counter's, the item that shows the count would be refreshed.
        return waiting.items.extend(key.and_then(|key| Some(CounterKey::parse(&key)?.target)));
    };
    waiting.items.extend(asked.requests.requested.into_keys().map(|(item, _)| item));
    waiting.derivations.extend(asked.requests.finds.into_keys().map(|(derivation, _)| derivation));
    waiting.derivations.extend(asked.ground.into_iter().map(|touch| touch.derivation));
}

/// Is an item, or one of the sources that were named for it, listed since it cannot be read?
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

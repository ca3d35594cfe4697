//! The brake is a circuit breaker: a largely unreadable batch is a faulty deployment, not bad data.
//!
//! *Keeps true*: when more than [`BrakeLimits::unreadable_percent_max`] of the items of a batch of 20 items or more
//! cannot be read, nothing of it is applied or parked, and the invocation fails. Lambda redelivers the batch, and the
//! engine handles it once the deployment is corrected. The breaker counts items, not records: an unreadable item has a
//! record for each write, by the application and by the engine.
//!
//! The breaker lets a batch pass when its first record is older than [`BrakeLimits::unreadable_hold_ms`], so a shard is
//! blocked for that long at most, far less than the day that a stream keeps records; or when the operator raises the
//! limit.
//!
//! Each reason stops batches once, because otherwise a writer of bad items would block everything for as long as it
//! writes. A reason that first stopped a batch longer than `unreadable_hold_ms` ago no longer counts.
//!
//! *Example*: a client writes texts into `Order.Total` for a week. The breaker stops the first batch with many of them
//! for four hours, in which an operator may roll the deployment back. Then the engine handles that batch, and later
//! ones do not wait. After a release with another `Order` in its manifest, the breaker stops batches again.
//!
//! # Notes
//!
//! Notes in the ledger record when each reason first stopped a batch.
//!
//! *Keeps true*: a reason stops batches until [`BrakeLimits::unreadable_hold_ms`] after the first stop, over all
//! instances, and never again under the same catalogue.
//!
//! A reason is the derivation, the attribute and what is wrong with it, without an item or a record. A digest of the
//! definitions of the function's families identifies the catalogue. The registry's revision does not, because each
//! verification without findings raises it.
//!
//! *Cheap*: a batch that the breaker would not stop reads no note. A batch that it would stop reads a small item for
//! each reason, which costs less than what is written about its unreadable items.
//!
//! *No guard*: two invocations that both find no note write about the same time into it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use derive::{
    effect::Effect,
    family::Family,
    schema::Unreadable,
    write::{Action, Table, Write},
};
use keys::{fnv, item::Item, key::Key, layout::Layout};
use store::Store;

use crate::{
    account::MuchUnreadable,
    attribute::{fitted, n, number, s},
    backoff::{GaveUp, describe},
    batch::HandleError,
    context::Context,
    input::Batch,
    ledger::ledger_item,
    look::listing::ALL_DERIVATIONS,
    plan::Planning,
    registry::definitions,
};

#[cfg(doc)]
use crate::limits::BrakeLimits;

/// Smallest batch that the breaker checks, in items: one bad item in a small batch is bad data.
const BATCH_ITEMS_MIN: usize = 20;

/// Items that the error names.
const NAMED_MAX: usize = 3;

/// The item that a record changes: its key, or the record's position if the key cannot be read.
type ItemOf<'a> = Result<Cow<'a, Key>, usize>;

/// An unreadable item.
struct FaultyItem {
    /// Its first unreadable record, for the error.
    name: String,
    reasons: BTreeSet<UnreadableReason>,
}

/// Fails if too much of a batch is unreadable for reasons that have not stopped batches before. A breaker that only
/// warns returns the numbers instead.
pub(crate) async fn hold<S: Store>(
    context: &Context<S>,
    planned: &[Planning<'_>],
    batch: &Batch<'_>,
) -> Result<Option<MuchUnreadable>, HandleError> {
    let unreadable = unreadable(context, planned);
    if unreadable.is_empty() {
        return Ok(None);
    }
    let n_items = planned.iter().enumerate().map(|(at, planning)| item(context, at, planning));
    let n_items = n_items.collect::<BTreeSet<_>>().len();
    if !is_much(context, unreadable.len(), n_items) {
        return Ok(None);
    }
    if context.limits.only_warns {
        return Ok(Some(MuchUnreadable { n_unreadable: unreadable.len(), n_items }));
    }
    let (now_ms, hold_ms) = (context.clock.now_ms(), context.limits.unreadable_hold_ms);
    if batch.age_ms(now_ms).is_none_or(|age_ms| age_ms > hold_ms) {
        tracing::error!(n_unreadable = unreadable.len(), n_items, "much is unreadable, and was held long enough");
        return Ok(None);
    }
    let reasons: BTreeSet<&UnreadableReason> = unreadable.iter().flat_map(|item| &item.reasons).collect();
    let since_ms = match since(context, &reasons, batch).await {
        Ok(since_ms) => since_ms,
        Err(error) => {
            tracing::warn!(cause = %describe(&error), "the notes of what was held cannot be read");
            return Err(refusal(&unreadable.iter().collect::<Vec<_>>(), n_items));
        }
    };
    let is_over = |reason| since_ms.get(reason).is_some_and(|since_ms| now_ms.saturating_sub(*since_ms) > hold_ms);
    let held: Vec<_> = unreadable.iter().filter(|item| !item.reasons.iter().all(is_over)).collect();
    if !is_much(context, held.len(), n_items) {
        tracing::error!(n_unreadable = unreadable.len(), n_items, "much is unreadable, for reasons held before");
        return Ok(None);
    }
    let reasons: BTreeSet<&UnreadableReason> = held.iter().flat_map(|item| &item.reasons).collect();
    for reason in reasons.into_iter().filter(|reason| !since_ms.contains_key(reason)) {
        begin(context, reason, batch).await;
    }
    Err(refusal(&held, n_items))
}

fn is_much<S: Store>(context: &Context<S>, n_unreadable: usize, n_items: usize) -> bool {
    let percent_max = usize::try_from(context.limits.unreadable_percent_max).unwrap_or(usize::MAX);
    n_items >= BATCH_ITEMS_MIN && n_unreadable.saturating_mul(100) > n_items.saturating_mul(percent_max)
}

fn item<'a, S: Store>(context: &Context<S>, at: usize, planning: &Planning<'a>) -> ItemOf<'a> {
    match &planning.record.change {
        Ok(change) => Ok(Cow::Borrowed(&change.key)),
        Err(_) => planning.record.key(&context.schema.layout).map(Cow::Owned).ok_or(at),
    }
}

/// The unreadable items, in the order of their first records.
fn unreadable<S: Store>(context: &Context<S>, planned: &[Planning<'_>]) -> Vec<FaultyItem> {
    let (mut items, mut places) = (Vec::<FaultyItem>::new(), BTreeMap::new());
    for (at, planning) in planned.iter().enumerate() {
        let reasons = reasons(context, planning);
        if reasons.is_empty() {
            continue;
        }
        let place = *places.entry(item(context, at, planning)).or_insert(items.len());
        match items.get_mut(place) {
            Some(item) => item.reasons.extend(reasons),
            None => items.push(FaultyItem { name: planning.name(), reasons }),
        }
    }
    items
}

/// Why a record cannot be read; empty if it can.
fn reasons<S: Store>(context: &Context<S>, planning: &Planning<'_>) -> BTreeSet<UnreadableReason> {
    let planned = match (&planning.record.change, &planning.planned) {
        (Err(error), _) => return BTreeSet::from([UnreadableReason::of_record(&error.why)]),
        (Ok(_), Err(cause)) => return BTreeSet::from([UnreadableReason::of_record(cause)]),
        (Ok(_), Ok(planned)) => planned,
    };
    let listed = planned.effects.iter().filter_map(|(at, effect)| match effect {
        Effect::List { unreadable: Some(unreadable) } => {
            Some(UnreadableReason::of(context.catalogue.name(*at), unreadable))
        }
        _ => None,
    });
    let misfit = planned.misfit.iter().map(|misfit| UnreadableReason::of(ALL_DERIVATIONS, misfit));
    listed.chain(misfit).collect()
}

fn refusal(held: &[&FaultyItem], n_items: usize) -> HandleError {
    let named = |item: &&FaultyItem| {
        let reasons: Vec<String> = item.reasons.iter().map(ToString::to_string).collect();
        format!("{}: {}", item.name, reasons.join(", and "))
    };
    let items = held.iter().take(NAMED_MAX).map(named).collect();
    HandleError::Unreadable { n_unreadable: held.len(), n_items, items }
}

// ---- Notes of when each reason first stopped a batch ----

/// Partition key of the notes. Stored, so it is stable.
const HELD: &str = "HELD";

// Attributes of a note. Stored, so they are stable.
const DERIVATION: &str = "Derivation";
const ATTRIBUTE: &str = "Attribute";
const WHY: &str = "Why";
const CATALOGUE: &str = "Catalogue";
const HELD_SINCE: &str = "HeldSince";

/// Why items cannot be read, regardless of the item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableReason {
    derivation: String,
    /// The attribute at fault; empty if the whole record is.
    attribute: String,
    why: String,
}

impl fmt::Display for UnreadableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { derivation, attribute, why } = self;
        match (attribute.as_str(), derivation.as_str()) {
            ("", _) => f.write_str(why),
            (_, ALL_DERIVATIONS) => write!(f, "{attribute} {why}"),
            _ => write!(f, "{attribute} {why} ({derivation})"),
        }
    }
}

impl UnreadableReason {
    /// The reason when a derivation, or all of them, cannot interpret an item.
    pub(crate) fn of(derivation: &str, unreadable: &Unreadable) -> Self {
        let Unreadable { attribute, why } = unreadable.clone();
        Self { derivation: derivation.to_owned(), attribute, why }
    }

    /// The reason when a record cannot be planned.
    fn of_record(why: &str) -> Self {
        Self { derivation: ALL_DERIVATIONS.to_owned(), attribute: String::new(), why: why.to_owned() }
    }

    fn key(&self, catalogue: &str) -> Key {
        let Self { derivation, attribute, why } = self;
        Key::new(HELD, fitted(format!("{catalogue}#{derivation}#{attribute}#{why}")))
    }

    /// The write that notes the first stop.
    pub(crate) fn note(&self, layout: &Layout, catalogue: &str, now_ms: u64) -> Write {
        let key = self.key(catalogue);
        let attributes = [
            (DERIVATION, s(&self.derivation)),
            (ATTRIBUTE, s(&self.attribute)),
            (WHY, s(&self.why)),
            (CATALOGUE, s(catalogue)),
            (HELD_SINCE, n(now_ms)),
        ];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }
}

/// When each of these reasons first stopped a batch, in milliseconds since the epoch; reasons without a note are
/// omitted.
pub(crate) async fn since<'r, S: Store>(
    context: &Context<S>,
    reasons: &BTreeSet<&'r UnreadableReason>,
    batch: &Batch<'_>,
) -> Result<BTreeMap<&'r UnreadableReason, u64>, GaveUp> {
    let catalogue = catalogue(context);
    let keys: Vec<Key> = reasons.iter().map(|reason| reason.key(&catalogue)).collect();
    let notes = batch.patience.call(|| context.store.get(Table::Ledger, &keys)).await?;
    let notes: BTreeMap<Key, Item> = notes.into_iter().collect();
    let since = |(reason, key): (&&'r UnreadableReason, &Key)| Some((*reason, number(notes.get(key)?, HELD_SINCE)?));
    Ok(reasons.iter().zip(&keys).filter_map(since).collect())
}

/// Notes that a reason stops a batch for the first time. If the note cannot be written, the redelivery of the batch
/// writes it.
pub(crate) async fn begin<S: Store>(context: &Context<S>, reason: &UnreadableReason, batch: &Batch<'_>) {
    let write = reason.note(&context.schema.layout, &catalogue(context), context.clock.now_ms());
    if let Err(error) = batch.patience.call(|| context.store.write(&write)).await {
        tracing::warn!(cause = %describe(&error), "what is held cannot be noted");
    }
}

/// A digest of this function's definitions. Stored, so it is stable.
fn catalogue<S: Store>(context: &Context<S>) -> String {
    let of = |family: &Family| definitions(&context.catalogue, &context.schema, *family);
    let definitions: BTreeMap<String, String> = context.families.iter().flat_map(of).collect();
    let texts = definitions.into_iter().flat_map(|(name, definition)| [name, definition]);
    format!("{:032x}", fnv::hash_128(texts.flat_map(|text| text.into_bytes().into_iter().chain([0xff]))))
}

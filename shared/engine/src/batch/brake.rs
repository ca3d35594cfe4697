//! The brake: a batch of which much cannot be read is a deployment gone wrong, not data.
//!
//! *Keeps true*: when more than [`BrakeLimits::unreadable_percent_max`] of the items of a batch of 20 items or more
//! cannot be read, nothing of it is applied or parked, and the invocation fails. The batch comes again, and is handled
//! once the deployment is mended. Items are counted, not records: an item that cannot be read has as many records as it
//! was written, by the application and by the engine.
//!
//! It gives way when the batch's first record is older than [`BrakeLimits::unreadable_hold_ms`], so that a shard is held up
//! for so long at most, far from the day that a stream keeps records; or when the operator raises the limit.
//!
//! Each reason is held once, or a writer of bad items would hold up everybody for as long as it goes on: a reason that was
//! first held longer than `unreadable_hold_ms` ago counts no more. Its module `held` keeps the notes.
//!
//! *Example*: a client writes texts into `Order.Total` for a week. The first batch with many of them is held for four hours,
//! in which someone may take the deployment back. Then it is handled, and what came meanwhile or comes later does not
//! wait. A release with another `Order` in its manifest makes the brake hold once more.

pub(crate) mod held;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use derive::effect::Effect;
use keys::key::Key;
use store::Store;

use crate::{
    account::MuchUnreadable,
    backoff::describe,
    batch::{
        brake::held::{HoldNotes, UnreadableReason},
        handle_error::HandleError,
        input::Batch,
        planning::Planning,
    },
    context::Context,
    look::listing::ALL_DERIVATIONS,
};

#[cfg(doc)]
use crate::batch::limits::BrakeLimits;

/// Smallest batch that the brake looks at, in items: one bad item in a small batch is data.
const BATCH_ITEMS_MIN: usize = 20;

/// Items that the error names.
const NAMED_MAX: usize = 3;

/// Which item a record is of: its key, or the record itself where that cannot be read.
type ItemOf<'a> = Result<Cow<'a, Key>, usize>;

/// An item that cannot be read.
struct FaultyItem {
    /// Its first record that cannot be read, for the error.
    name: String,
    reasons: BTreeSet<UnreadableReason>,
}

/// Holds batches of which much cannot be read.
pub(crate) struct Brake<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Brake<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Brake<'_, S> {
    /// Fails when too much of a batch cannot be read, for reasons that were not held before. A brake that only warns says
    /// how much it is instead.
    pub(crate) async fn hold(
        &self,
        planned: &[Planning<'_>],
        batch: &Batch<'_>,
    ) -> Result<Option<MuchUnreadable>, HandleError> {
        let unreadable = self.unreadable(planned);
        if unreadable.is_empty() {
            return Ok(None);
        }
        let n_items = planned.iter().enumerate().map(|(at, planning)| self.item(at, planning));
        let n_items = n_items.collect::<BTreeSet<_>>().len();
        if !self.is_much(unreadable.len(), n_items) {
            return Ok(None);
        }
        if self.context.limits.only_warns {
            return Ok(Some(MuchUnreadable { n_unreadable: unreadable.len(), n_items }));
        }
        let (now_ms, hold_ms) = (self.context.clock.now_ms(), self.context.limits.unreadable_hold_ms);
        if batch.age_ms(now_ms).is_none_or(|age_ms| age_ms > hold_ms) {
            tracing::error!(n_unreadable = unreadable.len(), n_items, "much is unreadable, and was held long enough");
            return Ok(None);
        }
        let notes = HoldNotes::new(self.context);
        let reasons: BTreeSet<&UnreadableReason> = unreadable.iter().flat_map(|item| &item.reasons).collect();
        let since = match notes.since(&reasons, batch).await {
            Ok(since) => since,
            Err(error) => {
                tracing::warn!(cause = %describe(&error), "the notes of what was held cannot be read");
                return Err(refusal(&unreadable.iter().collect::<Vec<_>>(), n_items));
            }
        };
        let is_over = |reason| since.get(reason).is_some_and(|since_ms| now_ms.saturating_sub(*since_ms) > hold_ms);
        let held: Vec<_> = unreadable.iter().filter(|item| !item.reasons.iter().all(is_over)).collect();
        if !self.is_much(held.len(), n_items) {
            tracing::error!(n_unreadable = unreadable.len(), n_items, "much is unreadable, for reasons held before");
            return Ok(None);
        }
        let reasons: BTreeSet<&UnreadableReason> = held.iter().flat_map(|item| &item.reasons).collect();
        for reason in reasons.into_iter().filter(|reason| !since.contains_key(reason)) {
            notes.begin(reason, batch).await;
        }
        Err(refusal(&held, n_items))
    }

    fn is_much(&self, n_unreadable: usize, n_items: usize) -> bool {
        let percent_max = usize::try_from(self.context.limits.unreadable_percent_max).unwrap_or(usize::MAX);
        n_items >= BATCH_ITEMS_MIN && n_unreadable.saturating_mul(100) > n_items.saturating_mul(percent_max)
    }

    fn item<'a>(&self, at: usize, planning: &Planning<'a>) -> ItemOf<'a> {
        match &planning.record.change {
            Ok(change) => Ok(Cow::Borrowed(&change.key)),
            Err(_) => planning.record.key(&self.context.schema.layout).map(Cow::Owned).ok_or(at),
        }
    }

    /// The items that cannot be read, in the order of their first records.
    fn unreadable(&self, planned: &[Planning<'_>]) -> Vec<FaultyItem> {
        let (mut items, mut places) = (Vec::<FaultyItem>::new(), BTreeMap::new());
        for (at, planning) in planned.iter().enumerate() {
            let reasons = self.reasons(planning);
            if reasons.is_empty() {
                continue;
            }
            let place = *places.entry(self.item(at, planning)).or_insert(items.len());
            match items.get_mut(place) {
                Some(item) => item.reasons.extend(reasons),
                None => items.push(FaultyItem { name: planning.name(), reasons }),
            }
        }
        items
    }

    /// Why a record cannot be read; nothing if it can be.
    fn reasons(&self, planning: &Planning<'_>) -> BTreeSet<UnreadableReason> {
        let planned = match (&planning.record.change, &planning.planned) {
            (Err(error), _) => return BTreeSet::from([UnreadableReason::of_record(&error.why)]),
            (Ok(_), Err(cause)) => return BTreeSet::from([UnreadableReason::of_record(cause)]),
            (Ok(_), Ok(planned)) => planned,
        };
        let listed = planned.effects.iter().filter_map(|(at, effect)| match effect {
            Effect::List { unreadable: Some(unreadable) } => {
                Some(UnreadableReason::of(self.context.catalogue.name(*at), unreadable))
            }
            _ => None,
        });
        let misfit = planned.misfit.iter().map(|misfit| UnreadableReason::of(ALL_DERIVATIONS, misfit));
        listed.chain(misfit).collect()
    }
}

fn refusal(held: &[&FaultyItem], n_items: usize) -> HandleError {
    let named = |item: &&FaultyItem| {
        let reasons: Vec<String> = item.reasons.iter().map(ToString::to_string).collect();
        format!("{}: {}", item.name, reasons.join(", and "))
    };
    let items = held.iter().take(NAMED_MAX).map(named).collect();
    HandleError::Unreadable { n_unreadable: held.len(), n_items, items }
}

//! Discarding: an operator removes a parked change that will never be applied.
//!
//! *Keeps true*: a discarded change is never lost silently, and never counted twice. One transaction deletes the parked
//! items and records what is now missing, on the condition that the change is still parked. So of a redrive and a
//! discarding at once, one does it.
//!
//! - *Counts*. The transaction lists the counts that the change would have added to for a [recount](crate::count).
//!   Those that do not fit into it are listed before. The proof that the change was handled stays in the ledger: its
//!   receipt, the counter's watermark, or the exception of its shard. So a redelivered record adds nothing, and a repair may add what
//!   is missing. A change without that proof stays parked: its counter lost the watermark, and the stream may still
//!   deliver the record. So does a change that an earlier invocation may still count, as for a [redrive](super).
//! - *Refreshes*. The transaction marks a [possible loss](crate::loss) of level-triggered changes. No cascade starts
//!   until a verification finds nothing: an item that the change would have created is missing, and a cascade would take
//!   that for its removal.
//!
//! *Example*: the follow of a deleted user is parked, because a counter has the wrong type. After it is discarded,
//! `RECOUNT / follower-count#…` names the count, and `ripple repair` sets it.
//!
//! # Concerns
//!
//! A parked change concerns its own item, and what it would count, refresh and delete. An operator asks for this about a
//! change that contains a person's data, and before a change is discarded. Nothing is read: the parked record and the
//! declarations decide.

use std::collections::BTreeSet;

use derive::{
    coalesce::Counted,
    effect::Ground,
    family::Family,
    guard::{Guard, Purpose},
    position::RecordAt,
    write::{TRANSACT_ACTIONS_MAX, Table, Transaction, Write},
};
use keys::{counter::CounterKey, key::Key};
use store::{Store, TransactOutcome, rejected, unheld};

use crate::{
    account::{Account, Target},
    backoff::{GaveUp, Patience, Tries, describe},
    batch::Engine,
    context::Context,
    count::{self, Counter, targets},
    input::Batch,
    ledger::watermarks::{HORIZON_MS, Sequence, has_passed, mark_name, mark_of},
    look::listing,
    loss::Mark,
    park::ParkedChange,
    plan,
    record::Decoded,
    redrive::minutes_left,
};

/// Why the counts of a discarded change are listed. Stored.
const WHY: &str = "an operator discarded the parked change";

/// How discarding ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// It is no longer parked, and what is missing is recorded.
    Done,
    /// It was no longer parked: a redrive applied it, another command discarded it, or the response of an earlier call
    /// of this command was lost.
    Gone,
    /// It stays parked.
    Still {
        /// Why.
        cause: String,
    },
}

impl<S: Store> Engine<S> {
    /// What is lost if a parked change is discarded: what it [concerns](Self::concerns), without the cascades that have
    /// started.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the ledger cannot be read before the deadline, in milliseconds since the epoch.
    pub async fn lost(&self, parked: &ParkedChange, deadline_ms: u64) -> Result<Concerns, GaveUp> {
        let mut concerns = self.concerns(parked);
        if concerns.cascades.is_empty() {
            return Ok(concerns);
        }
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        let receipt = |derivation: &str| {
            let at = self.context.catalogue.position(derivation);
            let label = at.map_or(derivation, |at| self.context.catalogue.label(at));
            Key::new(format!("RECEIPT#{}", parked.id), label)
        };
        let receipts: Vec<Key> = concerns.cascades.iter().map(|(derivation, _)| receipt(derivation)).collect();
        let stored = patience.call(|| self.context.store.get(Table::Ledger, &receipts)).await?;
        let started: BTreeSet<Key> = stored.into_iter().map(|(key, _)| key).collect();
        concerns.cascades.retain(|(derivation, _)| !started.contains(&receipt(derivation)));
        Ok(concerns)
    }

    /// Removes a parked change that will never be applied, and records what is missing.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the store gives no outcome before the deadline, in milliseconds since the epoch. The change is
    /// then discarded or parked; discarding it again is safe.
    pub async fn discard(&self, parked: &ParkedChange, deadline_ms: u64) -> Result<Discarded, GaveUp> {
        let patience = Patience::new(self.context.clock.as_ref(), deadline_ms);
        discard(&self.context, parked, patience).await
    }
}

async fn discard<S: Store>(
    context: &Context<S>,
    parked: &ParkedChange,
    patience: Patience<'_>,
) -> Result<Discarded, GaveUp> {
    if let Some(minutes) = minutes_left(context, parked) {
        let cause =
            format!("an invocation that began before it was parked may still count it: discard it in {minutes} min");
        return Ok(Discarded::Still { cause });
    }
    let text = parked.record().unwrap_or_default();
    let batch = Batch::parked(Decoded::of(&context.schema.layout, &text), &parked.lane, patience);
    if let Some(cause) = unproven(context, parked, patience).await? {
        return Ok(Discarded::Still { cause });
    }
    // An item that cannot be interpreted is listed, as a redrive lists it.
    let listings = plan::asked_of(context, parked.family, &batch).map(|asked| asked.listings).unwrap_or_default();
    let mut account = Account::default();
    listing::list(context, listings, &batch, &mut account).await;
    if let Some((_, cause)) = account.undone.pop_first() {
        return Ok(Discarded::Still { cause });
    }
    let mut missing = match parked.family {
        Family::Additive => to_recount(context, parked, &concerns(context, parked, &batch)),
        Family::LevelTriggered => vec![loss(context, parked, patience).await?],
    };
    let mut writes: Vec<Write> = parked.deletions(Some(Guard::present(Purpose::StillParked))).collect();
    // What the transaction does not take is listed before it; a listed count may be right.
    let n_before = missing.len().saturating_sub(TRANSACT_ACTIONS_MAX.saturating_sub(writes.len()));
    for write in missing.drain(..n_before) {
        patience.call(|| context.store.write(&write)).await?;
    }
    writes.extend(missing);
    match Transaction::new(writes) {
        Ok(transaction) => discard_once(context, &transaction, patience).await,
        Err(error) => Ok(Discarded::Still { cause: error.to_string() }),
    }
}

async fn discard_once<S: Store>(
    context: &Context<S>,
    transaction: &Transaction,
    patience: Patience<'_>,
) -> Result<Discarded, GaveUp> {
    let mut tries = Tries::default();
    loop {
        let reasons = match patience.call(|| context.store.transact(transaction)).await {
            Ok(TransactOutcome::Done { .. }) => return Ok(Discarded::Done),
            Ok(TransactOutcome::Cancelled { reasons }) => reasons,
            Err(GaveUp::Refused(error)) => return Ok(Discarded::Still { cause: describe(&error) }),
            Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => return Err(error),
        };
        if unheld(transaction, &reasons).next().is_some() {
            return Ok(Discarded::Gone);
        }
        if let Some(cause) = rejected(&reasons) {
            return Ok(Discarded::Still { cause });
        }
        if !patience.wait(&mut tries).await {
            return Err(GaveUp::OutOfTime { last: None });
        }
    }
}

/// The writes that list the counts of a discarded change; or any count, if they are unknown.
fn to_recount<S: Store>(context: &Context<S>, parked: &ParkedChange, concerns: &Concerns) -> Vec<Write> {
    let targets: Vec<_> = concerns.counts.iter().cloned().collect();
    // A change whose derivations are gone counts nowhere.
    if targets.is_empty() && concerns.unknown.is_none() {
        return Vec::new();
    }
    let (id, sequence_number) = (parked.id.clone(), parked.sequence_number.clone());
    let change = Counted { position: RecordAt(0), id, sequence_number, amounts: Vec::new() };
    count::listed(&context.schema.layout, &change, &targets, WHY, context.clock.now_ms())
}

/// The write that marks a possible loss of level-triggered changes.
async fn loss<S: Store>(context: &Context<S>, parked: &ParkedChange, patience: Patience<'_>) -> Result<Write, GaveUp> {
    let seen = Mark::new(parked.family, &parked.lane, 0, context.clock.now_ms());
    let stored = context.item(Table::Ledger, &seen.key(), patience).await?.as_ref().map(Mark::of);
    let mark = stored.map_or(seen.clone(), |stored| Mark { until_ms: seen.until_ms, ..stored });
    Ok(mark.write(&context.schema.layout))
}

/// Why a redelivered record of a change that is parked for one counter would be counted, if it would: the counter lacks
/// the watermark that the parking set, and the stream may still have the record.
async fn unproven<S: Store>(
    context: &Context<S>,
    parked: &ParkedChange,
    patience: Patience<'_>,
) -> Result<Option<String>, GaveUp> {
    // An exception is its own proof.
    let Some(key) = parked.counter.as_ref().filter(|_| parked.exception.is_none()) else { return Ok(None) };
    if context.clock.now_ms().saturating_sub(parked.parked_at_ms) > HORIZON_MS {
        return Ok(None);
    }
    let (counter, keys) = (Counter::new(context), [key.clone()]);
    let stored = patience.call(|| counter.stored_buckets(&keys)).await?;
    let name = mark_name(&parked.lane).unwrap_or_default();
    let mark = stored.get(key).and_then(|item| mark_of(item, &name));
    let sequence = Sequence::parse(&parked.sequence_number);
    let is_proven = mark.zip(sequence).is_some_and(|(mark, sequence)| has_passed(mark, sequence));
    Ok((!is_proven).then(|| {
        format!(
            "the counter {} has lost its watermark, so a redelivered record would be counted: redrive the change, or \
             discard it 26 hours after it was parked",
            key.for_log()
        )
    }))
}

// ---- What a parked change concerns ----

/// What a parked change concerns, for the family that it is parked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concerns {
    /// The item that was changed; `None` if the record does not show its key.
    pub item: Option<Key>,
    /// The counts that it would add to.
    pub counts: BTreeSet<Target>,
    /// The items that it would refresh.
    pub items: BTreeSet<Key>,
    /// The items that depend on the changed one and that a query would find: the derivation, and the source.
    pub searches: BTreeSet<(String, Key)>,
    /// The cascades that it would start: the derivation, and the removed owner.
    pub cascades: BTreeSet<(String, Key)>,
    /// The jobs that it would continue.
    pub jobs: BTreeSet<Key>,
    /// Why the rest is unknown: the record does not decode, or cannot be planned.
    pub unknown: Option<String>,
}

impl Concerns {
    /// All keys that it has.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let counted = self.counts.iter().map(|target| &target.item);
        let named = self.searches.iter().chain(&self.cascades).map(|(_, key)| key);
        self.item.iter().chain(counted).chain(&self.items).chain(named).chain(&self.jobs)
    }
}

impl<S: Store> Engine<S> {
    /// What a parked change concerns. Derivations have their stored names.
    #[must_use]
    pub fn concerns(&self, parked: &ParkedChange) -> Concerns {
        let text = parked.record().unwrap_or_default();
        let patience = Patience::new(self.context.clock.as_ref(), 0);
        let record = Decoded::of(&self.context.schema.layout, &text);
        concerns(&self.context, parked, &Batch::parked(record, &parked.lane, patience))
    }
}

/// What a parked change concerns; its record is the only one of the batch.
fn concerns<S: Store>(context: &Context<S>, parked: &ParkedChange, batch: &Batch<'_>) -> Concerns {
    let (catalogue, layout) = (&context.catalogue, &context.schema.layout);
    let item = batch.records.first().and_then(|record| record.key(layout));
    let mut concerns = Concerns { item, ..Concerns::default() };
    let asked = match plan::asked_of(context, parked.family, batch) {
        Ok(asked) => asked,
        Err(why) => {
            // A change that is parked for one counter shows its count even if it cannot be planned any more.
            let counter = parked.counter.as_ref().and_then(CounterKey::parse);
            let count = counter.map(|counter| Target { derivation: counter.derivation, item: counter.target });
            return Concerns { counts: count.into_iter().collect(), unknown: Some(why), ..concerns };
        }
    };
    for mut entry in asked.entries {
        entry.change.amounts.retain(|amount| parked.is_for(amount));
        concerns.counts.extend(targets(catalogue, &entry.change));
    }
    concerns.items.extend(asked.requests.requested.into_keys().map(|(item, _)| item));
    let searches = asked.requests.finds.into_keys();
    concerns.searches.extend(searches.map(|(at, source)| (catalogue.name(at).to_owned(), source)));
    for touch in asked.ground {
        match touch.effect {
            Ground::Cascade(removal) => {
                concerns.cascades.insert((catalogue.name(touch.derivation).to_owned(), removal.owner));
            }
            Ground::Work(job) => {
                concerns.jobs.insert(job);
            }
        }
    }
    concerns
}

//! Handling a batch: from the text of an event to the response for Lambda.
//!
//! *Keeps true*: every record of a batch is done, parked, refused, or at or behind the record that the response names.
//! A record that cannot be handled blocks no other record.
//!
//! # Order
//!
//! The state of a tumbling window shows the order of a shard's batches, as far as the window goes.
//!
//! A watermark passes every earlier record of its shard, so under watermarks a record that arrives for the first time
//! behind a later one is taken for a counted one. AWS delivers records in order the first time; only records that are
//! processed more than once may be out of order. Source: DynamoDB developer guide, "DynamoDB Streams and Lambda
//! triggers".
//!
//! *Keeps true*: the window's state has the sequence numbers of the batch that was handled last. A batch that begins
//! before that one is reported: nothing shows whether its records were handled before. A redelivery of the last batch
//! begins within it, and is harmless.
//!
//! *Not visible*: each window begins with an empty state, so nothing is compared across windows.

pub(crate) mod attempts;
pub mod brake;

use std::{
    pin::Pin,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};

use derive::{catalogue::Catalogue, change::Change, family::Family, schema::Schema};
use futures::{future::maybe_done, poll};
use serde_json::{Map, Value, json};
use store::Store;

use crate::{
    account::Account,
    backoff::Patience,
    batch::attempts::Attempt,
    clock::Clock,
    context::{Context, Recent},
    corrections::Corrections,
    count::{Counter, Session, ShardSession, exceptions::DIED},
    fan_out,
    input::{Batch, Occasion},
    jobs::{Worker, pulse},
    ledger::{LedgerKind, Receipts, Spread, watermarks::Sequence},
    limits::{BrakeLimits, FanOutLimits, SpreadLimits},
    look::listing,
    loss, park,
    plan::{self, Asked, Planning},
    protocol::{LeftOut, ProtocolStep},
    publishing::{self, RegistryError},
    record::{Event, EventError, Lane},
    registry::RegistryWatch,
    requests::OwnImages,
};

/// Default grace period between a removal and the start of its cascade, in milliseconds: 25 hours, longer than the
/// stream keeps records, so every change from before the removal has been read. Source: DynamoDB Streams keeps records
/// for 24 hours.
pub const SETTLE_MS: u64 = 25 * 3_600 * 1_000;

/// A batch that was handled.
#[derive(Clone, Debug)]
pub struct Handled {
    /// The decoded records, in their order; `None` for a record that did not decode.
    pub changes: Vec<Option<Change>>,
    /// What happened.
    pub account: Account,
    /// Sequence number of the lowest record that is not done; empty if that number cannot be read, which Lambda treats
    /// as a failure of the whole batch.
    pub failed_from: Option<String>,
    /// JSON of the state of the batch's tumbling window, which the response must return; `None` if there is no window.
    pub state: Option<String>,
}

/// Handles batches of stream records and keeps derived data correct.
pub struct Engine<S> {
    pub(crate) context: Context<S>,
}

impl<S: Store> Engine<S> {
    /// An engine that runs the derivations of these families, with the default ledger.
    pub fn new(
        schema: Arc<Schema>,
        catalogue: Arc<Catalogue>,
        families: Vec<Family>,
        store: S,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let context = Context {
            schema,
            catalogue,
            families,
            store,
            clock,
            ledger: LedgerKind::default(),
            limits: BrakeLimits::default(),
            settle_ms: SETTLE_MS,
            fan_out: FanOutLimits::default(),
            others_at_ms: AtomicU64::new(0),
            loss_put: Recent::within(loss::PUT_EVERY_MS),
            corrections: Corrections::default(),
            hour: AtomicU64::default(),
            spread: Spread::default(),
            hot: Recent::within(0),
            watch: None,
            left_out: LeftOut::default(),
        };
        Self { context }
    }

    /// Sets the kind of ledger.
    #[must_use]
    pub fn with_ledger(self, ledger: LedgerKind) -> Self {
        Self { context: Context { ledger, ..self.context } }
    }

    /// Sets the limits of the circuit breaker.
    #[must_use]
    pub fn with_limits(self, limits: BrakeLimits) -> Self {
        Self { context: Context { limits, ..self.context } }
    }

    /// Sets another grace period than [`SETTLE_MS`], in milliseconds.
    #[must_use]
    pub fn with_settling(self, settle_ms: u64) -> Self {
        Self { context: Context { settle_ms, ..self.context } }
    }

    /// Sets how much a fan-out does at once.
    #[must_use]
    pub fn with_fan_out(self, fan_out: FanOutLimits) -> Self {
        Self { context: Context { fan_out, ..self.context } }
    }

    /// Sets when a counter spreads, and over how many satellites.
    #[must_use]
    pub fn with_spread(self, limits: SpreadLimits) -> Self {
        Self { context: Context { spread: Spread::new(limits), ..self.context } }
    }

    /// Sets how long a counter is hot after it was counted, in milliseconds: the refresh that its record requests writes
    /// its displays meanwhile. 0, the default, if no counter is hot.
    #[must_use]
    pub fn with_hot_for(self, interval_ms: u64) -> Self {
        Self { context: Context { hot: Recent::within(interval_ms), ..self.context } }
    }

    /// Makes the engine check the registry before it handles a batch.
    #[must_use]
    pub fn watching(self, watch: RegistryWatch) -> Self {
        Self { context: Context { watch: Some(watch), ..self.context } }
    }

    /// Omits one step of the protocol, which breaks the guarantees. Only test builds have this method.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn without(self, step: Option<ProtocolStep>) -> Self {
        Self { context: Context { left_out: LeftOut(step), ..self.context } }
    }

    /// True if the engine takes this step. Only a test omits steps.
    #[must_use]
    pub fn takes(&self, step: ProtocolStep) -> bool {
        self.context.takes(step)
    }

    /// The engine's clock.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.context.clock.as_ref()
    }

    /// Handles a batch: the text of an event, as Lambda delivers it. The deadline is in milliseconds since the epoch.
    ///
    /// # Errors
    ///
    /// [`HandleError`], with nothing applied: the text is no event, the event names no shard, much of the batch cannot
    /// be read, or the derivations cannot be published in the registry.
    pub async fn handle(&self, event: &str, deadline_ms: u64) -> Result<Handled, HandleError> {
        let (context, standing) = (&self.context, OnceLock::new());
        let published = publishing::publish(context, deadline_ms).await?;
        let event = Event::parse(event)?;
        let patience = Patience::new(context.clock.as_ref(), deadline_ms).keeping(&standing);
        let mut session = open_session(context, &event.lane).ok_or(HandleError::NoShard)?;

        // The read runs while the records are decoded and planned, which takes about as long.
        let counter = Counter::new(context);
        let mut reading = maybe_done(Box::pin(counter.read_shard(session.shard_key(), patience)));
        if plan::first_counts(context, &event) {
            let _begun = poll!(&mut reading);
        }
        let records = event.decoded(&context.schema.layout);
        let batch = Batch { records, lane: event.lane, patience, occasion: Occasion::Delivery };
        let mut planned = plan::plan_all(context, &batch);
        let braked = brake::hold(context, &planned, &batch).await?;
        let mut account = Account { braked, ..Account::of(&planned) };
        account.commits.extend(published);
        let images = own_images(context, &batch);
        if planned.iter().any(Planning::counts) {
            (&mut reading).await;
            counter.open(&mut session, Pin::new(&mut reading).take_output().flatten(), &batch, &mut account).await;
        }

        let asks = planned.iter().any(Planning::asks);
        let first = planned.first().filter(|_| asks).map(|first| first.id().into_owned());
        let attempt = match &first {
            Some(id) => attempts::attempt(context, &batch, id, &mut account).await,
            None => Attempt::default(),
        };
        loss::see_loss(context, first.is_some(), &batch, &mut account).await;
        // Only watermarks rest on the order.
        let is_ordered = session.shard_key().is_some();
        if first.is_some() && is_ordered {
            report_order(event.state, &batch, &mut account);
        }
        pulse::see(context, &batch, &mut account).await;
        if attempt.is_singly() {
            for planning in one_by_one(&mut planned) {
                Box::pin(handle_one(context, planning, &attempt, &mut session, &images, &batch, &mut account)).await;
            }
        } else {
            let asked = plan::sorted(context, &mut planned);
            apply(context, asked, &mut session, &images, &batch, &mut account).await;
        }
        attempts::end(context, &attempt, &batch, &mut account).await;

        let failed_from = failed_from(context, &account, &batch);
        let state = event
            .state
            .map(|state| if is_ordered { next_state(state, failed_from.as_deref(), &batch) } else { state.to_owned() });
        account.standing = standing.get().cloned();
        let changes = batch.records.into_iter().map(|record| record.change.ok()).collect();
        Ok(Handled { changes, account, failed_from, state })
    }
}

/// The records in the order of the stream. They are handled one by one in that order, because a watermark passes all
/// records before it.
fn one_by_one<'a, 'b>(planned: &'a mut [Planning<'b>]) -> Vec<&'a mut Planning<'b>> {
    let mut ordered: Vec<&mut Planning<'b>> = planned.iter_mut().collect();
    ordered.sort_by_cached_key(|planning| Sequence::parse(planning.sequence_number()));
    ordered
}

// ---- Why nothing of a batch was handled ----

/// Why nothing of a batch was handled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The text is no batch.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The derivations of this function cannot be published in the registry.
    #[error("the derivations of this function cannot be published in the ledger's table, so nothing is handled")]
    Registry(#[from] RegistryError),
    /// The event does not name its shard, which the ledger of watermarks needs.
    #[error(
        "the event names no shard, which the ledger of watermarks needs: set TumblingWindowInSeconds on the event source \
         mapping, with ParallelizationFactor 1 and MaximumRetryAttempts -1, or use the ledger of receipts"
    )]
    NoShard,
    /// Much of the batch cannot be read.
    #[error(
        "{n_unreadable} of {n_items} items cannot be read, so nothing is applied; among them {}; mend the \
         deployment, or raise UNREADABLE_PERCENT_MAX if this is what the data is like", items.join("; ")
    )]
    Unreadable {
        /// Number of unreadable items.
        n_unreadable: usize,
        /// Number of items in the batch.
        n_items: usize,
        /// Some of them, by event and key, each with the reason.
        items: Vec<String>,
    },
}

// ---- Applying the effects of records, in the order of the steps ----

/// The ledger for a batch; `None` if the ledger is one of watermarks and the event names no shard.
pub(crate) fn open_session<'a, S: Store>(context: &'a Context<S>, lane: &Lane) -> Option<Session<'a>> {
    let counts = context.families.contains(&Family::Additive);
    // A function that counts nothing needs no ledger.
    if context.ledger == LedgerKind::Watermarks && counts {
        let has_own_mark = context.takes(ProtocolStep::MarkPerShard);
        return ShardSession::of(lane, has_own_mark).map(Session::Watermarks);
    }
    let by_position = context.takes(ProtocolStep::ReasonsByPosition);
    Some(Session::Receipts(Receipts::new(&context.schema.layout, by_position)))
}

/// Handles one record of a batch whose earlier attempts died.
async fn handle_one<S: Store>(
    context: &Context<S>,
    planning: &mut Planning<'_>,
    attempt: &Attempt,
    session: &mut Session<'_>,
    images: &OwnImages,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    if !planning.asks() {
        return;
    }
    let id = planning.id().into_owned();
    if attempt.is_deadly(&id) {
        planning.planned = Err(DIED.to_owned());
    }
    attempts::begin(context, attempt, &id, batch, account).await;
    let asked = plan::sorted(context, std::slice::from_mut(planning));
    apply(context, asked, session, images, batch, account).await;
}

/// Applies the planned effects of records.
pub(crate) async fn apply<S: Store>(
    context: &Context<S>,
    asked: Asked,
    session: &mut Session<'_>,
    images: &OwnImages,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    // Listing comes before counting: a change that was counted first would not be parked with its listing.
    listing::list(context, asked.listings, batch, account).await;
    // Boxed, so that the callers' futures stay small.
    Box::pin(Counter::new(context).add(asked.entries, session, batch, account)).await;
    for (position, cause) in asked.failed_looks {
        park::park(context, position, [], &cause, batch, account).await;
    }
    Box::pin(fan_out::look(context, asked.requests, Some(images), batch, account)).await;
    Box::pin(Worker::new(context).touch(asked.ground, batch, account)).await;
}

/// The images that the records of a batch have of their own items.
pub(crate) fn own_images<S: Store>(context: &Context<S>, batch: &Batch<'_>) -> OwnImages {
    let changes = batch.records.iter().map(|record| record.change.as_ref().ok());
    OwnImages::of(changes, !context.takes(ProtocolStep::ImageOfItsOwn))
}

pub(crate) fn failed_from<S: Store>(context: &Context<S>, account: &Account, batch: &Batch<'_>) -> Option<String> {
    let lowest = if context.takes(ProtocolStep::LowestUndone) {
        account.undone.first_key_value()
    } else {
        account.undone.last_key_value()
    };
    lowest.map(|(position, _)| {
        let record = batch.record(*position);
        record.and_then(|record| record.head.sequence_number.clone()).unwrap_or_default()
    })
}

// ---- The order of a shard's batches, as far as the state of a tumbling window shows it ----

/// Member of the state: the first and the last sequence number of the batch that was handled last, as texts. Lambda
/// keeps the state during a deployment, so it is stable.
const HANDLED: &str = "handled";

/// Counts and logs records that arrived behind later ones: a watermark may have passed them.
///
/// There is no mark of a possible loss: most such records were counted before, and nothing shows which were not.
fn report_order(state: Option<&str>, batch: &Batch<'_>, account: &mut Account) {
    let behind = out_of_order(state, batch);
    account.n_out_of_order = behind.len();
    if let Some(first) = behind.first() {
        tracing::warn!(
            n_records = behind.len(),
            sequence_number = first,
            shard = batch.lane.shard,
            "records may be lost: they arrived after later records of their shard"
        );
    }
}

/// The sequence numbers that arrive behind later ones: within the batch, or behind the batch that was handled last.
fn out_of_order<'a>(state: Option<&str>, batch: &'a Batch<'_>) -> Vec<&'a str> {
    let numbers: Vec<(&str, Sequence)> = numbers(batch).collect();
    let handled = state.and_then(|state| handled(&parsed(state)));
    let is_before = |first: Sequence| numbers.first().is_some_and(|(_, number)| *number < first);
    let mut latest = handled.filter(|[first, _]| is_before(*first)).map(|[_, last]| last);
    let mut behind = Vec::new();
    for (text, number) in numbers {
        if latest.is_some_and(|latest| number < latest) {
            behind.push(text);
        } else {
            latest = Some(number);
        }
    }
    behind
}

/// The state that the response returns. Records from `failed_from` on are not done.
fn next_state(state: &str, failed_from: Option<&str>, batch: &Batch<'_>) -> String {
    let end = failed_from.map(Sequence::parse);
    // A failed record without a readable number fails the whole batch.
    let is_done = |number: &Sequence| end.is_none_or(|end| end.is_some_and(|end| *number < end));
    let done: Vec<(&str, Sequence)> = numbers(batch).filter(|(_, number)| is_done(number)).collect();
    let first = done.iter().min_by_key(|(_, number)| *number);
    let last = done.iter().max_by_key(|(_, number)| *number);
    let (Some((first, _)), Some((last, _))) = (first, last) else { return state.to_owned() };
    let mut members = parsed(state);
    members.insert(HANDLED.to_owned(), json!([first, last]));
    Value::Object(members).to_string()
}

/// The members of a state; none if it is no object.
fn parsed(state: &str) -> Map<String, Value> {
    serde_json::from_str(state).unwrap_or_default()
}

fn handled(state: &Map<String, Value>) -> Option<[Sequence; 2]> {
    let numbers = state.get(HANDLED)?.as_array()?;
    let number = |at: usize| numbers.get(at)?.as_str().and_then(Sequence::parse);
    Some([number(0)?, number(1)?])
}

/// The readable sequence numbers of the batch, in the order of its records.
fn numbers<'a>(batch: &'a Batch<'_>) -> impl Iterator<Item = (&'a str, Sequence)> {
    batch.records.iter().filter_map(|record| {
        let text = record.head.sequence_number.as_deref()?;
        Some((text, Sequence::parse(text)?))
    })
}

//! Handling a batch: from the text of an event to the response for Lambda.
//!
//! *Keeps true*: every record of a batch is done, parked, refused, or at or behind the record that the response names.
//! A record that cannot be handled blocks no other record.

pub(crate) mod applying;
pub(crate) mod attempts;
pub mod brake;
mod order;

use std::{
    pin::Pin,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};

use derive::{catalogue::Catalogue, change::Change, family::Family, schema::Schema};
use futures::{future::maybe_done, poll};
use store::Store;

use crate::{
    account::Account,
    backoff::Patience,
    batch::attempts::Attempt,
    clock::Clock,
    context::{Context, Recent},
    corrections::Corrections,
    count::Counter,
    input::{Batch, Occasion},
    jobs::pulse,
    ledger::{LedgerKind, spread::Spread, watermarks::Sequence},
    limits::{BrakeLimits, FanOutLimits, SpreadLimits},
    loss,
    plan::{self, Planning},
    protocol::{LeftOut, ProtocolStep},
    publishing::{self, RegistryError},
    record::{EventError, event::Event},
    registry::RegistryWatch,
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
        let mut session = applying::open(context, &event.lane).ok_or(HandleError::NoShard)?;

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
        let images = applying::images(context, &batch);
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
            order::report(event.state, &batch, &mut account);
        }
        pulse::see(context, &batch, &mut account).await;
        if attempt.is_singly() {
            for planning in one_by_one(&mut planned) {
                Box::pin(applying::handle_one(
                    context,
                    planning,
                    &attempt,
                    &mut session,
                    &images,
                    &batch,
                    &mut account,
                ))
                .await;
            }
        } else {
            let asked = plan::sorted(context, &mut planned);
            applying::apply(context, asked, &mut session, &images, &batch, &mut account).await;
        }
        attempts::end(context, &attempt, &batch, &mut account).await;

        let failed_from = applying::failed_from(context, &account, &batch);
        let state = event.state.map(|state| {
            if is_ordered { order::next_state(state, failed_from.as_deref(), &batch) } else { state.to_owned() }
        });
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

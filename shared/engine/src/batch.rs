//! Handling a batch: from the text of an event to the response that Lambda is given.
//!
//! *Keeps true*: every record of a batch is done, parked, refused, or at or behind the record that the response names.
//! A record that cannot be handled stops nobody.

pub(crate) mod applying;
pub(crate) mod attempts;
pub mod brake;

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
    context::{Context, MarksPut},
    corrections::Corrections,
    count::Counter,
    input::{Batch, Occasion},
    jobs::pulse,
    ledger::{LedgerKind, watermarks::Sequence},
    limits::{BrakeLimits, FanOutLimits},
    loss,
    plan::{self, Planning},
    protocol::{LeftOut, ProtocolStep},
    publishing::{self, RegistryError},
    record::{EventError, event::Event},
    registry::RegistryWatch,
};

/// How long after a removal a cascade begins, in milliseconds: 25 hours, longer than a stream is kept, so that all that
/// was written before the removal has been seen. Source: DynamoDB Streams keeps records for 24 hours.
pub const SETTLE_MS: u64 = 25 * 3_600 * 1_000;

/// A batch that was handled.
#[derive(Clone, Debug)]
pub struct Handled {
    /// The records that decoded, in their order; `None` for one that did not.
    pub changes: Vec<Option<Change>>,
    /// What happened.
    pub account: Account,
    /// Sequence number of the lowest record that is not done; empty where even that could not be read, which Lambda
    /// takes for the whole batch.
    pub failed_from: Option<String>,
    /// JSON of the state of the batch's tumbling window, which must be given back; `None` where there was no window.
    pub state: Option<String>,
}

/// Brings derived data in step with the batches that it is given.
pub struct Engine<S> {
    pub(crate) context: Context<S>,
}

impl<S: Store> Engine<S> {
    /// An engine that runs the derivations of these families, with a ledger of receipts.
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
            loss_put: MarksPut::default(),
            corrections: Corrections::default(),
            watch: None,
            left_out: LeftOut::default(),
        };
        Self { context }
    }

    /// The same with this kind of ledger.
    #[must_use]
    pub fn with_ledger(self, ledger: LedgerKind) -> Self {
        Self { context: Context { ledger, ..self.context } }
    }

    /// The same with these limits.
    #[must_use]
    pub fn with_limits(self, limits: BrakeLimits) -> Self {
        Self { context: Context { limits, ..self.context } }
    }

    /// The same with another settling time than [`SETTLE_MS`], in milliseconds.
    #[must_use]
    pub fn with_settling(self, settle_ms: u64) -> Self {
        Self { context: Context { settle_ms, ..self.context } }
    }

    /// The same with a fan-out that does so much at once.
    #[must_use]
    pub fn with_fan_out(self, fan_out: FanOutLimits) -> Self {
        Self { context: Context { fan_out, ..self.context } }
    }

    /// The same that looks at the registry before it handles a batch.
    #[must_use]
    pub fn watching(self, watch: RegistryWatch) -> Self {
        Self { context: Context { watch: Some(watch), ..self.context } }
    }

    /// The same engine without a step of the protocol, which breaks the promise. Only a build for the tests has it.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn without(self, step: Option<ProtocolStep>) -> Self {
        Self { context: Context { left_out: LeftOut(step), ..self.context } }
    }

    /// Is this step taken? It is, except in a test that leaves it out.
    #[must_use]
    pub fn takes(&self, step: ProtocolStep) -> bool {
        self.context.takes(step)
    }

    /// The clock that the engine goes by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.context.clock.as_ref()
    }

    /// Handles a batch: the text of an event, as Lambda delivers it, before this deadline in milliseconds since the
    /// epoch.
    ///
    /// # Errors
    ///
    /// [`HandleError`], with nothing applied: it is no event, it lacks its shard, much of it cannot be read, or the
    /// derivations cannot be published in the registry.
    pub async fn handle(&self, event: &str, deadline_ms: u64) -> Result<Handled, HandleError> {
        let (context, standing) = (&self.context, OnceLock::new());
        let published = publishing::publish(context, deadline_ms).await?;
        let event = Event::parse(event)?;
        let patience = Patience::new(context.clock.as_ref(), deadline_ms).keeping(&standing);
        let mut session = applying::open(context, &event.lane).ok_or(HandleError::NoShard)?;

        // To decode and to plan takes about as long as this call, so it is under way meanwhile.
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
            let asked = plan::sorted(context, &mut planned, |name| session.n_shards(name), &batch);
            applying::apply(context, asked, &mut session, &images, &batch, &mut account).await;
        }
        attempts::end(context, &attempt, &batch, &mut account).await;

        let state = event.state.map(str::to_owned);
        let failed_from = applying::failed_from(context, &account, &batch);
        account.standing = standing.get().cloned();
        let changes = batch.records.into_iter().map(|record| record.change.ok()).collect();
        Ok(Handled { changes, account, failed_from, state })
    }
}

/// The records in the order of the stream, in which they go one by one: a watermark passes what is before it.
fn one_by_one<'a, 'b>(planned: &'a mut [Planning<'b>]) -> Vec<&'a mut Planning<'b>> {
    let mut ordered: Vec<&mut Planning<'b>> = planned.iter_mut().collect();
    ordered.sort_by_cached_key(|planning| Sequence::parse(planning.sequence_number()));
    ordered
}

// ---- Why nothing of a batch was handled ----

/// A batch of which nothing was handled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// It is no batch.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The derivations of this function cannot be published in the registry.
    #[error("the derivations of this function cannot be published in the ledger's table, so nothing is handled")]
    Registry(#[from] RegistryError),
    /// The ledger of watermarks does not know which shard it is of.
    #[error(
        "the event names no shard, which the ledger of watermarks needs: set TumblingWindowInSeconds on the event source \
         mapping, with ParallelizationFactor 1 and MaximumRetryAttempts -1, or use the ledger of receipts"
    )]
    NoShard,
    /// Much of it cannot be read.
    #[error(
        "{n_unreadable} of {n_items} items cannot be read, so nothing is applied; among them {}; mend the \
         deployment, or raise UNREADABLE_PERCENT_MAX if this is what the data is like", items.join("; ")
    )]
    Unreadable {
        /// How many cannot be read.
        n_unreadable: usize,
        /// Of how many.
        n_items: usize,
        /// Some of them, by event and key, each with the reason.
        items: Vec<String>,
    },
}

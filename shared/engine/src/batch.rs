//! Handling a batch: from the text of an event to the response that Lambda is given.
//!
//! *Keeps true*: every record of a batch is done, parked, refused, or at or behind the record that the response names.
//! A record that cannot be handled stops nobody.

pub(crate) mod attempts;
pub mod brake;
pub mod caught;
pub mod handle_error;
pub(crate) mod planning;
pub mod replay;

use std::sync::{Arc, atomic::AtomicU64};

use derive::{catalogue::Catalogue, change::Change, derivation::Family, schema::Schema};
use store::Store;

use crate::{
    account::Account,
    account::loss,
    backoff::Patience,
    batch::attempts::{Attempt, DIED},
    batch::brake::Limits,
    batch::handle_error::HandleError,
    batch::planning::{Asked, Planning},
    clock::Clock,
    count::Session,
    fan_out,
    ledger::{
        Ledger, LedgerKind,
        checkpoint::{Checkpoint, padded},
        receipts::Receipts,
    },
    look::own_image::OwnImages,
    protocol::{LeftOut, ProtocolStep},
    record::Decoded,
    record::event::{Event, Lane},
    registry::telling::Looking,
};

/// How long after a removal a cascade begins, in milliseconds: 25 hours, longer than a stream is kept, so that all that
/// was written before the removal has been seen. Source: DynamoDB Streams keeps records for 24 hours.
pub const SETTLE_MS: u64 = 25 * 3_600 * 1_000;

/// Brings derived data in step with the batches that it is given.
pub struct Engine<S> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) families: Vec<Family>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: LedgerKind,
    pub(crate) limits: Limits,
    pub(crate) settle_ms: u64,
    pub(crate) fan_out: fan_out::Limits,
    /// When this engine last did something but for jobs, in milliseconds since the epoch.
    pub(crate) others_at_ms: AtomicU64,
    pub(crate) loss_put: loss::Put,
    /// How it looks at the registry; `None` where it does not.
    pub(crate) looking: Option<Looking>,
    pub(crate) left_out: LeftOut,
}

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

/// A batch while it is handled.
pub(crate) struct Batch<'a> {
    /// Its records, each decoded once.
    pub(crate) records: Vec<Decoded<'a>>,
    /// Where they come from.
    pub(crate) lane: Lane,
    /// The time that there is.
    pub(crate) patience: Patience<'a>,
    /// Why it is handled.
    pub(crate) occasion: Occasion,
}

/// Why a batch is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The stream delivers it, or a replay does.
    Delivery,
    /// It is one record that was parked.
    Redrive,
    /// It is no record at all: something is searched for again.
    Again,
}

impl<'a> Batch<'a> {
    /// One without records: something is looked at that no record asks for.
    pub(crate) fn without_records(patience: Patience<'a>) -> Self {
        Self { records: Vec::new(), lane: Lane::default(), patience, occasion: Occasion::Again }
    }

    /// A parked record, which is redriven.
    pub(crate) fn parked(record: Decoded<'a>, lane: &Lane, patience: Patience<'a>) -> Self {
        Self { records: vec![record], lane: lane.clone(), patience, occasion: Occasion::Redrive }
    }

    /// When its first record's write was made, in milliseconds since the epoch.
    pub(crate) fn created_ms(&self) -> Option<u64> {
        self.records.first().and_then(|record| record.head.created_ms)
    }
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
        Self {
            schema,
            catalogue,
            families,
            store,
            clock,
            ledger: LedgerKind::Receipts,
            limits: Limits::default(),
            settle_ms: SETTLE_MS,
            fan_out: fan_out::Limits::default(),
            others_at_ms: AtomicU64::new(0),
            loss_put: loss::Put::default(),
            looking: None,
            left_out: LeftOut::default(),
        }
    }

    /// The same with this kind of ledger.
    #[must_use]
    pub fn with_ledger(self, ledger: LedgerKind) -> Self {
        Self { ledger, ..self }
    }

    /// The same with these limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same with another settling time than [`SETTLE_MS`], in milliseconds.
    #[must_use]
    pub fn with_settling(self, settle_ms: u64) -> Self {
        Self { settle_ms, ..self }
    }

    /// The same with a fan-out that does so much at once.
    #[must_use]
    pub fn with_fan_out(self, fan_out: fan_out::Limits) -> Self {
        Self { fan_out, ..self }
    }

    /// The same that looks at the registry before it handles a batch.
    #[must_use]
    pub fn looking(self, looking: Looking) -> Self {
        Self { looking: Some(looking), ..self }
    }

    /// Is this step taken? It is, except in a test that leaves it out.
    #[must_use]
    pub fn takes(&self, step: ProtocolStep) -> bool {
        self.left_out.takes(step)
    }

    /// The clock that the engine goes by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Handles a batch: the text of an event, as Lambda delivers it, before this deadline in milliseconds since the
    /// epoch.
    ///
    /// # Errors
    ///
    /// [`HandleError`], with nothing applied: it is no event, it lacks its shard, much of it cannot be read, or the
    /// registry cannot be told which derivations there are.
    pub async fn handle(&self, event: &str, deadline_ms: u64) -> Result<Handled, HandleError> {
        let told = self.tell(deadline_ms).await?;
        let event = Event::parse(&self.schema.layout, event)?;
        let patience = Patience { clock: self.clock.as_ref(), deadline_ms };
        let batch = Batch { records: event.records, lane: event.lane, patience, occasion: Occasion::Delivery };
        let mut session = Session::new(self.open(&batch)?);
        let mut planned = self.plan_all(&batch);
        self.brake(&planned, &batch)?;
        let mut account = Account::of(&planned);
        account.commits.extend(told);
        let images = self.images(&batch);

        let asks = planned.iter().any(Planning::asks);
        let first = planned.first().filter(|_| asks).map(|first| first.id().into_owned());
        let attempt = match &first {
            Some(id) => self.attempt(&batch, id, &mut account).await,
            None => Attempt::default(),
        };
        self.see_loss(first.is_some(), &batch, &mut account).await;
        if attempt.is_singly() {
            for planning in one_by_one(&mut planned, session.ledger.as_ref()) {
                self.handle_one(planning, &attempt, &mut session, &images, &batch, &mut account).await;
            }
        } else {
            let asked = self.sorted(&mut planned, &batch);
            self.apply(asked, &mut session, &images, &batch, &mut account).await;
        }
        self.end(&attempt, &batch, &mut account).await;

        let state = event.state.map(str::to_owned);
        let failed_from = self.failed_from(&account, &batch);
        let changes = batch.records.into_iter().map(|record| record.change.ok()).collect();
        Ok(Handled { changes, account, failed_from, state })
    }

    /// The ledger, as a batch sees it.
    pub(crate) fn open<'a>(&'a self, batch: &Batch<'_>) -> Result<Box<dyn Ledger + 'a>, HandleError> {
        let lane = &batch.lane;
        match (self.ledger, &lane.shard) {
            (LedgerKind::Checkpoint, Some(shard)) => Ok(Box::new(Checkpoint::new(lane.stream_arn.as_deref(), shard))),
            // A function that counts nothing asks the ledger nothing.
            (LedgerKind::Checkpoint, None) if self.families.contains(&Family::Additive) => Err(HandleError::NoShard),
            _ => Ok(Box::new(Receipts::new(&self.schema.layout, self.takes(ProtocolStep::ReasonsByPosition)))),
        }
    }

    /// Handles one record of a batch that died before.
    async fn handle_one(
        &self,
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
        self.begin(attempt, &id, batch, account).await;
        let asked = self.sorted(std::slice::from_mut(planning), batch);
        self.apply(asked, session, images, batch, account).await;
    }

    /// Applies what records ask for.
    pub(crate) async fn apply(
        &self,
        asked: Asked,
        session: &mut Session<'_>,
        images: &OwnImages,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        // Boxed, since a caller's future would otherwise hold all of theirs in place.
        Box::pin(self.add(asked.entries, session, batch, account)).await;
        for (position, cause) in asked.failed_looks {
            self.park(position, [], &cause, batch, account).await;
        }
        Box::pin(self.look(asked.bells, images, batch, account)).await;
        Box::pin(self.touch(asked.ground, batch, account)).await;
        self.list(asked.listings, batch.patience, account).await;
    }

    /// What the records of a batch show of their own items.
    pub(crate) fn images(&self, batch: &Batch<'_>) -> OwnImages {
        let changes = batch.records.iter().map(|record| record.change.as_ref().ok());
        OwnImages::of(changes, !self.takes(ProtocolStep::ImageOfItsOwn))
    }

    pub(crate) fn failed_from(&self, account: &Account, batch: &Batch<'_>) -> Option<String> {
        let lowest = if self.takes(ProtocolStep::LowestUndone) {
            account.undone.first_key_value()
        } else {
            account.undone.last_key_value()
        };
        lowest.map(|(position, _)| {
            let record = batch.records.get(*position);
            record.and_then(|record| record.head.sequence_number.clone()).unwrap_or_default()
        })
    }
}

/// The records in the order in which they go one by one: as they came, or in the order of the stream where one that is
/// passed is taken for in.
fn one_by_one<'a, 'b>(planned: &'a mut [Planning<'b>], ledger: &dyn Ledger) -> Vec<&'a mut Planning<'b>> {
    let mut ordered: Vec<&mut Planning<'b>> = planned.iter_mut().collect();
    if ledger.is_ordered() {
        ordered.sort_by_cached_key(|planning| padded(planning.sequence_number()));
    }
    ordered
}

//! Applies the effects of records, in the order of the steps.

use derive::family::Family;
use store::Store;

use crate::{
    account::Account,
    batch::attempts::{self, Attempt},
    context::Context,
    count::{
        Counter,
        excepted::DIED,
        session::{Session, ShardSession},
    },
    fan_out::for_batch,
    input::Batch,
    jobs::ground::Worker,
    ledger::{LedgerKind, Receipts},
    look::listing,
    park,
    plan::{self, Asked, Planning},
    protocol::ProtocolStep,
    record::event::Lane,
    requests::OwnImages,
};

/// The ledger for a batch; `None` if the ledger is one of watermarks and the event names no shard.
pub(crate) fn open<'a, S: Store>(context: &'a Context<S>, lane: &Lane) -> Option<Session<'a>> {
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
pub(crate) async fn handle_one<S: Store>(
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
    Box::pin(for_batch::look(context, asked.requests, Some(images), batch, account)).await;
    Box::pin(Worker::new(context).touch(asked.ground, batch, account)).await;
}

/// The images that the records of a batch have of their own items.
pub(crate) fn images<S: Store>(context: &Context<S>, batch: &Batch<'_>) -> OwnImages {
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

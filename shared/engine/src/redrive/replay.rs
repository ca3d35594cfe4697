//! Replay: the engine handles captured records again, or records that were never delivered.
//!
//! *Keeps true*: a counted change changes nothing, whatever window is replayed, in whatever order and however often.
//! The engine refuses a change that the ledger cannot decide, and names the targets to repair.
//!
//! Under *receipts*, a replayed change is applied if it has no receipt, and refused behind the horizon. Under
//! *watermarks*, no replayed change is ever applied: the counters' watermarks show that it is counted, or that the
//! stream will still deliver it. In two cases they show neither, and the change is refused: Lambda dropped the record,
//! and others may have passed it before it was counted; or the record is above a watermark, and the stream no longer
//! has it.
//!
//! Refreshes are requested under both ledgers, because a refresh is harmless.

use derive::coalesce::Amount;
use store::Store;

use crate::{
    account::{Account, undone},
    backoff::{Patience, describe},
    batch::{Engine, HandleError, Handled, applying},
    clock::age_ms,
    count::{
        Counter,
        recount::refused,
        session::{Session, ShardSession},
        spread,
    },
    input::{Batch, Occasion},
    ledger::watermarks::{Sequence, has_passed, mark_of},
    plan::{self, CountEntry, Planning},
    protocol::ProtocolStep,
    record::event::{Event, Lane},
};

/// How long a stream keeps a record, in milliseconds. Source: DynamoDB developer guide, "Change data capture for
/// DynamoDB Streams", 24 hours.
const STREAM_KEPT_MS: u64 = 24 * 3600 * 1000;

/// Where replayed records come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Stream and shard, used if the event itself does not state them.
    pub lane: Lane,
    /// True if the event source mapping dropped the records, so that the stream does not deliver them.
    pub was_given_up: bool,
}

impl<S: Store> Engine<S> {
    /// Replays the records of an event.
    ///
    /// # Errors
    ///
    /// [`HandleError`], with nothing applied: the text is no event, or its shard is unknown, which watermarks need.
    pub async fn replay(&self, event: &str, origin: &Origin, deadline_ms: u64) -> Result<Handled, HandleError> {
        let event = Event::parse(event)?;
        let records = event.decoded(&self.context.schema.layout);
        let lane = Lane {
            stream_arn: event.lane.stream_arn.or_else(|| origin.lane.stream_arn.clone()),
            shard: event.lane.shard.or_else(|| origin.lane.shard.clone()),
        };
        let context = &self.context;
        let patience = Patience::new(context.clock.as_ref(), deadline_ms);
        let batch = Batch { records, lane, patience, occasion: Occasion::Delivery };
        let mut session = applying::open(context, &batch.lane).ok_or(HandleError::NoShard)?;
        let mut planned = plan::plan_all(context, &batch);
        let mut account = Account::of(&planned);
        let images = applying::images(context, &batch);
        // The file may be damaged while the stream is not. If such a record were parked, the intact record from the
        // stream would count as parked.
        let counter = Counter::new(context);
        for planning in planned.extract_if(.., |planning| planning.record.change.is_err()) {
            counter.refuse_unreadable(&planning, patience, &mut account).await;
        }
        if planned.iter().any(Planning::counts) {
            let read = counter.read_shard(session.shard_key(), patience).await;
            counter.open(&mut session, read, &batch, &mut account).await;
        }
        let mut asked = plan::sorted(context, &mut planned);
        if let Session::Watermarks(shard) = &session
            && context.takes(ProtocolStep::ReplayBehind)
        {
            counter.judge(std::mem::take(&mut asked.entries), shard, origin, &batch, &mut account).await;
        }
        applying::apply(context, asked, &mut session, &images, &batch, &mut account).await;
        let failed_from = applying::failed_from(context, &account, &batch);
        let changes = batch.records.into_iter().map(|record| record.change.ok()).collect();
        Ok(Handled { changes, account, failed_from, state: None })
    }
}

impl<S: Store> Counter<'_, S> {
    /// Refuses a record that does not decode, and lists that it may count anywhere.
    async fn refuse_unreadable(&self, planning: &Planning<'_>, patience: Patience<'_>, account: &mut Account) {
        let Some((change, why)) = planning.unreadable() else { return };
        // A change that cannot be listed is reported as not done.
        let _noted = self.refuse(&change, &why, patience, account).await;
    }

    /// Reports for each change what the counters' watermarks show about it.
    async fn judge(
        &self,
        entries: Vec<CountEntry>,
        shard: &ShardSession,
        origin: &Origin,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let amounts = || entries.iter().flat_map(|entry| &entry.change.amounts);
        let at = |amount: &Amount| (self.counted_at(amount, shard), shard.mark.clone());
        let held = spread::marked(self.context, amounts().map(at).collect(), batch.patience).await;
        let held = held.map_err(|error| describe(&error));
        let held = match shard.stopped.clone().map_or(held, Err) {
            Ok(held) => held,
            Err(why) => return undone(account, entries.iter().map(|entry| entry.change.position), &why),
        };
        for CountEntry { change, created_ms, .. } in entries {
            let age_ms = age_ms(created_ms, self.context.clock.now_ms());
            let sequence = Sequence::parse(&change.sequence_number);
            let is_passed = |amount: &Amount| {
                let mark = held.get(&at(amount)).and_then(|item| mark_of(item, &shard.mark));
                mark.zip(sequence).is_some_and(|(mark, sequence)| has_passed(mark, sequence))
            };
            let is_in = shard.exceptions.excepts(&change.id, None) || change.amounts.iter().all(is_passed);
            let why = match (is_in, origin.was_given_up) {
                (true, false) => {
                    account.n_duplicates += 1;
                    continue;
                }
                (true, true) => "Lambda dropped it, and later records of its shard are counted",
                (false, true) => "Lambda dropped it, and no later record of its shard is counted",
                (false, false) if age_ms.is_some_and(|age_ms| age_ms < STREAM_KEPT_MS) => {
                    account.refused.push(refused(
                        &self.context.catalogue,
                        &change,
                        "it is not counted, and the stream still has it: nothing to do, if its shard is right and the function has \
                         not passed it",
                    ));
                    continue;
                }
                (false, false) => "it is not counted, and the stream does not have it any more",
            };
            // A change that cannot be listed is reported as not done.
            let _noted = self.refuse(&change, why, batch.patience, account).await;
        }
    }
}

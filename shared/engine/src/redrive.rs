//! Redrive: applies a parked change after its cause is corrected.
//!
//! *Keeps true*: a parked change is applied exactly once, or stays parked. For the additive family, one transaction
//! deletes the parked items and applies the effects, on the condition that the change is still parked. So two redrives
//! at once, or one whose response was lost, apply it once. For a level-triggered change, the engine refreshes its items
//! and then deletes it; doing so twice is harmless.
//!
//! A parked change has its proof in the ledger, so its redelivered record adds nothing beside the redrive. For a change
//! that is parked for one counter, the proof is the counter's watermark. The redrive sets this watermark if it is
//! missing because the operator deleted the counter. A change is either parked or counted, so a redrive needs no
//! horizon.
//!
//! # Mark
//!
//! The watermark of a counter that a change is parked for.
//!
//! *Keeps true*: a change that was parked for one counter adds nothing there when its record is redelivered. The
//! counter's watermark has passed it, but an operator may delete the whole counter to correct it; so the redrive sets
//! the watermark again.
//!
//! # Unsure
//!
//! Redrive of changes that may already be counted, because an invocation may have counted them before they were parked.
//!
//! *Keeps true*: a redriven change counts once. What cannot be decided is listed for a recount, not guessed. The
//! targets that may have counted it are refreshed again, because the invocation may have died before it wrote the
//! display.
//!
//! # Replay
//!
//! In a replay the engine handles captured records again, or records that were never delivered.
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

pub mod discard;
pub mod waiting;

use derive::{
    bucket::StoredBuckets,
    coalesce::{Amount, Counted, amount_writes, buckets},
    family::Family,
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Transaction, Write},
};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::{Store, TransactOutcome, rejected, unheld};

use crate::{
    account::{Account, Target, undone},
    backoff::{GaveUp, Patience, Tries, describe},
    batch::{self, Engine, HandleError, Handled},
    clock::age_ms,
    context::Context,
    count::{Counter, Session, ShardSession, marked, refused, unsendable},
    fan_out,
    input::{Batch, Occasion},
    jobs::Worker,
    ledger::watermarks::{HORIZON_MS, Sequence, has_passed, mark_name, mark_of},
    look::listing,
    park::{ExceptionKind, ParkedChange},
    plan::{self, Asked, CountEntry, Planning},
    protocol::ProtocolStep,
    reading,
    record::{Decoded, Event, Lane},
};

/// Minimum age of an exception before its redrive, in milliseconds: the life of an invocation that read its shard's
/// exceptions before, and a minute for clocks that differ. Source: Lambda quotas, 15 minutes.
const INVOCATION_MS: u64 = 16 * 60 * 1000;

/// How long after the end of such an invocation its last call may arrive, in milliseconds: a quarter of an hour, as for
/// watermarks.
const LATE_MS: u64 = 15 * 60 * 1000;

/// How a redrive ended.
#[derive(Clone, Debug)]
pub enum Redriven {
    /// It is applied, and no longer parked.
    Applied(Box<Account>),
    /// It was no longer parked: another redrive applied it, or a call of this redrive whose response was lost.
    Gone,
    /// It still cannot be applied, and stays parked.
    Still {
        /// Why.
        cause: String,
    },
}

/// Applies a parked change, and deletes it.
pub(crate) async fn redrive<S: Store>(
    context: &Context<S>,
    parked: &ParkedChange,
    deadline_ms: u64,
) -> Result<Redriven, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    if let Some(minutes) = minutes_left(context, parked) {
        let cause = format!(
            "an invocation that began before it was parked may still count it: redrive it in {minutes} minutes"
        );
        return Ok(Redriven::Still { cause });
    }
    let record = match parked.record() {
        Ok(record) => record,
        Err(why) => return Ok(Redriven::Still { cause: format!("what is parked is no record: {why}") }),
    };
    let batch = Batch::parked(Decoded::of(&context.schema.layout, &record), &parked.lane, patience);
    let mut asked = match plan::asked_of(context, parked.family, &batch) {
        Ok(asked) => asked,
        Err(cause) => return Ok(Redriven::Still { cause }),
    };
    match parked.family {
        Family::Additive => {
            let (listings, mut account) = (std::mem::take(&mut asked.listings), Account::default());
            listing::list(context, listings, &batch, &mut account).await;
            if let Some(cause) = account.undone.pop_first().map(|(_, cause)| cause) {
                return Ok(Redriven::Still { cause });
            }
            let mut changes: Vec<_> = asked.entries.into_iter().map(|entry| entry.change).collect();
            for change in &mut changes {
                change.amounts.retain(|amount| parked.is_for(amount));
                if let Some(counter) = &parked.counter {
                    // Its redelivered record reaches this counter.
                    change.amounts.iter_mut().for_each(|amount| amount.item.clone_from(counter));
                }
            }
            if parked.exception == Some(ExceptionKind::Unsure)
                && context.takes(ProtocolStep::LeaveUnsure)
                && let Err(cause) = leave_unsure(context, &mut changes, &batch, &mut account).await
            {
                return Ok(Redriven::Still { cause });
            }
            Ok(match redrive_once(context, parked, &changes, patience).await? {
                Redriven::Applied(_) => Redriven::Applied(Box::new(account)),
                other => other,
            })
        }
        Family::LevelTriggered => redrive_look(context, parked, asked, &batch).await,
    }
}

/// Minutes until no invocation that began before a change was parked can count it any more; `None` if none can now.
fn minutes_left<S: Store>(context: &Context<S>, parked: &ParkedChange) -> Option<u64> {
    let age_ms = context.clock.now_ms().saturating_sub(parked.parked_at_ms);
    let late_ms = if context.takes(ProtocolStep::RedriveWaitLate) { LATE_MS } else { 0 };
    let left_ms = INVOCATION_MS.saturating_add(late_ms).saturating_sub(age_ms);
    let waits = parked.exception.is_some() && left_ms > 0 && context.takes(ProtocolStep::RedriveWait);
    waits.then(|| left_ms.div_ceil(60_000))
}

async fn redrive_once<S: Store>(
    context: &Context<S>,
    parked: &ParkedChange,
    changes: &[Counted],
    patience: Patience<'_>,
) -> Result<Redriven, GaveUp> {
    let mark = mark(context, parked);
    let keys = if mark.is_some() { parked.counter.iter().cloned().collect() } else { buckets(changes) };
    let counter = Counter::new(context);
    let mut tries = Tries::default();
    loop {
        let stored = match patience.call(|| counter.stored_buckets(&keys)).await {
            Ok(stored) => stored,
            Err(GaveUp::Refused(error)) => return Ok(Redriven::Still { cause: describe(&error) }),
            Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => return Err(error),
        };
        let amounts = amount_writes(&context.schema, changes, &stored).into_iter().map(|(write, _)| write);
        let amounts = amounts.map(|write| mark.iter().fold(write, |write, mark| mark.set_by(write, &stored)));
        let deletions = parked.deletions(Some(Guard::present(Purpose::StillParked)));
        let transaction = match Transaction::new(deletions.chain(amounts).collect()) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Redriven::Still { cause: unsendable(&error) }),
        };
        let reasons = match patience.call(|| context.store.transact(&transaction)).await {
            Ok(TransactOutcome::Done { .. }) => return Ok(Redriven::Applied(Box::default())),
            Ok(TransactOutcome::Cancelled { reasons }) => reasons,
            Err(GaveUp::Refused(error)) => return Ok(Redriven::Still { cause: describe(&error) }),
            Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => return Err(error),
        };
        // The guard of a bucket fails if another writer changed the bucket since it was read; the bucket is then read
        // again.
        if unheld(&transaction, &reasons)
            .any(|write| write.guard.as_ref().is_some_and(|guard| guard.purpose == Purpose::StillParked))
        {
            return Ok(Redriven::Gone);
        }
        let foreign = patience.in_time(counter.have_their_keys(unheld(&transaction, &reasons))).await;
        if let Some(cause) = rejected(&reasons).or(foreign.ok().flatten()) {
            return Ok(Redriven::Still { cause });
        }
        if !patience.wait(&mut tries).await {
            return Err(GaveUp::OutOfTime { last: None });
        }
    }
}

async fn redrive_look<S: Store>(
    context: &Context<S>,
    parked: &ParkedChange,
    asked: Asked,
    batch: &Batch<'_>,
) -> Result<Redriven, GaveUp> {
    let mut account = Account::default();
    Box::pin(fan_out::look(context, asked.requests, None, batch, &mut account)).await;
    Box::pin(Worker::new(context).touch(asked.ground, batch, &mut account)).await;
    listing::list(context, asked.listings, batch, &mut account).await;
    // A refresh that fails again has parked the change again, under the same key.
    if let Some(again) = account.parked.into_iter().next() {
        return Ok(Redriven::Still { cause: again.cause });
    }
    if let Some(cause) = account.undone.into_values().next() {
        return Ok(Redriven::Still { cause });
    }
    for write in parked.deletions(None) {
        batch.patience.call(|| context.store.write(&write)).await?;
    }
    Ok(Redriven::Applied(Box::new(Account { parked: Vec::new(), undone: [].into(), ..account })))
}

// ---- The watermark of a counter that a change is parked for ----

/// The watermark that the parking of a change for one counter set.
struct ParkedMark {
    name: String,
    sequence: Sequence,
    now_ms: u64,
}

impl ParkedMark {
    /// The write of the counter, which also sets the watermark if the counter lacks it or has a lower one.
    fn set_by(&self, mut write: Write, stored: &StoredBuckets) -> Write {
        let stored = stored.get(&write.key).and_then(|item| mark_of(item, &self.name));
        if let Action::Update(update) = &mut write.action
            && !stored.is_some_and(|mark| has_passed(mark, self.sequence))
        {
            update.set.insert(self.name.clone(), self.sequence.mark(self.now_ms));
            let guard = write.guard.get_or_insert_with(|| Guard { purpose: Purpose::Watermark, asks: Vec::new() });
            guard.asks.push(Ask::LacksOrBelow(self.name.clone(), self.sequence.bound(true)));
        }
        write
    }
}

/// The watermark that the parking of a change for one counter set.
fn mark<S: Store>(context: &Context<S>, parked: &ParkedChange) -> Option<ParkedMark> {
    // Only watermarks park a change for one counter.
    let is_marked = parked.exception.is_none() && parked.counter.is_some();
    let is_marked = is_marked && context.takes(ProtocolStep::RedriveMark);
    let sequence = Sequence::parse(&parked.sequence_number).filter(|_| is_marked)?;
    Some(ParkedMark { name: mark_name(&parked.lane)?, sequence, now_ms: context.clock.now_ms() })
}

// ---- unsure ----

/// Removes from changes the amounts that their counters may already count, and lists these for a recount. A counter
/// does not count a change if its watermark is below the change; above, another change may have moved it there. A
/// counter without the watermark does not count a change that is so young that no watermark of it can have been
/// removed.
async fn leave_unsure<S: Store>(
    context: &Context<S>,
    changes: &mut [Counted],
    batch: &Batch<'_>,
    account: &mut Account,
) -> Result<(), String> {
    let mark = mark_name(&batch.lane).unwrap_or_default();
    let age_ms = batch.age_ms(context.clock.now_ms());
    let is_young = age_ms.is_some_and(|age_ms| age_ms < HORIZON_MS);
    let is_young = is_young || !context.takes(ProtocolStep::YoungWithoutMark);
    for change in changes {
        let (mut sure, mut unsure) = (Vec::new(), Vec::new());
        for amount in std::mem::take(&mut change.amounts) {
            let stored = counted_on(context, &amount.item, batch.patience).await.map_err(|error| describe(&error))?;
            let sequence = Sequence::parse(&change.sequence_number);
            let is_passed = |mark: &[u8]| sequence.is_none_or(|sequence| has_passed(mark, sequence));
            let marks: Vec<&[u8]> = stored.iter().filter_map(|item| mark_of(item, &mark)).collect();
            let is_unsure = if marks.is_empty() { !is_young } else { marks.into_iter().any(is_passed) };
            if !is_unsure {
                sure.push(amount);
                continue;
            }
            let shown = Counter::new(context).leave_to_their_records(&stored, batch.patience).await;
            shown.map_err(|error| describe(&error))?;
            unsure.push(amount);
        }
        change.amounts = sure;
        if !unsure.is_empty() {
            let why = "it was parked while an invocation may have counted it, and its counters' watermarks have passed it or are gone";
            let unsure = Counted { amounts: unsure, ..change.clone() };
            Counter::new(context).refuse(&unsure, why, batch.patience, account).await?;
        }
    }
    Ok(())
}

/// A counter's home and satellites, or a bucket. At most one of them has the watermark of a given stream shard.
async fn counted_on<S: Store>(context: &Context<S>, key: &Key, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
    let counter = CounterKey::parse(key).filter(|_| context.takes(ProtocolStep::AsksSatellites));
    let Some(counter) = counter else {
        return Ok(context.item(Table::Main, key, patience).await?.into_iter().collect());
    };
    let target = Target { derivation: counter.derivation, item: counter.target };
    Ok(reading::counters_of(context, &target, patience).await?.into_values().collect())
}

// ---- Replay: captured records again, or records that were never delivered ----

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
        let mut session = batch::open_session(context, &batch.lane).ok_or(HandleError::NoShard)?;
        let mut planned = plan::plan_all(context, &batch);
        let mut account = Account::of(&planned);
        let images = batch::own_images(context, &batch);
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
        batch::apply(context, asked, &mut session, &images, &batch, &mut account).await;
        let failed_from = batch::failed_from(context, &account, &batch);
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
        let stored = marked::marked(self.context, amounts().map(at).collect(), batch.patience).await;
        let stored = stored.map_err(|error| describe(&error));
        let stored = match shard.stopped.clone().map_or(stored, Err) {
            Ok(stored) => stored,
            Err(why) => return undone(account, entries.iter().map(|entry| entry.change.position), &why),
        };
        for CountEntry { change, created_ms, .. } in entries {
            let age_ms = age_ms(created_ms, self.context.clock.now_ms());
            let sequence = Sequence::parse(&change.sequence_number);
            let is_passed = |amount: &Amount| {
                let mark = stored.get(&at(amount)).and_then(|item| mark_of(item, &shard.mark));
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

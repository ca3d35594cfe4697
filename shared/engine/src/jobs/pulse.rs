//! The pulse is a heartbeat: an item that the sweep writes at each run. Its record shows that the functions are at
//! work.
//!
//! *Keeps true*: a cascade that relies on heartbeats begins only while a function of level-triggered derivations has
//! handled one lately, and has done so since before the wait began, or for the grace period. A function that handles a
//! heartbeat after 20 hours without one first writes the [mark of a possible loss](crate::loss), which also blocks
//! cascades.
//!
//! *Why it is enough*: a disabled mapping or a failing function handles no heartbeat. When it works again, its first
//! heartbeat shows the length of the interruption. A shard that is behind while others are not delivers old batches,
//! and these leave the mark before the stream drops later records.
//!
//! *Cheap*: a heartbeat is one write, one record and one ledger write, however much waits. A table without cascades has
//! none.
//!
//! *Example*: the application moves a post by a delete and a put, and the mapping is disabled between the two. There
//! are no further writes, so no late batch will show it. A day later the sweep finds that the last heartbeat was
//! handled 25 hours ago, so the post's comments stay. After the mapping is enabled, a function handles the next
//! heartbeat, and the gap leaves the mark until `ripple verify` has found the missing mirror.

use derive::{
    family::Family,
    kind::Shape,
    position::RecordAt,
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    job::PARTITION,
    key::Key,
    layout::Layout,
};
use store::{Outcome, Store};

use crate::{
    account::Account,
    attribute::{all, n, number, s},
    backoff::{GaveUp, Patience, describe},
    context::Context,
    input::Batch,
    ledger::ledger_item,
    loss::{self, POSSIBLE_LOSS_MS},
    protocol::ProtocolStep,
    record::Decoded,
};

/// Maximum age of the last handled heartbeat when a cascade begins, in milliseconds: two hours, eight times the
/// interval between two sweeps.
pub const PULSE_MS_MAX: u64 = 2 * 3_600 * 1_000;

/// Partition key of the functions' records of heartbeats, and sort key of the heartbeat. Stored, so they are stable.
const PULSE: &str = "PULSE";

// Attributes of the heartbeat and of the functions' records of it. Stored, so they are stable.
const WRITTEN_AT: &str = "WrittenAt";
const FAMILIES: &str = "Families";
const SINCE: &str = "Since";
const HANDLED_AT: &str = "HandledAt";

/// Key of the heartbeat. Its partition passes the event filters like those of jobs, and contains no job.
fn key() -> Key {
    Key::new(format!("{PARTITION}{PULSE}"), PULSE)
}

/// The write of a heartbeat. It has no type, so nothing is derived from it.
pub(crate) fn pulse(now_ms: u64) -> Write {
    let action = Action::Update(Update::set(Item::from([(WRITTEN_AT.to_owned(), n(now_ms))])));
    Write { table: Table::Main, key: key(), action, guard: None }
}

/// A function's heartbeats. The default is a function that has handled none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Families of derivations that the function runs, joined by `+`.
    families: String,
    /// When it handled its first heartbeat, in milliseconds since the epoch.
    pub(crate) since_ms: u64,
    /// When it handled its last one.
    pub(crate) handled_ms: u64,
}

impl Heard {
    fn key_of(families: &str) -> Key {
        Key::new(PULSE, families)
    }

    fn of(item: &Item) -> Option<Self> {
        let families = text(item, FAMILIES)?.to_owned();
        Some(Self { families, since_ms: number(item, SINCE)?, handled_ms: number(item, HANDLED_AT)? })
    }

    /// The write that stores it. A late write only shows less progress.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let key = Self::key_of(&self.families);
        let attributes = [(FAMILIES, s(&self.families)), (SINCE, n(self.since_ms)), (HANDLED_AT, n(self.handled_ms))];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }

    /// A record for these families, for a sample.
    pub(crate) fn sample(families: &str) -> Self {
        Self { families: families.to_owned(), ..Self::default() }
    }
}

/// Writes a heartbeat, if there may be cascades.
pub(crate) async fn beat<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<(), GaveUp> {
    let mut derivations = context.catalogue.derivations();
    if derivations.any(|derivation| matches!(derivation.kind.shape(), Shape::Cascade(_))) {
        let pulse = pulse(context.clock.now_ms());
        patience.call(|| context.store.write(&pulse)).await?;
    }
    Ok(())
}

/// Records that a heartbeat was handled, if the batch has one. One that cannot be recorded counts as never received.
pub(crate) async fn see<S: Store>(context: &Context<S>, batch: &Batch<'_>, account: &mut Account) {
    let is_pulse =
        |record: &Decoded<'_>| record.change.as_ref().is_ok_and(|change| change.key.sk == PULSE && change.key == key());
    let Some(at) = batch.records.iter().position(is_pulse) else { return };
    if !context.families.contains(&Family::LevelTriggered) {
        return;
    }
    if let Err(error) = keep(context, batch, RecordAt(at), account).await {
        tracing::warn!(cause = %describe(&error), "a pulse cannot be kept, so cascades may wait for the next");
    }
}

async fn keep<S: Store>(
    context: &Context<S>,
    batch: &Batch<'_>,
    at: RecordAt,
    account: &mut Account,
) -> Result<(), GaveUp> {
    let now_ms = context.clock.now_ms();
    let families: Vec<String> = context.families.iter().map(ToString::to_string).collect();
    let families = families.join("+");
    let stored = context.item(Table::Ledger, &Heard::key_of(&families), batch.patience).await?;
    let stored = stored.as_ref().and_then(Heard::of);
    let gap_ms = stored.as_ref().map_or(0, |stored| now_ms.saturating_sub(stored.handled_ms));
    if gap_ms >= POSSIBLE_LOSS_MS && context.takes(ProtocolStep::PulseGap) {
        // The mark comes before the sweep can see that the function works again.
        for mark in loss::marks_of_lane(context, gap_ms, batch) {
            loss::put_mark(context, mark, batch, account).await?;
        }
    }
    let since_ms = stored.map_or(now_ms, |stored| stored.since_ms);
    let write = Heard { families, since_ms, handled_ms: now_ms }.write(&context.schema.layout);
    if let Outcome::Done { units } = batch.patience.call(|| context.store.write(&write)).await? {
        account.commits.push(context.ledger_commit(&write.key, units, at));
    }
    Ok(())
}

/// The heartbeats of the functions that run level-triggered derivations: of the function that handled the last one.
pub(crate) async fn heard<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Heard, GaveUp> {
    let items = patience.call(|| all(&context.store, Table::Ledger, PULSE)).await?;
    let name = Family::LevelTriggered.to_string();
    let heard = items.iter().filter_map(Heard::of).filter(|heard| heard.families.split('+').any(|of| of == name));
    Ok(heard.max_by_key(|heard| heard.handled_ms).unwrap_or_default())
}

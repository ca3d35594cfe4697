//! The pulse: an item of the table that the sweep writes at each of its runs, and whose record shows the functions at work.
//!
//! *Keeps true*: a cascade that goes by it begins only while a function of level-triggered derivations has handled a pulse
//! lately, and has been doing so since before the wait began, or for the settling time. A function that handles a pulse
//! after 20 hours without one puts the [mark of a possible loss](crate::loss) first, which holds cascades too.
//!
//! *Why it is enough*: a mapping that is off, or a function that fails, handles no pulse. When it works again, its first
//! pulse tells how long it did not. A shard that is behind while others are not comes with old batches, and these leave the
//! mark by themselves before the stream drops what follows.
//!
//! *Cheap*: a pulse is one write, one record and one write in the ledger, whatever waits. A table without cascades has none.
//!
//! *Example*: a post is moved by a delete and a put, and the mapping is switched off between the two. Nobody writes, so no
//! late batch will show it. A day later the sweep finds that the last pulse was handled 25 hours ago: the post's comments
//! stay. The mapping is switched on, the next pulse is handled, and the gap leaves the mark, until `ripple verify` has found
//! the missing mirror.

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

/// How long ago a pulse may have been handled at most while a cascade begins, in milliseconds: two hours, eight times the
/// pause between two sweeps.
pub const PULSE_MS_MAX: u64 = 2 * 3_600 * 1_000;

/// Partition key of what the functions have handled, and sort key of the pulse. Stored, so they are stable.
const PULSE: &str = "PULSE";

// Attributes of the pulse and of what is kept of it. Stored, so they are stable.
const WRITTEN_AT: &str = "WrittenAt";
const FAMILIES: &str = "Families";
const SINCE: &str = "Since";
const HANDLED_AT: &str = "HandledAt";

/// Key of the pulse. Its partition passes the event filters as those of jobs do, and no job is in it.
fn key() -> Key {
    Key::new(format!("{PARTITION}{PULSE}"), PULSE)
}

/// The write of a pulse. It has no type, so nothing is derived of it.
pub(crate) fn pulse(now_ms: u64) -> Write {
    let action = Action::Update(Update::set(Item::from([(WRITTEN_AT.to_owned(), n(now_ms))])));
    Write { table: Table::Main, key: key(), action, guard: None }
}

/// What a function's pulses show. The default is a function that has handled none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Families of derivations that the function runs, joined by `+`.
    families: String,
    /// When it handled its first pulse, in milliseconds since the epoch.
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

    /// The write that keeps it. One that lands late only says less.
    pub(crate) fn write(&self, layout: &Layout) -> Write {
        let key = Self::key_of(&self.families);
        let attributes = [(FAMILIES, s(&self.families)), (SINCE, n(self.since_ms)), (HANDLED_AT, n(self.handled_ms))];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }

    /// One of these families, for a sample.
    pub(crate) fn sample(families: &str) -> Self {
        Self { families: families.to_owned(), ..Self::default() }
    }
}

/// Writes a pulse, if there may be cascades.
pub(crate) async fn beat<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<(), GaveUp> {
    let mut derivations = context.catalogue.derivations();
    if derivations.any(|derivation| matches!(derivation.kind.shape(), Shape::Cascade(_))) {
        let pulse = pulse(context.clock.now_ms());
        patience.call(|| context.store.write(&pulse)).await?;
    }
    Ok(())
}

/// Keeps that a pulse was handled, if there is one in the batch. One that cannot be kept is like one that never came.
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
    let keys = [Heard::key_of(&families)];
    let held = batch.patience.call(|| context.store.get(Table::Ledger, &keys)).await?;
    let held = held.first().and_then(|(_, item)| Heard::of(item));
    let gap_ms = held.as_ref().map_or(0, |held| now_ms.saturating_sub(held.handled_ms));
    if gap_ms >= POSSIBLE_LOSS_MS && context.takes(ProtocolStep::PulseGap) {
        // Before the sweep can learn that the function works again.
        for mark in loss::marks_of_lane(context, gap_ms, batch) {
            loss::put_mark(context, mark, batch, account).await?;
        }
    }
    let since_ms = held.map_or(now_ms, |held| held.since_ms);
    let write = Heard { families, since_ms, handled_ms: now_ms }.write(&context.schema.layout);
    if let Outcome::Done { units } = batch.patience.call(|| context.store.write(&write)).await? {
        account.commits.push(context.ledger_commit(&write.key, units, at));
    }
    Ok(())
}

/// What the pulses show of the functions that run level-triggered derivations: of the one that handled the last.
pub(crate) async fn heard<S: Store>(context: &Context<S>, patience: Patience<'_>) -> Result<Heard, GaveUp> {
    let items = patience.call(|| all(&context.store, Table::Ledger, PULSE)).await?;
    let name = Family::LevelTriggered.to_string();
    let heard = items.iter().filter_map(Heard::of).filter(|heard| heard.families.split('+').any(|of| of == name));
    Ok(heard.max_by_key(|heard| heard.handled_ms).unwrap_or_default())
}

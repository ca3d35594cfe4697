//! The ledger: the record of the counted changes.
//!
//! The ledger has two kinds, chosen by configuration and never guessed from an event. Each puts a *proof* into the
//! write that applies a change, so a change is counted exactly when its proof exists.
//!
//! | | receipts | [`watermarks`] |
//! |---|---|---|
//! | proof | an item for each change, in its transaction | an attribute of each counter for each stream shard |
//! | write units | 2 a change, and 2 a counter | 1 a counter and batch |
//! | needs | nothing | the shard's name: tumbling windows, one concurrent batch a shard, unlimited retries |
//! | a replayed change | is applied if it is not counted | is never applied: the stream delivers it |
//!
//! Both keep proofs for a limited time. A change older than the [horizon](LedgerKind::horizon_ms) is never applied,
//! because the ledger no longer shows whether it is counted. Its targets are [listed](crate::count::recount) for a
//! recount.
//!
//! # Receipts
//!
//! Receipts: one small item per change, put if absent, in the same transaction as the effects.
//!
//! *Keeps true*: the additive effects of a change are applied exactly when its receipt exists. If a transaction is
//! cancelled because receipts exist, the reasons show by position which changes are already counted; the engine sends
//! the others again without them. A lost response is harmless: the receipts decide when the transaction is sent again.
//!
//! *Why it is right under repeats and reordering*: a receipt is named by the [id](crate::record::Head::id) of its
//! record. That id is the same at every delivery, however batches are divided, from any mapping, queue or file, and no
//! other record has it. It is valid until the receipt expires.
//!
//! *Example*: changes 1, 2 and 3 of one counter are written as three receipts and `ADD Value 3`. They are redelivered
//! together with 4, and the transaction is cancelled with the reasons (guard failed, guard failed, guard failed, none,
//! none). Then one receipt and `ADD Value 1` are written.

pub mod settings;
pub(crate) mod shard;
pub(crate) mod spread;
pub mod watermarks;

use std::{collections::BTreeSet, fmt, str::FromStr};

use derive::{
    coalesce::Counted,
    family::Family,
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Reason, Store};

use crate::{
    attribute::{n, s, sort_key},
    backoff::{GaveUp, Patience},
};

/// Attribute of the ledger's items with their time to live, in epoch seconds. Stored, so it is stable.
pub const EXPIRES_AT: &str = "ExpiresAt";

/// How long a proof is kept, in seconds: 15 days, more than the stream's 24 hours and a queue's 14 days, the longest
/// possible redrive. A time to live is a minimum: an item may outlive it.
pub const PROOF_KEPT_S: u64 = 15 * 24 * 3600;

/// Age from which a change is never applied under receipts, in milliseconds: 14 days. The proof of a younger change was
/// written after the change itself, so it still exists; the day between is for clocks that differ and for times that
/// are rounded down.
pub const HORIZON_MS: u64 = 14 * 24 * 3600 * 1000;

/// Kind of ledger. Its name is stored, so it is stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LedgerKind {
    /// One small item per change.
    Receipts,
    /// An attribute of each counter for each stream shard.
    #[default]
    Watermarks,
}

impl LedgerKind {
    /// Age from which a change is never applied, in milliseconds.
    #[must_use]
    pub const fn horizon_ms(self) -> u64 {
        match self {
            Self::Receipts => HORIZON_MS,
            Self::Watermarks => watermarks::HORIZON_MS,
        }
    }
}

impl fmt::Display for LedgerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Receipts => "receipts",
            Self::Watermarks => "watermarks",
        })
    }
}

impl FromStr for LedgerKind {
    type Err = UnknownLedger;

    fn from_str(text: &str) -> Result<Self, UnknownLedger> {
        match text {
            "receipts" => Ok(Self::Receipts),
            "watermarks" => Ok(Self::Watermarks),
            _ => Err(UnknownLedger { text: text.to_owned() }),
        }
    }
}

/// A name that no ledger has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no ledger {text:?}: it is receipts or watermarks")]
pub struct UnknownLedger {
    /// The name as given.
    pub text: String,
}

/// Partition key of a family's parked changes.
pub(crate) fn parked_partition(family: Family) -> String {
    format!("PARKED#{family}")
}

/// An item of the ledger's table with these further attributes.
#[must_use]
pub fn ledger_item(
    layout: &Layout,
    key: &Key,
    attributes: impl IntoIterator<Item = (&'static str, AttributeValue)>,
) -> Item {
    let mut item = layout.key_item(key);
    item.extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Time to live of a proof that is written now, as an attribute.
pub(crate) fn expires_at(now_ms: u64) -> AttributeValue {
    AttributeValue::N((now_ms / 1000).saturating_add(PROOF_KEPT_S).to_string())
}

// ---- repairs ----

/// Partition key of the right to repair counts, and of its receipts. Stored, so they are stable.
const REPAIR: &str = "REPAIR";

/// Sort key of the right. Stored, so it is stable.
const RIGHT: &str = "RIGHT";

/// Attributes of the right. Stored, so they are stable.
const RUN: &str = "Run";
const TAKEN_AT: &str = "TakenAt";

/// The write by which a run acquires the right to repair counts.
#[must_use]
pub fn right(layout: &Layout, run: &str, now_ms: u64) -> Write {
    let key = Key::new(REPAIR, RIGHT);
    let item = ledger_item(layout, &key, [(RUN, s(run)), (TAKEN_AT, n(now_ms))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
}

/// The check that a run still has the right.
#[must_use]
pub fn has_right(run: &str) -> Write {
    let has_right = Guard::as_read(Purpose::RepairRight, [(RUN, Some(s(run)))]);
    let right = Key::new(REPAIR, RIGHT);
    Write { table: Table::Ledger, key: right, action: Action::Check, guard: Some(has_right) }
}

/// True if this run currently has the right.
///
/// # Errors
///
/// [`GaveUp`] if the right cannot be read.
pub async fn may_repair<S: Store>(store: &S, run: &str, patience: Patience<'_>) -> Result<bool, GaveUp> {
    let keys = [Key::new(REPAIR, RIGHT)];
    let held = patience.call(|| store.get(Table::Ledger, &keys)).await?;
    Ok(held.first().is_some_and(|(_, item)| text(item, RUN) == Some(run)))
}

/// The receipt of the repair of a count by a run.
#[must_use]
pub fn repair_receipt(layout: &Layout, run: &str, derivation: &str, counter: &Key, now_ms: u64) -> Write {
    receipt_of(layout, &Key::new(format!("{REPAIR}#{run}"), sort_key(derivation, counter)), now_ms)
}

// ---- Receipts: one small item per change, put if absent, in the same transaction as the effects ----

/// What a batch knows of the receipts.
pub(crate) struct Receipts<'a> {
    layout: &'a Layout,
    /// Ids of events whose receipts were found to exist.
    taken: BTreeSet<String>,
    /// True if reasons are read by position.
    by_position: bool,
}

impl<'a> Receipts<'a> {
    /// The state before any receipt is known.
    pub(crate) fn new(layout: &'a Layout, by_position: bool) -> Self {
        Self { layout, taken: BTreeSet::new(), by_position }
    }

    /// The receipts of these changes, for the transaction that applies them.
    pub(crate) fn proofs(&self, changes: &[Counted], now_ms: u64) -> Vec<Write> {
        changes.iter().map(|change| receipt(self.layout, &change.id, now_ms)).collect()
    }

    /// True if this change is known to be counted.
    pub(crate) fn has(&self, change: &Counted) -> bool {
        self.taken.contains(&change.id)
    }

    /// Notes that a transaction of these changes was cancelled; these are the reasons at its receipts.
    pub(crate) fn cancelled(&mut self, changes: &[Counted], reasons: &[Reason]) {
        let is_taken = |reason: &&Reason| **reason == Reason::GuardFailed;
        if self.by_position {
            let taken = changes.iter().zip(reasons).filter(|(_, reason)| is_taken(reason));
            self.taken.extend(taken.map(|(change, _)| change.id.clone()));
        } else {
            let n_taken = reasons.iter().filter(is_taken).count();
            self.taken.extend(changes.iter().take(n_taken).map(|change| change.id.clone()));
        }
    }
}

/// The write of a change's receipt; it fails if the receipt exists.
#[must_use]
pub fn receipt(layout: &Layout, event_id: &str, now_ms: u64) -> Write {
    receipt_of(layout, &receipt_key(event_id), now_ms)
}

/// Key of a change's receipt.
pub(crate) fn receipt_key(event_id: &str) -> Key {
    Key::new(format!("RECEIPT#{event_id}"), "RECEIPT")
}

/// The write of the receipt under this key; it fails if the receipt exists.
pub(crate) fn receipt_of(layout: &Layout, key: &Key, now_ms: u64) -> Write {
    let (key, item) = (key.clone(), ledger_item(layout, key, [(EXPIRES_AT, expires_at(now_ms))]));
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::Receipt)) }
}

//! Receipts: one small item per change, put if absent, in the same transaction as the effects.
//!
//! *Keeps true*: the additive effects of a change are in exactly when its receipt is. A transaction that is cancelled
//! because a receipt is there says by position which changes are in already; the others are sent again without them.
//! An answer that is lost is no trouble: sent again, the receipts decide.
//!
//! *Why it is right under repeats and reordering*: a receipt is named by the [id](crate::record::Head::id) under which the
//! record is known, which is the same at every delivery, however batches are cut, on whatever lane, from a queue or a
//! file, and of no other record. It holds until the receipt expires.
//!
//! *Example*: changes 1, 2 and 3 of one counter go in as three receipts and `ADD Value 3`. Delivered again together
//! with 4, the transaction is cancelled with reasons (guard failed, guard failed, guard failed, none, none); then one
//! receipt and `ADD Value 1` go in.

use std::collections::BTreeSet;

use derive::{
    coalesce::Counted,
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{key::Key, layout::Layout};
use store::Reason;

use crate::ledger::{EXPIRES_AT, expires_at, ledger_item};

/// What a batch knows of the receipts.
pub(crate) struct Receipts<'a> {
    layout: &'a Layout,
    /// Ids of events whose receipts were found taken.
    taken: BTreeSet<String>,
    /// Are reasons read by position?
    by_position: bool,
}

impl<'a> Receipts<'a> {
    /// Nothing is known yet.
    pub(crate) fn new(layout: &'a Layout, by_position: bool) -> Self {
        Self { layout, taken: BTreeSet::new(), by_position }
    }

    /// The receipts of these changes, which go in with them in one transaction.
    pub(crate) fn proofs(&self, changes: &[Counted], now_ms: u64) -> Vec<Write> {
        changes.iter().map(|change| receipt(self.layout, &change.id, now_ms)).collect()
    }

    /// Is this change known to be in?
    pub(crate) fn has(&self, change: &Counted) -> bool {
        self.taken.contains(&change.id)
    }

    /// A transaction of these changes was cancelled, for these reasons given to their receipts.
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

/// The write that takes a change's receipt, or fails when it is taken.
#[must_use]
pub fn receipt(layout: &Layout, event_id: &str, now_ms: u64) -> Write {
    receipt_of(layout, &receipt_key(event_id), now_ms)
}

/// Key of a change's receipt.
pub(crate) fn receipt_key(event_id: &str) -> Key {
    Key::new(format!("RECEIPT#{event_id}"), "RECEIPT")
}

/// The write that takes the receipt under this key, or fails when it is taken.
pub(crate) fn receipt_of(layout: &Layout, key: &Key, now_ms: u64) -> Write {
    let (key, item) = (key.clone(), ledger_item(layout, key, [(EXPIRES_AT, expires_at(now_ms))]));
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::Receipt)) }
}

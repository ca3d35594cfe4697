//! What a repair of counts keeps in the ledger: who has the right to repair, and proof of each repair.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{item::text, key::Key, layout::Layout};
use store::Store;

use crate::{
    attribute::{n, s},
    backoff::{GaveUp, Patience},
    ledger::{ledger_item, receipts::receipt_of},
    sort_key::sort_key,
};

/// Partition key of the right to repair counts, and of its receipts. Stored, so they are stable.
const REPAIR: &str = "REPAIR";

/// Sort key of the right. Stored, so it is stable.
const RIGHT: &str = "RIGHT";

/// Attributes of the right. Stored, so they are stable.
const RUN: &str = "Run";
const TAKEN_AT: &str = "TakenAt";

/// The write by which a run takes the right to repair counts.
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

/// Has this run the right, as it is read now?
///
/// # Errors
///
/// [`GaveUp`] when that cannot be read.
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

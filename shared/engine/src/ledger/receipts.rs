//! Receipts: one small item per change, put if absent, in the same transaction as the effects.
//!
//! *Keeps true*: the additive effects of a change are in exactly when its receipt is. A transaction that is cancelled
//! because a receipt is there says by position which changes are in already; the others are sent again without them.
//! An answer that is lost is no trouble: sent again, the receipts decide.
//!
//! *Why it is right under repeats and reordering*: a receipt is named by the event's id, which is the same at every
//! delivery, however batches are cut, on whatever lane, from a queue or a file. It holds until the receipt expires.
//!
//! *Example*: changes 1, 2 and 3 of one counter go in as three receipts and `ADD Value 3`. Delivered again together
//! with 4, the transaction is cancelled with reasons (guard failed, guard failed, guard failed, none, none); then one
//! receipt and `ADD Value 1` go in.

use derive::{
    guard::Guard,
    write::{Action, Table, Write},
};
use keys::{key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

use crate::ledger::{EXPIRES_AT, ledger_item};

/// How long a receipt is kept, in seconds: 15 days, more than the stream's 24 hours and a queue's 14 days, the longest
/// redrive that there is.
pub const RECEIPT_KEPT_S: u64 = 15 * 24 * 3600;

/// The write that takes a change's receipt, or fails when it is taken.
#[must_use]
pub fn receipt(layout: &Layout, event_id: &str, now_ms: u64) -> Write {
    let key = Key::new(format!("RECEIPT#{event_id}"), "RECEIPT");
    let expires_at = AttributeValue::N((now_ms / 1000 + RECEIPT_KEPT_S).to_string());
    let item = ledger_item(layout, &key, [(EXPIRES_AT, expires_at)]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::Absent) }
}

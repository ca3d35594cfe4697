//! The ledger: the record of which changes are in.
//!
//! Two kinds, chosen by configuration and never guessed from an event. Each puts a *proof* into the write that applies a
//! change, so that the change is in exactly when its proof is.
//!
//! | | [`receipts`] | [`watermarks`] |
//! |---|---|---|
//! | proof | an item for each change, in the transaction of its effects | an attribute of each counter for each stream shard |
//! | write units | 2 a change, and 2 a counter | 1 a counter and batch |
//! | needs | nothing | the shard's name: tumbling windows, one lane a shard, unlimited retries |
//! | a change that is replayed | is applied if it is not in | is never applied: what no watermark has passed, the stream brings |
//!
//! Both hold for a time, and a change older than the [horizon](LedgerKind::horizon_ms) is never applied: whether it is in
//! is not known any more. Its targets are [listed](crate::count::recount) as needing a recount.

pub(crate) mod exceptions;
pub mod in_ledger;
pub mod receipts;
pub mod repairs;
pub mod settings;
pub(crate) mod shard;
pub mod watermarks;

use std::{fmt, str::FromStr};

use keys::{item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;

/// Attribute of the ledger's items that holds their time to live, in epoch seconds. Stored, so it is stable.
pub const EXPIRES_AT: &str = "ExpiresAt";

/// How long a proof is kept, in seconds: 15 days, more than the stream's 24 hours and a queue's 14 days, the longest
/// redrive that there is. A time to live is a floor: an item may outlive it.
pub const PROOF_KEPT_S: u64 = 15 * 24 * 3600;

/// Age from which a change is never applied under receipts, in milliseconds: 14 days. Its proof, if it had one, was made
/// after the change itself, so it is still there; the day between is for clocks that differ and for times that are rounded
/// down.
pub const HORIZON_MS: u64 = 14 * 24 * 3600 * 1000;

/// Which ledger. Its name is stored, so it is stable.
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

/// A name of no ledger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no ledger {text:?}: it is receipts or watermarks")]
pub struct UnknownLedger {
    /// The name as given.
    pub text: String,
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

/// When a proof that is made now may go, as an attribute.
pub(crate) fn expires_at(now_ms: u64) -> AttributeValue {
    AttributeValue::N((now_ms / 1000).saturating_add(PROOF_KEPT_S).to_string())
}

//! The ledger's record of itself: of which kind it is.
//!
//! A function that is configured for the other kind must not start, since it would apply again what is in.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{item::text, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, StoreError};

use crate::ledger::{LedgerKind, UnknownLedger, ledger_item};

/// Attribute that holds the kind. Stored, so it is stable.
const KIND: &str = "Kind";

/// A ledger that cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It is of the other kind.
    #[error(
        "the ledger is one of {recorded}, and {configured} is configured: what is in would be applied again; \
         configure {recorded}, or see docs/ledgers.md for the way to switch"
    )]
    Mismatch {
        /// What it is.
        recorded: LedgerKind,
        /// What is configured.
        configured: LedgerKind,
    },
    /// It is of a kind that this version does not know.
    #[error("the ledger is of a kind that this version does not know")]
    Unknown(#[source] UnknownLedger),
    /// It cannot be asked.
    #[error("the ledger cannot be asked of which kind it is")]
    Store(#[from] StoreError),
}

/// Records that the ledger is of this kind, unless it says so already.
///
/// # Errors
///
/// [`SettingsError`] when it is of another kind, or cannot be asked.
pub async fn claim<S: Store>(store: &S, layout: &Layout, kind: LedgerKind) -> Result<(), SettingsError> {
    loop {
        match recorded(store).await? {
            Some(recorded) if recorded == kind => return Ok(()),
            Some(recorded) => return Err(SettingsError::Mismatch { recorded, configured: kind }),
            None => {}
        }
        match store.write(&record(layout, kind)).await? {
            Outcome::Done { .. } => return Ok(()),
            // Another function came first; what it recorded decides.
            Outcome::GuardFailed => {}
        }
    }
}

/// The write that records of which kind the ledger is, unless it says so already.
pub(crate) fn record(layout: &Layout, kind: LedgerKind) -> Write {
    let key = key();
    let item = ledger_item(layout, &key, [(KIND, AttributeValue::S(kind.to_string()))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::LedgerKind)) }
}

/// Of which kind the ledger is, where it says so.
///
/// # Errors
///
/// [`SettingsError`] when it cannot be asked, or is of a kind that this version does not know.
pub async fn recorded<S: Store>(store: &S) -> Result<Option<LedgerKind>, SettingsError> {
    let items = store.get(Table::Ledger, &[key()]).await?;
    let kind = items.first().and_then(|(_, item)| text(item, KIND));
    kind.map(|kind| kind.parse().map_err(SettingsError::Unknown)).transpose()
}

fn key() -> Key {
    Key::new("LEDGER", "SETTINGS")
}

#[cfg(test)]
mod tests {
    use store::memory::MemoryStore;

    use super::*;
    use crate::fixture::layout;

    #[tokio::test]
    async fn a_ledger_of_one_kind_refuses_the_other() {
        let layout = layout();
        let store = MemoryStore::new(layout.clone());
        assert_eq!(recorded(&store).await.unwrap(), None);
        claim(&store, &layout, LedgerKind::Watermarks).await.unwrap();
        claim(&store, &layout, LedgerKind::Watermarks).await.unwrap();
        let error = claim(&store, &layout, LedgerKind::Receipts).await.unwrap_err().to_string();
        assert!(error.starts_with("the ledger is one of watermarks, and receipts is configured"), "{error}");
    }
}

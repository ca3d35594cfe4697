//! The ledger's settings: a record of its kind.
//!
//! A function that is configured for the other kind must not start, because it would count changes twice.

use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Write},
};
use keys::{item::text, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, StoreError};

use crate::ledger::{LedgerKind, UnknownLedger, ledger_item};

/// Attribute with the kind. Stored, so it is stable.
const KIND: &str = "Kind";

/// Why the ledger cannot be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The ledger is of the other kind.
    #[error(
        "the ledger table was created for {recorded}, and {configured} is configured: changes already counted would count \
         again; configure {recorded}, or see docs/ledgers.md for the way to switch"
    )]
    Mismatch {
        /// The recorded kind.
        recorded: LedgerKind,
        /// The configured kind.
        configured: LedgerKind,
    },
    /// This version does not know the recorded kind.
    #[error("the ledger is of a kind that this version does not know")]
    Unknown(#[source] UnknownLedger),
    /// The settings cannot be read or written.
    #[error("the ledger cannot be asked of which kind it is")]
    Store(#[from] StoreError),
}

/// Records the ledger's kind, unless a kind is recorded.
///
/// # Errors
///
/// [`SettingsError`] if another kind is recorded, or the ledger cannot be read or written.
pub async fn claim<S: Store>(store: &S, layout: &Layout, kind: LedgerKind) -> Result<(), SettingsError> {
    loop {
        match recorded(store).await? {
            Some(recorded) if recorded == kind => return Ok(()),
            Some(recorded) => return Err(SettingsError::Mismatch { recorded, configured: kind }),
            None => {}
        }
        match store.write(&record(layout, kind)).await? {
            Outcome::Done { .. } => return Ok(()),
            // Another function recorded a kind first, and that kind decides.
            Outcome::GuardFailed => {}
        }
    }
}

/// The write that records the ledger's kind; it fails if a kind is recorded.
pub(crate) fn record(layout: &Layout, kind: LedgerKind) -> Write {
    let key = key();
    let item = ledger_item(layout, &key, [(KIND, AttributeValue::S(kind.to_string()))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::LedgerKind)) }
}

/// The recorded kind, if there is one.
///
/// # Errors
///
/// [`SettingsError`] if it cannot be read, or this version does not know it.
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
        assert!(
            error.starts_with("the ledger table was created for watermarks, and receipts is configured"),
            "{error}"
        );
    }
}

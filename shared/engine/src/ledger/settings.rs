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
    /// It is of a kind that this version does not have any more.
    #[error(
        "the ledger is one of checkpoint, which this version does not have any more: stop writing, wait until all is \
         handled, delete the item LEDGER / SETTINGS, start with {configured}, and run ripple verify; docs/ledgers.md has \
         the steps"
    )]
    Retired {
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
        match recorded_for(store, kind).await? {
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

async fn recorded_for<S: Store>(store: &S, configured: LedgerKind) -> Result<Option<LedgerKind>, SettingsError> {
    match recorded(store).await {
        Err(SettingsError::Unknown(unknown)) if unknown.text == "checkpoint" => {
            Err(SettingsError::Retired { configured })
        }
        other => other,
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

    #[tokio::test]
    async fn a_ledger_of_the_kind_that_is_gone_is_refused_with_the_way_to_switch() {
        let layout = layout();
        let store = MemoryStore::new(layout.clone());
        let item = ledger_item(&layout, &key(), [(KIND, AttributeValue::S("checkpoint".to_owned()))]);
        store.put_raw(Table::Ledger, item).unwrap();
        let error = claim(&store, &layout, LedgerKind::Watermarks).await.unwrap_err().to_string();
        assert!(error.contains("delete the item LEDGER / SETTINGS, start with watermarks"), "{error}");
    }
}

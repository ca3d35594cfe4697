//! The ledger's lists, as a person reads them: counts that need a recount, and items that cannot be interpreted.
//!
//! Nothing here decides anything: a count that is listed may be right, and `verify` shows it.

use derive::{catalogue::Catalogue, write::Table};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::{Store, StoreError};

use crate::{
    attribute::number,
    count::{
        recount::{ALL, RECOUNT},
        target::Target,
    },
    look::listing::UNREADABLE,
    partition::all,
};

/// A count that needs a recount, since a change of it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToRecount {
    /// The count; `None` where the refused change cannot be read, so that it may be any.
    pub target: Option<Target>,
    /// Id of the event that was refused last.
    pub event_id: String,
    /// Why it was refused.
    pub why: String,
    /// When, in milliseconds since the epoch.
    pub listed_at_ms: u64,
}

impl ToRecount {
    /// Puts what people call the count in the place of its stored name.
    pub fn relabel(&mut self, catalogue: &Catalogue) {
        if let Some(target) = &mut self.target {
            catalogue.relabel(&mut target.derivation);
        }
    }
}

/// All counts that need a recount, by derivation and item.
///
/// # Errors
///
/// [`StoreError`] when the ledger cannot be read.
pub async fn to_recount<S: Store>(store: &S) -> Result<Vec<ToRecount>, StoreError> {
    Ok(all(store, Table::Ledger, RECOUNT).await?.iter().map(listed).collect())
}

/// How many entries the list of items has that cannot be interpreted: one for each item and derivation.
///
/// # Errors
///
/// [`StoreError`] when the ledger cannot be read.
pub async fn n_unreadable<S: Store>(store: &S) -> Result<usize, StoreError> {
    Ok(all(store, Table::Ledger, UNREADABLE).await?.len())
}

fn listed(item: &Item) -> ToRecount {
    let field = |name: &str| text(item, name).unwrap_or_default().to_owned();
    let derivation = field("Derivation");
    let listed_at_ms = number(item, "ListedAt").unwrap_or(0);
    let target = (derivation != ALL).then(|| Target { derivation, item: Key::new(field("ItemPK"), field("ItemSK")) });
    ToRecount { target, event_id: field("EventId"), why: field("Why"), listed_at_ms }
}

#[cfg(test)]
mod tests {
    use derive::{
        schema::Unreadable,
        write::{Action, Write},
    };
    use store::memory::MemoryStore;

    use serde_dynamo::AttributeValue;

    use super::*;
    use crate::fixture::layout;
    use crate::{ledger::ledger_item, look::listing};

    #[tokio::test]
    async fn both_lists_are_read() {
        let layout = layout();
        let store = MemoryStore::new(layout.clone());
        assert_eq!((to_recount(&store).await.unwrap(), n_unreadable(&store).await.unwrap()), (Vec::new(), 0));

        let unreadable = Unreadable { attribute: "Value".to_owned(), why: "is not of type N".to_owned() };
        let item = Key::new("USER#ada", "PROFILE");
        for derivation in ["one", "other"] {
            store.write(&listing::listed(&layout, derivation, &item, Some(&unreadable), 7)).await.unwrap();
        }
        for derivation in [ALL, "follower-count"] {
            let key = Key::new(RECOUNT, derivation);
            let text = |text: &str| AttributeValue::S(text.to_owned());
            let attributes = [
                ("Derivation", text(derivation)),
                ("ItemPK", text(&item.pk)),
                ("ItemSK", text(&item.sk)),
                ("EventId", text("e1")),
                ("Why", text("it is old")),
                ("ListedAt", AttributeValue::N("8".to_owned())),
            ];
            let action = Action::Put(ledger_item(&layout, &key, attributes));
            store.write(&Write { table: Table::Ledger, key, action, guard: None }).await.unwrap();
        }
        let listed = to_recount(&store).await.unwrap();
        let target = Target { derivation: "follower-count".to_owned(), item };
        assert_eq!(listed.iter().map(|entry| &entry.target).collect::<Vec<_>>(), [&None, &Some(target)]);
        assert!(listed.iter().all(|entry| (entry.event_id.as_str(), entry.listed_at_ms) == ("e1", 8)), "{listed:?}");
        assert_eq!(n_unreadable(&store).await.unwrap(), 2);
    }
}

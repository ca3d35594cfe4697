//! The list of items that cannot be interpreted: absent for a derivation, until somebody mends them.
//!
//! The list is for a person. A change that could not be read, before or after, is a bell: the item is read as it is
//! now, and is put on the list or taken off it. So an old record that comes again lists nothing that is mended.
//! `verify` reports the same from the items themselves.

use std::collections::BTreeMap;

use derive::{
    position::{DerivationAt, RecordAt},
    schema::{Seen, Unreadable},
    write::{Action, Table, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Outcome, Store};

use crate::{
    account::{Account, undone},
    attribute::{n, s},
    backoff::{Patience, describe},
    context::Context,
    ledger::ledger_item,
    sort_key::sort_key,
};

/// Name under which an item is listed that no derivation can read.
pub const ALL_DERIVATIONS: &str = "*";

/// Partition key of the list. Stored, so it is stable.
pub(crate) const UNREADABLE: &str = "UNREADABLE";

/// An item that may have to be listed, or taken off the list.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Position of the record that says so.
    pub(crate) position: RecordAt,
    /// Position of the derivation in the catalogue; `None` for all.
    pub(crate) derivation: Option<DerivationAt>,
    /// The item.
    pub(crate) item: Key,
}

/// Lists items that cannot be interpreted.
pub(crate) struct Lister<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Lister<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Lister<'_, S> {
    /// Lists the items that cannot be interpreted as they are now, and takes the others off the list.
    pub(crate) async fn list(&self, listings: Vec<Listing>, patience: Patience<'_>, account: &mut Account) {
        if listings.is_empty() {
            return;
        }
        let keys: Vec<Key> = listings.iter().map(|listing| listing.item.clone()).collect();
        let items: BTreeMap<Key, Item> = match patience.call(|| self.context.store.get(Table::Main, &keys)).await {
            Ok(items) => items.into_iter().collect(),
            Err(error) => return undone(account, listings.iter().map(|listing| listing.position), &describe(&error)),
        };
        for Listing { position, derivation, item } in listings {
            let unreadable = items.get(&item).and_then(|held| self.unreadable(derivation, &item, held));
            let derivation = derivation.map_or(ALL_DERIVATIONS, |at| self.context.catalogue.name(at));
            if let Some(unreadable) = &unreadable {
                account.n_unreadable += 1;
                tracing::warn!(%derivation, item = item.for_log(), %unreadable, "the item counts as absent until it is readable");
            }
            let write = listed(
                &self.context.schema.layout,
                derivation,
                &item,
                unreadable.as_ref(),
                self.context.clock.now_ms(),
            );
            match patience.call(|| self.context.store.write(&write)).await {
                Ok(Outcome::Done { units }) => {
                    account.commits.push(self.context.ledger_commit(&write.key, units, position));
                }
                Ok(Outcome::GuardFailed) => {}
                Err(error) => undone(account, [position], &describe(&error)),
            }
        }
    }

    fn unreadable(&self, derivation: Option<DerivationAt>, key: &Key, item: &Item) -> Option<Unreadable> {
        match (self.context.schema.see(key, item), derivation) {
            (Seen::Misfit(why), None) => Some(why),
            (Seen::Known(image), Some(at)) => {
                self.context.catalogue.derivation(at)?.kind.unreadable(&self.context.schema, &image)
            }
            _ => None,
        }
    }
}

/// The write that puts an item on the list of a derivation, or takes it off.
#[must_use]
pub fn listed(layout: &Layout, derivation: &str, item: &Key, unreadable: Option<&Unreadable>, now_ms: u64) -> Write {
    let key = Key::new(UNREADABLE, sort_key(derivation, item));
    let action = match unreadable {
        None => Action::Delete,
        Some(unreadable) => Action::Put(ledger_item(
            layout,
            &key,
            [
                ("Derivation", s(derivation)),
                ("ItemPK", s(&item.pk)),
                ("ItemSK", s(&item.sk)),
                ("Attribute", s(&unreadable.attribute)),
                ("Why", s(&unreadable.why)),
                ("ListedAt", n(now_ms)),
            ],
        )),
    };
    Write { table: Table::Ledger, key, action, guard: None }
}

//! The list of items that cannot be interpreted: absent for a derivation, until somebody mends them.
//!
//! The list is for a person. A change that could not be read, before or after, is a bell: the item is read as it is
//! now, and is put on the list or taken off it. So an old record that comes again lists nothing that is mended.
//! `verify` tells the same from the items themselves.

use std::collections::BTreeMap;

use derive::{
    schema::{Seen, Unreadable},
    write::{Action, Table, Write},
};
use flate2::Crc;
use keys::{item::Item, key::Key, layout::Layout};
use store::{Outcome, Store};

use crate::{
    account::{Account, undone},
    attribute::{n, s},
    backoff::{Patience, describe},
    batch::Engine,
    ledger::ledger_item,
};

/// Name under which an item is listed that no derivation can read.
pub const ALL_DERIVATIONS: &str = "*";

/// Partition key of the list. Stored, so it is stable.
pub(crate) const UNREADABLE: &str = "UNREADABLE";

/// Longest sort key of the list that is spelled out, in bytes; a longer one is cut and told apart by its checksum.
const SPELLED_OUT_MAX: usize = 900;

/// An item that may have to be listed, or taken off the list.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Position of the record that says so.
    pub(crate) position: usize,
    /// Position of the derivation in the catalogue; `None` for all.
    pub(crate) derivation: Option<usize>,
    /// The item.
    pub(crate) item: Key,
}

impl<S: Store> Engine<S> {
    /// Lists the items that cannot be interpreted as they are now, and takes the others off the list.
    pub(crate) async fn list(&self, listings: Vec<Listing>, patience: Patience<'_>, account: &mut Account) {
        if listings.is_empty() {
            return;
        }
        let keys: Vec<Key> = listings.iter().map(|listing| listing.item.clone()).collect();
        let items: BTreeMap<Key, Item> = match patience.call(|| self.store.get(Table::Main, &keys)).await {
            Ok(items) => items.into_iter().collect(),
            Err(error) => return undone(account, listings.iter().map(|listing| listing.position), &describe(&error)),
        };
        for Listing { position, derivation, item } in listings {
            let unreadable = items.get(&item).and_then(|held| self.unreadable(derivation, &item, held));
            let derivation = derivation.map_or(ALL_DERIVATIONS, |at| self.catalogue.name(at));
            if let Some(unreadable) = &unreadable {
                account.n_unreadable += 1;
                tracing::warn!(%derivation, item = item.for_log(), %unreadable, "the item counts as absent until it is readable");
            }
            let write = listed(&self.schema.layout, derivation, &item, unreadable.as_ref(), self.clock.now_ms());
            match patience.call(|| self.store.write(&write)).await {
                Ok(Outcome::Done { units }) => account.commits.push(self.bookkeeping(&write.key, units, position)),
                Ok(Outcome::GuardFailed) => {}
                Err(error) => undone(account, [position], &describe(&error)),
            }
        }
    }

    fn unreadable(&self, derivation: Option<usize>, key: &Key, item: &Item) -> Option<Unreadable> {
        match (self.schema.see(key, item), derivation) {
            (Seen::Misfit(why), None) => Some(why),
            (Seen::Known(image), Some(at)) => self.catalogue.derivation(at)?.kind.unreadable(&self.schema, &image),
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

/// Sort key under which an item is listed on behalf of a derivation.
pub(crate) fn sort_key(derivation: &str, item: &Key) -> String {
    fitted(format!("{derivation}#{}#{}", item.pk, item.sk))
}

/// A text that fits in a sort key: as it is, or cut and told apart by its checksum.
pub(crate) fn fitted(text: String) -> String {
    if text.len() <= SPELLED_OUT_MAX {
        return text;
    }
    let end = text.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}#{:08x}", text.get(..end).unwrap_or_default(), checksum(&text))
}

/// CRC-32 of a text.
pub(crate) fn checksum(text: &str) -> u32 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}

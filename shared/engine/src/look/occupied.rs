//! Derived items that wait for their key, because an item that is not Ripple's is stored under it.
//!
//! *Keeps true*: Ripple changes and removes no item that is not its own. The item is on the list of unreadable items
//! while a derived item waits for its key. When the item leaves the key, its record refreshes the derived item.
//!
//! If a mirror's key does not contain its source's key, the mirror learns its sources from the records that request its
//! refresh. So the entry stores the sources that were named during the wait, and the refresh that ends the wait names
//! them again. After that refresh the engine deletes the entry, if it is the one that was read.

use derive::{
    guard::{Guard, Purpose},
    position::DerivationAt,
    refresh::Look,
    whole::occupied,
    write::{Action, Table, Update, Write},
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Store, Units};

use crate::{
    account::{Account, undone},
    attribute::{n, s},
    backoff::{GaveUp, Patience, describe},
    context::Context,
    job::touch::TouchFailure,
    look::listing::{self, entry_key},
    requests::{RefreshRequests, RequestedRefresh},
};

// Attributes of an entry: the keys of the named sources, and how often the entry was written. Stored, so they are
// stable.
const NAMED: &str = "Named";
const REVISION: &str = "Rev";

/// An entry of the list, with the derived item that waited.
pub(crate) struct EndedWait {
    requested: RequestedRefresh,
    derivation: DerivationAt,
    revision: Option<AttributeValue>,
}

/// Lists the item under the key of a derived item that this derivation would create. Returns `None` if the item there
/// is now Ripple's, or there is none.
pub(crate) async fn list<S: Store>(
    context: &Context<S>,
    look: &Look,
    at: DerivationAt,
    held: Option<&Item>,
    patience: Patience<'_>,
) -> Result<Option<Units>, TouchFailure> {
    let entry =
        |held: Option<&Item>| held.filter(|held| !is_own(context, look, held)).map(|it| entry(context, look, at, it));
    let (_, units) = listing::keep(context, &look.item, held.cloned(), entry, patience).await?;
    Ok(units)
}

/// True if the item has the entity that the derivation would create.
fn is_own<S: Store>(context: &Context<S>, look: &Look, item: &Item) -> bool {
    context.schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity))
}

fn entry<S: Store>(context: &Context<S>, look: &Look, at: DerivationAt, held: &Item) -> Write {
    let (derivation, item) = (context.catalogue.name(at), &look.item);
    let flaw = occupied(&context.schema, item, held);
    let attributes = [
        ("Derivation", s(derivation)),
        ("ItemPK", s(&item.pk)),
        ("ItemSK", s(&item.sk)),
        ("Attribute", s(&flaw.attribute)),
        ("Why", s(&flaw.why)),
        ("ListedAt", n(context.clock.now_ms())),
    ];
    let mut update = Update::set(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    update.add.insert(REVISION.to_owned(), n(1));
    // DynamoDB refuses an empty set.
    let named: Vec<String> = look.named.iter().map(written).collect();
    if !named.is_empty() {
        update.add.insert(NAMED.to_owned(), AttributeValue::Ss(named));
    }
    let key = entry_key(derivation, item);
    Write { table: Table::Ledger, key, action: Action::Update(update), guard: None }
}

/// Adds the sources from the entries to the requests of derived items whose key is free again, and returns these
/// entries. A derived item whose entry cannot be read is not refreshed now.
pub(crate) async fn recall<S: Store>(
    context: &Context<S>,
    requests: &mut RefreshRequests,
    patience: Patience<'_>,
    account: &mut Account,
) -> Vec<EndedWait> {
    let mut ended = Vec::new();
    let vacated =
        requests.requested.iter().filter(|(_, requested)| requested.vacated_for.is_some()).map(|(key, _)| key.clone());
    for key in vacated.collect::<Vec<_>>() {
        let Some(requested) = requests.requested.get_mut(&key) else { continue };
        let Some(derivation) = requested.vacated_for else { continue };
        match read_entry(context, derivation, &requested.look.item, patience).await {
            Ok(None) => {}
            Ok(Some(entry)) => {
                if let Some(AttributeValue::Ss(named)) = entry.get(NAMED) {
                    requested.look.named.extend(named.iter().filter_map(|named| read(named)));
                }
                let revision = entry.get(REVISION).cloned();
                ended.push(EndedWait { requested: requested.clone(), derivation, revision });
            }
            Err(error) => {
                undone(account, requested.causes.iter().copied(), &describe(&error));
                requests.requested.remove(&key);
            }
        }
    }
    ended
}

async fn read_entry<S: Store>(
    context: &Context<S>,
    at: DerivationAt,
    item: &Key,
    patience: Patience<'_>,
) -> Result<Option<Item>, GaveUp> {
    let key = [entry_key(context.catalogue.name(at), item)];
    let entries = patience.call(|| context.store.get(Table::Ledger, &key)).await?;
    Ok(entries.into_iter().next().map(|(_, entry)| entry))
}

/// Removes the entries of derived items that were refreshed and no longer wait.
pub(crate) async fn take_off<S: Store>(
    context: &Context<S>,
    ended: Vec<EndedWait>,
    patience: Patience<'_>,
    account: &mut Account,
) {
    for EndedWait { requested: RequestedRefresh { look, causes, .. }, derivation, revision } in ended {
        // The entry stays until all of these records are redelivered, also the one of the item that has left the key.
        if let Some(why) = causes.iter().find_map(|position| account.undone.get(position)).cloned() {
            undone(account, causes, &why);
            continue;
        }
        let key = entry_key(context.catalogue.name(derivation), &look.item);
        let guard = Some(Guard::as_read(Purpose::KeyWait, [(REVISION, revision)]));
        let delete = Write { table: Table::Ledger, key: key.clone(), action: Action::Delete, guard };
        let entry = |held: Option<&Item>| {
            let is_free = held.is_none_or(|held| is_own(context, &look, held));
            is_free.then(|| delete.clone())
        };
        match (listing::keep_as_read(context, &look.item, entry, patience).await, causes.first()) {
            (Ok(units), Some(position)) => {
                account.commits.extend(units.map(|units| context.ledger_commit(&key, units, *position)));
            }
            (Ok(_), None) => {}
            (Err(TouchFailure::NotNow(why)), _) => undone(account, causes, &why),
            // The entry stays on the list for the operator; the derived item is done.
            (Err(TouchFailure::Refused(cause)), _) => {
                tracing::error!(item = look.item.for_log(), cause, "an entry cannot be taken off the list");
            }
        }
    }
}

/// A key as one text: the length of its first part, and both parts.
fn written(key: &Key) -> String {
    format!("{}:{}{}", key.pk.len(), key.pk, key.sk)
}

fn read(text: &str) -> Option<Key> {
    let (length, parts) = text.split_once(':')?;
    let (pk, sk) = parts.split_at_checked(length.parse().ok()?)?;
    Some(Key::new(pk, sk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_as_it_was_written() {
        for key in [Key::new("USER#ann", "POST#2024#p"), Key::new("1:", ":"), Key::new("ä", "")] {
            assert_eq!(read(&written(&key)), Some(key));
        }
        assert_eq!([read("x"), read("9:ab"), read("-1:ab")], [None, None, None]);
    }
}

//! The list of items that cannot be interpreted: each is absent for a derivation until it is corrected.
//!
//! The list is for the operator. A change that was unreadable before or after is a refresh request: the engine reads
//! the current item, and lists it or removes its entry. So the redelivery of an old record lists no item that was
//! corrected. `verify` reports the same items from the items themselves.
//!
//! The transaction that writes or removes an entry checks that the item still has the content that was judged. So an
//! entry that was decided before the item was corrected, and arrives after, is refused. The list matches the item's
//! last change.
//!
//! # Occupied
//!
//! A derived item waits for its key while an item that is not Ripple's is stored under it.
//!
//! *Keeps true*: Ripple changes and removes no item that is not its own. The item is on the list of unreadable items
//! while a derived item waits for its key. When the item leaves the key, its record refreshes the derived item.
//!
//! If a mirror's key does not contain its source's key, the mirror learns its sources from the records that request its
//! refresh. So the entry stores the sources that were named during the wait, and the refresh that ends the wait names
//! them again. After that refresh the engine deletes the entry, if it is the one that was read.

use derive::{
    guard::{Ask, Guard, Purpose},
    position::DerivationAt,
    refresh::Look,
    schema::Unreadable,
    whole::occupied,
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;
use store::{Reason, Store, TransactOutcome, Units, rejected};

use crate::{
    account::{Account, ListedItem, undone},
    attribute::{n, s, sort_key},
    backoff::{Patience, Tries, describe},
    context::Context,
    input::Batch,
    job::touch::TouchFailure,
    ledger::ledger_item,
    park,
    plan::Listing,
    reading,
    requests::{RefreshRequests, RequestedRefresh},
};

/// Name under which an item is listed that no derivation can read.
pub const ALL_DERIVATIONS: &str = "*";

/// Partition key of the list. Stored, so it is stable.
pub(crate) const UNREADABLE: &str = "UNREADABLE";

/// Maximum number of attributes that the check of an item compares: a condition has at most 4 KB and 300 operators.
const COMPARED_MAX: usize = 100;

/// Lists the items that currently cannot be interpreted, and removes the entries of the others.
pub(crate) async fn list<S: Store>(
    context: &Context<S>,
    listings: Vec<Listing>,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    if listings.is_empty() {
        return;
    }
    let patience = batch.patience;
    let keys: Vec<Key> = listings.iter().map(|listing| listing.item.clone()).collect();
    let (items, refused) = match reading::stored_each(context, keys, patience).await {
        Ok(read) => read,
        Err(error) => return undone(account, listings.iter().map(|listing| listing.position), &describe(&error)),
    };
    for listing in listings {
        let stored = items.get(&listing.item).cloned().flatten();
        let ended = match refused.get(&listing.item) {
            Some(error) => Err(TouchFailure::Refused(describe(error))),
            None => list_one(context, &listing, stored, patience, account).await,
        };
        match ended {
            Ok(units) => {
                let key = entry(context, &listing, None).key;
                account.commits.push(context.ledger_commit(&key, units, listing.position));
            }
            Err(TouchFailure::NotNow(why)) => undone(account, [listing.position], &why),
            Err(TouchFailure::Refused(cause)) => {
                park::park(context, listing.position, listing.derivation, &cause, batch, account).await;
            }
        }
    }
}

/// Lists an item that was read, or removes its entry.
async fn list_one<S: Store>(
    context: &Context<S>,
    listing: &Listing,
    stored: Option<Item>,
    patience: Patience<'_>,
    account: &mut Account,
) -> Result<Units, TouchFailure> {
    let judged = |stored: Option<&Item>| unreadable(context, listing.derivation, &listing.item, stored?);
    let entry = |stored: Option<&Item>| Some(entry(context, listing, judged(stored).as_ref()));
    let (stored, units) = keep(context, &listing.item, stored, entry, patience).await?;
    if let Some(unreadable) = judged(stored.as_ref()) {
        let derivation = context.catalogue.label_of(name(context, listing));
        let item = listing.item.for_log();
        tracing::warn!(%derivation, item, %unreadable, "the item counts as absent until it is readable");
        account.unreadable.push(ListedItem {
            position: listing.position,
            key: listing.item.clone(),
            derivation: derivation.to_owned(),
            why: unreadable,
        });
    }
    Ok(units.unwrap_or_default())
}

/// Reads an item, and writes or removes its entry like [`keep`].
async fn keep_as_read<S: Store>(
    context: &Context<S>,
    item: &Key,
    entry: impl Fn(Option<&Item>) -> Option<Write>,
    patience: Patience<'_>,
) -> Result<Option<Units>, TouchFailure> {
    let stored = context.item(Table::Main, item, patience).await?;
    Ok(keep(context, item, stored, entry, patience).await?.1)
}

/// Writes or removes the entry of an item that was read; reads the item again if it changes meanwhile. Returns the item
/// that was judged, and no units if no entry is to be written.
pub(super) async fn keep<S: Store>(
    context: &Context<S>,
    item: &Key,
    mut stored: Option<Item>,
    entry: impl Fn(Option<&Item>) -> Option<Write>,
    patience: Patience<'_>,
) -> Result<(Option<Item>, Option<Units>), TouchFailure> {
    let mut tries = Tries::default();
    loop {
        let guard = Some(as_judged(context, item, stored.as_ref()));
        let check = Write { table: Table::Main, key: item.clone(), action: Action::Check, guard };
        let Some(entry) = entry(stored.as_ref()) else { return Ok((stored, None)) };
        let transaction =
            Transaction::new(vec![check, entry]).map_err(|error| TouchFailure::Refused(error.to_string()))?;
        let reasons = match patience.call(|| context.store.transact(&transaction)).await? {
            TransactOutcome::Done { units } => {
                return Ok((stored, Some(units.into_iter().map(|(_, units)| units).sum())));
            }
            TransactOutcome::Cancelled { reasons } => reasons,
        };
        if let Some(why) = rejected(&reasons) {
            return Err(TouchFailure::Refused(why));
        }
        // Another invocation has written the entry, or removed it.
        if let [_, Reason::GuardFailed] = reasons.as_slice() {
            return Ok((stored, None));
        }
        if !patience.wait(&mut tries).await {
            return Err(TouchFailure::NotNow("others write the item all the time".to_owned()));
        }
        stored = context.item(Table::Main, item, patience).await?;
    }
}

/// The name under which an item is listed.
fn name<'a, S: Store>(context: &'a Context<S>, listing: &Listing) -> &'a str {
    listing.derivation.map_or(ALL_DERIVATIONS, |at| context.catalogue.name(at))
}

/// The write of an entry in the list.
fn entry<S: Store>(context: &Context<S>, listing: &Listing, unreadable: Option<&Unreadable>) -> Write {
    let layout = &context.schema.layout;
    listed(layout, name(context, listing), &listing.item, unreadable, context.clock.now_ms())
}

/// A guard that the item has the type and the declared attributes that were judged: derivations read no others.
fn as_judged<S: Store>(context: &Context<S>, key: &Key, stored: Option<&Item>) -> Guard {
    let schema = &context.schema;
    let mut guard = Guard::same_type(Purpose::Listed, &schema.layout, stored);
    if let Some(image) = stored.and_then(|stored| schema.image(key, stored)) {
        let names = image.definition.attributes.iter().chain(&image.definition.derived_attributes);
        guard.asks.extend(names.take(COMPARED_MAX).map(|name| Ask::as_read(name, image.attribute(name))));
    }
    guard
}

fn unreadable<S: Store>(
    context: &Context<S>,
    derivation: Option<DerivationAt>,
    key: &Key,
    item: &Item,
) -> Option<Unreadable> {
    let schema = &context.schema;
    let Some(at) = derivation else { return schema.unreadable(key, item) };
    context.catalogue.derivation(at)?.unreadable(schema, &schema.image(key, item)?)
}

/// The key of an item's entry in the list of a derivation.
pub(crate) fn entry_key(derivation: &str, item: &Key) -> Key {
    Key::new(UNREADABLE, sort_key(derivation, item))
}

/// The write that lists an item for a derivation, or removes its entry.
#[must_use]
pub fn listed(layout: &Layout, derivation: &str, item: &Key, unreadable: Option<&Unreadable>, now_ms: u64) -> Write {
    let key = entry_key(derivation, item);
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

// ---- Derived items that wait for their key ----

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
pub(crate) async fn list_occupied<S: Store>(
    context: &Context<S>,
    look: &Look,
    at: DerivationAt,
    stored: Option<&Item>,
    patience: Patience<'_>,
) -> Result<Option<Units>, TouchFailure> {
    let entry = |stored: Option<&Item>| {
        stored.filter(|stored| !is_own(context, look, stored)).map(|it| waiting_entry(context, look, at, it))
    };
    let (_, units) = keep(context, &look.item, stored.cloned(), entry, patience).await?;
    Ok(units)
}

/// True if the item has the entity that the derivation would create.
fn is_own<S: Store>(context: &Context<S>, look: &Look, item: &Item) -> bool {
    context.schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity))
}

fn waiting_entry<S: Store>(context: &Context<S>, look: &Look, at: DerivationAt, stored: &Item) -> Write {
    let (derivation, item) = (context.catalogue.name(at), &look.item);
    let flaw = occupied(&context.schema, item, stored);
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
    let named: Vec<String> = look.named.iter().map(source_text).collect();
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
        let entry = entry_key(context.catalogue.name(derivation), &requested.look.item);
        match context.item(Table::Ledger, &entry, patience).await {
            Ok(None) => {}
            Ok(Some(entry)) => {
                if let Some(AttributeValue::Ss(named)) = entry.get(NAMED) {
                    requested.look.named.extend(named.iter().filter_map(|named| read_source(named)));
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
        let entry = |stored: Option<&Item>| {
            let is_free = stored.is_none_or(|stored| is_own(context, &look, stored));
            is_free.then(|| delete.clone())
        };
        match (keep_as_read(context, &look.item, entry, patience).await, causes.first()) {
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
fn source_text(key: &Key) -> String {
    format!("{}:{}{}", key.pk.len(), key.pk, key.sk)
}

fn read_source(text: &str) -> Option<Key> {
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
            assert_eq!(read_source(&source_text(&key)), Some(key));
        }
        assert_eq!(["x", "9:ab", "-1:ab"].map(read_source), [None, None, None]);
    }
}

//! The list of items that cannot be interpreted: each is absent for a derivation until it is corrected.
//!
//! The list is for the operator. A change that was unreadable before or after is a refresh request: the engine reads
//! the current item, and lists it or removes its entry. So the redelivery of an old record lists no item that was
//! corrected. `verify` reports the same items from the items themselves.
//!
//! The transaction that writes or removes an entry checks that the item still has the content that was judged. So an
//! entry that was decided before the item was corrected, and arrives after, is refused. The list matches the item's
//! last change.

use derive::{
    guard::{Ask, Guard, Purpose},
    position::DerivationAt,
    schema::Unreadable,
    write::{Action, Table, Transaction, Write},
};
use keys::{item::Item, key::Key, layout::Layout};
use store::{Reason, Store, TransactOutcome, Units};

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
    let (items, refused) = match reading::held_each(context, keys, patience).await {
        Ok(read) => read,
        Err(error) => return undone(account, listings.iter().map(|listing| listing.position), &describe(&error)),
    };
    for listing in listings {
        let held = items.get(&listing.item).cloned().flatten();
        let ended = match refused.get(&listing.item) {
            Some(error) => Err(TouchFailure::Refused(describe(error))),
            None => list_one(context, &listing, held, patience, account).await,
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
    held: Option<Item>,
    patience: Patience<'_>,
    account: &mut Account,
) -> Result<Units, TouchFailure> {
    let judged = |held: Option<&Item>| unreadable(context, listing.derivation, &listing.item, held?);
    let entry = |held: Option<&Item>| Some(entry(context, listing, judged(held).as_ref()));
    let (held, units) = keep(context, &listing.item, held, entry, patience).await?;
    if let Some(unreadable) = judged(held.as_ref()) {
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
pub(super) async fn keep_as_read<S: Store>(
    context: &Context<S>,
    item: &Key,
    entry: impl Fn(Option<&Item>) -> Option<Write>,
    patience: Patience<'_>,
) -> Result<Option<Units>, TouchFailure> {
    let keys = std::slice::from_ref(item);
    let read = patience.call(|| context.store.get(Table::Main, keys)).await?;
    let held = read.into_iter().next().map(|(_, item)| item);
    Ok(keep(context, item, held, entry, patience).await?.1)
}

/// Writes or removes the entry of an item that was read; reads the item again if it changes meanwhile. Returns the item
/// that was judged, and no units if no entry is to be written.
pub(super) async fn keep<S: Store>(
    context: &Context<S>,
    item: &Key,
    mut held: Option<Item>,
    entry: impl Fn(Option<&Item>) -> Option<Write>,
    patience: Patience<'_>,
) -> Result<(Option<Item>, Option<Units>), TouchFailure> {
    let keys = [item.clone()];
    let mut tries = Tries::default();
    loop {
        let guard = Some(as_judged(context, item, held.as_ref()));
        let check = Write { table: Table::Main, key: item.clone(), action: Action::Check, guard };
        let Some(entry) = entry(held.as_ref()) else { return Ok((held, None)) };
        let transaction =
            Transaction::new(vec![check, entry]).map_err(|error| TouchFailure::Refused(error.to_string()))?;
        let reasons = match patience.call(|| context.store.transact(&transaction)).await? {
            TransactOutcome::Done { units } => {
                return Ok((held, Some(units.into_iter().map(|(_, units)| units).sum())));
            }
            TransactOutcome::Cancelled { reasons } => reasons,
        };
        if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
            return Err(TouchFailure::Refused(why.clone()));
        }
        // Another invocation has written the entry, or removed it.
        if let [_, Reason::GuardFailed] = reasons.as_slice() {
            return Ok((held, None));
        }
        if !patience.wait(&mut tries).await {
            return Err(TouchFailure::NotNow("others write the item all the time".to_owned()));
        }
        let read = patience.call(|| context.store.get(Table::Main, &keys)).await?;
        held = read.into_iter().next().map(|(_, item)| item);
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
fn as_judged<S: Store>(context: &Context<S>, key: &Key, held: Option<&Item>) -> Guard {
    let schema = &context.schema;
    let mut guard = Guard::same_type(Purpose::Listed, &schema.layout, held);
    if let Some(image) = held.and_then(|held| schema.image(key, held)) {
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

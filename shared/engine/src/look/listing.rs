//! The list of items that cannot be interpreted: absent for a derivation, until somebody mends them.
//!
//! The list is for a person. A change that could not be read, before or after, is a refresh request: the item is read
//! as it is now, and is put on the list or taken off it. So an old record that comes again lists nothing that is
//! mended. `verify` reports the same from the items themselves.
//!
//! An entry is written or removed in a transaction that checks that the item is as it was judged. So an entry that was
//! decided before the item was mended, and lands after, is refused; the list says what the item's last change left.

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

/// Attributes that the check of an item compares at most: a condition has at most 4 KB and 300 operators.
const COMPARED_MAX: usize = 100;

/// Lists the items that cannot be interpreted as they are now, and takes the others off the list.
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

/// Lists an item that was read, or takes it off the list.
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

/// Reads an item, and keeps its entry as [`keep`] does.
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

/// Writes or removes the entry of an item that was read, as it is judged; reads it anew if it changes meanwhile. Gives
/// the item as it was judged, and no units where the judgement is that nothing is to be written.
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
        // Somebody else has written the entry, or removed it.
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

/// The write of an entry of the list.
fn entry<S: Store>(context: &Context<S>, listing: &Listing, unreadable: Option<&Unreadable>) -> Write {
    let layout = &context.schema.layout;
    listed(layout, name(context, listing), &listing.item, unreadable, context.clock.now_ms())
}

/// The item has the type and the declared attributes that it was judged by: no derivation reads another one.
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

/// The write that puts an item on the list of a derivation, or takes it off.
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

//! Notes of what the brake has held: since when, by reason.
//!
//! *Keeps true*: a reason holds batches until [`BrakeLimits::unreadable_hold_ms`] after the first of them, in all instances
//! together, and never again under the same catalogue.
//!
//! A reason is the derivation, the attribute and what is wrong with it. It is no item, and no record. The catalogue is
//! known by a digest of the definitions of the families that the function runs, and not by the registry's revision, which
//! moves with each verification that finds nothing.
//!
//! *Cheap*: a batch that is not about to be held asks for no note. One that is costs a read of a small item for each
//! reason, which is less than what is written of its unreadable items.
//!
//! *No guard*: two invocations that both find no note write about the same time into it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use derive::{
    family::Family,
    schema::Unreadable,
    write::{Action, Table, Write},
};
use keys::{fnv, item::Item, key::Key, layout::Layout};
use store::Store;

use crate::{
    attribute::{n, number, s},
    backoff::{GaveUp, describe},
    batch::input::Batch,
    context::Context,
    ledger::ledger_item,
    look::listing::ALL_DERIVATIONS,
    registry::definitions,
    sort_key::fitted,
};

#[cfg(doc)]
use crate::batch::limits::BrakeLimits;

/// Partition key of the notes. Stored, so it is stable.
const HELD: &str = "HELD";

// Attributes of a note. Stored, so they are stable.
const DERIVATION: &str = "Derivation";
const ATTRIBUTE: &str = "Attribute";
const WHY: &str = "Why";
const CATALOGUE: &str = "Catalogue";
const HELD_SINCE: &str = "HeldSince";

/// Why items cannot be read, whichever items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableReason {
    derivation: String,
    /// The attribute at fault; empty if the whole record is.
    attribute: String,
    why: String,
}

impl fmt::Display for UnreadableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { derivation, attribute, why } = self;
        match (attribute.as_str(), derivation.as_str()) {
            ("", _) => f.write_str(why),
            (_, ALL_DERIVATIONS) => write!(f, "{attribute} {why}"),
            _ => write!(f, "{attribute} {why} ({derivation})"),
        }
    }
}

impl UnreadableReason {
    /// A derivation, or all of them, cannot interpret an item.
    pub(crate) fn of(derivation: &str, unreadable: &Unreadable) -> Self {
        let Unreadable { attribute, why } = unreadable.clone();
        Self { derivation: derivation.to_owned(), attribute, why }
    }

    /// A record cannot be planned.
    pub(crate) fn of_record(why: &str) -> Self {
        Self { derivation: ALL_DERIVATIONS.to_owned(), attribute: String::new(), why: why.to_owned() }
    }

    fn key(&self, catalogue: &str) -> Key {
        let Self { derivation, attribute, why } = self;
        Key::new(HELD, fitted(format!("{catalogue}#{derivation}#{attribute}#{why}")))
    }

    /// The write that notes the first hold.
    pub(crate) fn note(&self, layout: &Layout, catalogue: &str, now_ms: u64) -> Write {
        let key = self.key(catalogue);
        let attributes = [
            (DERIVATION, s(&self.derivation)),
            (ATTRIBUTE, s(&self.attribute)),
            (WHY, s(&self.why)),
            (CATALOGUE, s(catalogue)),
            (HELD_SINCE, n(now_ms)),
        ];
        let item = ledger_item(layout, &key, attributes);
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }
}

/// Reads and writes the notes.
pub(crate) struct HoldNotes<'a, S> {
    context: &'a Context<S>,
}

impl<'a, S> HoldNotes<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> HoldNotes<'_, S> {
    /// Since when these reasons have been held, as far as they have, in milliseconds since the epoch.
    pub(crate) async fn since<'r>(
        &self,
        reasons: &BTreeSet<&'r UnreadableReason>,
        batch: &Batch<'_>,
    ) -> Result<BTreeMap<&'r UnreadableReason, u64>, GaveUp> {
        let catalogue = self.catalogue();
        let keys: Vec<Key> = reasons.iter().map(|reason| reason.key(&catalogue)).collect();
        let notes = batch.patience.call(|| self.context.store.get(Table::Ledger, &keys)).await?;
        let notes: BTreeMap<Key, Item> = notes.into_iter().collect();
        let since =
            |(reason, key): (&&'r UnreadableReason, &Key)| Some((*reason, number(notes.get(key)?, HELD_SINCE)?));
        Ok(reasons.iter().zip(&keys).filter_map(since).collect())
    }

    /// Notes that this is the first hold for a reason. One that cannot be noted begins when the batch comes again.
    pub(crate) async fn begin(&self, reason: &UnreadableReason, batch: &Batch<'_>) {
        let write = reason.note(&self.context.schema.layout, &self.catalogue(), self.context.clock.now_ms());
        if let Err(error) = batch.patience.call(|| self.context.store.write(&write)).await {
            tracing::warn!(cause = %describe(&error), "what is held cannot be noted");
        }
    }

    /// A digest of what this function derives. Stored, so it is stable.
    fn catalogue(&self) -> String {
        let of = |family: &Family| definitions(&self.context.catalogue, &self.context.schema, *family);
        let definitions: BTreeMap<String, String> = self.context.families.iter().flat_map(of).collect();
        let texts = definitions.into_iter().flat_map(|(name, definition)| [name, definition]);
        format!("{:032x}", fnv::hash_128(texts.flat_map(|text| text.into_bytes().into_iter().chain([0xff]))))
    }
}

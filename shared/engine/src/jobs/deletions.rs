//! Deletes the items that a cascade has listed: many items in a transaction that checks once that their owner is
//! absent.
//!
//! # Listed
//!
//! The list of a cascade: each item with a digest, in pages in the ledger's table.
//!
//! *Keeps true*: an item that was written after the listing is not deleted. A cascade lists the dependent items, waits
//! again until all changes from before the end of the listing are handled, and then deletes the items that are
//! unchanged. So an owner that was recreated under any key before a listed item was written has its mirror by then, and
//! the check of the owner ends the cascade. Later items are not listed, or have changed.
//!
//! There are two waits, because the listing needs the first to be complete: a mirror that leads to items may be written
//! late, and the cascade does not search for it a second time.
//!
//! A page can expire while a blocked cascade waits. Then the cascade lists again, and waits again.
//!
//! *Unchanged* refers to what the application wrote: Ripple's attributes are left out. A counter is compared whole, so
//! a counter that has counted since stays.
//!
//! *Example*: the post of `p1` is removed. After the grace period the job lists two comments. The post is recreated
//! under another key, and then a third comment is written. The third is not listed, and the post's mirror, which exists
//! by the end of the second grace period, saves the other two.

use std::collections::BTreeMap;

use derive::{
    declaration::{Cascade, Fate, Hanging},
    effect::Removal,
    guard::{Guard, Purpose},
    schema::Image,
    write::{Action, TRANSACT_ACTIONS_MAX, Table, Update, Write},
};
use keys::{
    counter::{CounterKey, REVISION, SUM, VALUE},
    fnv,
    item::{Item, text},
    key::Key,
    layout::Layout,
    size::item_bytes,
    value::is_zero,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    attribute::{n, number, s},
    job::{
        Job,
        touch::{self, TouchFailure, TouchOutcome, Work},
    },
    jobs::Worker,
    ledger::{EXPIRES_AT, expires_at, ledger_item, watermarks::marks},
};

/// How deletions ended.
pub(super) enum Deletion {
    /// This many are done. The items of the others have changed.
    Done(u64),
    OwnerExists,
}

/// Maximum items and bytes of items that one transaction deletes. Conditions compare the items' content, and a
/// transaction may have 4 MB.
const DELETIONS_MAX: usize = 24;
const DELETION_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Divides the writes into transactions, each with this many checks.
pub(super) fn chunks(writes: Vec<(Write, usize)>, n_checks: usize) -> Vec<Vec<Write>> {
    let n_max = TRANSACT_ACTIONS_MAX.saturating_sub(n_checks).clamp(1, DELETIONS_MAX);
    let (mut chunks, mut n_bytes) = (Vec::<Vec<Write>>::new(), 0);
    for (write, bytes) in writes {
        n_bytes += bytes;
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < n_max && n_bytes <= DELETION_BYTES_MAX => chunk.push(write),
            _ => {
                n_bytes = bytes;
                chunks.push(vec![write]);
            }
        }
    }
    chunks
}

/// What happens to a counter with watermarks: it is set to zero and keeps them, so that redelivered changes find them.
/// The sweep deletes it when they are old. `None` if that is done.
fn emptied(counter: &Item) -> Option<Action> {
    if [VALUE, SUM].iter().all(|name| counter.get(name).is_none_or(is_zero)) {
        return None;
    }
    let set = Item::from([(VALUE.to_owned(), n(0))]);
    Some(Action::Update(Update { set, remove: [SUM.to_owned()].into(), ..Update::default() }))
}

impl<S: Store> Worker<'_, S> {
    /// The writes for the items that are as they were listed, each with the item's size in bytes.
    pub(super) async fn fates(
        &self,
        listed: Vec<Listed>,
        cascade: &Cascade,
        hanging: &Hanging,
        removal: &Removal,
        work: &Work<'_>,
    ) -> Result<Vec<(Write, usize)>, TouchFailure> {
        let keys: Vec<Key> = listed.iter().map(|listed| listed.key.clone()).collect();
        let stored = work.batch.patience.call(|| self.context.store.get(Table::Main, &keys)).await?;
        let stored: BTreeMap<Key, Item> = stored.into_iter().collect();
        let fates = listed.into_iter().filter_map(|Listed { key, digest }| {
            let item = stored.get(&key)?;
            // The test `what_was_changed_since_it_was_listed_stays` covers this.
            let is_listed = self.digest(&key, item, hanging) == digest;
            let write = is_listed.then(|| self.fate(key, item, cascade, hanging, removal))??;
            Some((write, item_bytes(item)))
        });
        Ok(fates.collect())
    }

    /// The write for an item, on the condition that it is unchanged; `None` if nothing is to be done.
    fn fate(&self, key: Key, stored: &Item, cascade: &Cascade, hanging: &Hanging, removal: &Removal) -> Option<Write> {
        // Without a type attribute the key shows the entity; the condition then requires that the item exists.
        let layout = &self.context.schema.layout;
        let of_entity = layout.type_of(&hanging.entity).unwrap_or_else(|| (layout.sk.clone(), s(&key.sk)));
        let mut says = self.compared(&key, stored, hanging);
        says.insert(of_entity.0, Some(of_entity.1));
        let action = match &hanging.fate {
            Fate::Deleted if marks(stored).next().is_some() => emptied(stored)?,
            Fate::Deleted => Action::Delete,
            Fate::DeletedWhere { attribute, field } => {
                let image = self.context.schema.image(&key, stored)?;
                if !self.names_owner(&image, (attribute, field), cascade, &removal.owner) {
                    return None;
                }
                says.insert(attribute.clone(), stored.get(attribute).cloned());
                Action::Delete
            }
            Fate::Set { attribute, text } if stored.get(attribute) == Some(&s(text)) => return None,
            Fate::Set { attribute, text } => {
                Action::Update(Update::set(Item::from([(attribute.clone(), AttributeValue::S(text.clone()))])))
            }
        };
        let guard = Some(Guard::as_read(Purpose::StillTheirs, says));
        Some(Write { table: Table::Main, key, action, guard })
    }

    /// True if an attribute of an item has this field of the owner's key. The attribute may be of type N or B, like the
    /// key.
    fn names_owner(&self, image: &Image<'_>, (attribute, field): (&str, &str), cascade: &Cascade, owner: &Key) -> bool {
        let Some(definition) = self.context.schema.entity(&cascade.owner) else { return false };
        let Some(fields) = definition.key.parse_key(owner) else { return false };
        let Ok(Some(stored)) = image.filling(attribute, &definition.key, field) else { return false };
        let value = |name: &str| if name == field { Some(&*stored) } else { fields.get(name) };
        definition.build_of(value).is_ok_and(|named| named == *owner)
    }

    /// Sends these writes in a transaction that checks that the owner is absent, and omits those whose items have
    /// changed.
    ///
    /// Transactions run one after the other, because two that check the same owner at once would conflict.
    pub(super) async fn delete(
        &self,
        mut writes: Vec<Write>,
        removal: &Removal,
        work: &mut Work<'_>,
    ) -> Result<Deletion, TouchFailure> {
        let absent = removal.absent.iter().map(|owner| Write {
            table: Table::Main,
            key: owner.clone(),
            action: Action::Check,
            guard: Some(Guard::absent(Purpose::OwnerAbsent)),
        });
        let absent: Vec<Write> = absent.collect();
        while !writes.is_empty() {
            let all = absent.iter().chain(&writes).cloned().collect();
            match touch::decided(self.context, all, work).await {
                Ok(TouchOutcome::Done) => return Ok(Deletion::Done(u64::try_from(writes.len()).unwrap_or(0))),
                Ok(TouchOutcome::Unheld(at)) if at.iter().any(|at| *at < absent.len()) => {
                    return Ok(Deletion::OwnerExists);
                }
                Ok(TouchOutcome::Unheld(at)) => {
                    let mut place = absent.len();
                    writes.retain(|_| (!at.contains(&place), place += 1).0);
                }
                Err(TouchFailure::Refused(_)) if writes.len() > 1 => {
                    return self.delete_singly(writes, removal, work).await;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Deletion::Done(0))
    }

    /// Sends each of these writes alone, so that a refused one does not block the others.
    async fn delete_singly(
        &self,
        writes: Vec<Write>,
        removal: &Removal,
        work: &mut Work<'_>,
    ) -> Result<Deletion, TouchFailure> {
        let (mut n_done, mut refused) = (0, None);
        for write in writes {
            match Box::pin(self.delete(vec![write], removal, work)).await {
                Ok(Deletion::Done(n)) => n_done += n,
                Ok(Deletion::OwnerExists) => return Ok(Deletion::OwnerExists),
                Err(TouchFailure::Refused(why)) => refused = Some(why),
                Err(failure) => return Err(failure),
            }
        }
        refused.map_or(Ok(Deletion::Done(n_done)), |why| Err(TouchFailure::Refused(why)))
    }
}

// ---- The list of a cascade: each item with a digest, in pages in the ledger's table ----

// Attributes of a page. Stored, so they are stable.
const STEP: &str = "Step";
const ITEMS: &str = "Items";
const PK: &str = "PK";
const SK: &str = "SK";
const DIGEST: &str = "Digest";

/// Maximum number of attributes that the condition of a deletion compares: an expression may have at most 4 KB.
const COMPARED_MAX: usize = 100;

/// An item that was listed.
pub(crate) struct Listed {
    pub(crate) key: Key,
    pub(crate) digest: String,
}

impl<S: Store> Worker<'_, S> {
    /// The items under these keys, read consistently; missing ones are left out.
    pub(super) async fn items_now(&self, keys: &[Key], work: &Work<'_>) -> Result<Vec<(Key, Item)>, TouchFailure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        Ok(work.batch.patience.call(|| self.context.store.get(Table::Main, keys)).await?)
    }

    /// Lists these items with their current content.
    pub(super) fn listing(&self, items: Vec<(Key, Item)>, hanging: &Hanging) -> Vec<Listed> {
        let listed = |(key, item)| Listed { digest: self.digest(&key, &item, hanging), key };
        items.into_iter().map(listed).collect()
    }

    /// The attributes of an item that are compared.
    fn judged<'a>(
        &'a self,
        key: &Key,
        item: &'a Item,
        hanging: &Hanging,
    ) -> impl Iterator<Item = (&'a str, &'a AttributeValue)> {
        let layout = &self.context.schema.layout;
        let is_counter = CounterKey::parse(key).is_some();
        let definition = self.context.schema.entity(&hanging.entity).filter(|_| !is_counter);
        let is_derived = move |name: &str| definition.is_some_and(|it| it.derives(name));
        item.iter().filter(move |(name, _)| *name != layout.pk && *name != layout.sk && !is_derived(name))
    }

    /// The attributes that the condition of a deletion compares: those of the item, and the absence of declared
    /// attributes and of a counter's attributes. A condition cannot check that all other attributes are absent.
    fn compared(&self, key: &Key, item: &Item, hanging: &Hanging) -> BTreeMap<String, Option<AttributeValue>> {
        let mut lacking: Vec<&str> = if CounterKey::parse(key).is_some() {
            vec![VALUE, SUM, REVISION]
        } else {
            self.written_by_the_application(hanging).collect()
        };
        lacking.retain(|name| item.get(name).is_none());
        let judged = self.judged(key, item, hanging).map(|(name, value)| (name, Some(value.clone())));
        let compared = judged.chain(lacking.into_iter().map(|name| (name, None))).take(COMPARED_MAX);
        compared.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The declared attributes and index keys that the application may set.
    fn written_by_the_application(&self, hanging: &Hanging) -> impl Iterator<Item = &str> {
        let schema = &self.context.schema;
        let definition = schema.entity(&hanging.entity).into_iter();
        definition.flat_map(|definition| {
            let indexes = definition.indexes.iter().filter(|index| !index.derived);
            let keys = indexes.filter_map(|index| schema.layout.index(&index.index)).flat_map(|it| [&it.pk, &it.sk]);
            definition.attributes.iter().chain(keys).map(String::as_str).filter(|name| !definition.derives(name))
        })
    }

    /// A digest of the compared attributes of an item.
    fn digest(&self, key: &Key, item: &Item, hanging: &Hanging) -> String {
        // As a JSON value, because its maps are ordered.
        let text = |value: &AttributeValue| serde_json::to_value(value).unwrap_or_default().to_string();
        let judged = self.judged(key, item, hanging);
        let judged: BTreeMap<&str, String> = judged.map(|(name, value)| (name, text(value))).collect();
        let texts = judged.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        // Stored, so it is stable.
        format!("{:032x}", fnv::hash_128(texts.flat_map(|text| text.bytes().chain([0xff]))))
    }

    /// A page of the list, with the position of its items' declaration; `None` if it has expired.
    pub(super) async fn listed(
        &self,
        job: &Job,
        page: u64,
        work: &Work<'_>,
    ) -> Result<Option<(usize, Vec<Listed>)>, TouchFailure> {
        let stored = self.context.item(Table::Ledger, &key_of(&job.key, page), work.batch.patience).await?;
        let Some(item) = stored else { return Ok(None) };
        let step = number(&item, STEP).and_then(|step| usize::try_from(step).ok()).unwrap_or_default();
        let Some(AttributeValue::L(entries)) = item.get(ITEMS) else { return Ok(Some((step, Vec::new()))) };
        let listed = |entry: &AttributeValue| {
            let AttributeValue::M(entry) = entry else { return None };
            let entry: Item = entry.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let part = |name| text(&entry, name).map(str::to_owned);
            Some(Listed { key: Key { pk: part(PK)?, sk: part(SK)? }, digest: part(DIGEST)? })
        };
        Ok(Some((step, entries.iter().filter_map(listed).collect())))
    }
}

/// The write of a page of a job's list, with the position of its items' declaration.
pub(crate) fn page_of_list(
    layout: &Layout,
    job: &Key,
    (page, step): (u64, usize),
    listed: &[Listed],
    now_ms: u64,
) -> Write {
    let key = key_of(job, page);
    let entry = |Listed { key, digest }: &Listed| {
        let texts = [(PK, &key.pk), (SK, &key.sk), (DIGEST, digest)];
        AttributeValue::M(texts.map(|(name, text)| (name.to_owned(), s(text))).into_iter().collect())
    };
    let attributes = [
        (STEP, n(u64::try_from(step).unwrap_or(u64::MAX))),
        (ITEMS, AttributeValue::L(listed.iter().map(entry).collect())),
        (EXPIRES_AT, expires_at(now_ms)),
    ];
    let item = ledger_item(layout, &key, attributes);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
}

fn key_of(job: &Key, page: u64) -> Key {
    Key::new(format!("LISTED#{}#{}", job.pk, job.sk), format!("{page:010}"))
}

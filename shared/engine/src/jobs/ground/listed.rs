//! What a cascade has listed: each item with a digest of it, in pages in the ledger's table.
//!
//! *Keeps true*: an item that was written after the listing is not deleted. A cascade lists what hangs, waits once more
//! until all is seen that was written up to the end of the listing, and then deletes what is still as it was listed. So an
//! owner that was put again, under whatever key, before a listed item was written has its mirror by then, and the check
//! of the owner ends the cascade; and what came later is not listed, or not as it was.
//!
//! Two waits, since the first is what the listing needs to be whole: a mirror by which items are found may be written
//! late, and nobody looks for it a second time.
//!
//! A page expires while a cascade waits for long, as one may that something holds. Then the cascade lists anew, and waits anew.
//!
//! *What is as it was* is judged by what the application wrote: what Ripple writes into an item is left out. A counter is
//! judged by all it holds, so one that was counted in since stays.
//!
//! *Example*: the post of `p1` is removed. When that is settled, the job lists two comments. The post is put again under
//! another key, and a third comment after it: the third is not listed, and the mirror that the post has when the listing
//! is settled saves the other two.

use std::collections::BTreeMap;

use derive::{
    declaration::cascade::Hanging,
    write::{Action, Table, Write},
};
use keys::{
    counter::{CounterKey, REVISION, SUM, VALUE},
    fnv,
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    attribute::{n, number, s},
    jobs::{
        ground::Worker,
        job::Job,
        touch::{TouchFailure, Toucher, Work},
    },
    ledger::{EXPIRES_AT, expires_at, ledger_item},
};

// Attributes of a page. Stored, so they are stable.
const STEP: &str = "Step";
const ITEMS: &str = "Items";
const PK: &str = "PK";
const SK: &str = "SK";
const DIGEST: &str = "Digest";

/// Attributes that the condition of a deletion compares at most: an expression may not be longer than 4 KB.
const COMPARED_MAX: usize = 100;

/// An item that was listed.
pub(crate) struct Listed {
    pub(crate) key: Key,
    pub(crate) digest: String,
}

impl<S: Store> Worker<'_, S> {
    /// The items under these keys, read consistently; those that are not there are left out.
    pub(super) async fn items_now(&self, keys: &[Key], work: &Work<'_>) -> Result<Vec<(Key, Item)>, TouchFailure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        Ok(work.batch.patience.call(|| self.context.store.get(Table::Main, keys)).await?)
    }

    /// These items, listed as they are.
    pub(super) fn listing(&self, items: Vec<(Key, Item)>, hanging: &Hanging) -> Vec<Listed> {
        let listed = |(key, item)| Listed { digest: self.digest(&key, &item, hanging), key };
        items.into_iter().map(listed).collect()
    }

    /// What an item holds by which it is judged.
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

    /// What the condition of a deletion compares: what the item holds, and that it still lacks what its declaration names
    /// and what a counter may hold. A condition cannot ask for the lack of all other attributes.
    pub(super) fn compared(
        &self,
        key: &Key,
        item: &Item,
        hanging: &Hanging,
    ) -> BTreeMap<String, Option<AttributeValue>> {
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

    /// The declared attributes and index keys that the application may give an item.
    fn written_by_the_application(&self, hanging: &Hanging) -> impl Iterator<Item = &str> {
        let schema = &self.context.schema;
        let definition = schema.entity(&hanging.entity).into_iter();
        definition.flat_map(|definition| {
            let indexes = definition.indexes.iter().filter(|index| !index.derived);
            let keys = indexes.filter_map(|index| schema.layout.index(&index.index)).flat_map(|it| [&it.pk, &it.sk]);
            definition.attributes.iter().chain(keys).map(String::as_str).filter(|name| !definition.derives(name))
        })
    }

    /// A digest of what an item holds by which it is judged.
    pub(super) fn digest(&self, key: &Key, item: &Item, hanging: &Hanging) -> String {
        // By way of a value of JSON, whose maps are in order.
        let text = |value: &AttributeValue| serde_json::to_value(value).unwrap_or_default().to_string();
        let judged = self.judged(key, item, hanging);
        let judged: BTreeMap<&str, String> = judged.map(|(name, value)| (name, text(value))).collect();
        let texts = judged.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        // Stored, so it is stable.
        format!("{:032x}", fnv::hash_128(texts.flat_map(|text| text.bytes().chain([0xff]))))
    }

    /// A page of the list, with the place in the declaration of what is on it; `None` if it has expired.
    pub(super) async fn listed(
        &self,
        job: &Job,
        page: u64,
        work: &Work<'_>,
    ) -> Result<Option<(usize, Vec<Listed>)>, TouchFailure> {
        let held = Toucher::new(self.context).item_now(Table::Ledger, &key_of(&job.key, page), work).await?;
        let Some(item) = held else { return Ok(None) };
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

/// The write of a page of the list of a job, with the place in the declaration of what is on it.
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

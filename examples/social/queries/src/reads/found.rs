//! Items by key: one, or many at once.

use std::collections::{BTreeMap, BTreeSet};

use derive::{query::Consistency, write::Table};
use keys::{entity::Entity, item::Item, key::Key};
use store::Store;

use crate::{Queries, page::InvalidItem, read_error::ReadError};

/// The result of a read by keys.
#[derive(Debug)]
#[must_use]
pub struct FoundItems<E: Entity> {
    /// The existing items, in the order of the request, each once.
    pub items: Vec<E>,
    /// Keys without an item, in the same order.
    pub missing: Vec<E::Key>,
    /// Items that do not fit their declaration.
    pub unreadable: Vec<InvalidItem>,
}

impl<S: Store> Queries<S> {
    /// One item; `None` if it does not exist, or belongs to another entity.
    pub(crate) async fn one<E: Entity>(&self, key: &E::Key, consistency: Consistency) -> Result<Option<E>, ReadError> {
        let key = E::primary_key(key)?;
        let mut found = self.store.read(Table::Main, std::slice::from_ref(&key), consistency).await?;
        let Some((key, item)) = found.pop() else { return Ok(None) };
        E::from_item(&self.layout, &item).map_err(|source| ReadError::Item { key, source })
    }

    /// Many items; an item of another entity counts as missing.
    pub(crate) async fn many<E: Entity>(
        &self,
        keys: Vec<E::Key>,
        consistency: Consistency,
    ) -> Result<FoundItems<E>, ReadError> {
        let mut asked = Vec::new();
        for key in keys {
            asked.push((E::primary_key(&key)?, key));
        }
        let keys: Vec<Key> = asked.iter().map(|(key, _)| key.clone()).collect();
        let read = if keys.is_empty() { Vec::new() } else { self.store.read(Table::Main, &keys, consistency).await? };
        let mut read: BTreeMap<Key, Item> = read.into_iter().collect();
        let mut found = FoundItems { items: Vec::new(), missing: Vec::new(), unreadable: Vec::new() };
        let mut seen = BTreeSet::new();
        for (key, typed) in asked {
            if !seen.insert(key.clone()) {
                continue;
            }
            match read.remove(&key).map(|item| E::from_item(&self.layout, &item)) {
                Some(Ok(Some(item))) => found.items.push(item),
                Some(Err(error)) => found.unreadable.push(InvalidItem { key, error }),
                Some(Ok(None)) | None => found.missing.push(typed),
            }
        }
        Ok(found)
    }
}

//! Writes before they are sent: what they put, change, delete and check, and their conditions.
//!
//! A write never replaces an item that may exist, so derived attributes and the attributes of other clients stay.

use std::vec;

use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{entity::Definition, fields::Fields, item::Item, key::Key, number::Decimal};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{Queries, write_error::WriteError};

/// A string value.
pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// Values of type S.
pub(super) fn texts<'a>(
    texts: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> vec::IntoIter<(&'static str, AttributeValue)> {
    texts.into_iter().map(|(name, value)| (name, text(value))).collect::<Vec<_>>().into_iter()
}

/// A number value.
pub(super) fn number(number: impl Into<Decimal>) -> AttributeValue {
    AttributeValue::N(number.into().to_string())
}

/// The change of an optional attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edit<T> {
    /// Leaves it.
    #[default]
    Keep,
    /// Sets it.
    Set(T),
    /// Removes it.
    Clear,
}

impl<T> Edit<T> {
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Edit<U> {
        match self {
            Self::Keep => Edit::Keep,
            Self::Set(value) => Edit::Set(map(value)),
            Self::Clear => Edit::Clear,
        }
    }
}

/// A write with this condition.
pub(super) fn write(key: Key, action: Action, asks: Vec<Ask>) -> Write {
    let guard = (!asks.is_empty()).then_some(Guard { purpose: Purpose::Application, asks });
    Write { table: Table::Main, key, action, guard }
}

/// Deletes an existing item.
pub(super) fn deletion(key: Key) -> Write {
    write(key, Action::Delete, vec![Ask::Present])
}

/// Checks an item that the transaction does not write.
pub(super) fn check(key: Key, asks: Vec<Ask>) -> Write {
    write(key, Action::Check, asks)
}

/// A change of some attributes of an existing item.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    key: Key,
    update: Update,
    asks: Vec<Ask>,
}

impl Draft {
    /// A change at this time of an item that must exist.
    pub(super) fn of(key: Key, now: &str) -> Self {
        let update = Update::set([("UpdatedAt", text(now))].into());
        Self { key, update, asks: vec![Ask::Present] }
    }

    /// Sets an attribute.
    pub(super) fn set(mut self, attribute: &'static str, value: AttributeValue) -> Self {
        self.update.set.insert(attribute, value);
        self
    }

    /// Sets an attribute if there is a value.
    pub(super) fn set_some(self, attribute: &'static str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self,
        }
    }

    /// Sets, removes or leaves an attribute.
    pub(super) fn edit(self, attribute: &'static str, edit: Edit<AttributeValue>) -> Self {
        match edit {
            Edit::Keep => self,
            Edit::Set(value) => self.set(attribute, value),
            Edit::Clear => self.clear(attribute),
        }
    }

    /// Removes an attribute.
    pub(super) fn clear(mut self, attribute: &'static str) -> Self {
        self.update.remove.insert(attribute.to_owned());
        self
    }

    /// Adds to a number or a set.
    pub(super) fn add(mut self, attribute: &'static str, value: AttributeValue) -> Self {
        self.update.add.insert(attribute, value);
        self
    }

    /// Removes elements from a set.
    pub(super) fn take(mut self, attribute: &'static str, value: AttributeValue) -> Self {
        self.update.delete.insert(attribute, value);
        self
    }

    /// Adds a condition.
    pub(super) fn asking(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// Key of the changed item.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// The write.
    pub(super) fn write(self) -> Write {
        write(self.key, Action::Update(self.update), self.asks)
    }
}

impl<S> Queries<S> {
    /// The manifest's declaration of an entity.
    pub(super) fn entity(&self, entity: &'static str) -> Result<&Definition, WriteError> {
        self.schema.entity(entity).ok_or(WriteError::Undeclared { entity })
    }

    /// The key of an entity's item with these fields.
    pub(super) fn key<const N: usize>(
        &self,
        entity: &'static str,
        fields: [(&'static str, &str); N],
    ) -> Result<Key, WriteError> {
        Ok(self.entity(entity)?.build(&Fields::from(fields))?)
    }

    /// The fields of a caller's key. No item of this entity has a key of another form.
    pub(super) fn fields(&self, entity: &'static str, key: &Key) -> Result<Fields, WriteError> {
        self.entity(entity)?.key.parse_key(key).ok_or_else(|| WriteError::NotFound { item: key.clone() })
    }

    /// A caller's key, if it has the form of this entity's keys.
    pub(super) fn of(&self, entity: &'static str, key: &Key) -> Result<Key, WriteError> {
        self.fields(entity, key).map(|_| key.clone())
    }

    /// Puts an item that is created at this time, with this condition.
    pub(super) fn putting(
        &self,
        entity: &'static str,
        now: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
        asks: Vec<Ask>,
    ) -> Result<Write, WriteError> {
        let times = ["CreatedAt", "UpdatedAt"].map(|name| (name, text(now)));
        let values = times.into_iter().chain(values).collect();
        let (key, item) = self.entity(entity)?.item(&self.schema.layout, values)?;
        Ok(write(key, Action::Put(item), asks))
    }

    /// Puts an item that must not exist.
    pub(super) fn creation(
        &self,
        entity: &'static str,
        now: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Result<Write, WriteError> {
        self.putting(entity, now, values, vec![Ask::Absent])
    }

    /// The draft that also sets the item's key in an index from these values, or removes the item from the index.
    pub(super) fn indexed(
        &self,
        mut draft: Draft,
        entity: &'static str,
        index: &str,
        values: &[(&'static str, &str)],
    ) -> Result<Draft, WriteError> {
        let (definition, mut fields) = (self.entity(entity)?, self.fields(entity, &draft.key)?);
        for (name, value) in values {
            fields.insert(*name, *value);
        }
        let form = definition.indexes.iter().find(|form| form.index == index);
        let (Some(form), Some(names)) = (form, self.schema.layout.index(index)) else { return Ok(draft) };
        match definition.index_key(form, &fields)? {
            Some(key) => {
                draft.update.set.insert(names.pk.as_str(), text(key.pk));
                draft.update.set.insert(names.sk.as_str(), text(key.sk));
            }
            None => draft.update.remove.extend([names.pk.clone(), names.sk.clone()]),
        }
        Ok(draft)
    }
}

impl<S: Store> Queries<S> {
    /// Creates an item; refused if it exists. Returns its key.
    pub(super) async fn create(
        &self,
        entity: &'static str,
        now: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Result<Key, WriteError> {
        let creation = self.creation(entity, now, values)?;
        let item = creation.key.clone();
        if self.send(creation).await? { Ok(item) } else { Err(WriteError::AlreadyExists { item }) }
    }

    /// Changes an item; refused if it does not exist.
    pub(super) async fn amend(&self, draft: Draft) -> Result<(), WriteError> {
        let item = draft.key.clone();
        if self.send(draft.write()).await? { Ok(()) } else { Err(WriteError::NotFound { item }) }
    }

    /// Deletes an item; returns false if it did not exist.
    pub(super) async fn delete(&self, key: Key) -> Result<bool, WriteError> {
        self.send(deletion(key)).await
    }
}

/// The number in an attribute.
pub(super) fn decimal(item: &Item, attribute: &str) -> Option<Decimal> {
    match item.get(attribute) {
        Some(AttributeValue::N(text)) => Decimal::parse(text),
        _ => None,
    }
}

/// Requires that a stored attribute is as it was read.
pub(super) fn as_read(attribute: &'static str, item: &Item) -> Ask {
    Ask::as_read(attribute, item.get(attribute))
}

/// Requires that an item is this user's.
pub(super) fn is_user(user_id: &str) -> Ask {
    Ask::Equal("UserId".to_owned(), text(user_id))
}

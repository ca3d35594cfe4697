//! Writes before they are sent: what they put, change, delete and check, and their conditions.
//!
//! A write never replaces an item that may exist, so derived attributes and the attributes of other clients stay.

use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use entities::ids::UserId;
use keys::{
    entity::{Entity, EntityKey},
    fields::Fields,
    item::Item,
    key::Key,
    layout::Layout,
    number::Decimal,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{Queries, write_error::WriteError};

/// A string value.
pub(super) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
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
    /// An empty change of an item that must exist.
    pub(super) fn of<E: Entity>(key: &E::Key) -> Result<Self, WriteError> {
        Ok(Self { key: E::primary_key(key)?, update: Update::default(), asks: vec![Ask::Present] })
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

    /// Sets the item's key in an index from these values of its attributes, or removes the item from the index.
    pub(super) fn indexed<E: Entity>(
        mut self,
        layout: &Layout,
        index: &str,
        key: &E::Key,
        attributes: &[(&'static str, &str)],
    ) -> Result<Self, WriteError> {
        let mut fields: Fields = key.fields();
        for (name, value) in attributes {
            fields.insert(*name, *value);
        }
        let definition = E::definition();
        let form = definition.indexes.iter().find(|form| form.index == index);
        let (Some(form), Some(names)) = (form, layout.index(index)) else { return Ok(self) };
        match definition.index_key(form, &fields)? {
            Some(key) => {
                self.update.set.insert(names.pk.as_str(), text(key.pk));
                self.update.set.insert(names.sk.as_str(), text(key.sk));
            }
            None => self.update.remove.extend([names.pk.clone(), names.sk.clone()]),
        }
        Ok(self)
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

impl<S: Store> Queries<S> {
    /// Puts an entity with this condition.
    pub(super) fn putting<E: Entity>(&self, entity: &E, asks: Vec<Ask>) -> Result<Write, WriteError> {
        let key = E::primary_key(entity.key())?;
        Ok(write(key, Action::Put(entity.to_item(&self.layout)?), asks))
    }

    /// Puts an entity that must not exist.
    pub(super) fn creation<E: Entity>(&self, entity: &E) -> Result<Write, WriteError> {
        self.putting(entity, vec![Ask::Absent])
    }

    /// Creates an entity; refused if it exists.
    pub(super) async fn create<E: Entity + Sync>(&self, entity: &E) -> Result<(), WriteError> {
        let creation = self.creation(entity)?;
        let item = creation.key.clone();
        if self.send(creation).await? { Ok(()) } else { Err(WriteError::AlreadyExists { item }) }
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

/// Requires that a stored attribute is as it was read.
pub(super) fn as_read(attribute: &'static str, item: &Item) -> Ask {
    Ask::as_read(attribute, item.get(attribute))
}

/// Requires that an attribute names this user.
pub(super) fn is_user(attribute: &'static str, user_id: &UserId) -> Ask {
    Ask::Equal(attribute.to_owned(), text(user_id.as_str()))
}

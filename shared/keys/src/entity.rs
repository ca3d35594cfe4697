//! Entities: the form of one kind of items, as data and as types.

use serde_dynamo::AttributeValue;
use smol_str::SmolStr;

pub use crate::key_template::{KeyTemplate, StoredForm};
use crate::{
    counter::TARGET_PARTITION,
    error::{EntityError, KeyError, Problem},
    fields::Fields,
    index_key::{IndexKey, OnlyIf},
    item::{Item, text},
    key::Key,
    layout::Layout,
    template::Piece,
};

/// The form of the items of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its row in the table's design, such as `E-04`.
    pub id: String,
    /// Text of the type attribute, such as `Comment`.
    pub name: String,
    /// Form of its primary key.
    pub key: KeyTemplate,
    /// Its keys in indexes.
    pub indexes: Vec<IndexKey>,
    /// True if the whole item is derived.
    pub derived: bool,
    /// Names of the application's attributes, without fields of the key.
    pub attributes: Vec<String>,
    /// Names of the attributes that this service writes.
    pub derived_attributes: Vec<String>,
}

impl Definition {
    /// True for Ripple's own items beside the items of all entities: [counters](crate::counter) and
    /// [entries](crate::entry).
    #[must_use]
    pub fn is_own(&self) -> bool {
        let is_target = |piece: &Piece| matches!(piece, Piece::Field { name, .. } if name == TARGET_PARTITION);
        self.derived && self.key.pk.pieces().first().is_some_and(is_target)
    }

    /// Builds a primary key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the entity and the field.
    pub fn build(&self, fields: &Fields) -> Result<Key, KeyError> {
        self.build_of(|name| fields.get(name))
    }

    /// Builds a primary key from values that are looked up by field name.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_of<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Result<Key, KeyError> {
        self.key.build_of(value).map_err(|error| error.of(&self.name))
    }

    /// The fields of an item: those of its key, and its other attributes with the type that the entity's keys need: N
    /// for a number, B for bytes, else S. A value of another type cannot be interpreted, so it is absent here, as for
    /// derivations.
    ///
    /// The key has precedence, since it addresses the item. `None` if the key does not have this entity's form.
    #[must_use]
    pub fn fields(&self, key: &Key, item: &Item) -> Option<Fields> {
        let mut fields: Fields = item
            .iter()
            .filter_map(|(name, value)| match value {
                AttributeValue::S(text) if !self.holds_number(name) => Some((name, text.into())),
                AttributeValue::N(text) if self.holds_number(name) => Some((name, text.into())),
                AttributeValue::B(bytes) if self.holds_bytes(name) => Some((name, SmolStr::from(hex::encode(bytes)))),
                _ => None,
            })
            .collect();
        for (name, value) in self.key_fields(key, item)?.iter() {
            fields.insert(name, value);
        }
        Some(fields)
    }

    /// The fields of an item's key. A text that the key contains in one case only is that of the item's attribute of the
    /// same name, if the attribute has this text. `None` if the key does not have this entity's form.
    #[must_use]
    pub fn key_fields(&self, key: &Key, item: &Item) -> Option<Fields> {
        let mut fields = self.key.parse_key(key)?;
        if !self.key.is_cased() {
            return Some(fields);
        }
        for name in self.attributes.iter().filter(|name| self.key.holds(name)) {
            if let (Some(casing), Some(value)) = (self.key.casing(name), text(item, name))
                && fields.get(name).is_some_and(|stored| casing.of(value) == stored)
            {
                fields.insert(name.as_str(), value);
            }
        }
        Some(fields)
    }

    fn holds_bytes(&self, field: &str) -> bool {
        self.key.is_of_bytes(field) || self.indexes.iter().any(|index| index.key.is_of_bytes(field))
    }

    fn holds_number(&self, field: &str) -> bool {
        self.key.holds_number(field) || self.indexes.iter().any(|index| index.key.holds_number(field))
    }

    /// The item's key in an index; `None` if it should not be in the index.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the item should be in the index and its key cannot be built.
    pub fn index_key(&self, index: &IndexKey, fields: &Fields) -> Result<Option<Key>, KeyError> {
        if !index.only_if.as_ref().is_none_or(|only_if| only_if.holds(fields)) {
            return Ok(None);
        }
        index.key.build(fields).map(Some).map_err(|error| error.of(&self.name))
    }

    /// The first index key that the item's writer sets and DynamoDB refuses as too long: the index, and the problem.
    #[must_use]
    pub fn long_index_key<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Option<(&str, KeyError)> {
        let is_in = |only_if: &OnlyIf| only_if.holds_of(value(only_if.attribute()));
        let mut indexes = self.written_indexes().filter(|index| index.only_if.as_ref().is_none_or(is_in));
        indexes.find_map(|index| {
            let error = index.key.build_of(&value).err()?;
            matches!(error.problem, Problem::TooLong { .. }).then_some((index.index.as_str(), error))
        })
    }

    /// The index key attributes that an item's writer sets: with their values, or `None` if the item must not have
    /// them. Derived ones are not set by the writer.
    ///
    /// A key that cannot be built keeps the item out of that index.
    #[must_use]
    pub fn index_attributes(&self, layout: &Layout, fields: &Fields) -> Vec<(String, Option<AttributeValue>)> {
        let mut attributes = Vec::new();
        for index in self.written_indexes() {
            let Some(names) = layout.index(&index.index) else { continue };
            let (pk, sk) = match self.index_key(index, fields) {
                Ok(Some(key)) => (Some(AttributeValue::S(key.pk)), Some(AttributeValue::S(key.sk))),
                Ok(None) | Err(_) => (None, None),
            };
            attributes.push((names.pk.clone(), pk));
            attributes.push((names.sk.clone(), sk));
        }
        attributes
    }

    /// The attributes and key fields that decide [`index_attributes`](Self::index_attributes), some of them twice.
    pub fn index_fields(&self) -> impl Iterator<Item = &str> {
        self.written_indexes().flat_map(|index| {
            let decides = index.only_if.iter().map(OnlyIf::attribute);
            index.key.field_names().into_iter().chain(decides)
        })
    }

    /// The indexes whose keys the item's writer sets.
    pub fn written_indexes(&self) -> impl Iterator<Item = &IndexKey> {
        self.indexes.iter().filter(|index| !index.derived)
    }
}

/// The typed key of an entity.
pub trait EntityKey: Sized {
    /// Its fields by name.
    fn fields(&self) -> Fields;

    /// The typed key of these fields; `None` if one is missing or has another form.
    fn from_fields(fields: &Fields) -> Option<Self>;
}

/// A typed item. Implemented by [`entity!`](macro@crate::entity).
pub trait Entity: Sized {
    /// Text of the type attribute.
    const NAME: &'static str;

    /// Its key.
    type Key: EntityKey;

    /// The declaration as data.
    fn definition() -> &'static Definition;

    /// The item's key.
    fn key(&self) -> &Self::Key;

    /// The declared attributes that it has, without the key.
    fn attributes(&self) -> Item;

    /// The item of this key with these attributes; undeclared ones are omitted.
    ///
    /// # Errors
    ///
    /// [`EntityError::Attribute`] naming an attribute that does not fit its declaration.
    fn read(key: Self::Key, attributes: &Item) -> Result<Self, EntityError>;

    /// The primary key of a typed key, without the item.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the entity and the field.
    fn primary_key(key: &Self::Key) -> Result<Key, KeyError> {
        Self::definition().build(&key.fields())
    }

    /// The typed key of a primary key; `None` if it is another entity's.
    #[must_use]
    fn parse_key(key: &Key) -> Option<Self::Key> {
        Self::Key::from_fields(&Self::definition().key.parse_key(key)?)
    }

    /// The operand of `begins_with` on the sort key for all items of this entity in a collection.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming a field that does not fit.
    fn sort_key_prefix(fields: &Fields) -> Result<String, KeyError> {
        Self::definition().key.sk.prefix(fields).map_err(|error| error.of(Self::NAME))
    }

    /// The whole item, with primary key, type and the index keys that a writer sets.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a key cannot be built, including index keys.
    fn to_item(&self, layout: &Layout) -> Result<Item, EntityError> {
        let definition = Self::definition();
        let mut item = self.attributes();
        let key = Self::primary_key(self.key())?;
        let fields = definition.fields(&key, &item).unwrap_or_default();
        for index in definition.written_indexes() {
            if let (Some(names), Some(key)) = (layout.index(&index.index), definition.index_key(index, &fields)?) {
                item.insert(names.pk.clone(), AttributeValue::S(key.pk));
                item.insert(names.sk.clone(), AttributeValue::S(key.sk));
            }
        }
        item.extend(layout.key_item(&key));
        item.extend(layout.type_of(Self::NAME));
        Ok(item)
    }

    /// The typed item; `None` if the item is of another entity. In a table without types, it must have this entity's
    /// key.
    ///
    /// # Errors
    ///
    /// [`EntityError`] if it names this entity and its key or attributes do not fit.
    fn from_item(layout: &Layout, item: &Item) -> Result<Option<Self>, EntityError> {
        if layout.entity_type.as_ref().is_some_and(|attribute| text(item, attribute) != Some(Self::NAME)) {
            return Ok(None);
        }
        let key = layout.key(item).and_then(|key| Self::parse_key(&key)).ok_or_else(|| EntityError::Key {
            entity: Self::NAME,
            template: format!("{} / {}", Self::definition().key.pk, Self::definition().key.sk),
        })?;
        Self::read(key, item).map(Some)
    }
}

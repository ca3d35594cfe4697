//! Entities: the form of one kind of items, as data.

use serde_dynamo::AttributeValue;
use smol_str::SmolStr;

pub use crate::key_template::{KeyTemplate, StoredForm};
use crate::{
    counter::TARGET_PARTITION,
    error::{KeyError, Problem},
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

    /// A new item with these values: with its primary key, its type, and the index keys that its writer sets. A value that
    /// fills the primary key is no attribute beside it, unless the entity declares that attribute.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a key cannot be built, including index keys.
    pub fn item(&self, layout: &Layout, mut values: Item) -> Result<(Key, Item), KeyError> {
        let key = self.build_of(|name| match values.get(name)? {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text.as_str()),
            _ => None,
        })?;
        values.retain(|name, _| !self.key.holds(name) || self.attributes.iter().any(|declared| declared == name));
        let fields = self.fields(&key, &values).unwrap_or_default();
        for index in self.written_indexes() {
            if let (Some(names), Some(key)) = (layout.index(&index.index), self.index_key(index, &fields)?) {
                values.insert(names.pk.as_str(), AttributeValue::S(key.pk));
                values.insert(names.sk.as_str(), AttributeValue::S(key.sk));
            }
        }
        values.extend(layout.key_item(&key));
        values.extend(layout.mark_of(self));
        Ok((key, values))
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

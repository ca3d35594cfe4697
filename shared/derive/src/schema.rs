//! A schema: the attribute names of a table, and its entities.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use keys::{
    entity::{Definition, KeyTemplate},
    error::KeyError,
    fields::Fields,
    item::{Item, text},
    key::Key,
    layout::Layout,
    value,
};
use serde_dynamo::AttributeValue;

use crate::{access::Access, derived::Items, expression::document_path};

/// The names and entities of one table, as a value. The engine knows nothing else about a table.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Names of attributes and indexes.
    pub layout: Layout,
    /// The application's reads.
    pub accesses: Vec<Access>,
    entities: BTreeMap<String, Definition>,
}

/// Why an item's value cannot be interpreted. Names the attribute, never the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{attribute} {why}")]
pub struct Unreadable {
    /// The attribute at fault.
    pub attribute: String,
    /// The problem: a sentence whose subject is the attribute, such as "is empty".
    pub why: String,
}

impl Unreadable {
    /// The key in this index would be too long.
    pub(crate) fn long_index_key((index, error): (&str, KeyError)) -> Self {
        Self { attribute: error.attribute, why: format!("{}, so the item is not in the index {index}", error.problem) }
    }

    /// The attribute has a wrong type; `wanted` says which type is needed.
    pub(crate) fn type_of(attribute: &str, stored: &AttributeValue, wanted: &str) -> Self {
        Self { attribute: attribute.to_owned(), why: format!("is {}, and {wanted}", value::type_of(stored)) }
    }
}

/// What an item is, according to the schema.
#[derive(Clone, Debug)]
pub enum Seen<'a> {
    /// It has no type attribute of type S: it is not ours.
    Untyped,
    /// Its entity or the form of its key is undeclared, or it is a foreign item under a derived item's key: it is not
    /// ours.
    Unknown,
    /// It is an item of a declared entity.
    Known(Image<'a>),
    /// Its type attribute names a declared entity, but its key does not have that entity's form.
    Misfit(Unreadable),
}

/// An item of a declared entity, in an image or in the table.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Definition of its entity.
    pub definition: &'a Definition,
    /// Its primary key.
    pub key: &'a Key,
    /// Its attributes.
    pub item: &'a Item,
    fields: Arc<Fields>,
}

impl Schema {
    /// A schema of these entities. The attributes of a derived index key are derived attributes.
    #[must_use]
    pub fn new(layout: Layout, definitions: impl IntoIterator<Item = Definition>) -> Self {
        let with_keys = |mut definition: Definition| {
            for index in definition.indexes.iter().filter(|index| index.derived) {
                let names = layout.index(&index.index).map(|names| [names.pk.clone(), names.sk.clone()]);
                definition.derived_attributes.extend(names.into_iter().flatten());
            }
            (definition.name.clone(), definition)
        };
        let entities = definitions.into_iter().map(with_keys).collect();
        Self { layout, accesses: Vec::new(), entities }
    }

    /// The schema with these entities too.
    #[must_use]
    pub fn with(mut self, definitions: impl IntoIterator<Item = Definition>) -> Self {
        self.entities.extend(definitions.into_iter().map(|definition| (definition.name.clone(), definition)));
        self
    }

    /// The definition of an entity, by the text of its type attribute.
    #[must_use]
    pub fn entity(&self, name: &str) -> Option<&Definition> {
        self.entities.get(name)
    }

    /// All entities, in order of their names.
    pub fn entities(&self) -> impl Iterator<Item = &Definition> {
        self.entities.values()
    }

    /// What an item is.
    #[must_use]
    pub fn see<'a>(&'a self, key: &'a Key, item: &'a Item) -> Seen<'a> {
        let Some(attribute) = &self.layout.entity_type else { return self.told_by_its_key(key, item) };
        let Some(name) = text(item, attribute) else { return Seen::Untyped };
        let Some(definition) = self.entity(name) else { return Seen::Unknown };
        if let Some(fields) = definition.key_fields(key, item) {
            return Seen::Known(Image { definition, key, item, fields: Arc::new(fields) });
        }
        Seen::Misfit(self.misfit(definition, key))
    }

    /// Why a key is not of this entity's form.
    fn misfit(&self, definition: &Definition, key: &Key) -> Unreadable {
        let (name, form) = (&definition.name, &definition.key);
        let wanted = form.to_string();
        let n_signs = |text: &str| text.matches('#').count();
        let is_escaped = key.pk.contains('%')
            || key.sk.contains('%')
            || n_signs(&key.pk) + n_signs(&key.sk) > n_signs(&wanted) && !wanted.contains("!}");
        let numbers = definition.key.field_names().into_iter().filter_map(|field| {
            let written = form.pk.written(field).or_else(|| form.sk.written(field))?;
            let width = form.pk.width(field).or_else(|| form.sk.width(field))?;
            Some(format!("; {written} has {} digits", width.digits))
        });
        let numbers: String = numbers.collect();
        let why = if form.is_in_doubt(key) {
            format!(
                "can be read in two ways as {wanted} of {name}: mark the field whose values hold the text between two fields \
                 with *, as in {{name*}}"
            )
        } else {
            let escapes = if is_escaped { "; in a value, # is written %23 and % is written %25" } else { "" };
            format!("are not {wanted}, the form of {name}{numbers}{escapes}")
        };
        // The mark of a value without escapes is not written in a manifest.
        Unreadable { attribute: self.layout.stored_key(definition), why: why.replace("!}", "}") }
    }

    /// What an item is in a table without a type attribute: of the first entity whose key form fits, and that it names
    /// if it must. The code that builds such a schema ensures that no key fits two entities. The general forms of counters
    /// and entries fit keys of others too, so they come last.
    fn told_by_its_key<'a>(&'a self, key: &'a Key, item: &'a Item) -> Seen<'a> {
        let fitting = |definition: &'a Definition| Some((definition, definition.key_fields(key, item)?));
        let others = || self.entities().filter(|definition| !definition.is_own());
        let own = self.entities().filter(|definition| definition.is_own());
        match others().chain(own).find_map(fitting) {
            Some((definition, fields)) if self.layout.names(definition, item) => {
                Seen::Known(Image { definition, key, item, fields: Arc::new(fields) })
            }
            Some(_) => Seen::Unknown,
            None => match others().find(|definition| !definition.derived && definition.key.is_in_doubt(key)) {
                Some(definition) => Seen::Misfit(self.misfit(definition, key)),
                None => Seen::Unknown,
            },
        }
    }

    /// The attribute by which an item of this entity names it; `None` if its key alone shows the entity.
    #[must_use]
    pub fn mark_of(&self, entity: &str) -> Option<(String, AttributeValue)> {
        self.entity(entity).map_or_else(|| self.layout.type_of(entity), |entity| self.layout.mark_of(entity))
    }

    /// An item under a key that only this derived entity's items can have, whatever the item is. The fields of the key
    /// lead to the same items as those of the derived item that should be there.
    #[must_use]
    pub fn under_key_of<'a>(&'a self, derived: &str, key: &'a Key, item: &'a Item) -> Option<Image<'a>> {
        let definition = self.entity(derived).filter(|definition| definition.derived)?;
        let fields = definition.key_fields(key, item)?;
        Some(Image { definition, key, item, fields: Arc::new(fields) })
    }

    /// The problem of an item for every derivation: its key is wrong, or it cannot be in an index.
    #[must_use]
    pub fn unreadable(&self, key: &Key, item: &Item) -> Option<Unreadable> {
        match self.see(key, item) {
            Seen::Misfit(why) => Some(why),
            Seen::Known(image) => image.long_index_key(),
            Seen::Untyped | Seen::Unknown => None,
        }
    }

    /// Those of these items that are of an entity.
    pub(crate) fn images<'a>(&'a self, items: &'a Items, entity: &'a str) -> impl Iterator<Item = Image<'a>> {
        items.iter().filter_map(move |(key, item)| self.image(key, item).filter(|image| image.is(entity)))
    }

    /// The item, if it is of a declared entity.
    #[must_use]
    pub fn image<'a>(&'a self, key: &'a Key, item: &'a Item) -> Option<Image<'a>> {
        match self.see(key, item) {
            Seen::Known(image) => Some(image),
            _ => None,
        }
    }
}

impl<'a> Image<'a> {
    /// Why an item that its writer puts into an index is not in it: its key there would be too long. A search of the
    /// index does not find the item; otherwise it is derived from like any other.
    #[must_use]
    pub fn long_index_key(&self) -> Option<Unreadable> {
        if self.definition.derived {
            return None;
        }
        self.definition.long_index_key(|name| self.plain(name)).map(Unreadable::long_index_key)
    }

    /// A field of its key, or an attribute of type S or N.
    pub(crate) fn plain(&self, name: &str) -> Option<&str> {
        self.fields.get(name).or_else(|| match self.item.get(name)? {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// True if it is of this entity.
    #[must_use]
    pub fn is(&self, entity: &str) -> bool {
        self.definition.name == entity
    }

    /// Another image of the item, if it is of the same entity.
    pub(crate) fn of_the_same(&self, schema: &Schema, item: &'a Item) -> Option<Self> {
        // A text in one case may be that of an attribute, which may differ.
        let fields = if self.definition.key.is_cased() {
            self.definition.key_fields(self.key, item)?.into()
        } else {
            Arc::clone(&self.fields)
        };
        schema.layout.names(self.definition, item).then_some(Self { item, fields, ..*self })
    }

    /// A field: of its key, or else an attribute of type S, or a value inside one. `None` if it has neither.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the attribute exists and is not a text that a key can contain.
    pub fn field(&self, name: &str) -> Result<Option<&str>, Unreadable> {
        match self.fields.get(name) {
            Some(value) => Ok(Some(value)),
            None => Self::text_field(name, self.attribute(name)),
        }
    }

    /// A field that fills one of another item's key: of type N or B if it makes up a whole key of this type.
    ///
    /// # Errors
    ///
    /// As [`field`](Self::field).
    pub fn filling(&self, name: &str, key: &KeyTemplate, to: &str) -> Result<Option<Cow<'_, str>>, Unreadable> {
        match self.fields.get(name) {
            Some(value) => Ok(Some(Cow::Borrowed(value))),
            None => Self::value_filling(name, self.attribute(name), key, to),
        }
    }

    /// The value of an attribute of this name, as a field of another item's key.
    ///
    /// # Errors
    ///
    /// As [`field`](Self::field).
    pub(crate) fn value_filling<'v>(
        name: &str,
        stored: Option<&'v AttributeValue>,
        key: &KeyTemplate,
        to: &str,
    ) -> Result<Option<Cow<'v, str>>, Unreadable> {
        match stored {
            Some(AttributeValue::N(number)) if key.is_of_number(to) => Ok(Some(Cow::Borrowed(number))),
            Some(AttributeValue::B(bytes)) if key.is_of_bytes(to) => Ok(Some(Cow::Owned(value::hexadecimal(bytes)))),
            Some(stored) if key.is_of_bytes(to) => Err(Unreadable::type_of(name, stored, "B is wanted")),
            stored => Ok(Self::text_field(name, stored)?.map(Cow::Borrowed)),
        }
    }

    /// The fields of its key.
    #[must_use]
    pub fn key_fields(&self) -> &Fields {
        &self.fields
    }

    /// The value of an attribute, or inside one.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'a AttributeValue> {
        document_path::value(self.item, name)
    }

    /// The text of an attribute, if it can be part of a key.
    pub(crate) fn text_field<'v>(
        name: &str,
        stored: Option<&'v AttributeValue>,
    ) -> Result<Option<&'v str>, Unreadable> {
        match stored {
            None => Ok(None),
            Some(AttributeValue::S(text)) if text.is_empty() => {
                Err(Unreadable { attribute: name.to_owned(), why: "is empty".to_owned() })
            }
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(stored) => Err(Unreadable::type_of(name, stored, "S is wanted")),
        }
    }
}

//! The kinds of derivations, a file each; [`kind`](crate::kind) says what a new one needs.

use keys::{entity::Definition, key::Key};
use serde_dynamo::AttributeValue;

use crate::schema::{Image, Schema, Unreadable};

pub mod cascade;
pub mod copy;
pub mod count;
pub mod display;
pub mod index_key;
pub mod mirror;
pub mod path;
pub mod rollup;

/// How the key of another item is made from an item's fields: pairs of (field of that key, field of the item).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(pub Vec<(String, String)>);

impl Link {
    /// A link of these pairs.
    #[must_use]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(to, from)| ((*to).to_owned(), (*from).to_owned())).collect())
    }

    /// The key that an item leads to; `None` when it lacks one of the fields.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when a field is there and cannot stand in a key.
    pub fn key(&self, to: &Definition, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        for from in self.from_fields() {
            if image.field(from)?.is_none() {
                return Ok(None);
            }
        }
        let unreadable = |error: keys::error::KeyError| Unreadable {
            attribute: self
                .0
                .iter()
                .find(|(to, _)| *to == error.attribute)
                .map_or(error.attribute, |(_, from)| from.clone()),
            why: error.problem.to_string(),
        };
        to.build_of(|name| image.field(self.filling(name)?).ok().flatten()).map(Some).map_err(unreadable)
    }

    /// What is wrong with the fields that make the key.
    #[must_use]
    pub fn unreadable(&self, to: &Definition, image: &Image<'_>) -> Option<Unreadable> {
        self.key(to, image).err()
    }

    /// The item's field that fills a field of the key.
    pub(crate) fn filling(&self, to: &str) -> Option<&str> {
        self.0.iter().rfind(|(name, _)| name == to).map(|(_, from)| from.as_str())
    }

    /// Names of the item's fields.
    pub fn from_fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, from)| from.as_str())
    }

    /// Checks that it makes a whole key of `to` from fields that `from` may have.
    pub(crate) fn check(&self, to: &Definition, from: &Definition) -> Result<(), String> {
        for name in to.key.field_names() {
            if !self.0.iter().any(|(field, _)| field == name) {
                return Err(format!("nothing gives {name} of the key of {}", to.name));
            }
        }
        for name in self.from_fields() {
            let mut known = from.attributes.iter().chain(&from.derived_attributes);
            if !from.key.field_names().contains(&name) && !known.any(|attribute| attribute == name) {
                return Err(format!("{} has no field or attribute {name}", from.name));
            }
        }
        Ok(())
    }
}

/// What must hold for an item to take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Every item does.
    Always,
    /// Its attribute of type S is this text; without the attribute it does not.
    Is {
        /// The attribute.
        attribute: String,
        /// The text.
        text: String,
    },
    /// Its attribute of type S is not this text; without the attribute it takes part.
    IsNot {
        /// The attribute.
        attribute: String,
        /// The text.
        text: String,
    },
    /// Its attribute of type BOOL is not true; without the attribute it takes part.
    Not {
        /// The attribute.
        attribute: String,
    },
}

impl Predicate {
    /// Does it hold for this item?
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when the attribute is there and is of another type.
    pub fn holds(&self, image: &Image<'_>) -> Result<bool, Unreadable> {
        let unreadable = |attribute: &str, of: &str| {
            Err(Unreadable { attribute: attribute.to_owned(), why: format!("is not of type {of}") })
        };
        match self {
            Self::Always => Ok(true),
            Self::Is { attribute, text } => match image.attribute(attribute) {
                None => Ok(false),
                Some(AttributeValue::S(stored)) => Ok(stored == text),
                Some(_) => unreadable(attribute, "S"),
            },
            Self::IsNot { attribute, text } => match image.attribute(attribute) {
                None => Ok(true),
                Some(AttributeValue::S(stored)) => Ok(stored != text),
                Some(_) => unreadable(attribute, "S"),
            },
            Self::Not { attribute } => match image.attribute(attribute) {
                None => Ok(true),
                Some(AttributeValue::Bool(stored)) => Ok(!stored),
                Some(_) => unreadable(attribute, "BOOL"),
            },
        }
    }

    /// What must hold, in words; empty where every item takes part.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Always => Vec::new(),
            Self::Is { attribute, text } => vec![format!("where {attribute} is {text}")],
            Self::IsNot { attribute, text } => vec![format!("where {attribute} is not {text}")],
            Self::Not { attribute } => vec![format!("where not {attribute}")],
        }
    }

    /// The attribute that decides.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Always => None,
            Self::Is { attribute, .. } | Self::IsNot { attribute, .. } | Self::Not { attribute } => Some(attribute),
        }
    }
}

/// The definition of a declared entity.
pub(crate) fn entity<'a>(schema: &'a Schema, name: &str) -> Result<&'a Definition, String> {
    schema.entity(name).ok_or_else(|| format!("there is no entity {name}"))
}

/// Checks that an entity's items may have these attributes.
pub(crate) fn knows<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        let mut known = definition.attributes.iter().chain(&definition.derived_attributes);
        if !known.any(|attribute| attribute == name) {
            return Err(format!("{} has no attribute {name}", definition.name));
        }
    }
    Ok(())
}

/// Checks that an entity declares these attributes as derived.
pub(crate) fn declares<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        if !definition.derived_attributes.iter().any(|declared| declared == name) {
            return Err(format!("{} does not declare {name} as derived", definition.name));
        }
    }
    Ok(())
}

//! Attributes of keys, by their types.

use std::fmt;

use serde_dynamo::AttributeValue;

use crate::{escape, sortable};

/// An attribute of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAttribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: KeyType,
    /// Is its value a field as it is, rather than a text of a declared form such as `USER#{userId}`?
    pub is_plain: bool,
}

/// The type of a key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// Text.
    S,
    /// A number.
    N,
    /// Bytes.
    B,
}

impl KeyAttribute {
    /// An attribute whose value is a field as it is.
    #[must_use]
    pub fn plain(name: &str, of: KeyType) -> Self {
        Self { name: name.to_owned(), of, is_plain: true }
    }

    /// An attribute that holds a text of a declared form.
    #[must_use]
    pub fn of_form(name: &str) -> Self {
        Self { name: name.to_owned(), of: KeyType::S, is_plain: false }
    }

    /// The text of a value; `None` where it is of another type.
    #[must_use]
    pub fn text(&self, value: &AttributeValue) -> Option<String> {
        match (self.of, value) {
            (KeyType::S, AttributeValue::S(text)) if self.is_plain => Some(escape::value(text)),
            (KeyType::S, AttributeValue::S(text)) => Some(text.clone()),
            (KeyType::N, AttributeValue::N(number)) => sortable::text(number),
            (KeyType::B, AttributeValue::B(bytes)) => Some(hex::encode(bytes)),
            _ => None,
        }
    }

    /// Can a key hold this value? DynamoDB refuses an item where an attribute of an index's key is of another type, or empty.
    #[must_use]
    pub fn takes(&self, value: &AttributeValue) -> bool {
        self.text(value).is_some_and(|text| !text.is_empty())
    }

    /// The value of a text; `None` where it is the text of none.
    #[must_use]
    pub fn value(&self, text: &str) -> Option<AttributeValue> {
        Some(match self.of {
            KeyType::S if self.is_plain => AttributeValue::S(escape::restored(text)),
            KeyType::S => AttributeValue::S(text.to_owned()),
            KeyType::N => AttributeValue::N(sortable::restored(text)?),
            KeyType::B => AttributeValue::B(hex::decode(text).ok()?),
        })
    }

    /// How a field that is all of a key of this type stands in a template.
    #[must_use]
    pub fn template(&self) -> String {
        match self.of {
            KeyType::S => format!("{{{}}}", self.name),
            KeyType::N => format!("{{{}:N}}", self.name),
            KeyType::B => format!("{{{}:B}}", self.name),
        }
    }
}

/// `createdAt (N)`.
impl fmt::Display for KeyAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.of)
    }
}

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

/// Why a key cannot hold a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMisfit {
    /// It is of another type.
    Type,
    /// It is empty.
    Empty,
    /// It is too long.
    TooLong {
        /// How long it is.
        bytes: usize,
    },
}

impl KeyMisfit {
    /// Why a key part of at most this many bytes cannot hold a value of its type; `None` if it can.
    #[must_use]
    pub fn of_size(value: &AttributeValue, bytes_max: usize) -> Option<Self> {
        match key_bytes(value) {
            Some(0) => Some(Self::Empty),
            Some(bytes) if bytes > bytes_max => Some(Self::TooLong { bytes }),
            _ => None,
        }
    }
}

/// The length of a value by which DynamoDB limits a key; `None` of a number, which is always short enough.
pub(super) fn key_bytes(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::S(text) => Some(text.len()),
        AttributeValue::B(bytes) => Some(bytes.len()),
        _ => None,
    }
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

    /// Why a key part of this many bytes cannot hold a value; `None` if it can. DynamoDB refuses an item whose index key is of
    /// another type, empty or too long.
    #[must_use]
    pub fn misfit(&self, value: &AttributeValue, bytes_max: usize) -> Option<KeyMisfit> {
        if self.text(value).is_none() { Some(KeyMisfit::Type) } else { KeyMisfit::of_size(value, bytes_max) }
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

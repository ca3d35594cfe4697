//! Operands: what a condition tests, and what it tests it against.

use std::borrow::Cow;

use keys::item::Item;
use serde_dynamo::AttributeValue;

use super::document_path::DocumentPath;

/// What a condition compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value of an attribute.
    Attribute(DocumentPath),
    /// How large an attribute is: the UTF-16 code units of a text, the bytes of a binary value, the elements of a set, a list or
    /// a map.
    Size(DocumentPath),
    /// A value that the condition names.
    Value(AttributeValue),
}

impl Operand {
    pub(super) fn value<'a>(&'a self, item: &'a Item) -> Option<Cow<'a, AttributeValue>> {
        match self {
            Self::Attribute(path) => path.value(item).map(Cow::Borrowed),
            Self::Size(path) => path.value(item).and_then(size).map(|n| Cow::Owned(AttributeValue::N(n.to_string()))),
            Self::Value(value) => Some(Cow::Borrowed(value)),
        }
    }

    /// The attribute that it reads.
    pub(super) fn attribute(&self) -> Option<&str> {
        match self {
            Self::Attribute(path) | Self::Size(path) => Some(&path.attribute),
            Self::Value(_) => None,
        }
    }
}

fn size(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::S(text) => Some(text.encode_utf16().count()),
        AttributeValue::B(bytes) => Some(bytes.len()),
        AttributeValue::Ss(elements) | AttributeValue::Ns(elements) => Some(elements.len()),
        AttributeValue::Bs(elements) => Some(elements.len()),
        AttributeValue::L(elements) => Some(elements.len()),
        AttributeValue::M(map) => Some(map.len()),
        AttributeValue::N(_) | AttributeValue::Bool(_) | AttributeValue::Null(_) => None,
    }
}

//! Predicates: which items of an entity take part in a derivation.

use serde_dynamo::AttributeValue;

use crate::schema::{Image, Unreadable};

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
        let unreadable =
            |attribute: &str, held, of| Err(Unreadable::type_of(attribute, held, &format!("{of} is wanted")));
        match self {
            Self::Always => Ok(true),
            Self::Is { attribute, text } => match image.attribute(attribute) {
                None => Ok(false),
                Some(AttributeValue::S(stored)) => Ok(stored == text),
                Some(held) => unreadable(attribute, held, "S"),
            },
            Self::IsNot { attribute, text } => match image.attribute(attribute) {
                None => Ok(true),
                Some(AttributeValue::S(stored)) => Ok(stored != text),
                Some(held) => unreadable(attribute, held, "S"),
            },
            Self::Not { attribute } => match image.attribute(attribute) {
                None => Ok(true),
                Some(AttributeValue::Bool(stored)) => Ok(!stored),
                Some(held) => unreadable(attribute, held, "BOOL"),
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

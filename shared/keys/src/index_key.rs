//! Keys of items in indexes, and the conditions for being in one.

use crate::{entity::KeyTemplate, fields::Fields};

/// Condition for an item to be in a sparse index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnlyIf {
    /// An attribute has one of several texts.
    Is {
        /// Attribute of type S.
        attribute: String,
        /// The texts.
        any_of: Vec<String>,
    },
    /// An attribute exists, with any text.
    Has {
        /// Attribute of type S.
        attribute: String,
    },
}

impl OnlyIf {
    /// The attribute that it tests.
    #[must_use]
    pub fn attribute(&self) -> &str {
        match self {
            Self::Is { attribute, .. } | Self::Has { attribute } => attribute,
        }
    }

    /// True if it holds for an item with these fields.
    #[must_use]
    pub fn holds(&self, fields: &Fields) -> bool {
        self.holds_of(fields.get(self.attribute()))
    }

    /// True if it holds for an item with this text.
    pub(crate) fn holds_of(&self, text: Option<&str>) -> bool {
        match self {
            Self::Is { any_of, .. } => any_of.iter().any(|one| text == Some(one.as_str())),
            Self::Has { .. } => text.is_some(),
        }
    }
}

/// An entity's key in one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexKey {
    /// Name of the index.
    pub index: String,
    /// The key's form.
    pub key: KeyTemplate,
    /// Condition for the item to be in the index; always if `None`.
    pub only_if: Option<OnlyIf>,
    /// True if only this service sets the key. Then no writer of the item sets it.
    pub derived: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_inside_by_one_of_several_texts_or_by_any() {
        let (open, placed) = (["pending", "paid"].map(str::to_owned).to_vec(), "Status".to_owned());
        let is_open = OnlyIf::Is { attribute: placed.clone(), any_of: open };
        let has_status = OnlyIf::Has { attribute: placed };
        for (fields, open, has) in [
            (Fields::from([("Status", "pending")]), true, true),
            (Fields::from([("Status", "paid")]), true, true),
            (Fields::from([("Status", "shipped")]), false, true),
            (Fields::from([("Status", "")]), false, true),
            (Fields::from([("State", "paid")]), false, false),
        ] {
            assert_eq!((is_open.holds(&fields), has_status.holds(&fields)), (open, has), "{fields:?}");
        }
    }
}

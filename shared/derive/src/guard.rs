//! Every condition that the service ever sends.
//!
//! No condition text is written anywhere else. Each variant says which anomaly it prevents; one that prevents none
//! does not belong here.

use std::collections::BTreeMap;

use keys::layout::Layout;
use serde_dynamo::AttributeValue;

/// The condition that makes a write safe.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// There is no item under this key.
    ///
    /// On a receipt. Without it a change that is delivered again is counted again.
    Absent,
    /// There is an item under this key.
    ///
    /// On a partial update. Without it an update that lands after the item's removal makes a torso: an item that
    /// holds a copied name and nothing else.
    Exists,
    /// An attribute still holds what was read.
    ///
    /// On the removal of a mirror that keeps the list of its claims. Without it a removal that was decided before a
    /// new source claimed the mirror takes that source's mirror away, until its own bell brings it back.
    Unchanged {
        /// The attribute.
        attribute: String,
        /// What was read; `None` when the item did not have it.
        value: Option<AttributeValue>,
    },
}

/// A guard in DynamoDB's language.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Condition expression.
    pub expression: String,
    /// Expression attribute names.
    pub names: BTreeMap<String, String>,
    /// Expression attribute values.
    pub values: BTreeMap<String, AttributeValue>,
}

impl Guard {
    /// The guard as a condition on an item of a table of this layout.
    ///
    /// Placeholders start with `#g` and `:g`, which no other expression uses.
    #[must_use]
    pub fn condition(&self, layout: &Layout) -> Condition {
        let condition = |expression: &str, attribute: &str, value: Option<&AttributeValue>| Condition {
            expression: expression.to_owned(),
            names: BTreeMap::from([("#g".to_owned(), attribute.to_owned())]),
            values: value.map(|value| (":g".to_owned(), value.clone())).into_iter().collect(),
        };
        match self {
            Self::Absent => condition("attribute_not_exists(#g)", &layout.pk, None),
            Self::Exists => condition("attribute_exists(#g)", &layout.pk, None),
            Self::Unchanged { attribute, value: None } => condition("attribute_not_exists(#g)", attribute, None),
            Self::Unchanged { attribute, value: Some(value) } => condition("#g = :g", attribute, Some(value)),
        }
    }
}

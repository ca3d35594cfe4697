//! Every condition that the service ever sends.
//!
//! No condition text is written anywhere else. Each variant says which anomaly it prevents; one that prevents none
//! does not belong here: the simulation takes out one after the other, and must fail each time.

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
    /// The change is still parked.
    ///
    /// On its deletion when it is redriven. Without it two redrives of one change, or one whose answer was lost, apply
    /// it twice.
    StillParked,
    /// The checkpoint still stands where it was read.
    ///
    /// On every move of a checkpoint. Without it an invocation that timed out and still runs, or a call of it that
    /// lands late, applies its changes beside the one that took over.
    Unmoved {
        /// The attribute that holds the position.
        attribute: String,
        /// The position that was read; `None` when there was no checkpoint.
        value: Option<AttributeValue>,
    },
}

/// What a guard asks of the item, as any store can judge it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asks<'a> {
    /// There is none.
    Absent,
    /// There is one.
    Present,
    /// An attribute has this value; with `None`, there is no such attribute, or no item.
    Equal(&'a str, Option<&'a AttributeValue>),
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
    /// Names of all variants, as [`name`](Self::name) gives them, each with the anomaly that it prevents, in a line.
    pub const ALL: [(&'static str, &'static str); 4] = [
        ("Absent", "a change that is delivered again is counted again"),
        ("Exists", "an update that lands after the item's removal makes a torso"),
        ("StillParked", "two redrives of a change apply it twice"),
        ("Unmoved", "an invocation that timed out and still runs applies its changes beside the one that took over"),
    ];

    /// The variant's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent => "Absent",
            Self::Exists => "Exists",
            Self::StillParked => "StillParked",
            Self::Unmoved { .. } => "Unmoved",
        }
    }

    /// What it asks of the item.
    #[must_use]
    pub fn asks(&self) -> Asks<'_> {
        match self {
            Self::Absent => Asks::Absent,
            Self::Exists | Self::StillParked => Asks::Present,
            Self::Unmoved { attribute, value } => Asks::Equal(attribute, value.as_ref()),
        }
    }

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
        match self.asks() {
            Asks::Absent => condition("attribute_not_exists(#g)", &layout.pk, None),
            Asks::Present => condition("attribute_exists(#g)", &layout.pk, None),
            Asks::Equal(attribute, None) => condition("attribute_not_exists(#g)", attribute, None),
            Asks::Equal(attribute, Some(value)) => condition("#g = :g", attribute, Some(value)),
        }
    }
}

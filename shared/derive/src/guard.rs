//! Every condition that the service ever sends.
//!
//! No condition text is written anywhere else. Each guard has a purpose, and each purpose names the anomaly that it
//! prevents. The simulation leaves out one purpose after the other, in random runs or in a script of the exact overlap,
//! and must fail each time. So a purpose that nothing needs does not belong here.

mod purpose;

use std::collections::BTreeMap;

use keys::{
    counter::{REVISION, SUM, VALUE},
    item::Item,
    layout::Layout,
    value::{at_least, below, same},
};
use serde_dynamo::AttributeValue;

pub use self::purpose::Purpose;

/// The condition that makes a write safe: what it is for, and what it asks of the item. All asks must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// What it is for.
    pub purpose: Purpose,
    /// What it asks of the item.
    pub asks: Vec<Ask>,
}

/// One thing that a guard asks of the item, as any store can judge it.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// There is no item.
    Absent,
    /// There is an item.
    Present,
    /// The attribute is not there, or the item is not.
    Lacks(String),
    /// The attribute has this value.
    Equal(String, AttributeValue),
    /// The attribute has another value than this, or is not there.
    Differs(String, AttributeValue),
    /// The attribute is a number, and at least this one.
    AtLeast(String, AttributeValue),
    /// The attribute is not there, or has this value.
    LacksOrEqual(String, AttributeValue),
    /// The attribute is not there, or is below this value, both binary or both numbers.
    LacksOrBelow(String, AttributeValue),
}

impl Ask {
    /// The attribute has this value; with `None`, it is not there.
    #[must_use]
    pub fn as_read(attribute: &str, value: Option<&AttributeValue>) -> Self {
        match value {
            Some(value) => Self::Equal(attribute.to_owned(), value.clone()),
            None => Self::Lacks(attribute.to_owned()),
        }
    }

    /// The attribute that it asks of; `None` where it asks of the item.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Absent | Self::Present => None,
            Self::Lacks(attribute) => Some(attribute),
            _ => self.value().map(|(attribute, _)| attribute),
        }
    }

    /// The same asked of an attribute of this name.
    #[must_use]
    pub fn asked_of(&self, attribute: &str) -> Self {
        let name = attribute.to_owned();
        match self.clone() {
            Self::Absent => Self::Absent,
            Self::Present => Self::Present,
            Self::Lacks(_) => Self::Lacks(name),
            Self::Equal(_, value) => Self::Equal(name, value),
            Self::Differs(_, value) => Self::Differs(name, value),
            Self::AtLeast(_, value) => Self::AtLeast(name, value),
            Self::LacksOrEqual(_, value) => Self::LacksOrEqual(name, value),
            Self::LacksOrBelow(_, value) => Self::LacksOrBelow(name, value),
        }
    }

    /// The value that it compares with.
    #[must_use]
    pub fn value(&self) -> Option<(&str, &AttributeValue)> {
        match self {
            Self::Absent | Self::Present | Self::Lacks(_) => None,
            Self::Equal(attribute, value)
            | Self::Differs(attribute, value)
            | Self::AtLeast(attribute, value)
            | Self::LacksOrEqual(attribute, value)
            | Self::LacksOrBelow(attribute, value) => Some((attribute, value)),
        }
    }

    /// Does it hold of this item?
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        let held = |attribute: &str| item.and_then(|item| item.get(attribute));
        match self {
            Self::Absent => item.is_none(),
            Self::Present => item.is_some(),
            Self::Lacks(attribute) => held(attribute).is_none(),
            Self::Equal(attribute, value) => same(held(attribute), Some(value)),
            Self::Differs(attribute, value) => !same(held(attribute), Some(value)),
            Self::AtLeast(attribute, value) => held(attribute).is_some_and(|held| at_least(held, value)),
            Self::LacksOrEqual(attribute, value) => held(attribute).is_none_or(|held| same(Some(held), Some(value))),
            Self::LacksOrBelow(attribute, value) => held(attribute).is_none_or(|held| below(held, value)),
        }
    }
}

/// A guard in DynamoDB's language.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionExpression {
    /// Condition expression.
    pub expression: String,
    /// Expression attribute names.
    pub names: BTreeMap<String, String>,
    /// Expression attribute values.
    pub values: BTreeMap<String, AttributeValue>,
}

impl Guard {
    /// There is no item under the key.
    #[must_use]
    pub fn absent(purpose: Purpose) -> Self {
        Self { purpose, asks: vec![Ask::Absent] }
    }

    /// There is an item under the key.
    #[must_use]
    pub fn present(purpose: Purpose) -> Self {
        Self { purpose, asks: vec![Ask::Present] }
    }

    /// There is an item that names the entity that was read, or names none if that one did not; with `None`, there is no
    /// item.
    #[must_use]
    pub fn same_type(purpose: Purpose, layout: &Layout, held: Option<&Item>) -> Self {
        let Some(item) = held else { return Self::absent(purpose) };
        let name = layout.type_name();
        Self { purpose, asks: vec![Ask::Present, Ask::as_read(name, item.get(name))] }
    }

    /// Each of these attributes has the value that was read; with `None`, it is not there.
    #[must_use]
    pub fn as_read<N: AsRef<str>>(
        purpose: Purpose,
        read: impl IntoIterator<Item = (N, Option<AttributeValue>)>,
    ) -> Self {
        let asks = read.into_iter().map(|(attribute, value)| Ask::as_read(attribute.as_ref(), value.as_ref()));
        Self { purpose, asks: asks.collect() }
    }

    /// The counter counts nothing, and no watermark of it has moved: its count and its sum are zero, or not there, and its
    /// revision is the one that was read; with `None`, the revision is not asked for.
    #[must_use]
    pub fn still_zero(revision: Option<Option<&AttributeValue>>) -> Self {
        let zero = || AttributeValue::N("0".to_owned());
        let asks = [VALUE, SUM].into_iter().map(|name| Ask::LacksOrEqual(name.to_owned(), zero()));
        let asks = asks.chain(revision.map(|revision| Ask::as_read(REVISION, revision)));
        Self { purpose: Purpose::StillZero, asks: asks.collect() }
    }

    /// Does it hold of this item?
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        self.asks.iter().all(|ask| ask.holds(item))
    }

    /// How many operators and functions its condition has, as DynamoDB counts them: comparisons, functions, `AND`, `OR`.
    #[must_use]
    pub fn n_operators(&self) -> usize {
        let of_ask = |ask: &Ask| match ask {
            Ask::LacksOrEqual(..) | Ask::LacksOrBelow(..) => 3,
            _ => 1,
        };
        self.asks.iter().map(of_ask).sum::<usize>() + self.asks.len().saturating_sub(1)
    }

    /// The guard as a condition on an item of a table with this partition key.
    ///
    /// Placeholders start with `#g` and `:g`, which no other expression uses.
    #[must_use]
    pub fn condition(&self, pk: &str) -> ConditionExpression {
        let (mut names, mut values, mut texts) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (at, ask) in self.asks.iter().enumerate() {
            let (text, attribute) = match ask {
                Ask::Absent => (format!("attribute_not_exists(#g{at})"), pk),
                Ask::Present => (format!("attribute_exists(#g{at})"), pk),
                Ask::Lacks(attribute) => (format!("attribute_not_exists(#g{at})"), attribute.as_str()),
                Ask::Equal(attribute, _) => (format!("#g{at} = :g{at}"), attribute.as_str()),
                Ask::Differs(attribute, _) => (format!("#g{at} <> :g{at}"), attribute.as_str()),
                Ask::AtLeast(attribute, _) => (format!("#g{at} >= :g{at}"), attribute.as_str()),
                Ask::LacksOrEqual(attribute, _) => {
                    (format!("(attribute_not_exists(#g{at}) OR #g{at} = :g{at})"), attribute.as_str())
                }
                Ask::LacksOrBelow(attribute, _) => {
                    (format!("(attribute_not_exists(#g{at}) OR #g{at} < :g{at})"), attribute.as_str())
                }
            };
            names.insert(format!("#g{at}"), attribute.to_owned());
            values.extend(ask.value().map(|(_, value)| (format!(":g{at}"), value.clone())));
            texts.push(text);
        }
        ConditionExpression { expression: texts.join(" AND "), names, values }
    }
}

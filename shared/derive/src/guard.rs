//! Every condition that the service ever sends.
//!
//! No condition text is written anywhere else. Each variant says which anomaly it prevents; one that prevents none
//! does not belong here: the simulation takes out one after the other, and must fail each time.

use std::collections::BTreeMap;

use keys::{
    counter::{SUM, VALUE},
    item::Item,
    layout::Layout,
    value::{at_least, same},
};
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
    /// Least and greatest of a bucket are still as they were read.
    ///
    /// On every write of a bucket. Without it, of two writers that read the same least value the second to write sets
    /// it back to the greater of theirs, and the least is lost.
    BucketAsRead {
        /// The two attributes, each with the value that was read; `None` when the bucket had none.
        bounds: [(String, Option<AttributeValue>); 2],
    },
    /// What the application's write asks for; all must hold.
    ///
    /// Of the query interface alone, which reports to its caller what did not hold. The service itself never sends it.
    Application(Vec<Ask>),
    /// There is no item under this key of the owner.
    ///
    /// On an item that hangs on it, when that is deleted. Without it a cascade goes on over what hangs on an item that
    /// exists again.
    OwnerAbsent,
    /// The item is still what was found, and the owner's: these attributes say so.
    ///
    /// On what a cascade does to it. Without it something that was given to somebody else meanwhile, or that is none of
    /// ours, is deleted.
    StillTheirs(BTreeMap<String, AttributeValue>),
    /// Every attribute that was read is as it was read, and what was not there is not there.
    ///
    /// On a job that moves on, ends, or takes an order: without it a page that read the old name moves on past what a
    /// newer change told the job, and what lands late moves, holds or ends a job that began after the one that was meant.
    /// On an item that a large fan-out writes without reading it: without it one that an index still shows gets what
    /// belongs to another, or is a torso. On an item of which a repair sets index keys: without it they are made of what
    /// was written over meanwhile. And on the mark of a possible loss that a verify takes away: without it one that was
    /// seen again meanwhile goes too.
    SourceAsRead(BTreeMap<String, Option<AttributeValue>>),
    /// The counter still counts nothing: its count and its sum are zero, or not there.
    ///
    /// On the deletion of a counter that came to zero. Without it a count that comes in between is lost.
    StillZero,
    /// The checkpoint still stands where it was read; so does the sweep's place.
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

    /// The value that it compares with.
    #[must_use]
    pub fn value(&self) -> Option<(&str, &AttributeValue)> {
        match self {
            Self::Absent | Self::Present | Self::Lacks(_) => None,
            Self::Equal(attribute, value)
            | Self::Differs(attribute, value)
            | Self::AtLeast(attribute, value)
            | Self::LacksOrEqual(attribute, value) => Some((attribute, value)),
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
        }
    }
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
    /// Names of all variants that the service sends, as [`name`](Self::name) gives them, each with the anomaly that it
    /// prevents, in a line.
    pub const ALL: [(&'static str, &'static str); 9] = [
        ("Absent", "a change that is delivered again is counted again"),
        ("Exists", "an update that lands after the item's removal makes a torso"),
        ("BucketAsRead", "of two writers of a bucket, the second undoes what the first set as its least or greatest"),
        ("StillParked", "two redrives of a change apply it twice"),
        ("OwnerAbsent", "a cascade deletes what hangs on an item that exists again"),
        ("StillTheirs", "a cascade deletes what was given to somebody else meanwhile"),
        ("SourceAsRead", "a page of a job that read an old value moves on past what a newer change told the job"),
        ("StillZero", "a count that comes in while its counter of zero is deleted is lost"),
        ("Unmoved", "an invocation that timed out and still runs applies its changes beside the one that took over"),
    ];

    /// The variant's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent => "Absent",
            Self::Exists => "Exists",
            Self::StillParked => "StillParked",
            Self::StillZero => "StillZero",
            Self::Unmoved { .. } => "Unmoved",
            Self::OwnerAbsent => "OwnerAbsent",
            Self::StillTheirs(_) => "StillTheirs",
            Self::SourceAsRead(_) => "SourceAsRead",
            Self::BucketAsRead { .. } => "BucketAsRead",
            Self::Application(_) => "Application",
        }
    }

    /// What it asks of the item; all must hold.
    #[must_use]
    pub fn asks(&self) -> Vec<Ask> {
        match self {
            Self::Absent | Self::OwnerAbsent => vec![Ask::Absent],
            Self::Exists | Self::StillParked => vec![Ask::Present],
            Self::StillZero => {
                let zero = || AttributeValue::N("0".to_owned());
                [VALUE, SUM].into_iter().map(|name| Ask::LacksOrEqual(name.to_owned(), zero())).collect()
            }
            Self::Unmoved { attribute, value } => vec![Ask::as_read(attribute, value.as_ref())],
            Self::StillTheirs(says) => {
                says.iter().map(|(attribute, value)| Ask::Equal(attribute.clone(), value.clone())).collect()
            }
            Self::SourceAsRead(read) => {
                read.iter().map(|(attribute, value)| Ask::as_read(attribute, value.as_ref())).collect()
            }
            Self::BucketAsRead { bounds } => {
                bounds.iter().map(|(attribute, value)| Ask::as_read(attribute, value.as_ref())).collect()
            }
            Self::Application(asks) => asks.clone(),
        }
    }

    /// Does it hold of this item?
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        self.asks().iter().all(|ask| ask.holds(item))
    }

    /// The guard as a condition on an item of a table of this layout.
    ///
    /// Placeholders start with `#g` and `:g`, which no other expression uses.
    #[must_use]
    pub fn condition(&self, layout: &Layout) -> Condition {
        let (mut names, mut values, mut texts) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (at, ask) in self.asks().into_iter().enumerate() {
            let (text, attribute) = match &ask {
                Ask::Absent => (format!("attribute_not_exists(#g{at})"), layout.pk.as_str()),
                Ask::Present => (format!("attribute_exists(#g{at})"), layout.pk.as_str()),
                Ask::Lacks(attribute) => (format!("attribute_not_exists(#g{at})"), attribute.as_str()),
                Ask::Equal(attribute, _) => (format!("#g{at} = :g{at}"), attribute.as_str()),
                Ask::Differs(attribute, _) => (format!("#g{at} <> :g{at}"), attribute.as_str()),
                Ask::AtLeast(attribute, _) => (format!("#g{at} >= :g{at}"), attribute.as_str()),
                Ask::LacksOrEqual(attribute, _) => {
                    (format!("(attribute_not_exists(#g{at}) OR #g{at} = :g{at})"), attribute.as_str())
                }
            };
            names.insert(format!("#g{at}"), attribute.to_owned());
            values.extend(ask.value().map(|(_, value)| (format!(":g{at}"), value.clone())));
            texts.push(text);
        }
        Condition { expression: texts.join(" AND "), names, values }
    }
}

//! All conditions that the service sends.
//!
//! No condition text is written anywhere else. Each guard has a purpose, and each purpose names the anomaly that it
//! prevents. The simulation leaves out one purpose at a time, in random runs or in a script of the exact overlap, and
//! must fail each time. So a purpose that prevents nothing does not belong here.

use std::collections::BTreeMap;

use keys::{
    counter::{REVISION, SPREAD, SUM, VALUE},
    item::Item,
    layout::Layout,
    value::{at_least, below, same},
};
use serde_dynamo::AttributeValue;

/// The condition that makes a write safe: its purpose, and its tests of the item. All tests must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Its purpose.
    pub purpose: Purpose,
    /// Its tests of the item.
    pub asks: Vec<Ask>,
}

/// One test of the item, which any store can evaluate.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// There is no item.
    Absent,
    /// There is an item.
    Present,
    /// The attribute or the item is missing.
    Lacks(String),
    /// The attribute has this value.
    Equal(String, AttributeValue),
    /// The attribute has another value, or is missing.
    Differs(String, AttributeValue),
    /// The attribute is a number of at least this value.
    AtLeast(String, AttributeValue),
    /// The attribute is missing, or has this value.
    LacksOrEqual(String, AttributeValue),
    /// The attribute is missing, or is below this value; both are binary or both are numbers.
    LacksOrBelow(String, AttributeValue),
    /// The attribute is below this value, or is missing together with the other attribute; both values are binary or
    /// both are numbers.
    BelowOrLacksBoth(String, AttributeValue, String),
}

impl Ask {
    /// The attribute has this value; with `None`, it is missing.
    #[must_use]
    pub fn as_read(attribute: &str, value: Option<&AttributeValue>) -> Self {
        match value {
            Some(value) => Self::Equal(attribute.to_owned(), value.clone()),
            None => Self::Lacks(attribute.to_owned()),
        }
    }

    /// The attribute that it tests; `None` if it tests the item.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Absent | Self::Present => None,
            Self::Lacks(attribute) => Some(attribute),
            _ => self.value().map(|(attribute, _)| attribute),
        }
    }

    /// The same test of another attribute.
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
            Self::BelowOrLacksBoth(_, value, other) => Self::BelowOrLacksBoth(name, value, other),
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
            | Self::LacksOrBelow(attribute, value)
            | Self::BelowOrLacksBoth(attribute, value, _) => Some((attribute, value)),
        }
    }

    /// True if it holds for this item.
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        let stored = |attribute: &str| item.and_then(|item| item.get(attribute));
        match self {
            Self::Absent => item.is_none(),
            Self::Present => item.is_some(),
            Self::Lacks(attribute) => stored(attribute).is_none(),
            Self::Equal(attribute, value) => same(stored(attribute), Some(value)),
            Self::Differs(attribute, value) => !same(stored(attribute), Some(value)),
            Self::AtLeast(attribute, value) => stored(attribute).is_some_and(|stored| at_least(stored, value)),
            Self::LacksOrEqual(attribute, value) => {
                stored(attribute).is_none_or(|stored| same(Some(stored), Some(value)))
            }
            Self::LacksOrBelow(attribute, value) => stored(attribute).is_none_or(|stored| below(stored, value)),
            Self::BelowOrLacksBoth(attribute, value, other) => match stored(attribute) {
                Some(stored) => below(stored, value),
                None => stored(other).is_none(),
            },
        }
    }
}

/// A guard as a DynamoDB expression.
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

    /// There is an item, and its type attribute is the one that was read, or missing as in that item; with `None`,
    /// there is no item.
    #[must_use]
    pub fn same_type(purpose: Purpose, layout: &Layout, stored: Option<&Item>) -> Self {
        let Some(item) = stored else { return Self::absent(purpose) };
        let name = layout.type_name();
        Self { purpose, asks: vec![Ask::Present, Ask::as_read(name, item.get(name))] }
    }

    /// Each of these attributes has the value that was read; with `None`, it is missing.
    #[must_use]
    pub fn as_read<N: AsRef<str>>(
        purpose: Purpose,
        read: impl IntoIterator<Item = (N, Option<AttributeValue>)>,
    ) -> Self {
        let asks = read.into_iter().map(|(attribute, value)| Ask::as_read(attribute.as_ref(), value.as_ref()));
        Self { purpose, asks: asks.collect() }
    }

    /// The counter counts nothing, none of its watermarks has moved, and it is no home that has spread: its count and its
    /// sum are zero or missing, and its revision is the one that was read; with `None`, the revision is not tested.
    #[must_use]
    pub fn still_zero(revision: Option<Option<&AttributeValue>>) -> Self {
        let zero = || AttributeValue::N("0".to_owned());
        let asks = [VALUE, SUM].into_iter().map(|name| Ask::LacksOrEqual(name.to_owned(), zero()));
        let asks = asks.chain(revision.map(|revision| Ask::as_read(REVISION, revision)));
        let asks = asks.chain([Ask::Lacks(SPREAD.to_owned())]);
        Self { purpose: Purpose::StillZero, asks: asks.collect() }
    }

    /// True if it holds for this item.
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        self.asks.iter().all(|ask| ask.holds(item))
    }

    /// Number of operators of its condition, as DynamoDB counts them: comparisons, functions, `AND`, `OR`.
    #[must_use]
    pub fn n_operators(&self) -> usize {
        let of_ask = |ask: &Ask| match ask {
            Ask::LacksOrEqual(..) | Ask::LacksOrBelow(..) => 3,
            Ask::BelowOrLacksBoth(..) => 5,
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
                Ask::BelowOrLacksBoth(attribute, _, other) => {
                    names.insert(format!("#g{at}o"), other.clone());
                    let lacks = format!("attribute_not_exists(#g{at}) AND attribute_not_exists(#g{at}o)");
                    (format!("(({lacks}) OR #g{at} < :g{at})"), attribute.as_str())
                }
            };
            names.insert(format!("#g{at}"), attribute.to_owned());
            values.extend(ask.value().map(|(_, value)| (format!(":g{at}"), value.clone())));
            texts.push(text);
        }
        ConditionExpression { expression: texts.join(" AND "), names, values }
    }
}

// ---- The purposes of guards ----

/// Declares the purposes, each with the anomaly that its guard prevents.
macro_rules! purposes {
    ($($(#[doc = $what:literal])+ $name:ident: $prevents:literal,)+) => {
        /// The purpose of a guard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Purpose {
            $(
                $(#[doc = $what])+
                #[doc = ""]
                #[doc = concat!("Without it ", $prevents, ".")]
                $name,
            )+
            /// The condition of the application's own write. The service never sends it.
            Application,
        }

        impl Purpose {
            /// All purposes for which the service sends a guard.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The anomaly that happens without the guard.
            #[must_use]
            pub fn prevents(self) -> &'static str {
                match self {
                    $(Self::$name => $prevents,)+
                    Self::Application => "the application decides on an old value",
                }
            }
        }
    };
}

purposes! {
    /// On a receipt: it does not exist yet.
    Receipt: "a change that is delivered again is counted again",
    /// On the record of the ledger's kind: it does not exist yet.
    LedgerKind: "two functions that are configured with different ledgers both begin to count",
    /// On a new job: its source has none.
    NewJob: "a job that began meanwhile is replaced: it forgets that it was paused, or that its source changed again",
    /// On a partial update: the item exists, and is of the entity that was read.
    Update: "an update that lands after the item's removal makes a torso: an item with a copied name and nothing else",
    /// On a derived item that is created, changed or removed: its key still has no item, or an item of the type that
    /// was read.
    MirrorType: "an application's item of another type that takes a derived item's key meanwhile is overwritten or deleted",
    /// On the deletion of a parked change that is redriven: it is still parked.
    StillParked: "two redrives of a change apply it twice",
    /// On a write of a bucket: its least and greatest value are those that were read.
    Bucket: "of two writers of a bucket, the second undoes what the first set as its least or greatest",
    /// On an owner, in the transaction that deletes an item of the owner: the owner does not exist.
    OwnerAbsent: "a cascade deletes what hangs on an item that exists again",
    /// On a cascade's deletion: the item is as it was listed, and its attributes still name the owner.
    StillTheirs: "a cascade deletes what was given to somebody else meanwhile",
    /// On a job: its revision is the one that was read.
    Job: "a page of a job that read an old value moves on past the restart that a newer change asked for",
    /// On a pending cascade: it still waits, for the time that was read.
    Wait: "a sweep that read a cascade's first wait ends its second one",
    /// On an item that a fan-out writes without reading it: it still names the source.
    UnreadTarget: "an item that an index still shows gets a copy of what it does not name any more",
    /// On an item whose index keys are repaired: the keys and the attributes they are built from are those that were
    /// read.
    IndexKeys: "index keys are made of what was written over meanwhile",
    /// On a counter that is added to: its key has a counter, or no item.
    CounterType: "an application's item that has a counter's key is made a counter",
    /// On the deletion of a counter of a dropped derivation: its value is the one that was read.
    DroppedCounter: "a count that comes in while its counter is deleted is lost",
    /// On the deletion of a counter that reached zero: it is still zero.
    StillZero: "a count that comes in while its counter of zero is deleted is lost",
    /// On an item that is listed as unreadable or taken off that list: it is as it was judged.
    Listed: "an entry that was decided before the item was mended lands later and stays, and hides that the item differs",
    /// On the entry of a derived item that waits for its key, when the wait is over: the entry is the one that was
    /// read.
    KeyWait: "a source that was named for a mirror meanwhile is forgotten, and the mirror is not created when its key is free",
    /// On a mark of a possible loss, or a count to recount, that a verification removes: it is the one that was read.
    LossMark: "a loss or a refused change that was seen while the table was verified is forgotten",
    /// On a counter or bucket: its watermark of the stream shard is below the first change that the write adds.
    Watermark: "a change that is delivered again is counted again, as is one that another invocation counts beside this one",
    /// On a counter whose old watermarks are removed: each is the one that was read.
    OldWatermark: "a watermark that moves while it is taken for old is removed, and what it covers is counted again",
    /// On a display that the counting function writes: the item is of its entity, and displays no later revision of the
    /// counter.
    Shown: "a count that lands late replaces a newer one, until the item's record is handled",
    /// On a counter's home that spreads: it exists, and has not spread.
    Spread: "the number of a counter's satellites changes, and a redelivered change is counted again on another satellite",
    /// On the entry for a change that is parked before counting: the stream shard has none for it yet.
    Exception: "a change that was parked and redriven is parked again by a call that lands late, and counts twice",
    /// On the registry of derivations: its revision is the one that was read.
    Registry: "what another function or command registered meanwhile is overwritten",
    /// On the position of the sweep: it is the one that was read.
    SweepRound: "a sweep that comes late moves the next round ahead, which then does not compare a part of the table",
    /// On the clock: it shows an earlier hour.
    Clock: "a function whose own clock is behind sets it back, and what is refreshed then shows what had left its window",
    /// On the note of a suspect: it is the one that was read; a new note does not exist yet.
    Suspect: "a suspect is taken off the list or noted anew while it still differs, and real drift is not reported",
    /// In the transaction of a repair: no other run has begun since.
    RepairRight: "two runs that found the same both add it",
}

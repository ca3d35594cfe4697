//! Derived data as the definition gives it, the items that the definition receives, and those that are invalid.

use std::{collections::BTreeMap, sync::Arc};

use keys::{item::Item, key::Key};

use crate::{bucket::Bucket, effect::BucketForm, tally::Tally, write::Wanted};

/// A derived item, or part of one, as the definition gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// A count of a target.
    Count {
        /// The target.
        target: Key,
        /// The count and the sum.
        tally: Tally,
        /// True if it is only a lower bound, since sources may be gone.
        at_least: bool,
    },
    /// A bucket of a roll-up, as far as the existing sources give it.
    Bucket {
        /// Its key.
        key: Key,
        /// The total of the existing values.
        bucket: Bucket,
        /// Its entity and attribute names.
        form: Arc<BucketForm>,
    },
    /// A whole item.
    Item {
        /// Its key.
        key: Key,
        /// Its attributes, without those of other derivations.
        item: Item,
    },
    /// Attributes of an item that exists.
    Attributes {
        /// The item's key.
        key: Key,
        /// The attributes.
        attributes: Vec<Wanted>,
    },
}

/// An application item that can be read, but from which a derivation derives nothing: a person should change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The item.
    pub key: Key,
    /// The attribute at fault.
    pub attribute: String,
    /// What is wrong with it.
    pub why: String,
}

/// All items of a table by key, as input of the definition.
pub type Items = BTreeMap<Key, Item>;

/// Tallies by target and derivation, as input of the definition.
pub type Counts = BTreeMap<(Key, String), Tally>;

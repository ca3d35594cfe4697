//! Derived data as the definition of a derivation says it should be, and the items that the definition is given.

use std::{collections::BTreeMap, sync::Arc};

use keys::{item::Item, key::Key};

use crate::{bucket::Bucket, effect::BucketForm, tally::Tally, write::Wanted};

/// A derived item, or part of one, as the definition says it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// A count of a target.
    Count {
        /// The target.
        target: Key,
        /// How many, and what they come to.
        tally: Tally,
        /// Is it a lower bound only, since the sources may be gone?
        at_least: bool,
    },
    /// A bucket of a roll-up, as far as the ground shows it.
    Bucket {
        /// Its key.
        key: Key,
        /// What the values that are there come to.
        bucket: Bucket,
        /// What it looks like.
        form: Arc<BucketForm>,
    },
    /// A whole item.
    Item {
        /// Its key.
        key: Key,
        /// Its attributes, those of other derivations left out.
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

/// All items of a table by key, in the definition's hands.
pub type Items = BTreeMap<Key, Item>;

/// Tallies by target and derivation, in the definition's hands.
pub type Counts = BTreeMap<(Key, String), Tally>;

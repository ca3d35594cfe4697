//! Effects: what one change asks of one derived item.

use keys::key::Key;

use crate::{query::Query, schema::Unreadable};

/// What a change asks for, on behalf of one derivation.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Adds to a counter: additive, counts once a change.
    Add(Add),
    /// Rings the bell of an item: look whether its derived part is right.
    Look(Bell),
    /// Rings the bells of all items that a query finds.
    Find(Find),
    /// Touches items of the application itself.
    Ground(Ground),
    /// The item cannot be interpreted: list it for a person, until it can.
    List {
        /// What is wrong; `None` takes the item off the list.
        unreadable: Option<Unreadable>,
    },
}

/// What touches items of the application itself, strictly: it cannot be corrected later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Something was removed: a job deletes what hangs on it.
    Cascade(Removal),
    /// Look whether this item stands where it belongs.
    Place(Key),
    /// Look whether the items one level below this key stand where they belong.
    PlaceBelow {
        /// The key.
        above: Key,
        /// What finds the items of all levels below.
        query: Query,
    },
    /// An item came to this key or left it: look at those that wait for an item of its id.
    Awaited(Key),
    /// An item left this key: what was added to it before it did goes with it.
    Merge(Key),
    /// A job goes on.
    Work(Key),
}

/// An item that was removed, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Key of the owner, on which others hang.
    pub owner: Key,
    /// All keys under which the owner was known: it is absent when nothing stands there.
    pub absent: Vec<Key>,
    /// Items that the removed one named, each with its place in the declaration.
    pub named: Vec<(usize, Key)>,
}

/// An amount to add to the counter of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Add {
    /// The item that the count is about; it need not exist.
    pub target: Key,
    /// How many shards its counter has.
    pub n_shards: u32,
    /// What to add.
    pub amount: i64,
}

/// An item to look at. It says which, never what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bell {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Sources that the change names, for an item that keeps a list of those that claim it.
    pub named: Vec<Key>,
}

/// Items to look for, and to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Find {
    /// Where they are found.
    pub query: Query,
    /// Entity of the items that the query finds.
    pub via: String,
    /// Entity of the items to look at: the same, or one whose key is made of the other's fields.
    pub target: String,
}

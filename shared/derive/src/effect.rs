//! Effects: what one change asks of one derived item.

use std::{fmt, sync::Arc};

use keys::key::Key;

use crate::{query::Query, schema::Unreadable, tally::Sum};

/// What a change asks for, on behalf of one derivation.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Adds to a counter: additive, counts once a change.
    Add(Add),
    /// Takes a value up into a bucket of a roll-up: additive, counts once a change.
    Measure(Measure),
    /// Comes too late: only the insert of the item counts, and nothing is applied. It is counted in the account.
    Late,
    /// Requests a refresh of an item: its derived part is compared with its definition.
    Look(RefreshRequest),
    /// The same of a derived item whose key was occupied by an item that is not Ripple's: it may have waited for the
    /// key.
    Vacated(RefreshRequest),
    /// Requests a refresh of all items that a query finds.
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
    /// What to add to the count.
    pub count: i64,
    /// What to add to the sum.
    pub sum: Sum,
}

/// A value to take up into a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The bucket, which need not exist.
    pub bucket: Key,
    /// What buckets look like.
    pub form: Arc<BucketForm>,
    /// The value.
    pub value: Sum,
}

/// What the buckets of a roll-up are called: their entity and attributes. Stored, so they are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketForm {
    /// Their entity.
    pub entity: String,
    /// Attribute that holds how many values there are.
    pub count: String,
    /// Attribute that holds what they come to.
    pub sum: String,
    /// Attribute that holds the least of them.
    pub min: String,
    /// Attribute that holds the greatest of them.
    pub max: String,
}

/// An item to refresh. It says which, never what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshRequest {
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
    /// Entity of the items to refresh: the same, or one whose key is made of the other's fields.
    pub target: String,
}

impl fmt::Display for Effect {
    /// What it does, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(add) if add.sum.is_zero() => write!(f, "adds {:+} to the count of {}", add.count, add.target),
            Self::Add(add) => {
                write!(f, "adds {:+} to the count and {} to the sum of {}", add.count, add.sum, add.target)
            }
            Self::Measure(measure) => write!(f, "adds the value {} to {}", measure.value, measure.bucket),
            Self::Late => f.write_str("nothing: a late change of an item that counts by its insert alone"),
            Self::Look(request) | Self::Vacated(request) => {
                write!(f, "looks at the {} {}", request.entity, request.item)
            }
            Self::Find(find) => {
                let place = find.query.index.as_deref().unwrap_or("the table");
                let (pk, prefix) = (&find.query.pk, find.query.sk.first());
                write!(f, "looks at every {} in {place} under {pk}, {prefix}…", find.target)?;
                if find.via == find.target { Ok(()) } else { write!(f, " through each {}", find.via) }
            }
            Self::Ground(Ground::Cascade(removal)) => write!(f, "starts a job for what belongs to {}", removal.owner),
            Self::Ground(Ground::Work(key)) => write!(f, "continues the job {key}"),
            Self::List { unreadable: Some(unreadable) } => write!(f, "lists the item as unreadable: {unreadable}"),
            Self::List { unreadable: None } => f.write_str("removes the item from the list of unreadable items"),
        }
    }
}

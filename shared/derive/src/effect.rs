//! Effects: what one change requires for one derived item.

use std::{fmt, sync::Arc};

use keys::key::Key;

use crate::{query::Query, schema::Unreadable, tally::Sum};

/// What a change requires for one derivation.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Adds to a counter: additive, counts once a change.
    Add(Add),
    /// Adds a value to a bucket of a roll-up: additive, counts once a change.
    Measure(Measure),
    /// A change that comes too late: only the insert of the item counts, so nothing is applied. The account reports it.
    Late,
    /// Requests a refresh of an item: its derived part is compared with its definition.
    Look(RefreshRequest),
    /// Requests a refresh of an item at a later time, in milliseconds since 1970, when its definition changes by itself;
    /// nothing if the time is past.
    Later(RefreshRequest, u64),
    /// Requests a refresh of a derived item whose key was occupied by a foreign item: the derived item may be missing.
    Vacated(RefreshRequest),
    /// Requests a refresh of all items that a query finds.
    Find(Find),
    /// Changes items of the application itself.
    Ground(Ground),
    /// The item cannot be interpreted: it is listed for a person until it can.
    List {
        /// What is wrong; `None` takes the item off the list.
        unreadable: Option<Unreadable>,
    },
}

/// Changes items of the application itself, under strict conditions: they cannot be corrected later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// An item was removed: a job deletes its dependent items.
    Cascade(Removal),
    /// A job continues.
    Work(Key),
}

/// A removed item, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Key of the owner of dependent items.
    pub owner: Key,
    /// All keys of the owner: it is absent if no item exists under any of them.
    pub absent: Vec<Key>,
    /// Items that the removed one named, each with its position in the declaration.
    pub named: Vec<(usize, Key)>,
}

/// An amount to add to the counter of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Add {
    /// The item that the count is about; it need not exist.
    pub target: Key,
    /// What to add to the count.
    pub count: i64,
    /// What to add to the sum.
    pub sum: Sum,
}

/// A value to add to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The bucket, which need not exist.
    pub bucket: Key,
    /// Entity and attribute names of the buckets.
    pub form: Arc<BucketForm>,
    /// The value.
    pub value: Sum,
}

/// Entity and attribute names of a roll-up's buckets. Stored, so they are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketForm {
    /// Their entity.
    pub entity: String,
    /// Attribute with the number of values.
    pub count: String,
    /// Attribute with their sum.
    pub sum: String,
    /// Attribute with the least value.
    pub min: String,
    /// Attribute with the greatest value.
    pub max: String,
}

/// An item to refresh. It names the item, never what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Sources that the change names, for an item that keeps a list of its claims.
    pub named: Vec<Key>,
}

impl Effect {
    /// Requests a refresh of an item for which the change names no sources.
    #[must_use]
    pub fn look(item: Key, entity: &str) -> Self {
        Self::Look(RefreshRequest::of(item, entity))
    }
}

impl RefreshRequest {
    /// The request of an item for which no sources are named.
    #[must_use]
    pub fn of(item: Key, entity: &str) -> Self {
        Self { item, entity: entity.to_owned(), named: Vec::new() }
    }
}

/// Items to search for, and to refresh.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Find {
    /// The query that finds them.
    pub query: Query,
    /// Entity of the items that the query finds.
    pub via: String,
    /// Entity of the items to refresh: the same, or one whose key is built from the found item's fields.
    pub target: String,
}

impl fmt::Display for Effect {
    /// The effect, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(add) if add.sum.is_zero() => write!(f, "adds {:+} to the count of {}", add.count, add.target),
            Self::Add(add) => {
                write!(f, "adds {:+} to the count and {} to the sum of {}", add.count, add.sum, add.target)
            }
            Self::Measure(measure) => write!(f, "adds the value {} to {}", measure.value, measure.bucket),
            Self::Late => f.write_str("nothing: a late change of an item that counts by its insert alone"),
            Self::Look(request) | Self::Vacated(request) => {
                write!(f, "recomputes the {} {}", request.entity, request.item)
            }
            Self::Later(request, _) => write!(f, "recomputes the {} {} later", request.entity, request.item),
            Self::Find(find) => {
                let place = find.query.index.as_deref().unwrap_or("the table");
                let (pk, prefix) = (&find.query.pk, find.query.sk.first());
                write!(f, "recomputes every {} in {place} under {pk}, {prefix}…", find.target)?;
                if find.via == find.target { Ok(()) } else { write!(f, " through each {}", find.via) }
            }
            Self::Ground(Ground::Cascade(removal)) => write!(f, "starts a job for what belongs to {}", removal.owner),
            Self::Ground(Ground::Work(key)) => write!(f, "continues the job {key}"),
            Self::List { unreadable: Some(unreadable) } => write!(f, "lists the item as unreadable: {unreadable}"),
            Self::List { unreadable: None } => f.write_str("removes the item from the list of unreadable items"),
        }
    }
}

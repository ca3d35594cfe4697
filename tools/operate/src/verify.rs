//! Verify: is every derived value what the definition says, while writes go on?
//!
//! [`Verification`](run::Verification) reads the table once, in segments, and holds nothing that grows with it. What the
//! [`scan`] has read is not read again, as far as that proves something.
//!
//! *Level-triggered*: each item is taken as if it had just been inserted, and what that would ring is looked at, by the
//! refresh's own step, without its writes. *Counts*: what each item adds is noted outside memory ([`tallies`]), and what a
//! target's sources come to is compared with its counters.
//!
//! **No false finding.** What differs may be on its way. So it is looked at once more, when the functions have handled all
//! that was written before a moment ([`following`]); and it is a finding only if nothing that it was decided by was written
//! between that moment and the end of the second look. Both are read in the table's own stream: a change that was made
//! before has been handled, and one that was made since is seen. What changes all the time, and what is unknown,
//! is *undecided*; what a parked change or a job will still change is *waiting*.
//!
//! *Example*: Bob is renamed, and a comment of his still holds the old name. The second look comes when the functions are
//! past the first. Still the old name, and neither Bob nor the comment was written since: a finding. Bob was renamed once
//! more: looked at again.
//!
//! [`definition`] compares a small table that is at rest with the definition itself.

pub mod definition;
pub mod following;
pub mod report;
pub mod run;
pub mod scan;
pub mod scope;
pub mod tallies;

mod candidates;
pub(crate) mod counted;
mod counts;
pub(crate) mod judge;
mod proven;
mod seen;
pub(crate) mod single;
mod touched;

use derive::{schema::Schema, whole::occupied};
use keys::{item::Item, key::Key};
use serde::{Deserialize, Serialize};

/// A difference between what is stored and what the definition says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the derivation.
    pub derivation: String,
    /// Partition key of the derived item.
    pub pk: String,
    /// Sort key of the derived item.
    pub sk: String,
    /// The attributes that differ, as they are stored; `None` where the item is not there.
    pub stored: Option<Item>,
    /// The same attributes as the definition gives them; `None` where the item should not be there.
    pub derived: Option<Item>,
    /// What a person should do, since no repair can. Of a flaw, which is in the ground, `stored` is the attribute at fault,
    /// and nothing is derived; of a count, why nothing may be added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// An item that a derivation cannot interpret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableItem {
    /// Name of the derivation; `*` for all.
    pub derivation: String,
    /// Partition key of the item.
    pub pk: String,
    /// Sort key of the item.
    pub sk: String,
    /// What is wrong with it.
    pub why: String,
}

/// Counts of a derivation about items that do not exist: their sources name items that are gone, or the link leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsAboutNothing {
    /// Name of the derivation.
    pub derivation: String,
    /// How many counts there are.
    pub counts: usize,
    /// The first of the items, by partition and sort key.
    pub examples: Vec<(String, String)>,
}

/// A difference.
pub(crate) fn finding(derivation: &str, key: &Key, stored: Option<Item>, derived: Option<Item>) -> Finding {
    Finding { derivation: derivation.to_owned(), pk: key.pk.clone(), sk: key.sk.clone(), stored, derived, flaw: None }
}

/// An item that is not Ripple's under the key of a derived item, which waits.
pub(crate) fn occupied_key(schema: &Schema, derivation: &str, key: &Key, held: &Item) -> Finding {
    let flaw = occupied(schema, key, held);
    let stored = Some(counted::only(held, &[&flaw.attribute]));
    Finding { flaw: Some(flaw.why), ..finding(derivation, key, stored, Some(Item::new())) }
}

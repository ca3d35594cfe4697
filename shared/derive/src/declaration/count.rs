//! The declaration of a [count](crate::kinds::count).

use crate::{condition::Condition, declaration::link::Link};

/// Shards of a counter at most: two digits stand for one in its key.
pub const SHARDS_MAX: u32 = 100;

/// The declaration of a count.
#[derive(Clone, Debug)]
pub struct Count {
    /// Entity of the items that are counted.
    pub source: String,
    /// Which of them.
    pub condition: Condition,
    /// Entity of the target.
    pub target: String,
    /// How the target's key is made.
    pub link: Link,
    /// The attribute that is summed, if there is one.
    pub sum: Option<String>,
    /// How many shards the counter is spread over, 1 to 100.
    pub n_shards: u32,
    /// Does it count arrivals only?
    pub history: bool,
}

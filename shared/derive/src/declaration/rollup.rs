//! The declaration of a [roll-up](crate::kinds::rollup).

use std::sync::Arc;

use crate::{condition::Condition, declaration::link::Link, effect::BucketForm};

/// The declaration of a roll-up.
#[derive(Clone, Debug)]
pub struct Rollup {
    /// Entity of the items that are rolled up.
    pub source: String,
    /// Which of them take part.
    pub condition: Condition,
    /// Their field that holds the time, such as `2024-01-15T10:30:00.000Z`.
    pub time: String,
    /// Their attribute that holds the value.
    pub value: String,
    /// How the rest of a bucket's key is made.
    pub link: Link,
    /// The buckets' field that takes the name of the grain.
    pub grain: String,
    /// The buckets' field that takes the beginning of the time.
    pub bucket: String,
    /// What the buckets are called.
    pub form: Arc<BucketForm>,
}

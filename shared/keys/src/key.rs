//! The primary key of an item.

use std::fmt;

/// Longest partition key, in bytes. Source: DynamoDB service quotas.
pub const PARTITION_KEY_BYTES_MAX: usize = 2_048;

/// Longest sort key, in bytes. Source: DynamoDB service quotas.
pub const SORT_KEY_BYTES_MAX: usize = 1_024;

/// A partition key and a sort key, as they stand in the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

impl Key {
    /// A key of two texts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

impl fmt::Display for Key {
    /// `PK / SK`, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.pk, self.sk)
    }
}

//! Why nothing of a batch was handled.

use crate::{record::EventError, registry::publishing::RegistryError};

/// A batch of which nothing was handled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// It is no batch.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The derivations of this function cannot be published in the registry.
    #[error("the derivations of this function cannot be published in the ledger's table, so nothing is handled")]
    Registry(#[from] RegistryError),
    /// The ledger of watermarks does not know which shard it is of.
    #[error(
        "the event names no shard, which the ledger of watermarks needs: set TumblingWindowInSeconds on the event source \
         mapping, with ParallelizationFactor 1 and MaximumRetryAttempts -1, or use the ledger of receipts"
    )]
    NoShard,
    /// Much of it cannot be read.
    #[error(
        "{n_unreadable} of {n_items} items cannot be read, so nothing is applied; among them {}; mend the \
         deployment, or raise UNREADABLE_PERCENT_MAX if this is what the data is like", items.join("; ")
    )]
    Unreadable {
        /// How many cannot be read.
        n_unreadable: usize,
        /// Of how many.
        n_items: usize,
        /// Some of them, by event and key, each with the reason.
        items: Vec<String>,
    },
}

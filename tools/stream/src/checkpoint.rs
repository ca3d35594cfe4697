//! The position of a mapping in each shard.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::progress::NOTHING_RESPONDS;
use crate::wiring::chain;

/// A store of positions, by mapping and shard.
///
/// The mapping saves a position only after all records up to it are done. A saved position must survive a restart.
/// Saving it again is harmless.
pub trait Checkpoints: Send + Sync {
    /// The position of a mapping in a shard; `None` if none was saved yet.
    fn load<'a>(&'a self, mapping: &'a str, shard: &'a str)
    -> BoxFuture<'a, Result<Option<Position>, CheckpointError>>;

    /// Saves the position of a mapping in a shard.
    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>>;
}

/// How far a mapping got in a shard.
///
/// Its serialised form, `{"after":"…"}` or `"ended"`, is stored and therefore stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// The record with this sequence number and all before it are done.
    After(String),
    /// The shard is closed and all of it is done.
    Ended,
}

/// Why a position could not be loaded or saved. The variants say what to do.
#[derive(Debug, Error)]
#[error("the checkpoint could not be loaded or saved")]
pub enum CheckpointError {
    /// The store of the positions does not respond: retry.
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// A temporary error: retry later.
    Transient(#[source] Box<dyn Error + Send + Sync>),
    /// A permanent error, until an operator changes the configuration.
    Lasting(#[source] Box<dyn Error + Send + Sync>),
}

impl CheckpointError {
    /// The error in one line, for an observer.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Unreachable(_) => NOTHING_RESPONDS.to_owned(),
            Self::Transient(_) | Self::Lasting(_) => chain(self),
        }
    }
}

/// Positions in memory, for tests and for runs that keep nothing.
#[derive(Debug, Default)]
pub struct MemoryCheckpoints {
    positions: Mutex<BTreeMap<(String, String), Position>>,
}

impl MemoryCheckpoints {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Checkpoints for MemoryCheckpoints {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        let positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        let position = positions.get(&(mapping.to_owned(), shard.to_owned())).cloned();
        Box::pin(std::future::ready(Ok(position)))
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.insert((mapping.to_owned(), shard.to_owned()), position.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn the_stored_form_of_a_position_does_not_change() {
        let after = Position::After("42".to_owned());
        assert_eq!(serde_json::to_string(&after).unwrap(), r#"{"after":"42"}"#);
        assert_eq!(serde_json::to_string(&Position::Ended).unwrap(), r#""ended""#);
        assert_eq!(serde_json::from_str::<Position>(r#"{"after":"42"}"#).unwrap(), after);
    }
}

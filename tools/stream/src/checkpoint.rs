//! Where a mapping stands in each shard.

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
/// A position is saved only after the records up to it are done with, and must be there after a restart. Saving it again
/// is harmless.
pub trait Checkpoints: Send + Sync {
    /// The position of a mapping in a shard, `None` when it never got anywhere in it.
    fn load<'a>(&'a self, mapping: &'a str, shard: &'a str)
    -> BoxFuture<'a, Result<Option<Position>, CheckpointError>>;

    /// Keeps the position of a mapping in a shard.
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

/// A position could not be loaded or saved, by what to do about it.
#[derive(Debug, Error)]
#[error("the checkpoint could not be loaded or saved")]
pub enum CheckpointError {
    /// Nothing responds where the positions are stored: try again.
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// Try again later.
    Transient(#[source] Box<dyn Error + Send + Sync>),
    /// It fails until somebody changes the set-up.
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
    /// A store without positions.
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

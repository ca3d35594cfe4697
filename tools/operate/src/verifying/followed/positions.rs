//! How far the functions are, by the positions of their mappings, and from where the stream is followed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use store::Store;
use stream::{
    checkpoint::{CheckpointError, Checkpoints, Position},
    sequence::order,
};

use super::{super::spool::Spool, Ahead, FollowedState};
use crate::{checkpoints::LedgerCheckpoints, failure::OperateError};

/// The functions that handle all derivations together: one of these does.
const READERS: [&[&str]; 2] = [&["combined"], &["aggregate", "propagate"]];

/// How often it is looked how far the functions are.
const POSITIONS_POLL: Duration = Duration::from_millis(50);

/// Positions: of the file, else of the functions; kept in the file.
pub(super) struct Positions<S> {
    pub(super) shared: Arc<FollowedState>,
    pub(super) spool: Spool,
    pub(super) ledger: Arc<LedgerCheckpoints<S>>,
    pub(super) readers: Vec<&'static [&'static str]>,
}

impl<S: Store> Checkpoints for Positions<S> {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        Box::pin(async move {
            let mut position = self.spool.load(mapping, shard).await?;
            if position.is_none() {
                position = first(&self.ledger, &self.readers, shard).await?;
            }
            if let Some(position) = &position {
                self.shared.state().seen.insert(shard.to_owned(), position.clone());
            }
            Ok(position)
        })
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        self.shared.state().seen.insert(shard.to_owned(), position.clone());
        self.spool.save(mapping, shard, position)
    }
}

/// The readers that have been at the stream.
pub(super) async fn present<S: Store>(
    ledger: &LedgerCheckpoints<S>,
) -> Result<Vec<&'static [&'static str]>, OperateError> {
    let mut present = Vec::new();
    for readers in READERS {
        for name in readers {
            if ledger.has_any(name).await? {
                present.push(readers);
                break;
            }
        }
    }
    Ok(present)
}

/// The least of the positions of these functions in a shard; none where one of them has none.
async fn first<S: Store>(
    ledger: &LedgerCheckpoints<S>,
    readers: &[&'static [&'static str]],
    shard: &str,
) -> Result<Option<Position>, CheckpointError> {
    let mut least: Option<Position> = None;
    for name in readers.concat() {
        let Some(position) = ledger.load(name, shard).await? else { return Ok(None) };
        least = match least {
            Some(least) if covers(&position, &least) => Some(least),
            _ => Some(position),
        };
    }
    Ok(least)
}

/// Is a position as far as another, or farther?
fn covers(position: &Position, other: &Position) -> bool {
    match (position, other) {
        (Position::Ended, _) => true,
        (Position::After(_), Position::Ended) => false,
        (Position::After(position), Position::After(other)) => order(position) >= order(other),
    }
}

/// Sees when the functions have come as far as the stream was seen.
pub(super) async fn watch_positions<S: Store>(
    shared: Arc<FollowedState>,
    ledger: Arc<LedgerCheckpoints<S>>,
    readers: Vec<&'static [&'static str]>,
) {
    loop {
        let ahead = shared.state().ahead.clone();
        if let Some(Ahead { until_ms, seen }) = ahead {
            // Where nothing ever was in the stream, nothing is to be handled.
            let mut is_past = readers.is_empty() && seen.is_empty();
            for names in &readers {
                is_past = is_past || are_past(&ledger, names, &seen).await.unwrap_or(false);
            }
            if is_past {
                let mut state = shared.state();
                state.handled_ms = state.handled_ms.max(until_ms);
                state.ahead = None;
            }
        }
        tokio::time::sleep(POSITIONS_POLL).await;
    }
}

/// Are all these functions past these positions?
async fn are_past<S: Store>(
    ledger: &LedgerCheckpoints<S>,
    names: &[&str],
    seen: &BTreeMap<String, Position>,
) -> Result<bool, CheckpointError> {
    for (shard, seen) in seen {
        for name in names {
            let position = ledger.load(name, shard).await?;
            if !position.is_some_and(|position| covers(&position, seen)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_covers_those_before_it() {
        let after = |number: &str| Position::After(number.to_owned());
        assert!(covers(&after("1683700000000000001135967"), &after("820400000000000001192334")));
        assert!(!covers(&after("9"), &after("10")) && covers(&after("010"), &after("10")));
        assert!(covers(&Position::Ended, &after("10")) && !covers(&after("10"), &Position::Ended));
    }
}

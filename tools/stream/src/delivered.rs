//! Up to when everything that was in the stream has been delivered.
//!
//! One entry for each shard that is not drained: the time up to which its records are all delivered, or nothing before
//! that is known. The stream's time is the earliest of them. A shard is entered before its first read and struck out only
//! by a listing that was made after it was drained, which enters its children in the same step, so there is no gap between
//! parent and child. A shard that is never empty still gets on: see [`Frontier`](crate::frontier::Frontier).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::wiring::Wiring;

/// The oldest listing that a report may rest on, in seconds: two refreshes and a slow answer.
const LISTING_SECONDS_MAX: u64 = 5;

/// The board of one mapping.
pub(crate) struct DeliveredBoard {
    wiring: Arc<Wiring>,
    board: Mutex<Board>,
}

#[derive(Default)]
struct Board {
    listed_at: Option<Instant>,
    /// Up to when each shard is delivered; `None` before that is known.
    shards: BTreeMap<String, Option<Instant>>,
}

impl DeliveredBoard {
    pub(crate) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, board: Mutex::default() }
    }

    /// A listing that began at `since` found these shards that are not drained.
    pub(crate) fn listed<'a>(&self, since: Instant, undrained: impl Iterator<Item = &'a str>) {
        let until = {
            let mut board = self.lock();
            let shards =
                undrained.map(|shard| (shard.to_owned(), board.shards.get(shard).copied().flatten())).collect();
            board.shards = shards;
            board.listed_at = Some(since);
            // Without shards there is no read that could report it; else the next read does.
            if board.shards.is_empty() { board.until() } else { None }
        };
        self.report(until);
    }

    /// All records of a shard that were made before `until` are delivered.
    pub(crate) fn delivered(&self, shard: &str, until: Instant) {
        let until = {
            let mut board = self.lock();
            if let Some(held) = board.shards.get_mut(shard) {
                *held = (*held).max(Some(until));
            }
            board.until()
        };
        self.report(until);
    }

    fn report(&self, until: Option<Instant>) {
        if let Some(until) = until {
            self.wiring.observer.delivered(&self.wiring.mapping.name, until.into_std());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn until(&self) -> Option<Instant> {
        let listed_at = self.listed_at.filter(|at| at.elapsed() <= Duration::from_secs(LISTING_SECONDS_MAX))?;
        let shards: Option<Vec<Instant>> = self.shards.values().copied().collect();
        Some(shards?.into_iter().min().unwrap_or(listed_at))
    }
}

//! Whether everything that was in the stream has been delivered.
//!
//! A board with one entry per undrained shard: the start of its last empty read with nothing held back, or nothing while
//! it has something to do. A shard is entered before its first read and struck out only by a listing that was made after
//! it was drained, which enters its children in the same step, so there is no gap between parent and child. An open
//! tumbling window is nothing to do: it has no records left to deliver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::wiring::Wiring;

/// The oldest listing that an idle report may rest on, in seconds: two refreshes and a slow answer.
const LISTING_SECONDS_MAX: u64 = 5;

/// The board of one mapping.
pub(crate) struct Quiet {
    wiring: Arc<Wiring>,
    board: Mutex<Board>,
}

#[derive(Default)]
struct Board {
    listed_at: Option<Instant>,
    /// Since when a shard is quiet; `None` while it is not.
    shards: BTreeMap<String, Option<Instant>>,
}

impl Quiet {
    pub(crate) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, board: Mutex::default() }
    }

    /// A listing that began at `since` found these shards that are not drained.
    pub(crate) fn listed<'a>(&self, since: Instant, undrained: impl Iterator<Item = &'a str>) {
        let idle_since = {
            let mut board = self.lock();
            let shards =
                undrained.map(|shard| (shard.to_owned(), board.shards.get(shard).copied().flatten())).collect();
            board.shards = shards;
            board.listed_at = Some(since);
            // Without shards there is no read that could show it; else the next read does.
            if board.shards.is_empty() { board.idle_since() } else { None }
        };
        self.report(idle_since);
    }

    /// A shard has something to do, or may have soon.
    pub(crate) fn busy(&self, shard: &str) {
        if let Some(quiet_since) = self.lock().shards.get_mut(shard) {
            *quiet_since = None;
        }
    }

    /// A read of a shard that began at `since` was empty, and nothing of the shard is held back.
    pub(crate) fn quiet(&self, shard: &str, since: Instant) {
        let idle_since = {
            let mut board = self.lock();
            if let Some(quiet_since) = board.shards.get_mut(shard) {
                *quiet_since = Some(since);
            }
            board.idle_since()
        };
        self.report(idle_since);
    }

    fn report(&self, idle_since: Option<Instant>) {
        if let Some(since) = idle_since {
            self.wiring.observer.idle(&self.wiring.mapping.name, since.into_std());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn idle_since(&self) -> Option<Instant> {
        let listed_at = self.listed_at.filter(|at| at.elapsed() <= Duration::from_secs(LISTING_SECONDS_MAX))?;
        let mut idle_since: Option<Instant> = None;
        for quiet_since in self.shards.values() {
            let quiet_since = (*quiet_since)?;
            idle_since = Some(idle_since.map_or(quiet_since, |since| since.min(quiet_since)));
        }
        Some(idle_since.unwrap_or(listed_at))
    }
}

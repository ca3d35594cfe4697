//! When a function is invoked with which records: Lambda's event source mapping in simulated time.
//!
//! *As Lambda does it* (tools/stream/README.md has the sources): a shard is read four times a second. An item's
//! records take one lane, which is one concurrent batch of the shard. A batch starts when its first record has waited
//! for the batching window, when it is full, or when the record behind it belongs to another tumbling window. While all
//! lanes work, the shard is not read.
//!
//! *Example*: with a batching window of 5 seconds, a record every second makes a batch of six: the first one opens the
//! window, and five join it. Two lanes make two batches of it.

use std::collections::VecDeque;

use super::world::scattered;

/// Time between two reads of a shard, in milliseconds.
const POLL_MS: u64 = 250;

/// How a mapping gathers records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    /// The batching window, in milliseconds.
    pub(super) window_ms: u64,
    /// Most records of a batch.
    pub(super) n_batch_max: usize,
    /// Concurrent batches of a shard.
    pub(super) n_lanes: usize,
    /// Length of the tumbling windows in milliseconds, if there are any.
    pub(super) tumbling_ms: Option<u64>,
}

/// A shard, as one mapping reads it.
#[derive(Debug)]
pub(super) struct ShardPace<R> {
    gathering: Gathering,
    lanes: Vec<LanePace<R>>,
}

#[derive(Debug)]
struct LanePace<R> {
    /// The records that wait, in their order.
    waiting: VecDeque<Waiting<R>>,
    /// When the invocation in progress ends.
    free_ms: u64,
}

#[derive(Debug)]
struct Waiting<R> {
    read_ms: u64,
    /// The number of its tumbling window.
    window: u64,
    record: R,
}

impl<R> ShardPace<R> {
    pub(super) fn new(gathering: Gathering) -> Self {
        let lane = || LanePace { waiting: VecDeque::new(), free_ms: 0 };
        Self { gathering, lanes: (0..gathering.n_lanes.max(1)).map(|_| lane()).collect() }
    }

    /// Adds a record that the stream has from this time on; the hash of its item's key decides about the lane.
    pub(super) fn push(&mut self, at_ms: u64, hash: u64, record: R) {
        let free_ms = self.lanes.iter().map(|lane| lane.free_ms).min().unwrap_or_default();
        let read_ms = at_ms.next_multiple_of(POLL_MS).max(free_ms);
        let window = self.gathering.tumbling_ms.map_or(0, |length_ms| at_ms / length_ms.max(1));
        let n_lanes = u64::try_from(self.lanes.len()).unwrap_or(1);
        let lane = usize::try_from(hash % n_lanes).unwrap_or_default();
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.waiting.push_back(Waiting { read_ms, window, record });
        }
    }

    /// When the next batch starts, and its lane.
    pub(super) fn next(&self) -> Option<(u64, usize)> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter_map(|(at, lane)| Some((self.due_ms(lane)?, at))).min()
    }

    fn due_ms(&self, lane: &LanePace<R>) -> Option<u64> {
        let first = lane.waiting.front()?;
        let full_ms = lane.waiting.get(self.gathering.n_batch_max.saturating_sub(1)).map(|last| last.read_ms);
        let cut_ms = lane.waiting.iter().find(|waiting| waiting.window != first.window).map(|next| next.read_ms);
        let due_ms = first.read_ms.saturating_add(self.gathering.window_ms);
        [full_ms, cut_ms].into_iter().flatten().fold(due_ms, u64::min).max(lane.free_ms).into()
    }

    /// Takes the batch of a lane that starts at this time.
    pub(super) fn take(&mut self, lane: usize, now_ms: u64) -> Vec<R> {
        let Some(lane) = self.lanes.get_mut(lane) else { return Vec::new() };
        let window = lane.waiting.front().map(|first| first.window);
        let mut batch = Vec::new();
        while batch.len() < self.gathering.n_batch_max.max(1)
            && let Some(next) = lane.waiting.pop_front_if(|next| next.read_ms <= now_ms && Some(next.window) == window)
        {
            batch.push(next.record);
        }
        batch
    }

    /// Keeps a lane busy until the invocation with its batch ends.
    pub(super) fn occupy(&mut self, lane: usize, until_ms: u64) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.free_ms = until_ms;
        }
    }
}

/// A number that seems random, and is the same for the same bytes. FNV-1a alone gives keys that differ by a digit
/// neighbouring numbers, so they would take turns at the shards.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    scattered(bytes.iter().fold(0xCBF2_9CE4_8422_2325, fnv))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATHERING: Gathering = Gathering { window_ms: 5_000, n_batch_max: 500, n_lanes: 1, tumbling_ms: None };

    /// Records at these times, each invocation taking 100 ms: when each batch starts, and its records.
    fn batches(gathering: Gathering, at_ms: impl IntoIterator<Item = u64>) -> Vec<(u64, usize)> {
        let mut shard = ShardPace::new(gathering);
        let mut found = Vec::new();
        let mut until = |shard: &mut ShardPace<u64>, end_ms: u64| {
            while let Some((now_ms, lane)) = shard.next().filter(|(now_ms, _)| *now_ms <= end_ms) {
                found.push((now_ms, shard.take(lane, now_ms).len()));
                shard.occupy(lane, now_ms + 100);
            }
        };
        for (n, at_ms) in at_ms.into_iter().enumerate() {
            until(&mut shard, at_ms);
            shard.push(at_ms, u64::try_from(n).unwrap(), at_ms);
        }
        until(&mut shard, u64::MAX);
        found
    }

    #[test]
    fn the_first_record_opens_the_window_and_those_of_the_next_seconds_join_it() {
        assert_eq!(batches(GATHERING, [100]), [(5_250, 1)]);
        let each_second = |n: u64| (0..n).map(|n| n * 1_000 + 100);
        assert_eq!(batches(GATHERING, each_second(12)), [(5_250, 6), (11_250, 6)]);
        let lanes = Gathering { n_lanes: 2, ..GATHERING };
        assert_eq!(batches(lanes, each_second(12)), [(5_250, 3), (6_250, 3), (11_250, 3), (12_250, 3)]);
    }

    #[test]
    fn a_full_batch_starts_at_once_and_the_next_one_waits_for_it() {
        let full = Gathering { n_batch_max: 2, ..GATHERING };
        assert_eq!(batches(full, [100, 200, 300, 400, 500]), [(250, 2), (500, 2), (5_600, 1)]);
        assert_eq!(batches(Gathering { window_ms: 0, ..GATHERING }, [100, 200, 260, 340]), [(250, 2), (500, 2)]);
    }

    #[test]
    fn a_record_of_the_next_tumbling_window_starts_the_batch_before_it() {
        let tumbling = Gathering { tumbling_ms: Some(60_000), ..GATHERING };
        assert_eq!(batches(tumbling, [58_000, 59_000, 60_500]), [(60_500, 2), (65_500, 1)]);
        assert_eq!(batches(GATHERING, [58_000, 59_000, 60_500]), [(63_000, 3)]);
    }
}

//! The platform: an event source mapping for each function, which reads the shards and delivers batches.
//!
//! Parents are read before their children. The records of a shard go to queues by item, and keep their order there. A
//! queue has one batch at a time. Handled records may be delivered again, in batches of any shape.

use std::sync::Arc;

use derive::family::Family;
use engine::ledger::LedgerKind;

use serde_json::{Value, json};

use support::record::Window;

use crate::{
    mutant::Condition,
    platform::{
        BatchVerdict, bounds, is_delivered,
        stream::{Stream, hash},
    },
    scene::Scene,
};

const RECORDS_MAX: usize = 30;

/// The same where the functions brake: enough for 20 items, of which some have several records.
const RECORDS_MAX_BRAKED: usize = 80;

/// Most old records that stray into a batch.
const STRAYS_MAX: usize = 6;

/// Of a hundred mappings, how many filter.
const FILTERED_PERCENT: usize = 50;

/// Most queues of a shard.
const QUEUES_MAX: usize = 3;

/// One function's mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) name: &'static str,
    pub(crate) families: Vec<Family>,
    pub(crate) ledger: LedgerKind,
    scene: Arc<Scene>,
    n_queues: usize,
    n_records_max: usize,
    /// Has all of it stopped?
    is_stopped: bool,
    /// Does the platform apply the template's filters? It does not for a table of a manifest's own.
    is_filtered: bool,
    shards: Vec<ShardReader>,
}

/// A shard, as a mapping reads it.
#[derive(Debug)]
struct ShardReader {
    n_seen: usize,
    queues: Vec<Queue>,
    /// State of the tumbling window, from the function's last response.
    state: Value,
}

/// The records of some items, in their order, and how far they are done.
#[derive(Debug, Default)]
struct Queue {
    records: Vec<usize>,
    n_done: usize,
    is_busy: bool,
    is_stopped: bool,
    /// Records of the next batch, after a bisection.
    n_bisected: Option<usize>,
}

/// A batch of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) shard: usize,
    queue: usize,
    /// Positions in the stream, each with its position in the queue unless it is a repeated record.
    pub(crate) records: Vec<(usize, Option<usize>)>,
}

impl Mapping {
    /// A mapping of a function that runs these families.
    pub(crate) fn new(scene: &Arc<Scene>, name: &'static str, families: &[Family], ledger: LedgerKind) -> Self {
        let n_queues = match ledger {
            LedgerKind::Receipts => scene.chance.between(1, QUEUES_MAX),
            LedgerKind::Watermarks if scene.lacks(Condition::OneLane) => 2,
            LedgerKind::Watermarks => 1,
        };
        let n_records_max = if scene.is_braked { RECORDS_MAX_BRAKED } else { scene.chance.between(1, RECORDS_MAX) };
        Self {
            name,
            families: families.to_vec(),
            ledger,
            scene: Arc::clone(scene),
            n_queues,
            n_records_max,
            is_stopped: false,
            is_filtered: scene.drawn.is_none() && scene.chance.percent(FILTERED_PERCENT),
            shards: Vec::new(),
        }
    }

    /// Adds new records to the queues. All records of an item go to the same one.
    pub(crate) fn take(&mut self, stream: &Stream) {
        for (at, shard) in stream.shards.iter().enumerate() {
            if at == self.shards.len() {
                let queues = (0..self.n_queues).map(|_| Queue::default()).collect();
                self.shards.push(ShardReader { n_seen: 0, queues, state: json!({}) });
            }
            let reader = &mut self.shards[at];
            for position in &shard.records[reader.n_seen..] {
                let record = &stream.records[*position];
                // A record is corrupt on its way to the function, behind the filter. Those that are, all functions get.
                if self.is_filtered && !record.is_corrupt() && !is_delivered(self.name, &record.json) {
                    self.scene.count("filtered out");
                    continue;
                }
                // Other bits than those that choose the shard.
                let queue = hash(&record.key) & 0xffff_ffff;
                reader.queues[usize::try_from(queue).unwrap() % self.n_queues].records.push(*position);
            }
            reader.n_seen = shard.records.len();
        }
    }

    /// Is everything done that has not stopped?
    pub(crate) fn is_quiet(&self) -> bool {
        let mut queues = self.shards.iter().flat_map(|shard| &shard.queues);
        self.is_stopped || queues.all(|queue| queue.is_done() || queue.is_stopped)
    }

    /// The position of the first change in the stream that it has not handled; their number when it has handled all.
    pub(crate) fn first_undone(&self, stream: &Stream) -> usize {
        let mut undone: Vec<usize> = Vec::new();
        for (at, shard) in stream.shards.iter().enumerate() {
            let reader = self.shards.get(at);
            undone.extend(&shard.records[reader.map_or(0, |reader| reader.n_seen)..]);
            undone.extend(reader.into_iter().flat_map(|reader| &reader.queues).flat_map(|l| &l.records[l.n_done..]));
        }
        undone.into_iter().map(|at| stream.records[at].made).min().unwrap_or(stream.made.len())
    }

    /// Starts again at the first record of every shard.
    pub(crate) fn rewind(&mut self) {
        self.shards.iter_mut().flat_map(|shard| &mut shard.queues).for_each(|queue| queue.n_done = 0);
    }

    /// Does anything wait for the function?
    pub(crate) fn is_behind(&self) -> bool {
        self.shards.iter().flat_map(|shard| &shard.queues).any(|queue| queue.n_done < queue.records.len())
    }

    /// A lane with waiting records stops, of a shard that may still get records. Nothing has to wait for its end there.
    pub(crate) fn stop_lane(&mut self, stream: &Stream) -> bool {
        let is_parent = |at: usize| stream.shards.iter().any(|shard| shard.parent == Some(at));
        let mut waiting = Vec::new();
        for (at, shard) in self.shards.iter().enumerate().filter(|(at, _)| !is_parent(*at)) {
            let behind = shard.queues.iter().enumerate().filter(|(_, queue)| queue.n_done < queue.records.len());
            waiting.extend(behind.map(|(number, _)| (at, number)));
        }
        let Some((shard, number)) = self.scene.chance.one_of(&waiting).copied() else { return false };
        self.shards[shard].queues[number].is_stopped = true;
        true
    }

    /// All lanes stop.
    pub(crate) fn stop(&mut self) -> bool {
        self.is_stopped = true;
        true
    }

    /// What has stopped goes on, without what waited there. Returns the positions in the stream of what is gone.
    pub(crate) fn give_up(&mut self) -> Vec<usize> {
        let is_stopped = std::mem::take(&mut self.is_stopped);
        let queues = self.shards.iter_mut().flat_map(|shard| &mut shard.queues);
        queues.filter(|queue| queue.is_stopped || is_stopped).flat_map(Queue::give_up).collect()
    }

    /// The next batch of a queue that is free, sometimes with old records or with one record twice.
    pub(crate) fn next_batch(&mut self, stream: &Stream) -> Option<Batch> {
        if self.is_stopped {
            return None;
        }
        let mut ready = Vec::new();
        for (at, reader) in self.shards.iter().enumerate() {
            // All ancestors are read to their ends first.
            if stream.shards[at].parent.is_some_and(|parent| !self.shards[parent].is_done()) {
                continue;
            }
            let queues = reader.queues.iter().enumerate();
            ready.extend(queues.filter(|(_, queue)| queue.is_ready()).map(|(queue, _)| (at, queue)));
        }
        let (shard, number) = *self.scene.chance.one_of(&ready)?;
        let chance = &self.scene.chance;
        let queue = &mut self.shards[shard].queues[number];
        let n_drawn = self.n_records_max - chance.below(self.n_records_max);
        let end = (queue.n_done + queue.n_bisected.take().unwrap_or(n_drawn)).min(queue.records.len());
        let mut records: Vec<(usize, Option<usize>)> =
            (queue.n_done..end).map(|at| (queue.records[at], Some(at))).collect();
        queue.is_busy = true;
        if chance.percent(8) {
            self.scene.count("doubled");
            let at = chance.below(records.len());
            let doubled = (records[at].0, None);
            records.insert(chance.between(at + 1, records.len()), doubled);
        }
        if queue.n_done > 0 && chance.percent(15) {
            self.scene.count("stray");
            for _ in 0..chance.between(1, STRAYS_MAX) {
                let stray = queue.records[chance.below(queue.n_done)];
                records.insert(chance.between(0, records.len()), (stray, None));
            }
        }
        Some(Batch { shard, queue: number, records })
    }

    /// The tumbling window of a batch, if the ledger needs one.
    pub(crate) fn window(&self, stream: &Stream, batch: &Batch, is_final: bool) -> Option<Window> {
        let shard_id = stream.shards[batch.shard].id.clone();
        let state = &self.shards[batch.shard].state;
        let is_ended_early = is_final && self.scene.chance.percent(20);
        let ([start, end], state) = (bounds(&self.scene), state.to_string());
        let window = Window { start, end, state, shard_id, is_final, is_ended_early };
        (self.ledger == LedgerKind::Watermarks).then_some(window)
    }

    /// Keeps the state of a response for the next batch of its window. After the window's end there is none.
    pub(crate) fn keep_state(&mut self, batch: &Batch, response: &Value, is_final: bool) {
        let state = response.get("state").filter(|_| !is_final).cloned();
        self.shards[batch.shard].state = state.unwrap_or_else(|| json!({}));
    }

    /// An empty batch, as at the end of a window, for a shard whose queue is free.
    pub(crate) fn empty_batch(&mut self) -> Option<Batch> {
        let (shard, queue) =
            self.any_queue(|queue| !queue.is_busy).filter(|_| self.ledger == LedgerKind::Watermarks)?;
        self.shards[shard].queues[queue].is_busy = true;
        Some(Batch { shard, queue, records: Vec::new() })
    }

    /// Records that a queue has handled, to be delivered again beside it.
    pub(crate) fn old_batch(&self) -> Option<Batch> {
        let chance = &self.scene.chance;
        let (shard, number) = self.any_queue(|queue| queue.n_done > 0)?;
        let queue = &self.shards[shard].queues[number];
        let start = chance.below(queue.n_done);
        let end = (start + chance.between(1, RECORDS_MAX)).min(queue.n_done);
        let records = (start..end).map(|at| (queue.records[at], None)).collect();
        Some(Batch { shard, queue: number, records })
    }

    /// A queue goes back to an earlier position; false when there is none that can.
    pub(crate) fn set_back(&mut self) -> bool {
        let may_go_back = |queue: &Queue| queue.n_done > 0 && !queue.is_busy && !queue.is_stopped;
        let Some((shard, number)) = self.any_queue(may_go_back).filter(|_| !self.is_stopped) else { return false };
        let n_back = self.scene.chance.between(1, 12);
        let queue = &mut self.shards[shard].queues[number];
        queue.n_done = queue.n_done.saturating_sub(n_back);
        true
    }

    fn any_queue(&self, is_meant: impl Fn(&Queue) -> bool) -> Option<(usize, usize)> {
        let queues =
            self.shards.iter().enumerate().flat_map(|(at, shard)| {
                shard.queues.iter().enumerate().map(move |(number, queue)| ((at, number), queue))
            });
        let meant: Vec<_> = queues.filter(|(_, queue)| is_meant(queue)).map(|(at, _)| at).collect();
        self.scene.chance.one_of(&meant).copied()
    }

    /// Frees the queue of a batch, and moves its position as the verdict says.
    pub(crate) fn commit(&mut self, batch: &Batch, verdict: BatchVerdict) {
        let queue = &mut self.shards[batch.shard].queues[batch.queue];
        queue.is_busy = false;
        let in_queue = |records: &[(usize, Option<usize>)]| -> Vec<usize> {
            records.iter().filter_map(|(_, in_queue)| *in_queue).collect()
        };
        let end = in_queue(&batch.records).into_iter().max().map_or(queue.n_done, |last| last + 1);
        match verdict {
            BatchVerdict::Done => queue.n_done = end,
            BatchVerdict::From(at) => {
                queue.n_done = in_queue(&batch.records[at..]).into_iter().min().unwrap_or(end);
                self.scene.count("failed in part");
            }
            BatchVerdict::Whole => {
                self.scene.count("failed whole");
                if self.ledger == LedgerKind::Watermarks && self.scene.lacks(Condition::NeverGivenUp) {
                    queue.records[queue.n_done..].rotate_left(end - queue.n_done);
                    return;
                }
                if batch.records.len() > 1 && self.scene.chance.percent(30) {
                    queue.n_bisected = Some(batch.records.len() / 2);
                    self.scene.count("bisected");
                }
            }
        }
    }
}

impl ShardReader {
    fn is_done(&self) -> bool {
        self.queues.iter().all(Queue::is_done)
    }
}

impl Queue {
    fn give_up(&mut self) -> Vec<usize> {
        (self.n_bisected, self.is_stopped) = (None, false);
        self.records.split_off(self.n_done)
    }

    fn is_ready(&self) -> bool {
        !self.is_busy && !self.is_stopped && self.n_done < self.records.len()
    }

    fn is_done(&self) -> bool {
        self.n_done == self.records.len() && !self.is_busy
    }
}

//! The platform: an event source mapping for each function, which reads the shards and delivers batches.
//!
//! Parents are read before their children. The records of a shard go to lanes by item, each in its order; a lane has
//! one batch under way, and comes to the next when that one is done. What is done may be delivered again, in any shape.

use std::sync::Arc;

use derive::family::Family;
use engine::ledger::LedgerKind;

use serde_json::{Value, json};

use support::record::Window;

use crate::{
    event::bounds,
    scene::Scene,
    stream::{Stream, hash},
    verdict::Verdict,
};

/// Most records of a batch.
const RECORDS_MAX: usize = 30;

/// Most old records that stray into a batch.
const STRAYS_MAX: usize = 6;

/// Most lanes of a shard.
const LANES_MAX: usize = 3;

/// One function's mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) name: &'static str,
    pub(crate) families: Vec<Family>,
    pub(crate) ledger: LedgerKind,
    scene: Arc<Scene>,
    n_lanes: usize,
    n_records_max: usize,
    shards: Vec<Reader>,
}

/// A shard, as a mapping reads it.
#[derive(Debug)]
struct Reader {
    n_seen: usize,
    lanes: Vec<Lane>,
    /// State of the tumbling window, as the function gave it last.
    state: Value,
}

/// The records of some items, in their order, and how far they are done.
#[derive(Debug, Default)]
struct Lane {
    records: Vec<usize>,
    n_done: usize,
    is_busy: bool,
    /// Records of the next batch, after a bisection.
    n_bisected: Option<usize>,
}

/// A batch of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) shard: usize,
    lane: usize,
    /// Positions in the stream, and where each stands in its lane if it is there by right.
    pub(crate) records: Vec<(usize, Option<usize>)>,
}

impl Mapping {
    /// A mapping of a function that runs these families.
    pub(crate) fn new(scene: &Arc<Scene>, name: &'static str, families: &[Family], ledger: LedgerKind) -> Self {
        let n_lanes = match ledger {
            LedgerKind::Receipts => scene.chance.between(1, LANES_MAX),
            LedgerKind::Checkpoint => 1,
        };
        let n_records_max = if scene.is_braked { RECORDS_MAX } else { scene.chance.between(1, RECORDS_MAX) };
        Self {
            name,
            families: families.to_vec(),
            ledger,
            scene: Arc::clone(scene),
            n_lanes,
            n_records_max,
            shards: Vec::new(),
        }
    }

    /// Sorts new records into the lanes: those of one item into one.
    pub(crate) fn take(&mut self, stream: &Stream) {
        for (at, shard) in stream.shards.iter().enumerate() {
            if at == self.shards.len() {
                let lanes = (0..self.n_lanes).map(|_| Lane::default()).collect();
                self.shards.push(Reader { n_seen: 0, lanes, state: json!({}) });
            }
            let reader = &mut self.shards[at];
            for position in &shard.records[reader.n_seen..] {
                // Other bits than those by which shards are cut.
                let lane = hash(&stream.records[*position].key) & 0xffff_ffff;
                reader.lanes[usize::try_from(lane).unwrap() % self.n_lanes].records.push(*position);
            }
            reader.n_seen = shard.records.len();
        }
    }

    /// Is everything done?
    pub(crate) fn is_quiet(&self) -> bool {
        self.shards.iter().all(Reader::is_done)
    }

    /// The first of all that was made that it has not done, of those in the stream; their number where it has done all.
    pub(crate) fn first_undone(&self, stream: &Stream) -> usize {
        let mut undone: Vec<usize> = Vec::new();
        for (at, shard) in stream.shards.iter().enumerate() {
            let reader = self.shards.get(at);
            undone.extend(&shard.records[reader.map_or(0, |reader| reader.n_seen)..]);
            undone.extend(reader.into_iter().flat_map(|reader| &reader.lanes).flat_map(|l| &l.records[l.n_done..]));
        }
        undone.into_iter().map(|at| stream.records[at].made).min().unwrap_or(stream.made.len())
    }

    /// Begins anew, at the first record of every shard.
    pub(crate) fn rewind(&mut self) {
        self.shards.iter_mut().flat_map(|shard| &mut shard.lanes).for_each(|lane| lane.n_done = 0);
    }

    /// The next batch of a lane that has one and is free; with strays, and records that are there twice.
    pub(crate) fn next_batch(&mut self, stream: &Stream) -> Option<Batch> {
        let mut ready = Vec::new();
        for (at, reader) in self.shards.iter().enumerate() {
            // The parents are done first, to the last of the line.
            if stream.shards[at].parent.is_some_and(|parent| !self.shards[parent].is_done()) {
                continue;
            }
            let lanes = reader.lanes.iter().enumerate();
            ready.extend(lanes.filter(|(_, lane)| lane.is_ready()).map(|(lane, _)| (at, lane)));
        }
        let (shard, number) = *self.scene.chance.one_of(&ready)?;
        let chance = &self.scene.chance;
        let lane = &mut self.shards[shard].lanes[number];
        let n_drawn = self.n_records_max - chance.below(self.n_records_max);
        let end = (lane.n_done + lane.n_bisected.take().unwrap_or(n_drawn)).min(lane.records.len());
        let mut records: Vec<(usize, Option<usize>)> =
            (lane.n_done..end).map(|at| (lane.records[at], Some(at))).collect();
        lane.is_busy = true;
        if chance.percent(8) {
            self.scene.count("doubled");
            let at = chance.below(records.len());
            let doubled = (records[at].0, None);
            records.insert(chance.between(at + 1, records.len()), doubled);
        }
        if lane.n_done > 0 && chance.percent(15) {
            self.scene.count("stray");
            for _ in 0..chance.between(1, STRAYS_MAX) {
                let stray = lane.records[chance.below(lane.n_done)];
                records.insert(chance.between(0, records.len()), (stray, None));
            }
        }
        Some(Batch { shard, lane: number, records })
    }

    /// A tumbling window around a batch, where the ledger wants one.
    pub(crate) fn window(&self, stream: &Stream, batch: &Batch, is_final: bool) -> Option<Window> {
        let shard_id = stream.shards[batch.shard].id.clone();
        let state = &self.shards[batch.shard].state;
        let is_ended_early = is_final && self.scene.chance.percent(20);
        let ([start, end], state) = (bounds(&self.scene), state.to_string());
        let window = Window { start, end, state, shard_id, is_final, is_ended_early };
        (self.ledger == LedgerKind::Checkpoint).then_some(window)
    }

    /// Keeps the state that a response gives for the next batch of its window; after the window's end there is none.
    pub(crate) fn keep_state(&mut self, batch: &Batch, response: &Value, is_final: bool) {
        let state = response.get("state").filter(|_| !is_final).cloned();
        self.shards[batch.shard].state = state.unwrap_or_else(|| json!({}));
    }

    /// A batch of no records, as the end of a window brings it, of a shard whose lane is free.
    pub(crate) fn empty_batch(&mut self) -> Option<Batch> {
        let (shard, lane) = self.any_lane(|lane| !lane.is_busy).filter(|_| self.ledger == LedgerKind::Checkpoint)?;
        self.shards[shard].lanes[lane].is_busy = true;
        Some(Batch { shard, lane, records: Vec::new() })
    }

    /// A window of what a lane has done, to be delivered again beside it.
    pub(crate) fn old_batch(&self) -> Option<Batch> {
        let chance = &self.scene.chance;
        let (shard, number) = self.any_lane(|lane| lane.n_done > 0)?;
        let lane = &self.shards[shard].lanes[number];
        let start = chance.below(lane.n_done);
        let end = (start + chance.between(1, RECORDS_MAX)).min(lane.n_done);
        let records = (start..end).map(|at| (lane.records[at], None)).collect();
        Some(Batch { shard, lane: number, records })
    }

    /// A lane goes back to an earlier position; false when there is none that can.
    pub(crate) fn set_back(&mut self) -> bool {
        let Some((shard, number)) = self.any_lane(|lane| lane.n_done > 0 && !lane.is_busy) else { return false };
        let n_back = self.scene.chance.between(1, 12);
        let lane = &mut self.shards[shard].lanes[number];
        lane.n_done = lane.n_done.saturating_sub(n_back);
        true
    }

    fn any_lane(&self, is_meant: impl Fn(&Lane) -> bool) -> Option<(usize, usize)> {
        let lanes = self
            .shards
            .iter()
            .enumerate()
            .flat_map(|(at, shard)| shard.lanes.iter().enumerate().map(move |(number, lane)| ((at, number), lane)));
        let meant: Vec<_> = lanes.filter(|(_, lane)| is_meant(lane)).map(|(at, _)| at).collect();
        self.scene.chance.one_of(&meant).copied()
    }

    /// Frees the lane of a batch, and moves its position to where the verdict says.
    pub(crate) fn commit(&mut self, batch: &Batch, verdict: Verdict) {
        let lane = &mut self.shards[batch.shard].lanes[batch.lane];
        lane.is_busy = false;
        let in_lane = |records: &[(usize, Option<usize>)]| -> Vec<usize> {
            records.iter().filter_map(|(_, in_lane)| *in_lane).collect()
        };
        let end = in_lane(&batch.records).into_iter().max().map_or(lane.n_done, |last| last + 1);
        match verdict {
            Verdict::Done => lane.n_done = end,
            Verdict::From(at) => {
                lane.n_done = in_lane(&batch.records[at..]).into_iter().min().unwrap_or(end);
                self.scene.count("failed in part");
            }
            Verdict::Whole => {
                self.scene.count("failed whole");
                if batch.records.len() > 1 && self.scene.chance.percent(30) {
                    lane.n_bisected = Some(batch.records.len() / 2);
                    self.scene.count("bisected");
                }
            }
        }
    }
}

impl Reader {
    fn is_done(&self) -> bool {
        self.lanes.iter().all(|lane| lane.n_done == lane.records.len() && !lane.is_busy)
    }
}

impl Lane {
    fn is_ready(&self) -> bool {
        !self.is_busy && self.n_done < self.records.len()
    }
}

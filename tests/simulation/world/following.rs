//! The stream as verifications follow it, and what they report.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
};

use engine::clock::Clock;
use futures::future::BoxFuture;
use operate::verify::{
    following::{Following, Retained, ShardRecords},
    report::{Listener, VerifyEvent},
};

use crate::{
    platform::{
        mapping::Mapping,
        stream::{GivenRecord, Stream, StreamRecord, by_shard},
    },
    scene::Scene,
};

/// The stream and the progress of the functions, as a verification sees them.
#[derive(Debug, Default)]
pub(crate) struct StreamView {
    /// Records that have arrived since the verification last asked.
    records: Vec<GivenRecord>,
    /// How many records of the stream have arrived so far.
    n_seen: usize,
    /// Everything before this moment has arrived, and everything before the other is handled.
    arrived_ms: u64,
    handled_ms: u64,
    /// Did somebody say, wrongly perhaps, that the functions have handled everything?
    is_guessed: bool,
    /// Is it that of the real AWS, where nobody knows what is handled? Then all that the stream still holds, and of which
    /// state of it that is.
    retained: Option<Vec<GivenRecord>>,
    retained_of: (usize, usize, u64),
}

/// How long a stream holds records, in milliseconds; those that are not handled are held for longer here.
pub(crate) const RETAINED_MS: u64 = 24 * 3_600 * 1_000;

/// A verification's own view of the stream. The scheduler updates it.
pub(crate) type SharedView = Arc<Mutex<StreamView>>;

/// Gives a verification its view of the stream, by the verification's own clock.
pub(crate) struct ViewReader {
    view: SharedView,
    /// How far that clock is off, in milliseconds.
    off_ms: i64,
}

impl ViewReader {
    pub(crate) fn new(scene: &Scene, clock: &dyn Clock, view: SharedView) -> Self {
        Self { view, off_ms: clock.now_ms().cast_signed() - scene.clock.now_ms().cast_signed() }
    }
}

impl Following for ViewReader {
    fn records(&self) -> Vec<ShardRecords> {
        by_shard(&std::mem::take(&mut self.view.lock().unwrap().records))
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.view.lock().unwrap().arrived_ms.saturating_add_signed(self.off_ms) >= moment_ms
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        let view = self.view.lock().unwrap();
        if view.is_guessed {
            return Some(true);
        }
        Some(view.handled_ms.min(view.arrived_ms).saturating_add_signed(self.off_ms) >= moment_ms)
    }

    fn is_typed(&self) -> bool {
        self.view.lock().unwrap().retained.is_some()
    }

    /// What comes later is given beside it.
    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        let view = self.view.lock().unwrap();
        Box::new(AllAtOnce(by_shard(view.retained.as_deref().unwrap_or_default())))
    }
}

/// All that a stream holds, shard by shard.
pub(crate) struct AllAtOnce(pub(crate) Vec<ShardRecords>);

impl Retained for AllAtOnce {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(std::future::ready(Ok(self.0.pop())))
    }
}

impl StreamView {
    /// Follows from the last record on.
    pub(crate) fn from_now(stream: &Stream) -> Self {
        Self { n_seen: stream.records.len(), ..Self::default() }
    }

    /// The same of the real AWS.
    pub(crate) fn typed(self) -> Self {
        Self { retained: Some(Vec::new()), ..self }
    }

    /// The same with a guess that everything is handled.
    pub(crate) fn guessed(self) -> Self {
        Self { is_guessed: true, ..self.typed() }
    }

    /// Adds what has arrived and what was handled since the last time.
    pub(crate) fn update(&mut self, scene: &Scene, stream: &Stream, mappings: &[Mapping]) {
        self.records.extend(stream.given(stream.records[self.n_seen..].iter()));
        self.n_seen = stream.records.len();
        let at_ms = |made: usize| stream.made.get(made).map_or(scene.clock.now_ms(), |made| made.at_ms);
        self.arrived_ms = at_ms(stream.first_on_its_way());
        let undone = mappings.iter().map(|mapping| mapping.first_undone(stream)).min().unwrap_or(0);
        self.handled_ms = at_ms(undone);
        if let Some(retained) = &mut self.retained {
            let since_ms = scene.clock.now_ms().saturating_sub(RETAINED_MS);
            // In minutes, since it is asked for at every step.
            let state = (self.n_seen, undone, since_ms / 60_000);
            if self.retained_of == state {
                return;
            }
            self.retained_of = state;
            let is_held = |record: &&StreamRecord| record.made >= undone || at_ms(record.made) >= since_ms;
            *retained = stream.given(stream.records.iter().filter(is_held));
        }
    }
}

/// The events of a verification that has ended.
pub(crate) type Reported = Arc<Mutex<Option<Vec<VerifyEvent>>>>;

/// A verification under way, and the derivations that were not filled when it began.
pub(crate) type UnderWay = (Reported, BTreeSet<String>);

#[derive(Default)]
pub(crate) struct EventList(pub(crate) Vec<VerifyEvent>);

impl Listener for EventList {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        self.0.push(event);
        Ok(())
    }

    fn read(&mut self, _n_items: usize) {}

    fn looked(&mut self, _n_items: usize) {}

    fn counted(&mut self, _n_counts: usize) {}
}

#[derive(Default)]
pub(crate) struct Verifying {
    /// The verification that runs.
    pub(crate) under_way: Option<UnderWay>,
    /// The views of all verifications and repairs.
    pub(crate) views: Vec<SharedView>,
}

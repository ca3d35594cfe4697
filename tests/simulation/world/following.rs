//! The stream as verifications follow it, and what they report.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
};

use engine::clock::Clock;
use operate::verify::{
    following::Following,
    report::{Listener, VerifyEvent},
};

use crate::{
    platform::{mapping::Mapping, stream::Stream},
    scene::Scene,
};

/// The stream and the progress of the functions, as a verification sees them.
#[derive(Debug, Default)]
pub(crate) struct StreamView {
    /// Records that have arrived since the verification last asked.
    records: Vec<String>,
    /// How many records of the stream have arrived so far.
    n_seen: usize,
    /// Everything before this moment has arrived, and everything before the other is handled.
    arrived_ms: u64,
    handled_ms: u64,
}

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
    fn records(&self) -> Vec<String> {
        std::mem::take(&mut self.view.lock().unwrap().records)
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.view.lock().unwrap().arrived_ms.saturating_add_signed(self.off_ms) >= moment_ms
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        let view = self.view.lock().unwrap();
        Some(view.handled_ms.min(view.arrived_ms).saturating_add_signed(self.off_ms) >= moment_ms)
    }
}

impl StreamView {
    /// Follows from the last record on.
    pub(crate) fn from_now(stream: &Stream) -> Self {
        Self { n_seen: stream.records.len(), ..Self::default() }
    }

    /// Adds what has arrived and what was handled since the last time.
    pub(crate) fn update(&mut self, scene: &Scene, stream: &Stream, mappings: &[Mapping]) {
        self.records.extend(stream.records[self.n_seen..].iter().map(|record| record.json.clone()));
        self.n_seen = stream.records.len();
        let at_ms = |made: usize| stream.made.get(made).map_or(scene.clock.now_ms(), |made| made.at_ms);
        self.arrived_ms = at_ms(stream.first_on_its_way());
        self.handled_ms = mappings.iter().map(|mapping| at_ms(mapping.first_undone(stream))).min().unwrap_or(0);
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
}

#[derive(Default)]
pub(crate) struct Verifying {
    /// The verification that runs.
    pub(crate) under_way: Option<UnderWay>,
    /// The views of all verifications and repairs.
    pub(crate) views: Vec<SharedView>,
}

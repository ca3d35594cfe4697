//! A scene as it is played: the steps so far, with what came of each.

use std::sync::Arc;

use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
};
use keys::{item::Item, key::Key};
use operate::{
    failure::OperateError,
    why::{ValueState, WhyRequest, why},
    words::counted,
};
use store::Store;

use super::{SCENES, Scene, cast::SceneCast};
use crate::{
    Console,
    explained::text,
    step::{StepGate, delivering::DeliveryReport},
};

/// Sources of a count that are read at most.
const SOURCES_MAX: usize = 1_000;

/// Numbers of the items that scenes write, so that each scene has items of its own.
const NUMBERS: u64 = 1_000_000;

/// A scene that is played.
pub(crate) struct SceneRun {
    pub(crate) scene: &'static Scene,
    pub(crate) cast: SceneCast,
    /// The function that brings the value about.
    pub(super) function: usize,
    /// What was done, first what is before the first step.
    pub(crate) lines: Vec<SceneLine>,
    /// The item whose record is delivered next.
    pub(super) changed: Key,
    /// Sequence number of the record that was delivered first.
    pub(super) first: Option<String>,
    /// How often the source was changed.
    pub(super) n_changes: usize,
    /// The item as somebody read it.
    pub(super) read: Option<Item>,
}

/// A step that was done.
pub(crate) struct SceneLine {
    pub(crate) text: String,
    pub(crate) done: ActDone,
    pub(crate) watched: WatchedValue,
}

/// What came of an act.
#[derive(Default)]
pub(crate) struct ActDone {
    pub(crate) report: Option<DeliveryReport>,
    pub(crate) note: Option<String>,
}

/// The value that a scene watches.
pub(crate) struct WatchedValue {
    pub(crate) name: String,
    pub(crate) stored: String,
    /// By its definition.
    pub(crate) derived: String,
    pub(crate) state: ValueState,
}

impl SceneRun {
    /// Begins a scene: the stream is held, and the items are written that it needs.
    ///
    /// # Errors
    ///
    /// Why it cannot be played, for a person.
    pub(crate) async fn begin<S: Store + 'static>(
        console: &Console<S>,
        gate: &Arc<StepGate<S>>,
        id: &str,
    ) -> Result<Self, String> {
        let scene = SCENES.iter().find(|scene| scene.id == id).ok_or_else(|| format!("There is no scene {id}."))?;
        let number = SystemClock.now_ms() / 10 % NUMBERS;
        let cast = SceneCast::of(&console.design, scene.subject, number).await;
        let cast = cast.ok_or(scene.subject.is_missing())?;
        let does = |at: &usize| gate.functions.get(*at).is_some_and(|it| it.families().contains(&cast.family));
        let function = (0..gate.functions.len()).find(does).ok_or("No function here derives that value.")?;
        let changed = cast.item.0.clone();
        let (first, read) = (None, None);
        let mut run = Self { scene, cast, function, lines: Vec::new(), changed, first, n_changes: 0, read };
        gate.hold(true);
        for item in run.cast.before.clone() {
            run.put(console, item).await?;
        }
        gate.let_through().await?;
        let written = counted(run.cast.before.len(), "item");
        let text = format!("The stream is held. The application has written {written}, and Ripple what follows.");
        run.note(console, text, ActDone::default()).await?;
        Ok(run)
    }

    /// Does the next step.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, for a person.
    pub(crate) async fn next<S: Store + 'static>(
        &mut self,
        console: &Arc<Console<S>>,
        gate: &Arc<StepGate<S>>,
    ) -> Result<(), String> {
        let Some(step) = self.scene.steps.get(self.n_done()) else { return Ok(()) };
        let done = Box::pin(self.act(console, gate, step.act)).await?;
        self.note(console, step.text.to_owned(), done).await
    }

    /// How many steps are done.
    pub(crate) fn n_done(&self) -> usize {
        self.lines.len().saturating_sub(1)
    }

    async fn note<S: Store + 'static>(
        &mut self,
        console: &Console<S>,
        text: String,
        done: ActDone,
    ) -> Result<(), String> {
        let watched = self.watched(console).await.map_err(|error| describe(&error))?;
        self.lines.push(SceneLine { text, done, watched });
        Ok(())
    }

    /// The value as it is now, and as its definition gives it.
    async fn watched<S: Store + 'static>(&self, console: &Console<S>) -> Result<WatchedValue, OperateError> {
        let (key, derivation) = (self.cast.target.clone(), &self.cast.derivation);
        let request = WhyRequest { key, attribute: None, n_listed: 1, n_read_max: SOURCES_MAX, reads_stream: false };
        let explained = Box::pin(why(&console.opened, &request)).await?;
        if let Some(counter) = explained.counters.iter().find(|counter| counter.derivation == *derivation) {
            return Ok(WatchedValue {
                name: counter.derivation.clone(),
                stored: counter.stored.to_string(),
                derived: counter.sources.tally.to_string(),
                state: counter.state.clone(),
            });
        }
        let value = explained.values.iter().find(|value| value.derivation == *derivation);
        let attribute = self.cast.copy.as_ref().map(|copy| &copy.attribute);
        let found = value.and_then(|value| value.attributes.iter().find(|it| Some(&it.name) == attribute));
        let is_there = |is: bool| if is { "the item is there" } else { "no item" }.to_owned();
        let should = value.and_then(|value| value.should_exist);
        Ok(WatchedValue {
            name: found.map_or_else(|| derivation.clone(), |it| it.name.clone()),
            stored: found.map_or_else(|| is_there(explained.item.is_some()), |it| said(it.stored.as_ref())),
            derived: match (found, should) {
                (Some(it), _) => said(it.derived.as_ref()),
                (None, Some(should)) => is_there(should),
                (None, None) => "not known by itself".to_owned(),
            },
            state: value.map_or(ValueState::Differs, |value| value.state.clone()),
        })
    }
}

fn said(value: Option<&serde_dynamo::AttributeValue>) -> String {
    value.map_or_else(|| "nothing".to_owned(), text)
}

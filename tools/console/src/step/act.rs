//! The actions of a scene's steps.

use std::{collections::BTreeSet, sync::Arc};

use derive::write::{Action, Table, Update, Write};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
    park::parked,
};
use keys::{
    counter::{COUNTER, CounterKey, VALUE},
    item::Item,
    key::Key,
};
use operate::{
    OperateError,
    parked::redrive,
    repair,
    tables::VerifyOptions,
    verify::Progress,
    why::{ValueState, WhyRequest, why},
    words::counted,
};
use serde_dynamo::AttributeValue;
use store::{Store, operation};

use crate::{
    Console,
    item::text,
    step::{
        StepGate,
        delivering::{DeliveryReport, DeliveryWay, WhichRecord},
        scene::{SCENES, Scene, SceneAct, SceneCast},
    },
};

/// The error that is added to a counter.
const ADDED: i64 = 5;

impl SceneRun {
    /// Does one action.
    pub(super) async fn act<S: Store + 'static>(
        &mut self,
        console: &Arc<Console<S>>,
        gate: &Arc<StepGate<S>>,
        act: SceneAct,
    ) -> Result<ActDone, String> {
        let note = match act {
            SceneAct::Write => {
                let (key, item) = self.cast.item.clone();
                self.changed = key.clone();
                self.put(console, item).await?;
                format!("It writes {key}.")
            }
            SceneAct::Deliver => return self.deliver(console, gate, DeliveryWay::Once).await,
            SceneAct::DeliverAtOnce => return self.deliver(console, gate, DeliveryWay::AtOnce).await,
            SceneAct::DeliverAndKill => return self.deliver(console, gate, DeliveryWay::Killed(1)).await,
            SceneAct::Again => {
                let first = WhichRecord::Again(self.first.clone().unwrap_or_default());
                let report = gate.deliver(self.function, &first, DeliveryWay::Once).await;
                let report = report.ok_or("That record is not kept any more: begin the scene again.")?;
                return Ok(ActDone { report: Some(report), note: None });
            }
            SceneAct::LetThrough => {
                gate.let_through().await?;
                return Ok(ActDone::default());
            }
            SceneAct::ChangeSource | SceneAct::Overwrite => self.change(console, act).await?,
            SceneAct::Read => {
                self.read = self.held(console, &self.cast.target.clone()).await?;
                format!("It reads {}.", self.cast.target)
            }
            SceneAct::PutBack => {
                self.changed = self.cast.target.clone();
                let item = self.read.clone().ok_or("The item was not there to be read.")?;
                self.put(console, item).await?;
                format!("It writes {} as it read it.", self.cast.target)
            }
            SceneAct::Delete => {
                self.changed = self.cast.target.clone();
                self.write(console, self.cast.target.clone(), Action::Delete).await?;
                format!("It deletes {}.", self.cast.target)
            }
            SceneAct::SpoilCounter | SceneAct::RemoveValue | SceneAct::AlterCounter => {
                self.alter_counter(console, act).await?
            }
            SceneAct::Redrive => self.redrive(console).await?,
            SceneAct::Repair => {
                gate.hold(false);
                self.repair(console).await?
            }
        };
        Ok(ActDone { report: None, note: Some(note) })
    }

    async fn deliver<S: Store + 'static>(
        &mut self,
        console: &Console<S>,
        gate: &StepGate<S>,
        way: DeliveryWay,
    ) -> Result<ActDone, String> {
        gate.bring(self.function, &self.changed, &console.opened.schema.layout).await?;
        let number = gate.held().next(self.function).map(|next| next.record.sequence_number);
        let report = gate.deliver(self.function, &WhichRecord::Next, way).await;
        self.first = self.first.take().or(number);
        Ok(ActDone { report, note: None })
    }

    /// Changes the source of the copy, or the copy itself.
    async fn change<S: Store + 'static>(&mut self, console: &Console<S>, act: SceneAct) -> Result<String, String> {
        let copy = self.cast.copy.clone().ok_or("This table copies nothing.")?;
        self.n_changes += 1;
        let (key, name, text) = if act == SceneAct::Overwrite {
            (self.cast.target.clone(), copy.attribute, "somebody else".to_owned())
        } else {
            (copy.source, copy.source_attribute, format!("{} {}", copy.text, self.n_changes + 1))
        };
        let said = format!("{name} of {key} becomes “{text}”.");
        let set = Item::from([(name, AttributeValue::S(text))]);
        self.changed = key.clone();
        self.write(console, key, Action::Update(Update::set(set))).await?;
        Ok(said)
    }

    async fn alter_counter<S: Store + 'static>(
        &mut self,
        console: &Console<S>,
        act: SceneAct,
    ) -> Result<String, String> {
        let catalogue = &console.opened.catalogue;
        let stored =
            catalogue.called(&self.cast.derivation).map_or_else(String::new, |at| catalogue.name(at).to_owned());
        let (target, derivation) = (self.cast.target.clone(), stored);
        let key = CounterKey { target, derivation, satellite: 0 }.key().map_err(|error| error.to_string())?;
        let layout = &console.opened.schema.layout;
        let (action, said) = match act {
            SceneAct::SpoilCounter => {
                let mut item = layout.key_item(&key);
                item.extend(layout.type_of(COUNTER));
                item.insert(VALUE.to_owned(), AttributeValue::S("many".to_owned()));
                (Action::Put(item), format!("{VALUE} of {key} becomes the text “many”."))
            }
            SceneAct::RemoveValue => {
                let remove = BTreeSet::from([VALUE.to_owned()]);
                (Action::Update(Update { remove, ..Update::default() }), format!("{VALUE} of {key} is removed."))
            }
            _ => {
                let add = Item::from([(VALUE.to_owned(), AttributeValue::N(ADDED.to_string()))]);
                (Action::Update(Update { add, ..Update::default() }), format!("{VALUE} of {key} grows by {ADDED}."))
            }
        };
        self.write(console, key, action).await?;
        Ok(said)
    }

    /// Redrives the parked changes of the scene's item.
    async fn redrive<S: Store + 'static>(&self, console: &Console<S>) -> Result<String, String> {
        let parked = parked(&console.opened.store).await.map_err(|error| describe(&error))?;
        let layout = &console.opened.schema.layout;
        let is_ours = |record: String| engine::record::key_of(layout, &record).as_ref() == Some(&self.cast.item.0);
        let mut said = Vec::new();
        for change in parked.iter().filter(|change| change.record().is_ok_and(is_ours)) {
            let outcome = redrive(&console.engine, change).await.map_err(|error| describe(&error))?;
            said.push(outcome.to_string());
        }
        Ok(if said.is_empty() {
            "Nothing of it is parked.".to_owned()
        } else {
            format!("Redriven: {}.", said.join(", "))
        })
    }

    /// Repairs the count.
    async fn repair<S: Store + 'static>(&self, console: &Arc<Console<S>>) -> Result<String, String> {
        let options = VerifyOptions {
            derivation: vec![self.cast.derivation.clone()],
            pk: self.cast.target.pk.clone(),
            ..VerifyOptions::default()
        };
        let (console, runtime) = (Arc::clone(console), tokio::runtime::Handle::current());
        // The findings are stored in a file, whose handle stays on one thread.
        let repaired = tokio::task::spawn_blocking(move || {
            let progress: Arc<dyn Progress> = Arc::new(Unwatched);
            let repair = repair::repair(&console.opened, &options, true, &progress, |_| Ok(()));
            runtime.block_on(repair).map(|report| report.summary.sums)
        });
        let sums = repaired.await.map_err(|error| error.to_string())?.map_err(|error| describe(&error))?;
        Ok(format!("{} repaired, {} left to an operator.", sums.done, sums.refused))
    }

    pub(super) async fn put<S: Store + 'static>(&self, console: &Console<S>, item: Item) -> Result<(), String> {
        let key = console.opened.schema.layout.key(&item).ok_or("an item of the scene has no key")?;
        self.write(console, key, Action::Put(item)).await
    }

    async fn write<S: Store + 'static>(&self, console: &Console<S>, key: Key, action: Action) -> Result<(), String> {
        let named = operation(&action);
        let write = Write { table: Table::Main, key, action, guard: None };
        let written = console.patience().call(|| console.opened.store.write(&write)).await;
        written.map(drop).map_err(|error| format!("{named}: {}", describe(&error)))
    }

    async fn held<S: Store + 'static>(&self, console: &Console<S>, key: &Key) -> Result<Option<Item>, String> {
        let held = console.engine.stored(vec![key.clone()], console.patience()).await;
        Ok(held.map_err(|error| describe(&error))?.remove(key).flatten())
    }
}

/// Ignores the progress of the repair of one count.
struct Unwatched;

impl Progress for Unwatched {}

// ---- A running scene: the steps so far, with the result of each ----

/// Limit on the sources of a count that are read.
const SOURCES_MAX: usize = 1_000;

/// Numbers of the items that scenes write, so that each scene has its own items.
const NUMBERS: u64 = 1_000_000;

pub(crate) struct SceneRun {
    pub(crate) scene: &'static Scene,
    pub(crate) cast: SceneCast,
    /// The function that writes the value.
    function: usize,
    /// The steps so far, preceded by the state before the first step.
    pub(crate) lines: Vec<SceneLine>,
    /// The item whose record is delivered next.
    changed: Key,
    /// Sequence number of the record that was delivered first.
    first: Option<String>,
    /// Number of changes of the source.
    n_changes: usize,
    /// The item as the client read it.
    read: Option<Item>,
}

/// A step that was done.
pub(crate) struct SceneLine {
    pub(crate) text: String,
    pub(crate) done: ActDone,
    pub(crate) watched: WatchedValue,
}

/// The result of an action.
#[derive(Default)]
pub(crate) struct ActDone {
    pub(crate) report: Option<DeliveryReport>,
    pub(crate) note: Option<String>,
}

/// The value that a scene watches.
pub(crate) struct WatchedValue {
    pub(crate) name: String,
    pub(crate) stored: String,
    /// The value by its definition.
    pub(crate) derived: String,
    pub(crate) state: ValueState,
}

impl SceneRun {
    /// Begins a scene: holds the stream, and writes the items that the scene needs.
    ///
    /// # Errors
    ///
    /// Why the scene cannot run, for a person.
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
        let text = format!("The stream is paused. The application has written {written}, and Ripple what follows.");
        run.note(console, text, ActDone::default()).await?;
        Ok(run)
    }

    /// Does the next step.
    ///
    /// # Errors
    ///
    /// Why the step cannot be done, for a person.
    pub(crate) async fn next<S: Store + 'static>(
        &mut self,
        console: &Arc<Console<S>>,
        gate: &Arc<StepGate<S>>,
    ) -> Result<(), String> {
        let Some(step) = self.scene.steps.get(self.n_done()) else { return Ok(()) };
        let done = Box::pin(self.act(console, gate, step.act)).await?;
        self.note(console, step.text.to_owned(), done).await
    }

    /// Number of completed steps.
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

    /// The stored value, and the value by its definition.
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

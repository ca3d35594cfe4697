//! What the steps of a scene do.

use std::sync::Arc;

use derive::write::{Action, Table, Update, Write};
use engine::{backoff::describe, park::redrive::parked};
use keys::{
    counter::{COUNTER, CounterKey, VALUE},
    item::Item,
    key::Key,
};
use operate::{progress::Progress, redriving::redrive, repairing, tables::VerifyOptions, verifying::ReadPrice};
use serde_dynamo::AttributeValue;
use store::{Store, operation};

use super::{
    SceneAct,
    run::{ActDone, SceneRun},
};
use crate::{
    Console,
    step::{
        StepGate,
        delivering::{DeliveryWay, WhichRecord},
    },
};

/// What an altered counter has too much.
const ADDED: i64 = 5;

impl SceneRun {
    /// Does one act.
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
            SceneAct::SpoilCounter | SceneAct::RemoveCounter | SceneAct::AlterCounter => {
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
        let key = CounterKey { target, derivation, shard: 0 }.key().map_err(|error| error.to_string())?;
        let layout = &console.opened.schema.layout;
        let (action, said) = match act {
            SceneAct::SpoilCounter => {
                let mut item = layout.key_item(&key);
                item.extend(layout.type_of(COUNTER));
                item.insert(VALUE.to_owned(), AttributeValue::S("many".to_owned()));
                (Action::Put(item), format!("{VALUE} of {key} becomes the text “many”."))
            }
            SceneAct::RemoveCounter => (Action::Delete, format!("{key} is deleted.")),
            _ => {
                let add = Item::from([(VALUE.to_owned(), AttributeValue::N(ADDED.to_string()))]);
                (Action::Update(Update { add, ..Update::default() }), format!("{VALUE} of {key} grows by {ADDED}."))
            }
        };
        self.write(console, key, action).await?;
        Ok(said)
    }

    /// Redrives what is parked of the scene's item.
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
        // What is found is kept in a file, whose handle stays on one thread.
        let repaired = tokio::task::spawn_blocking(move || {
            let progress: Arc<dyn Progress> = Arc::new(Unwatched);
            let repair = repairing::repair(&console.opened, &options, true, &progress, |_| Ok(()));
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
        let held = console.engine.held(vec![key.clone()], console.patience()).await;
        Ok(held.map_err(|error| describe(&error))?.remove(key).flatten())
    }
}

/// Nobody watches the repair of one count.
struct Unwatched;

impl Progress for Unwatched {
    fn begins(&self, _price: ReadPrice) {}

    fn read(&self, _n_items: usize) {}

    fn looked(&self, _n_items: usize) {}

    fn counted(&self, _n_counts: usize) {}

    fn waits(&self, _until_ms: u64) {}
}

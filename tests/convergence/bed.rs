//! A table of a few items and an engine on it, for tests of single records.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    catalogue::Catalogue,
    derivation::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use engine::{
    batch::{Engine, Handled},
    clock::Clock,
    verify::compare,
};
use keys::{fields::Fields, item::Item, key::Key};
use serde_json::{Value, json};
use store::Store;

use super::{application::s, delivery::record, faulty::Faulty, manual_clock::ManualClock};

/// The table, the engine, and the records so far.
pub(crate) struct Bed {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) store: Faulty,
    pub(crate) clock: Arc<ManualClock>,
    engine: Engine<Faulty>,
    n_records: usize,
}

impl Bed {
    /// An empty table of the shipped form, with an engine that runs everything.
    pub(crate) fn new() -> Self {
        let schema = catalogue::schema();
        let catalogue = catalogue::catalogue(&schema).unwrap();
        Self::with(schema, catalogue, 0)
    }

    /// A table with these derivations, whose calls fail in so many of a hundred cases.
    pub(crate) fn with(schema: Schema, catalogue: Catalogue, percent: usize) -> Self {
        let (schema, catalogue) = (Arc::new(schema), Arc::new(catalogue));
        let store = Faulty::new(schema.layout.clone(), 0, percent);
        let clock = Arc::new(ManualClock::at(1_705_315_200_000));
        let shared: Arc<dyn Clock> = clock.clone();
        let families = vec![Family::Additive, Family::LevelTriggered];
        let engine = Engine::new(schema.clone(), catalogue.clone(), families, store.clone(), shared);
        Self { schema, catalogue, store, clock, engine, n_records: 0 }
    }

    /// Puts an item of an entity, over whatever is there, and gives its key.
    pub(crate) async fn put(&self, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)]) -> Key {
        let definition = self.schema.entity(entity).unwrap();
        let key = definition.build(&fields.iter().copied().collect::<Fields>()).unwrap();
        let mut item = self.schema.layout.key_item(&key);
        item.insert(self.schema.layout.entity_type.clone(), s(entity));
        item.extend(attributes.iter().map(|(name, text)| ((*name).to_owned(), s(text))));
        let index = definition.index_attributes(&self.schema.layout, &definition.fields(&key, &item).unwrap());
        item.extend(index.into_iter().filter_map(|(name, value)| Some((name, value?))));
        self.write(&key, Action::Put(item)).await;
        key
    }

    /// Sets an attribute of an item.
    pub(crate) async fn set(&self, key: &Key, name: &str, text: &str) {
        let set = Item::from([(name.to_owned(), s(text))]);
        self.write(key, Action::Update { set, remove: BTreeSet::new(), add: [].into() }).await;
    }

    /// Deletes an item.
    pub(crate) async fn delete(&self, key: &Key) {
        self.write(key, Action::Delete).await;
    }

    async fn write(&self, key: &Key, action: Action) {
        let write = Write { table: Table::Main, key: key.clone(), action, guard: None };
        self.store.memory().write(&write).await.unwrap();
    }

    /// The records of what was written since the last time.
    pub(crate) fn records(&mut self) -> Vec<Value> {
        let mut records = Vec::new();
        for (key, old, new) in self.store.memory().take_records() {
            self.n_records += 1;
            let number = self.n_records;
            records.push(record(number, &key, old.as_ref(), new.as_ref(), &(1_000 + number).to_string()));
        }
        records
    }

    /// Hands these records to the engine, as one batch.
    pub(crate) async fn handle(&self, records: &[Value]) -> Handled {
        let event = json!({ "Records": records }).to_string();
        self.engine.handle(&event, self.clock.now_ms() + 5_000).await.unwrap()
    }

    /// Delivers what was written, and what follows from it, a batch at a time, until the stream is quiet.
    pub(crate) async fn settle(&mut self) -> Vec<Handled> {
        let mut all = Vec::new();
        loop {
            let records = self.records();
            if records.is_empty() {
                return all;
            }
            all.push(self.handle(&records).await);
        }
    }

    /// An attribute of an item, as text; empty where it is not there.
    pub(crate) fn shown(&self, key: &Key, name: &str) -> String {
        let items = self.store.memory().snapshot(Table::Main);
        let value = items.get(key).and_then(|item| item.get(name)).map(|value| serde_json::to_value(value).unwrap());
        let shown = |value: Value| value.as_object().unwrap().values().map(ToString::to_string).collect::<String>();
        value.map(shown).unwrap_or_default().replace('"', "")
    }

    /// What `verify` finds, as `derivation: key`.
    pub(crate) fn findings(&self) -> Vec<String> {
        let verified = compare(&self.schema, &self.catalogue, &self.store.memory().snapshot(Table::Main));
        verified.findings.iter().map(|f| format!("{}: {} / {}", f.derivation, f.pk, f.sk)).collect()
    }

    /// Sort keys of what is parked, by family.
    pub(crate) fn parked(&self) -> Vec<String> {
        let ledger = self.store.memory().snapshot(Table::Ledger);
        ledger.keys().filter(|key| key.pk.starts_with("PARKED")).map(ToString::to_string).collect()
    }
}

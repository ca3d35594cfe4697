//! A table of a few items and an engine on it, for tests of single records.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use derive::{
    catalogue::Catalogue,
    derivation::Family,
    guard::Guard,
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
use store::{
    Store,
    faulty::{Call, Database, Decider, Fault, Faulty, Side},
    memory::MemoryStore,
};

use super::{items::s, manual_clock::ManualClock, stream::record_of};

/// Bytes of a page: small, so that a search has several.
const PAGE_BYTES: usize = 400;

/// A store that stays away for a while: no call is done, and none is answered.
#[derive(Clone, Debug)]
pub(crate) struct Away(Arc<AtomicBool>);

impl Decider for Away {
    fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
        self.0.load(Ordering::Relaxed).then_some((Side::Before, Fault::Unanswered))
    }

    fn ended(&self, _call: &Call<'_>, _how: &str) {}

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}

/// The table, the engine, and the records so far.
pub(crate) struct Bed {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) clock: ManualClock,
    database: Arc<Database>,
    away: Away,
    engine: Engine<Faulty<Away>>,
    n_records: usize,
}

impl Bed {
    /// An empty table of the shipped form, with an engine that runs everything.
    pub(crate) fn new() -> Self {
        let schema = catalogue::schema();
        let catalogue = catalogue::catalogue(&schema).unwrap();
        Self::with(schema, catalogue)
    }

    /// A table with these derivations.
    pub(crate) fn with(schema: Schema, catalogue: Catalogue) -> Self {
        let (schema, catalogue) = (Arc::new(schema), Arc::new(catalogue));
        let database = Arc::new(Database::new(schema.layout.clone(), PAGE_BYTES));
        let away = Away(Arc::new(AtomicBool::new(false)));
        let clock = ManualClock::at(1_705_315_200_000);
        let families = vec![Family::Additive, Family::LevelTriggered];
        let store = Faulty::new(&database, away.clone());
        let engine = Engine::new(schema.clone(), catalogue.clone(), families, store, Arc::new(clock.clone()));
        Self { schema, catalogue, clock, database, away, engine, n_records: 0 }
    }

    /// The tables as they are.
    pub(crate) fn memory(&self) -> &MemoryStore {
        self.database.memory()
    }

    /// From now on the store stays away, or is there again.
    pub(crate) fn stay_away(&self, is_away: bool) {
        self.away.0.store(is_away, Ordering::Relaxed);
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
        self.memory().write(&write).await.unwrap();
    }

    /// The records of what was written since the last time.
    pub(crate) fn records(&mut self) -> Vec<Value> {
        let mut records = Vec::new();
        for (key, old, new) in self.memory().take_records() {
            self.n_records += 1;
            let (id, number) = (format!("event-{}", self.n_records), (1_000 + self.n_records).to_string());
            let json = record_of(&id, &number, (&key, old, new), self.clock.now_ms());
            records.push(serde_json::from_str(&json).unwrap());
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
        let items = self.memory().snapshot(Table::Main);
        let value = items.get(key).and_then(|item| item.get(name)).map(|value| serde_json::to_value(value).unwrap());
        let shown = |value: Value| value.as_object().unwrap().values().map(ToString::to_string).collect::<String>();
        value.map(shown).unwrap_or_default().replace('"', "")
    }

    /// What `verify` finds, as `derivation: key`.
    pub(crate) fn findings(&self) -> Vec<String> {
        let verified = compare(&self.schema, &self.catalogue, &self.memory().snapshot(Table::Main));
        verified.findings.iter().map(|f| format!("{}: {} / {}", f.derivation, f.pk, f.sk)).collect()
    }

    /// Sort keys of what is parked, by family.
    pub(crate) fn parked(&self) -> Vec<String> {
        let ledger = self.memory().snapshot(Table::Ledger);
        ledger.keys().filter(|key| key.pk.starts_with("PARKED")).map(ToString::to_string).collect()
    }
}

//! Functions at work on the model store, with a manifest that may change.

use std::sync::Arc;

use derive::{family::Family, write::Table};
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    registry::{Hold, RegistryWatch},
};
use keys::item::Item;
use operate::{
    tables::{Deployment, VerifyOptions},
    verify::{
        Progress,
        check::{Checked, FINDING, ReadPrice, WAITING, check},
    },
};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::memory::MemoryStore;
use support::record::{Record, Window, event};

/// A model store, and functions at work on it.
pub(crate) struct TableAtWork {
    pub(crate) opened: Deployment<MemoryStore>,
    ledger: LedgerKind,
    n_records: usize,
}

/// Ignores the progress.
pub(crate) struct Unseen;

impl Progress for Unseen {
    fn begins(&self, _price: ReadPrice) {}

    fn read(&self, _n_items: usize) {}

    fn looked(&self, _n_items: usize) {}

    fn counted(&self, _n_counts: usize) {}

    fn waits(&self, _until_ms: u64) {}
}

impl TableAtWork {
    pub(crate) fn new(ledger: LedgerKind, manifest: &str) -> Self {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let opened = Deployment {
            schema: Arc::new(schema),
            catalogue: Arc::new(catalogue),
            store,
            name: "table".to_owned(),
            arn: String::new(),
            streams: Vec::new(),
            n_items: 0,
            bytes: 0,
            is_aws: false,
        };
        Self { opened, ledger, n_records: 0 }
    }

    /// Deploys functions with this manifest.
    pub(crate) fn deploy(&mut self, manifest: &str) {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        (self.opened.schema, self.opened.catalogue) = (Arc::new(schema), Arc::new(catalogue));
    }

    pub(crate) fn put(&self, pk: &str, sk: &str, entity: &str, attributes: &[(&str, AttributeValue)]) {
        let pairs = [("pk", pk), ("sk", sk), ("Type", entity)];
        let mut item: Item = pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).into();
        item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.opened.store.put_raw(Table::Main, item).unwrap();
    }

    /// Delivers records until no more come, and returns for which derivations something was written.
    pub(crate) async fn settle(&mut self) -> Vec<String> {
        let Deployment { schema, catalogue, store, .. } = &self.opened;
        let families = vec![Family::Additive, Family::LevelTriggered];
        let clock = Arc::new(SystemClock);
        let engine = Engine::new(Arc::clone(schema), Arc::clone(catalogue), families, Arc::clone(store), clock);
        let engine = engine.with_ledger(self.ledger).with_settling(0);
        let engine = engine.watching(RegistryWatch::publishing(0, Hold::default()));
        let mut written = Vec::new();
        loop {
            let records = store.take_records();
            if records.is_empty() {
                written.sort();
                written.dedup();
                return written;
            }
            let mut texts = Vec::new();
            for (key, old, new) in &records {
                self.n_records += 1;
                let (id, sequence_number) = (format!("{:032x}", self.n_records), format!("{:021}", self.n_records));
                let (keys, at_ms) = (schema.layout.key_item(key), SystemClock.now_ms());
                let (old, new) = (old.as_ref(), new.as_ref());
                let (id, sequence_number) = (id.as_str(), sequence_number.as_str());
                texts.push(Record { id, sequence_number, keys: &keys, old, new, at_ms, is_expiry: false }.json());
            }
            let batch = match self.ledger {
                LedgerKind::Receipts => event(&texts),
                LedgerKind::Watermarks => Window::of_shard("shard-1").around(&event(&texts)),
            };
            let handled = engine.handle(&batch, SystemClock.now_ms() + 60_000).await.unwrap();
            assert!(handled.failed_from.is_none() && handled.account.parked.is_empty());
            written.extend(handled.account.commits.into_iter().flat_map(|commit| commit.derivations));
        }
    }

    pub(crate) async fn verify(&self) -> Checked {
        let progress: Arc<dyn Progress> = Arc::new(Unseen);
        let request = VerifyOptions { at_rest: true, ..VerifyOptions::default() };
        check(&self.opened, &request, true, &progress).await.unwrap()
    }

    /// What a verification finds, or finds waiting: which of both, the derivation, and the key.
    pub(crate) async fn found(&self) -> Vec<String> {
        let verified = self.verify().await.verified;
        let mut found = Vec::new();
        for kind in [FINDING, WAITING] {
            let line = |entry: &str| {
                let entry: Value = serde_json::from_str(entry)?;
                let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
                found.push(format!("{kind} {} {} / {}", text("derivation"), text("pk"), text("sk")));
                Ok(())
            };
            verified.each_entry(kind, line).unwrap();
        }
        found
    }
}

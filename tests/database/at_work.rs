//! Functions at work on the model store, with a manifest that may change.
//!
//! A derivation is renamed on a table that is in use: it goes on counting, and nothing has to be filled. Copies find their
//! targets by an index, or through a mirror: a target that lacks a part of that key is not found, keeps what it has, and is
//! reported.

use std::sync::Arc;

use derive::{catalogue::Catalogue, family::Family, schema::Schema, write::Table};
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    registry::{
        Hold, RegistryWatch,
        difference::{DerivationState, differences},
    },
};
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::{
    tables::{Deployment, VerifyOptions},
    verify::{
        Progress,
        check::{Checked, FINDING, ReadPrice, WAITING, check},
    },
    why::{WhyRequest, why},
};
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::memory::MemoryStore;
use support::record::{Window, event, numbered};

use crate::{n, s};

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

/// A table that is opened, on this store.
pub(crate) fn deployment<S>(
    schema: impl Into<Arc<Schema>>,
    catalogue: impl Into<Arc<Catalogue>>,
    store: Arc<S>,
) -> Deployment<S> {
    Deployment {
        schema: schema.into(),
        catalogue: catalogue.into(),
        store,
        name: "table".to_owned(),
        arn: String::new(),
        streams: Vec::new(),
        n_items: 0,
        bytes: 0,
        is_aws: false,
    }
}

impl TableAtWork {
    pub(crate) fn new(ledger: LedgerKind, manifest: &str) -> Self {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        Self { opened: deployment(schema, catalogue, store), ledger, n_records: 0 }
    }

    /// Deploys functions with this manifest.
    fn deploy(&mut self, manifest: &str) {
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
                let (keys, at_ms) = (schema.layout.key_item(key), SystemClock.now_ms());
                texts.push(numbered(self.n_records, &keys, [old.as_ref(), new.as_ref()], at_ms));
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

// ---- A derivation that is renamed ----

const ORDERS: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [entity.User]
    partition-key = "USER#{userId}"
    sort-key = "USER#{userId}"
    attributes = ["name"]
    derived-attributes = ["orderCount", "spent"]

    [entity.Order]
    partition-key = "USER#{userId}"
    sort-key = "ORDER#{orderId}"
    attributes = ["total"]
    derived-attributes = ["userName"]

    [derivation.NAMES]
    kind = "copy"
    from = "User"
    to = "Order"
    attributes = { name = "userName" }

    [derivation.COUNTS]
    kind = "count"
    from = "Order"
    into = "User"
    sum = "total"
    shows = { count = "orderCount", sum = "spent" }
"##;

/// The manifest, with these two names and what each was.
fn manifest(names: [&str; 2], was: [Option<&str>; 2]) -> String {
    let header = |name: &str, was: Option<&str>| {
        format!("{name}]{}", was.map(|was| format!("\n    was = \"{was}\"")).unwrap_or_default())
    };
    let [(copy, count)] = [(header(names[0], was[0]), header(names[1], was[1]))];
    ORDERS.replace("NAMES]", &copy).replace("COUNTS]", &count)
}

fn order(bed: &TableAtWork, id: &str, total: &str) {
    bed.put("USER#ann", &format!("ORDER#{id}"), "Order", &[("total", AttributeValue::N(total.to_owned()))]);
}

fn user(bed: &TableAtWork, name: &str) {
    bed.put("USER#ann", "USER#ann", "User", &[("name", AttributeValue::S(name.to_owned()))]);
}

/// How each derivation stands that is not in step.
async fn differences_of(bed: &TableAtWork) -> Vec<(String, DerivationState)> {
    let Deployment { schema, catalogue, .. } = &bed.opened;
    let now_ms = SystemClock.now_ms();
    let registry = bed.opened.engine().registry(now_ms + 60_000).await.unwrap();
    let all = differences(schema, catalogue, &registry, now_ms).into_iter();
    all.map(|it| (it.name, it.state)).filter(|(_, state)| !matches!(state, DerivationState::InStep { .. })).collect()
}

fn shown(bed: &TableAtWork) -> [Option<AttributeValue>; 2] {
    let user = bed.opened.store.view(Table::Main, |items| items[&Key::new("USER#ann", "USER#ann")].clone());
    ["orderCount", "spent"].map(|name| user.get(name).cloned())
}

#[tokio::test]
async fn a_derivation_that_is_renamed_goes_on_counting_and_nothing_is_filled_again() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let first = manifest(["user-name", "order-count"], [None, None]);
        let mut bed = TableAtWork::new(ledger, &first);
        user(&bed, "Ann");
        order(&bed, "1", "10");
        order(&bed, "2", "5.5");
        bed.settle().await;
        assert!(bed.verify().await.is_clean);
        assert_eq!((shown(&bed), differences_of(&bed).await), ([Some(n("2")), Some(n("15.5"))], Vec::new()));

        for (names, wanted) in [
            (["name-of-user", "orders"], ["name-of-user", "orders", "orders-count-display", "orders-sum-display"]),
            (["u", "user-orders"], ["u", "user-orders", "user-orders-count-display", "user-orders-sum-display"]),
        ] {
            bed.deploy(&manifest(names, [Some("user-name"), Some("order-count")]));
            assert_eq!(differences_of(&bed).await, [], "before the functions are deployed");
            order(&bed, names[1], "1");
            assert_eq!(bed.settle().await, wanted, "{ledger}");
            assert_eq!(differences_of(&bed).await, [], "after that");
            assert!(bed.verify().await.is_clean, "{ledger}");
        }
        assert_eq!(shown(&bed), [Some(n("4")), Some(n("17.5"))]);
        let counters = bed.opened.store.view(Table::Main, |items| items.keys().filter_map(CounterKey::parse).count());
        assert_eq!(counters, 1, "the counter of the first name alone");

        let key = Key::new("USER#ann", "USER#ann");
        let request = WhyRequest { key, attribute: None, n_listed: 1, n_read_max: 100, reads_stream: false };
        let why = why(&bed.opened, &request).await.unwrap();
        let names: Vec<&str> = why.counters.iter().map(|counter| counter.derivation.as_str()).collect();
        assert_eq!(names, ["user-orders"]);
        bed.deploy(&first);
        order(&bed, "3", "1");
        bed.settle().await;
        assert!(
            bed.verify().await.is_clean && differences_of(&bed).await.is_empty(),
            "a roll-back needs nothing either"
        );
    }
}

#[tokio::test]
async fn without_its_first_name_it_is_another_derivation_and_what_is_left_is_found() {
    let mut bed = TableAtWork::new(LedgerKind::Receipts, &manifest(["a", "order-count"], [None, None]));
    user(&bed, "Ann");
    order(&bed, "1", "10");
    bed.settle().await;
    bed.deploy(&manifest(["a", "orders"], [None, None]));
    let renamed = |it: &(String, DerivationState)| matches!(&it.1, DerivationState::Added { renamed_from: Some(from) } if from == "order-count");
    assert!(differences_of(&bed).await.iter().any(renamed));
    order(&bed, "2", "1");
    bed.settle().await;

    // What the name had before is said too late: the functions have counted under the new one.
    bed.deploy(&manifest(["a", "orders"], [None, Some("order-count")]));
    order(&bed, "3", "1");
    bed.settle().await;
    // Nothing was counted under the new name before its birth mark, so there is no counter of it.
    assert_eq!(bed.found().await, ["finding orders USER#ann / USER#ann#COUNT#order-count#00"]);
}

// ---- Copies whose targets are not found ----

const TASKS: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [index.byUser]
    partition-key = "gpk"
    sort-key = "gsk"
    projection = ["Type"]

    [entity.User]
    partition-key = "USER#{userId}"
    sort-key = "USER"
    attributes = ["name"]

    [entity.Task]
    partition-key = "TASK#{taskId}"
    sort-key = "TASK"
    attributes = ["userId", "due"]
    derived-attributes = ["userName"]

    [entity.Task.index.byUser]
    partition-key = "USER#{userId}"
    sort-key = "DUE#{due}"

    [entity.TaskOfUser]
    partition-key = "USER#{userId}"
    sort-key = "TASK#{due}#{taskId}"
    derived = true

    [derivation.task-of-user]
    kind = "mirror"
    from = "Task"
    to = "TaskOfUser"

    [derivation.user-name]
    kind = "copy"
    from = "User"
    to = "Task"
    attributes = { name = "userName" }
    found = FOUND
"##;

/// The task that has no due date, and so no key in the index and no mirror, beside one that has.
async fn renamed_user(found: &str) -> TableAtWork {
    let mut bed = TableAtWork::new(LedgerKind::Receipts, &TASKS.replace("FOUND", found));
    bed.put("USER#ann", "USER", "User", &[("name", s("Ann"))]);
    let in_index =
        [("userId", s("ann")), ("due", s("2026-01-01")), ("gpk", s("USER#ann")), ("gsk", s("DUE#2026-01-01"))];
    bed.put("TASK#1", "TASK", "Task", &in_index);
    bed.put("TASK#2", "TASK", "Task", &in_index[..1]);
    bed.settle().await;
    assert_eq!((name(&bed, "1"), name(&bed, "2")), (Some(s("Ann")), Some(s("Ann"))), "each as it is written itself");
    bed.put("USER#ann", "USER", "User", &[("name", s("Anna"))]);
    bed.settle().await;
    bed
}

fn name(bed: &TableAtWork, task: &str) -> Option<AttributeValue> {
    let key = Key::new(format!("TASK#{task}"), "TASK");
    bed.opened.store.view(Table::Main, |items| items[&key].get("userName").cloned())
}

#[tokio::test]
async fn a_target_that_lacks_a_part_of_the_searched_key_keeps_the_old_value_until_it_is_written_and_is_reported() {
    // An index may lag, so what it should have found may still be waiting for it.
    for (found, kind) in [("\"TaskOfUser\"", "finding"), ("{ index = \"byUser\" }", "waiting")] {
        let mut bed = renamed_user(found).await;
        assert_eq!((name(&bed, "1"), name(&bed, "2")), (Some(s("Anna")), Some(s("Ann"))), "{found}");
        assert_eq!(bed.found().await, [format!("{kind} user-name TASK#2 / TASK")], "{found}");

        bed.put("TASK#2", "TASK", "Task", &[("userId", s("ann"))]);
        bed.settle().await;
        assert_eq!(name(&bed, "2"), Some(s("Anna")), "{found}");
        assert!(bed.verify().await.is_clean, "{found}");
    }
}

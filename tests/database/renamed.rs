//! A derivation that is renamed on a table that is in use: it goes on counting, and nothing has to be filled.

use std::sync::Arc;

use derive::{family::Family, write::Table};
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    registry::{
        Hold,
        difference::{DerivationState, differences},
        watch::RegistryWatch,
    },
};
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::{
    progress::Progress,
    tables::{Deployment, VerifyOptions},
    verifying::{Checked, FINDING, check, price::ReadPrice},
    why::{WhyRequest, why},
};
use serde_dynamo::AttributeValue;
use store::memory::MemoryStore;
use support::record::{Record, Window, event};

const TABLE: &str = r##"
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
    TABLE.replace("NAMES]", &copy).replace("COUNTS]", &count)
}

struct Bed {
    opened: Deployment<MemoryStore>,
    ledger: LedgerKind,
    n_records: usize,
}

/// Ignores the progress.
struct Unseen;

impl Progress for Unseen {
    fn begins(&self, _price: ReadPrice) {}

    fn read(&self, _n_items: usize) {}

    fn looked(&self, _n_items: usize) {}

    fn counted(&self, _n_counts: usize) {}

    fn waits(&self, _until_ms: u64) {}
}

impl Bed {
    fn new(ledger: LedgerKind, manifest: &str) -> Self {
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
    fn deploy(&mut self, manifest: &str) {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        (self.opened.schema, self.opened.catalogue) = (Arc::new(schema), Arc::new(catalogue));
    }

    fn put(&self, pk: &str, sk: &str, entity: &str, attributes: &[(&str, AttributeValue)]) {
        let pairs = [("pk", pk), ("sk", sk), ("Type", entity)];
        let mut item: Item = pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).into();
        item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.opened.store.put_raw(Table::Main, item).unwrap();
    }

    fn order(&self, id: &str, total: &str) {
        self.put("USER#ann", &format!("ORDER#{id}"), "Order", &[("total", AttributeValue::N(total.to_owned()))]);
    }

    fn user(&self, name: &str) {
        self.put("USER#ann", "USER#ann", "User", &[("name", AttributeValue::S(name.to_owned()))]);
    }

    /// Delivers records until no more come, and returns for which derivations something was written.
    async fn settle(&mut self) -> Vec<String> {
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

    async fn verify(&self) -> Checked {
        let progress: Arc<dyn Progress> = Arc::new(Unseen);
        let request = VerifyOptions { at_rest: true, ..VerifyOptions::default() };
        check(&self.opened, &request, true, &progress).await.unwrap()
    }

    /// How each derivation stands that is not in step.
    async fn differences(&self) -> Vec<(String, DerivationState)> {
        let Deployment { schema, catalogue, .. } = &self.opened;
        let now_ms = SystemClock.now_ms();
        let registry = self.opened.engine().registry(now_ms + 60_000).await.unwrap();
        let all = differences(schema, catalogue, &registry, now_ms).into_iter();
        all.map(|it| (it.name, it.state))
            .filter(|(_, state)| !matches!(state, DerivationState::InStep { .. }))
            .collect()
    }

    fn shown(&self) -> [Option<AttributeValue>; 2] {
        let user = self.opened.store.view(Table::Main, |items| items[&Key::new("USER#ann", "USER#ann")].clone());
        ["orderCount", "spent"].map(|name| user.get(name).cloned())
    }
}

fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

#[tokio::test]
async fn a_derivation_that_is_renamed_goes_on_counting_and_nothing_is_filled_again() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let first = manifest(["user-name", "order-count"], [None, None]);
        let mut bed = Bed::new(ledger, &first);
        bed.user("Ann");
        bed.order("1", "10");
        bed.order("2", "5.5");
        bed.settle().await;
        assert!(bed.verify().await.is_clean);
        assert_eq!((bed.shown(), bed.differences().await), ([Some(n("2")), Some(n("15.5"))], Vec::new()));

        for (names, wanted) in [
            (["name-of-user", "orders"], ["name-of-user", "orders", "orders-count-display", "orders-sum-display"]),
            (["u", "user-orders"], ["u", "user-orders", "user-orders-count-display", "user-orders-sum-display"]),
        ] {
            bed.deploy(&manifest(names, [Some("user-name"), Some("order-count")]));
            assert_eq!(bed.differences().await, [], "before the functions are deployed");
            bed.order(names[1], "1");
            assert_eq!(bed.settle().await, wanted, "{ledger}");
            assert_eq!(bed.differences().await, [], "after that");
            assert!(bed.verify().await.is_clean, "{ledger}");
        }
        assert_eq!(bed.shown(), [Some(n("4")), Some(n("17.5"))]);
        let counters = bed.opened.store.view(Table::Main, |items| items.keys().filter_map(CounterKey::parse).count());
        assert_eq!(counters, 1, "the counter of the first name alone");

        let key = Key::new("USER#ann", "USER#ann");
        let request = WhyRequest { key, attribute: None, n_listed: 1, n_read_max: 100, reads_stream: false };
        let why = why(&bed.opened, &request).await.unwrap();
        let names: Vec<&str> = why.counters.iter().map(|counter| counter.derivation.as_str()).collect();
        assert_eq!(names, ["user-orders"]);
        bed.deploy(&first);
        bed.order("3", "1");
        bed.settle().await;
        assert!(bed.verify().await.is_clean && bed.differences().await.is_empty(), "a roll-back needs nothing either");
    }
}

#[tokio::test]
async fn without_its_first_name_it_is_another_derivation_and_what_is_left_is_found() {
    let mut bed = Bed::new(LedgerKind::Receipts, &manifest(["a", "order-count"], [None, None]));
    bed.user("Ann");
    bed.order("1", "10");
    bed.settle().await;
    bed.deploy(&manifest(["a", "orders"], [None, None]));
    let renamed = |it: &(String, DerivationState)| matches!(&it.1, DerivationState::Added { renamed_from: Some(from) } if from == "order-count");
    assert!(bed.differences().await.iter().any(renamed));
    bed.order("2", "1");
    bed.settle().await;

    // What the name had before is said too late: the functions have counted under the new one.
    bed.deploy(&manifest(["a", "orders"], [None, Some("order-count")]));
    bed.order("3", "1");
    bed.settle().await;
    let mut found = Vec::new();
    let verified = bed.verify().await.verified;
    verified
        .each_entry(FINDING, |entry| {
            let entry: serde_json::Value = serde_json::from_str(entry)?;
            found.push(format!("{} {}", entry["derivation"], entry["sk"]));
            Ok(())
        })
        .unwrap();
    // Nothing was counted under the new name before its birth mark, so there is no counter of it.
    assert_eq!(found, [r#""orders" "USER#ann#COUNT#order-count#00""#]);
}

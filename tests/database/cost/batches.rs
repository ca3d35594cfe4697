//! The price of counting, by ledger: write units per change in a batch of 100, by `ReturnConsumedCapacity` of the
//! embedded DynamoDB; items under 1 KB.

use std::sync::Arc;

use catalogue::{catalogue, schema};
use derive::{
    family::Family,
    write::{Action, Table, Write},
};
use engine::{
    account::Account,
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{
    Store,
    dynamo::DynamoStore,
    recording::{Recording, Request},
};

use support::{
    database::{client, create_table, embedded_endpoint, unique_names},
    record::{Record, Window, event},
};

const SHARD: &str = "shardId-00000001573689847184-864758bb";

/// Number of changes in the batch.
const N_CHANGES: u8 = 100;

/// The counting function on the embedded DynamoDB.
struct Bed {
    aggregate: Engine<Arc<DynamoStore>>,
    store: Arc<DynamoStore>,
}

impl Bed {
    async fn new(ledger: LedgerKind) -> Self {
        let (schema, names) = (schema(), unique_names());
        let client = client(&embedded_endpoint().await);
        create_table(&client, &names.main, &schema.layout).await;
        create_table(&client, &names.ledger, &schema.layout).await;
        let store = Arc::new(DynamoStore::new(client, schema.layout.clone(), names));
        let catalogue = Arc::new(catalogue(&schema).unwrap());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let aggregate = Engine::new(Arc::new(schema), catalogue, vec![Family::Additive], Arc::clone(&store), clock);
        Self { aggregate: aggregate.with_ledger(ledger), store }
    }

    async fn handle(&self, records: &[String]) -> Account {
        let window = Window::of_shard(SHARD);
        let event = window.around(&event(records));
        let handled = self.aggregate.handle(&event, SystemClock.now_ms() + 60_000).await.unwrap();
        assert!(handled.failed_from.is_none() && handled.account.parked.is_empty());
        handled.account
    }

    /// Sum of all counters.
    async fn counted(&self) -> i64 {
        let page = self.store.scan(Table::Main, store::Segment::WHOLE, None).await.unwrap();
        let items: Vec<_> = page.items.iter().collect();
        derive::sources::sums(&schema(), items).values().map(|tally| tally.count).sum()
    }
}

/// Records of comments, each an insert that counts for one post.
fn comments(post_of: impl Fn(usize) -> usize) -> Vec<String> {
    let record = |n: usize| {
        let pair = |name: &str, value: String| (name.to_owned(), AttributeValue::S(value));
        let keys = [pair("PK", format!("POST#p{}", post_of(n))), pair("SK", format!("COMMENT#2024#c{n}"))];
        let keys: Item = keys.into_iter().collect();
        let new = keys.clone().into_iter().chain([pair("EntityType", "Comment".to_owned())]).collect();
        let number = (100_000_000_000_000_000_000_u128 + n as u128).to_string();
        let (id, at_ms) = (format!("{n:032x}"), SystemClock.now_ms());
        let (id, new) = (id.as_str(), Some(&new));
        Record { id, sequence_number: &number, keys: &keys, old: None, new, at_ms, is_expiry: false }.json()
    };
    (0..usize::from(N_CHANGES)).map(record).collect()
}

fn units(account: &Account) -> f64 {
    // The item of a stream shard is written once, when the shard is first seen.
    let commits = account.commits.iter().filter(|commit| !commit.key.pk.starts_with("SHARD#"));
    commits.map(|commit| commit.units).sum()
}

/// Units per change for the batch, and for the same batch delivered again.
async fn check(ledger: LedgerKind, post_of: impl Fn(usize) -> usize, units_max: f64) {
    let bed = Bed::new(ledger).await;
    let records = comments(post_of);
    let each = units(&bed.handle(&records).await) / f64::from(N_CHANGES);
    let again = bed.handle(&records).await;
    println!("{ledger}: {each} write units a change; delivered again {} in all", units(&again));
    assert!(each <= units_max, "{each}");
    assert_eq!(bed.counted().await, i64::from(N_CHANGES), "each counted once");
    assert_eq!((again.n_duplicates, again.commits.len()), (usize::from(N_CHANGES), 0), "nothing is written again");
}

#[tokio::test]
async fn receipts_of_one_target_cost_2_units_a_change() {
    check(LedgerKind::Receipts, |_| 0, 2.1).await;
}

#[tokio::test]
async fn receipts_of_as_many_targets_cost_4_units_a_change() {
    check(LedgerKind::Receipts, |n| n, 4.1).await;
}

#[tokio::test]
async fn watermarks_of_one_target_cost_a_hundredth_of_a_unit_a_change() {
    check(LedgerKind::Watermarks, |_| 0, 0.01).await;
}

#[tokio::test]
async fn watermarks_of_as_many_targets_cost_1_unit_a_change() {
    check(LedgerKind::Watermarks, |n| n, 1.0).await;
}

/// Changes of as many posts that exist and show the count.
#[tokio::test]
async fn watermarks_of_as_many_targets_that_show_the_count_cost_2_units_and_2_calls_a_change_and_hardly_a_read() {
    let bed = Bed::new(LedgerKind::Watermarks).await;
    let schema = schema();
    for n in 0..N_CHANGES {
        let key = Key::new(format!("POST#p{n}"), "METADATA");
        let mut post = schema.layout.key_item(&key);
        post.insert("EntityType".to_owned(), AttributeValue::S("PostDetail".to_owned()));
        let put = Write { table: Table::Main, key, action: Action::Put(post), guard: None };
        bed.store.write(&put).await.unwrap();
    }
    let records = comments(|n| n);
    let (first, rest) = records.split_at(1);
    // The shard's item is made.
    bed.handle(first).await;
    let store = Arc::new(Recording::new(Arc::clone(&bed.store)));
    let catalogue = Arc::new(catalogue(&schema).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let aggregate = Engine::new(Arc::new(schema), catalogue, vec![Family::Additive], Arc::clone(&store), clock);
    let aggregate = aggregate.with_ledger(LedgerKind::Watermarks);
    let event = Window::of_shard(SHARD).around(&event(rest));
    let handled = aggregate.handle(&event, SystemClock.now_ms() + 60_000).await.unwrap();
    let (requests, units) = (store.take(), units(&handled.account));
    let n_reads = requests.iter().filter(|request| matches!(request, Request::Read(..) | Request::Query(..))).count();
    println!("shown: {units} write units, {} calls, {n_reads} read for {} changes", requests.len(), rest.len());
    let n = u32::try_from(rest.len()).unwrap();
    assert!(units <= 2.0 * f64::from(n), "{units}");
    // The item of the stream shard is read once.
    assert_eq!((requests.len(), n_reads), (2 * rest.len() + 1, 1));
}

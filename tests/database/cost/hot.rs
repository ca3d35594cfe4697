//! The price of counting much: a batch of 100 changes, by ledger and by `ReturnConsumedCapacity` of the embedded DynamoDB;
//! a counter that many stream shards feed; and the displays of a hot counter.

use std::sync::Arc;

use catalogue::{catalogue, schema};
use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
    family::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use engine::{
    account::Account,
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::{LedgerKind, watermarks::GENERATIONS},
};
use expect_test::expect;
use keys::{item::Item, key::Key, size::item_bytes};
use serde_dynamo::AttributeValue;
use store::{
    Store as _,
    dynamo::DynamoStore,
    memory::MemoryStore,
    recording::{Recording, Request},
};
use support::{
    clock::ManualClock,
    database::{client, create_table, embedded_endpoint, unique_names},
    record::{Record, Window, event, numbered},
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
async fn a_change_costs_so_many_units_with_one_target_and_with_as_many_targets() {
    check(LedgerKind::Receipts, |_| 0, 2.1).await;
    check(LedgerKind::Receipts, |n| n, 4.1).await;
    check(LedgerKind::Watermarks, |_| 0, 0.01).await;
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

// ---- What a counter weighs, and what an update of it costs, by the number of stream shards that feed it ----

/// When it begins, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

/// Bytes that a consistent read unit reads.
const READ_UNIT_BYTES: usize = 4_096;

/// How often each stream shard updates the counter.
const UPDATES: usize = 3;

/// The table with one count.
fn declared() -> (Schema, Catalogue) {
    let schema = schema();
    let count = Count {
        source: "Membership".to_owned(),
        condition: Condition::Always,
        target: "Group".to_owned(),
        link: Link::of(&[("GroupId", "GroupId")]),
        sum: None,
        history: false,
        expired_stays: false,
        each: None,
    };
    let catalogue = Catalogue::new(&schema, vec![Derivation::new("D-14", "member-count", count)]).unwrap();
    (schema, catalogue)
}

/// When so many stream shards feed a counter at a time, and seven generations have followed each other: the number of its
/// items, the bytes of the largest, the write units of an update, on average over the last generation, and the read units of
/// a consistent query of all its items.
async fn grown(n_feeding: usize) -> (usize, usize, f64, usize) {
    let (schema, catalogue) = declared();
    let schema = Arc::new(schema);
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    let clock = ManualClock::at(BEGIN_MS);
    let families = vec![Family::Additive];
    let aggregate = Engine::new(schema, Arc::new(catalogue), families, Arc::clone(&store), Arc::new(clock));
    let n_generations = usize::try_from(GENERATIONS).unwrap();
    let (mut units, mut n_updates, mut n) = (0.0_f64, 0, 0);
    for generation in 0..n_generations {
        for (_, shard) in (0..UPDATES).flat_map(|update| (0..n_feeding).map(move |shard| (update, shard))) {
            n += 1;
            let pair = |name: &str, value: String| (name.to_owned(), AttributeValue::S(value));
            let keys: Item = [pair("PK", format!("USER#u{n}")), pair("SK", "GROUP#g".to_owned())].into_iter().collect();
            let new = keys.clone().into_iter().chain([pair("EntityType", "Membership".to_owned())]).collect();
            let (id, number, at_ms) = (format!("{n:032x}"), (1_000 + n).to_string(), BEGIN_MS);
            let (id, new) = (id.as_str(), Some(&new));
            let record = Record { id, sequence_number: &number, keys: &keys, old: None, new, at_ms, is_expiry: false };
            let shard = format!("shardId-{:020}-a1b2c3d4", generation * n_feeding + shard);
            let event = Window::of_shard(&shard).around(&event(&[record.json()]));
            let handled = aggregate.handle(&event, BEGIN_MS + 60_000).await.unwrap();
            if generation + 1 == n_generations {
                let counted = handled.account.commits.iter().filter(|commit| commit.table == Table::Main);
                units += counted.map(|commit| commit.units).sum::<f64>();
                n_updates += 1;
            }
        }
    }
    let items = store.snapshot(Table::Main);
    assert!(items.len() <= 65, "home and satellites");
    let bytes: Vec<usize> = items.values().map(item_bytes).collect();
    let read_units = bytes.iter().sum::<usize>().div_ceil(READ_UNIT_BYTES);
    (items.len(), *bytes.iter().max().unwrap(), units / f64::from(n_updates), read_units)
}

#[tokio::test]
async fn a_counter_spreads_as_stream_shards_feed_it_and_an_update_costs_one_unit() {
    let mut lines = Vec::new();
    for n_feeding in [1, 4, 10, 40, 200] {
        let (n_items, bytes, units, reads) = grown(n_feeding).await;
        lines.push(format!(
            "{n_feeding} stream shards: {n_items} items, at most {bytes} bytes, {units:.2} write units, {reads} read units\n"
        ));
    }
    expect![[r#"
        1 stream shards: 1 items, at most 286 bytes, 1.00 write units, 1 read units
        4 stream shards: 5 items, at most 804 bytes, 1.00 write units, 1 read units
        10 stream shards: 33 items, at most 804 bytes, 1.00 write units, 2 read units
        40 stream shards: 63 items, at most 804 bytes, 1.00 write units, 4 read units
        200 stream shards: 65 items, at most 1006 bytes, 1.00 write units, 12 read units
    "#]]
    .assert_eq(&lines.concat());
}

// ---- What the displays of a hot counter cost ----

const SHARDS: usize = 4;
const SECONDS: u64 = 5;
/// Batches of a shard in a second.
const BATCHES: u64 = 10;

fn attributes<const N: usize>(attributes: [(&str, &str); N]) -> Item {
    attributes.into_iter().map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).collect()
}

/// Write units of the counter and of its display a second, and what is displayed at the end.
async fn cost(hot_for_ms: u64) -> (f64, f64, Option<AttributeValue>) {
    let schema = Arc::new(schema());
    let catalogue = Arc::new(catalogue(&schema).unwrap());
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    let clock = ManualClock::at(BEGIN_MS);
    let engine = |family| {
        let (schema, catalogue, store) = (Arc::clone(&schema), Arc::clone(&catalogue), Arc::clone(&store));
        Engine::new(schema, catalogue, vec![family], store, Arc::new(clock.clone())).with_hot_for(hot_for_ms)
    };
    let (aggregates, propagate) = ([(); SHARDS].map(|()| engine(Family::Additive)), engine(Family::LevelTriggered));
    let group = Key::new("GROUP#g", "METADATA");
    let item = schema.layout.key_item(&group).into_iter().chain(attributes([("EntityType", "Group")]));
    store.put_raw(Table::Main, item.collect()).unwrap();
    drop(store.take_records());
    let (mut n, mut counted, mut displayed) = (0, 0.0, 0.0);
    let mut record = |keys: &Item, old: Option<&Item>, new: Option<&Item>| {
        n += 1;
        numbered(n, keys, [old, new], BEGIN_MS)
    };
    let mut n_users = 0;
    for step in 0..=SECONDS * BATCHES {
        if step < SECONDS * BATCHES {
            for (at, aggregate) in aggregates.iter().enumerate() {
                n_users += 1;
                let keys = attributes([("PK", &*format!("USER#u{n_users}")), ("SK", "GROUP#g")]);
                let new = keys.clone().into_iter().chain(attributes([("EntityType", "Membership")])).collect();
                let record = record(&keys, None, Some(&new));
                let event = Window::of_shard(&format!("shardId-{at:020}-a1b2c3d4")).around(&event(&[record]));
                let handled = aggregate.handle(&event, BEGIN_MS + 600_000).await.unwrap();
                for commit in handled.account.commits.iter().filter(|commit| commit.key.pk == "GROUP#g") {
                    *(if commit.key == group { &mut displayed } else { &mut counted }) += commit.units;
                }
            }
            clock.advance(1_000 / BATCHES);
        }
        if step % BATCHES == 0 {
            let records = store.take_records();
            let records = records.iter().filter(|(key, ..)| key.pk == "GROUP#g");
            let records: Vec<String> = records
                .map(|(key, old, new)| record(&schema.layout.key_item(key), old.as_ref(), new.as_ref()))
                .collect();
            let handled = propagate.handle(&event(&records), BEGIN_MS + 600_000).await.unwrap();
            displayed += handled.account.commits.iter().filter(|it| it.key == group).map(|it| it.units).sum::<f64>();
        }
    }
    let group = store.get(Table::Main, &[group]).await.unwrap().remove(0).1;
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    let a_second = |units: f64| units / SECONDS as f64;
    (a_second(counted), a_second(displayed), group.get("MemberCount").cloned())
}

#[tokio::test]
async fn displays_of_a_hot_counter_are_written_once_a_batch_of_propagate() {
    let mut lines = Vec::new();
    for hot_for_ms in [0, 10_000] {
        let (counted, displayed, shown) = cost(hot_for_ms).await;
        lines.push(format!(
            "hot for {hot_for_ms} ms: {counted} units a second for the counter, {displayed} for its displays; {shown:?}\n"
        ));
    }
    expect![[r#"
        hot for 0 ms: 40 units a second for the counter, 40 for its displays; Some(N("200"))
        hot for 10000 ms: 40 units a second for the counter, 1.8 for its displays; Some(N("200"))
    "#]]
    .assert_eq(&lines.concat());
}

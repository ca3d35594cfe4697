//! What a counter weighs, and what an update of it costs, by the number of stream shards that feed it.
//!
//! A watermark stays for 26 hours and 30 minutes, and a stream shard is followed by another after about four hours, so a
//! counter keeps those of seven generations of shards.

use std::sync::Arc;

use catalogue::schema;
use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
    family::Family,
    schema::Schema,
    write::Table,
};
use engine::{batch::Engine, ledger::watermarks::GENERATIONS};
use expect_test::expect;
use keys::{item::Item, size::item_bytes};
use serde_dynamo::AttributeValue;
use store::memory::MemoryStore;
use support::{
    clock::ManualClock,
    record::{Record, Window, event},
};

/// When all is counted, in milliseconds since the epoch.
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

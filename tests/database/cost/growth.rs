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
use design::{Design, followed::growth};
use engine::{
    batch::Engine,
    ledger::{LedgerKind, watermarks::GENERATIONS},
};
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

/// The table with one count, whose counters have so many items.
fn declared(n_shards: u32) -> (Schema, Catalogue) {
    let schema = schema();
    let count = Count {
        source: "Membership".to_owned(),
        condition: Condition::Always,
        target: "Group".to_owned(),
        link: Link::of(&[("GroupId", "GroupId")]),
        sum: None,
        n_shards,
        history: false,
    };
    let catalogue = Catalogue::new(&schema, vec![Derivation::new("D-14", "member-count", count)]).unwrap();
    (schema, catalogue)
}

/// The largest item of the counter, in bytes, and the most write units of an update of it, when so many stream shards feed
/// it at a time.
async fn grown(n_feeding: usize, n_shards: u32) -> (usize, f64) {
    let (schema, catalogue) = declared(n_shards);
    let schema = Arc::new(schema);
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    let clock = ManualClock::at(BEGIN_MS);
    let families = vec![Family::Additive];
    let aggregate = Engine::new(schema, Arc::new(catalogue), families, Arc::clone(&store), Arc::new(clock));
    let aggregate = aggregate.with_ledger(LedgerKind::Watermarks);
    let mut units = 0.0_f64;
    for n in 0..usize::try_from(GENERATIONS).unwrap() * n_feeding {
        let pair = |name: &str, value: String| (name.to_owned(), AttributeValue::S(value));
        let keys: Item = [pair("PK", format!("USER#u{n}")), pair("SK", "GROUP#g".to_owned())].into_iter().collect();
        let new = keys.clone().into_iter().chain([pair("EntityType", "Membership".to_owned())]).collect();
        let (id, number, at_ms) = (format!("{n:032x}"), (1_000 + n).to_string(), BEGIN_MS);
        let (id, new) = (id.as_str(), Some(&new));
        let record = Record { id, sequence_number: &number, keys: &keys, old: None, new, at_ms, is_expiry: false };
        let event = Window::of_shard(&format!("shardId-{n:020}-a1b2c3d4")).around(&event(&[record.json()]));
        let handled = aggregate.handle(&event, BEGIN_MS + 60_000).await.unwrap();
        let counted = handled.account.commits.iter().filter(|commit| commit.table == Table::Main);
        units = units.max(counted.map(|commit| commit.units).sum());
    }
    let items = store.snapshot(Table::Main);
    (items.values().map(item_bytes).max().unwrap(), units)
}

#[tokio::test]
async fn a_counter_grows_with_the_stream_shards_that_feed_it() {
    let mut lines = Vec::new();
    for n_shards in [1, 8] {
        for n_feeding in [1, 4, 10, 40, 200] {
            let (bytes, units) = grown(n_feeding, n_shards).await;
            lines.push(format!("{n_shards} items, {n_feeding} stream shards: {bytes} bytes, {units} write units\n"));
        }
    }
    expect![[r#"
        1 items, 1 stream shards: 286 bytes, 1 write units
        1 items, 4 stream shards: 916 bytes, 1 write units
        1 items, 10 stream shards: 2175 bytes, 3 write units
        1 items, 40 stream shards: 8475 bytes, 9 write units
        1 items, 200 stream shards: 42075 bytes, 42 write units
        8 items, 1 stream shards: 106 bytes, 1 write units
        8 items, 4 stream shards: 226 bytes, 1 write units
        8 items, 10 stream shards: 346 bytes, 1 write units
        8 items, 40 stream shards: 1156 bytes, 2 write units
        8 items, 200 stream shards: 5417 bytes, 6 write units
    "#]]
    .assert_eq(&lines.concat());
}

#[tokio::test]
async fn a_review_says_up_to_how_many_partitions_an_update_costs_one_unit() {
    // The stream shards are spread over several items by a hash, not evenly.
    for (n_shards, n_uneven) in [(1, 0), (8, 3)] {
        let (schema, catalogue) = declared(n_shards);
        let counters = growth(&Design::declared(schema, catalogue));
        let [counter] = counters.as_slice() else { panic!("{counters:?}") };
        assert_eq!((counter.n_items, &*counter.derivations), (n_shards, &["member-count".to_owned()][..]));
        let n_max = usize::try_from(counter.partitions_max).unwrap();
        let units = |n_feeding| async move { grown(n_feeding, n_shards).await.1 };
        assert!(units(n_max - n_uneven).await <= 1.0, "{counter:?}");
        assert!(units(n_max + 1 + n_uneven).await > 1.0, "{counter:?}");
    }
}

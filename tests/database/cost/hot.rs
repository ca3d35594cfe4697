//! What the displays of a hot counter cost: a group that four stream shards feed with ten batches a second each, while
//! `propagate` gets a batch a second.

use std::sync::Arc;

use catalogue::{catalogue, schema};
use derive::{family::Family, write::Table};
use engine::batch::Engine;
use expect_test::expect;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Store as _, memory::MemoryStore};
use support::{
    clock::ManualClock,
    record::{Record, Window, event},
};

/// When it begins, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

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
        let (id, number) = (format!("{n:032x}"), format!("{n:021}"));
        Record { id: &id, sequence_number: &number, keys, old, new, at_ms: BEGIN_MS, is_expiry: false }.json()
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

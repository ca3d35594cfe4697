//! An engine handles each event of `events/`, on a table with the items as the records leave them.
//!
//! The engine gets an event as text, like a function in Lambda. Some events contain records of other tables on purpose.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use aws_lambda_events::event::dynamodb;
use derive::{change::Images, family::Family, write::Table};
use engine::{
    batch::{Engine, Handled},
    ledger::LedgerKind,
};
use expect_test::{Expect, expect};
use keys::item::Item;
use serde_dynamo::AttributeValue;
use serde_json::Value;
use store::memory::MemoryStore;
use support::clock::ManualClock;

/// The time at which the events are handled: a while after their records were made.
const NOW_MS: u64 = 1_705_315_300_000;

/// An engine on the readable items that these records leave.
fn engine(event: &str) -> Engine<MemoryStore> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    let store = MemoryStore::new(schema.layout.clone());
    let event: Value = serde_json::from_str(event).unwrap();
    for record in event["Records"].as_array().unwrap() {
        if let Ok(item) = serde_json::from_value::<Item>(record["dynamodb"]["NewImage"].clone()) {
            store.put_raw(Table::Main, item).unwrap();
        }
    }
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(Arc::new(schema), Arc::new(catalogue), families, store, Arc::new(ManualClock::at(NOW_MS)));
    // Most of these events name no shard.
    engine.with_ledger(LedgerKind::Receipts)
}

async fn handle(file: &str) -> Handled {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(file);
    let event = fs::read_to_string(path).unwrap();
    // A timeout that is longer than the age of the records, so that no batch counts as a second attempt.
    engine(&event).handle(&event, NOW_MS + 900_000).await.unwrap()
}

fn check(file: &str, wanted: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    wanted.assert_eq(&text(&runtime.block_on(handle(file))));
}

/// The account, the writes to the main table, and the parked changes.
fn text(handled: &Handled) -> String {
    let account = &handled.account;
    let mut lines = vec![
        format!("{} records", account.n_records),
        format!("{} changes, {} echoes, {} ignored", account.n_changes, account.n_echoes, account.n_ignored),
    ];
    let (main, ledger): (Vec<_>, Vec<_>) = account.commits.iter().partition(|commit| commit.table == Table::Main);
    lines.push(format!("{} writes on the ledger", ledger.len()));
    let mut writes: Vec<String> =
        main.iter().map(|commit| format!("{} for {}", commit.key, commit.derivations.join(", "))).collect();
    writes.sort();
    lines.extend(writes);
    lines.extend(account.parked.iter().map(|parked| format!("parked {}: {}", parked.id, parked.cause)));
    lines.extend(handled.failed_from.iter().map(|number| format!("failed from {number}")));
    lines.join("\n") + "\n"
}

#[test]
fn inserts_count_and_are_mirrored() {
    check(
        "insert.json",
        &expect![[r#"
            3 records
            3 changes, 0 echoes, 0 ignored
            3 writes on the ledger
            POST#p-1842 / METADATA#COUNT#comment-count#00 for comment-count
            POST#p-1842 / METADATA#COUNT#like-count#00 for like-count
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    );
}

#[test]
fn a_rename_and_a_publication_are_changes() {
    check(
        "modify.json",
        &expect![[r#"
            2 records
            2 changes, 0 echoes, 0 ignored
            2 writes on the ledger
            POST#p-1842 / METADATA for post-detail, post-author
            USER#ada / PROFILE#COUNT#post-count#00 for post-count
        "#]],
    );
}

#[test]
fn a_removed_follow_is_taken_off_both_counts() {
    check(
        "remove.json",
        &expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            1 writes on the ledger
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    );
}

#[test]
fn a_view_that_the_platform_removes_lowers_nothing() {
    check(
        "ttl-removal.json",
        &expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            0 writes on the ledger
        "#]],
    );
}

#[test]
fn a_user_with_every_type_of_attribute_is_read() {
    check(
        "binary-and-sets.json",
        &expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            1 writes on the ledger
        "#]],
    );
}

#[test]
fn records_without_keys_or_images_are_parked_and_the_good_one_is_applied() {
    check(
        "null-items.json",
        &expect![[r#"
            3 records
            1 changes, 0 echoes, 0 ignored
            7 writes on the ledger
            USER#ada / PROFILE#COUNT#following-count#00 for following-count
            USER#grace / FOLLOWER#ada for follower-mirror
            USER#grace / PROFILE#COUNT#follower-count#00 for follower-count
            parked 3dd31b2dc2c53903b3fcda80fd2a2257: the record has no keys
            parked d86018def7709ae9596eec6f7358d884: the record is an INSERT without a new image
            parked 3dd31b2dc2c53903b3fcda80fd2a2257: the record has no keys
            parked d86018def7709ae9596eec6f7358d884: the record is an INSERT without a new image
        "#]],
    );
}

#[test]
fn a_record_that_does_not_decode_is_parked_and_its_neighbours_are_applied() {
    check(
        "undecodable.json",
        &expect![[r#"
            3 records
            2 changes, 0 echoes, 0 ignored
            5 writes on the ledger
            POST#p-7 / METADATA#COUNT#like-count#00 for like-count
            parked d2c530e61cf1e9fd7ce7725806121264: the record does not decode: a value is missing or not of the form of a stream record, at column 15
            parked d2c530e61cf1e9fd7ce7725806121264: the record does not decode: a value is missing or not of the form of a stream record, at column 15
        "#]],
    );
}

#[test]
fn items_of_no_known_type_are_ignored() {
    check(
        "unknown-entities.json",
        &expect![[r#"
            4 records
            2 changes, 0 echoes, 2 ignored
            2 writes on the ledger
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / FOLLOWER#linus for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
            USER#linus / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    );
}

#[test]
fn a_windows_event_is_a_batch_like_any_other() {
    check(
        "tumbling-window.json",
        &expect![[r#"
            2 records
            2 changes, 0 echoes, 0 ignored
            2 writes on the ledger
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / FOLLOWER#linus for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
            USER#linus / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    );
}

#[test]
fn every_event_is_handled_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("events");
    let this = include_str!("events.rs");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_event = Path::new(&name).extension().is_some_and(|extension| extension == "json");
        assert!(!is_event || this.contains(&format!("\"{name}\",")), "no test handles {name}");
    }
}

/// The types of `aws_lambda_events` and the engine read the same, as far as both read an event.
#[test]
fn the_typed_events_of_lambda_and_the_raw_reading_agree() {
    let layout = catalogue::schema().layout.clone();
    for file in ["insert.json", "modify.json", "remove.json", "tumbling-window.json", "ttl-removal.json"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(file)).unwrap();
        let typed: dynamodb::Event = serde_json::from_str(&text).unwrap();
        let decoded = engine::record::event::Event::parse(&text).unwrap().decoded(&layout);
        assert_eq!(typed.records.len(), decoded.len(), "{file}");
        for (record, decoded) in typed.records.into_iter().zip(decoded) {
            let change = decoded.change.unwrap();
            assert_eq!((record.event_id, record.change.sequence_number), (change.id, Some(change.sequence_number)));
            let created_ms = record.change.approximate_creation_date_time.timestamp_millis();
            assert_eq!(Some(u64::try_from(created_ms).unwrap()), change.created_ms, "{file}");
            let [old, new] = [record.change.old_image, record.change.new_image].map(|image| {
                let attributes: HashMap<String, AttributeValue> = image.into();
                (!attributes.is_empty()).then(|| attributes.into_iter().collect::<Item>())
            });
            let images = match (record.event_name.as_str(), old, new) {
                ("INSERT", None, Some(new)) => Images::Inserted(new),
                ("MODIFY", Some(old), Some(new)) => Images::Modified { old, new },
                // Of these events, only those of the time to live name who made the change.
                ("REMOVE", Some(old), None) if record.user_identity.is_some() => Images::Expired(old),
                ("REMOVE", Some(old), None) => Images::Removed(old),
                other => panic!("{file}: {other:?}"),
            };
            assert_eq!(images, change.images, "{file}");
        }
    }
    let text = include_str!("../events/tumbling-window.json");
    let window: dynamodb::TimeWindowEvent = serde_json::from_str(text).unwrap();
    let event = engine::record::event::Event::parse(text).unwrap();
    assert_eq!(window.time_window_properties.shard_id, event.lane.shard);
    assert_eq!(window.time_window_properties.event_source_arn, event.lane.stream_arn);
}

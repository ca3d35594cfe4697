//! Records as a function in Lambda gets them.
//!
//! The decoder gets generated and damaged text: no record causes a panic or affects its neighbours; and the two ways to
//! read a record, the quick one and the general one, give the same. An engine gets each captured event of `events/`, on a
//! table with the items as the records leave them; some events contain records of other tables on purpose.

use std::{
    cell::Cell,
    collections::HashMap,
    fmt::Debug,
    fs,
    path::Path,
    sync::{Arc, LazyLock},
};

use aws_lambda_events::event::dynamodb;
use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    kind::Shape,
    plan::plan,
    schema::Image,
    write::Table,
};
use engine::{
    batch::{Engine, Handled},
    ledger::LedgerKind,
    record::{Decoded, Event, EventError, decode, head},
};
use expect_test::{Expect, expect};
use keys::{item::Item, key::Key, layout::Layout};
use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, any},
    prop_oneof, proptest,
    sample::Index,
    test_runner::TestRunner,
};
use serde_dynamo::AttributeValue;
use serde_json::{Value, value::RawValue};
use store::memory::MemoryStore;
use support::clock::ManualClock;

/// Records of the shipped table's stream: those of the benchmark, and the captured ones in both their own and a compact
/// form.
static RECORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut events = vec![benches::event(48)];
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/events")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(path).unwrap();
            events.push(serde_json::from_str::<Value>(&text).unwrap().to_string());
            events.push(text);
        }
    }
    events.iter().flat_map(|event| Event::parse(event).unwrap().records).map(|record| record.get().to_owned()).collect()
});

static LAYOUT: LazyLock<Layout> = LazyLock::new(|| catalogue::schema().layout);

/// A record as the general way reads it; a line break selects that way for every text.
fn generally(record: &str) -> Option<Change> {
    let apart = record.replacen('{', "{\n", 1);
    decode(&LAYOUT, serde_json::from_str::<&RawValue>(&apart).ok()?.get()).ok()
}

fn decoded(event: &str) -> Result<Vec<Decoded<'_>>, EventError> {
    Ok(Event::parse(event)?.decoded(&LAYOUT))
}

/// An event with a record between two good ones, each of which must decode as if it were alone. Returns whether the
/// record decodes too.
#[track_caller]
fn check(record: &str, before: Index, after: Index) -> bool {
    let [before, after] = [before, after].map(|index| index.get(RECORDS.as_slice()).as_str());
    let event = format!(r#"{{"Records":[{before},{record},{after}]}}"#);
    let together = decoded(&event);
    if serde_json::from_str::<&RawValue>(record).is_err() {
        // The damage may reach beyond the record, so the test only requires that the decoder returns.
        return false;
    }
    let together = together.unwrap();
    let decodes = together.get(1).is_some_and(|record| record.change.is_ok());
    assert_eq!(together.iter().map(|record| record.text).collect::<Vec<_>>(), [before, record.trim(), after]);
    for Decoded { text, change, .. } in together {
        assert_eq!(change.as_ref().ok(), generally(text).as_ref(), "{text}");
        let raw = serde_json::from_str::<&RawValue>(text).unwrap();
        assert_eq!(decode(&LAYOUT, raw.get()), change, "{text}");
        let _head = head(raw.get());
        if let Ok(change) = change {
            planned(&change);
        }
    }
    decodes
}

/// Checks generated cases. At least this percentage must decode, because a check of records that never decode shows
/// nothing.
#[track_caller]
fn decoding<S: Strategy<Value: Debug>>(percent: u32, strategy: &S, check: impl Fn(S::Value) -> bool) {
    let (n_cases, n_decoded) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { source_file: Some(file!()), ..ProptestConfig::default() });
    let result = runner.run(strategy, |case| {
        n_cases.set(n_cases.get() + 1);
        n_decoded.set(n_decoded.get() + u32::from(check(case)));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (n_cases, n_decoded): (u32, u32) = (n_cases.get(), n_decoded.get());
    println!("{n_decoded} of {n_cases} decoded");
    assert!(n_decoded * 100 >= n_cases * percent, "{n_decoded} of {n_cases} decoded: less than {percent} %");
}

/// A record of the stream.
fn record() -> impl Strategy<Value = &'static String> {
    any::<Index>().prop_map(|index| index.get(RECORDS.as_slice()))
}

/// Plans a change, which must not panic, whatever the images contain.
fn planned(change: &Change) {
    static TABLE: LazyLock<(derive::schema::Schema, derive::catalogue::Catalogue)> = LazyLock::new(|| {
        let schema = catalogue::schema();
        let catalogue = catalogue::catalogue(&schema).unwrap();
        (schema, catalogue)
    });
    let (schema, catalogue) = &*TABLE;
    let both = plan(schema, catalogue, &[Family::Additive, Family::LevelTriggered], change);
    // A derivation that does not read an entity must not plan anything for it.
    let sight = derive::change::Sight::of(schema, change);
    let mut effects = Vec::new();
    for (at, derivation) in catalogue.positioned().filter(|_| sight.differs()) {
        effects.extend(derivation.plan(schema, &sight).into_iter().map(|effect| (at, effect)));
        let [was, is] = [&sight.old, &sight.new].map(|i| derivation.unreadable(schema, i.as_ref()?));
        if was.is_some() || is.is_some() {
            effects.push((at, Effect::List { unreadable: is }));
        }
    }
    // An item that was not Ripple's has left the key of a derived item, which may have waited for it.
    let is_vacated = |(_, effect): &(_, Effect)| match effect {
        Effect::Vacated(request) => {
            assert_eq!(request.item, change.key);
            true
        }
        _ => false,
    };
    let (_, planned): (Vec<_>, Vec<_>) = both.effects.into_iter().partition(is_vacated);
    assert_eq!(planned, effects);
}

/// Any JSON, with the names and types of records among its strings.
fn json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "[A-Za-z]{0,6}",
        "(S|N|B|BOOL|NULL|M|L|SS|NS|BS)",
        "(eventID|eventName|dynamodb|Keys|NewImage|OldImage|SequenceNumber|PK|SK|EntityType|MODIFY|User|USER#a|PROFILE)",
        "(?s).{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word.clone(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(u8),
    Delete,
    Repeat,
    Replace(char),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (0u8..7).prop_map(Damage::Flip),
        Just(Damage::Delete),
        Just(Damage::Repeat),
        prop_oneof![any::<char>(), "[\\\\\"{}\\[\\]:,0-9a-z \n]".prop_map(|text| text.chars().next().unwrap())]
            .prop_map(Damage::Replace),
    ]
}

fn damaged(record: &str, at: Index, damage: &Damage) -> String {
    let mut characters: Vec<char> = record.chars().collect();
    let at = at.index(characters.len());
    match damage {
        Damage::Flip(bit) => {
            let flipped = u32::from(characters[at]) ^ 1 << bit;
            characters[at] = char::from_u32(flipped).unwrap_or('?');
        }
        Damage::Delete => drop(characters.remove(at)),
        Damage::Repeat => characters.insert(at, characters[at]),
        Damage::Replace(character) => characters[at] = *character,
    }
    characters.into_iter().collect()
}

/// Pointers to all nodes of a value except the root, outermost first.
fn pointers(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut at = 0;
    while let Some(pointer) = all.get(at).cloned() {
        let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
        match value.pointer(&pointer) {
            Some(Value::Object(members)) => {
                all.extend(members.keys().map(|name| format!("{pointer}/{}", escaped(name))));
            }
            Some(Value::Array(elements)) => all.extend((0..elements.len()).map(|n| format!("{pointer}/{n}"))),
            _ => {}
        }
        at += 1;
    }
    all.split_off(1)
}

/// A text with some damage.
fn damaged_at(text: &str, damages: &[(Index, Damage)]) -> String {
    damages.iter().fold(text.to_owned(), |text, (at, kind)| damaged(&text, *at, kind))
}

#[test]
fn an_event_with_damaged_characters_is_an_answer() {
    let records = vec(record(), 1..4);
    decoding(25, &(records, vec((any::<Index>(), damage()), 0..4)), |(records, damages)| {
        let records: Vec<&str> = records.into_iter().map(String::as_str).collect();
        let text = damaged_at(&format!(r#"{{"Records":[{}]}}"#, records.join(",")), &damages);
        let read = decoded(&text);
        assert_eq!(
            read.as_ref().map(Vec::len).ok(),
            Event::parse(&text).map(|event| event.records.len()).ok(),
            "{text}"
        );
        read.is_ok_and(|read| read.iter().any(|record| record.change.is_ok()))
    });
}

#[test]
fn a_record_with_a_damaged_character_takes_no_neighbour_along() {
    let strategy = (record(), vec((any::<Index>(), damage()), 1..4), any::<Index>(), any::<Index>());
    decoding(20, &strategy, |(record, damages, before, after)| check(&damaged_at(record, &damages), before, after));
}

#[test]
fn a_record_with_another_node_takes_no_neighbour_along() {
    let node = proptest::option::of(json());
    let strategy = (record(), any::<Index>(), node, any::<Index>(), any::<Index>());
    decoding(10, &strategy, |(text, at, node, before, after)| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        let pointer = at.get(&pointers(&value)).clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match (node, value.pointer_mut(parent)) {
            (Some(node), _) => *value.pointer_mut(&pointer).unwrap() = node,
            (None, Some(Value::Object(members))) => drop(members.remove(name)),
            (None, Some(Value::Array(elements))) => drop(elements.remove(name.parse().unwrap())),
            (None, _) => {}
        }
        check(&value.to_string(), before, after)
    });
}

#[test]
fn a_record_with_a_member_twice_takes_no_neighbour_along() {
    let strategy = (record(), "(eventID|eventName|dynamodb|awsRegion)", json(), any::<Index>(), any::<Index>());
    decoding(10, &strategy, |(record, member, node, before, after)| {
        check(&record.replacen('{', &format!(r#"{{"{member}":{node},"#), 1), before, after)
    });
}

proptest! {
    #[test]
    fn arbitrary_json_takes_no_neighbour_along(value in json(), before: Index, after: Index) {
        check(&value.to_string(), before, after);
    }
}

#[test]
fn every_record_of_the_benchmark_is_a_change_of_its_own() {
    let event = benches::event(48);
    let read = decoded(&event).unwrap();
    assert!(read.iter().all(|record| record.change.as_ref().ok() == generally(record.text).as_ref()));
    let named: Vec<&str> = read.iter().filter_map(|record| Some(record.change.as_ref().ok()?.id.as_str())).collect();
    let distinct: std::collections::BTreeSet<&str> = named.iter().copied().collect();
    assert_eq!(distinct.len(), 48);
}

// ---- interpreted ----

/// Values that fit few declarations.
fn unfit() -> [AttributeValue; 6] {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    [
        text(""),
        text("19.90"),
        AttributeValue::N("7".to_owned()),
        AttributeValue::N("-0.5".to_owned()),
        AttributeValue::Bool(true),
        AttributeValue::L(Vec::new()),
    ]
}

/// The index keys that an item's writer makes.
fn index_keys(layout: &Layout, image: &Image<'_>, item: &Item) -> Vec<(String, Option<AttributeValue>)> {
    let fields = image.definition.fields(image.key, item).unwrap();
    image.definition.index_attributes(layout, &fields)
}

#[test]
fn a_value_that_a_derivation_cannot_interpret_is_absent_in_index_keys_and_in_what_is_derived() {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for sample in table_design::samples().unwrap() {
        let key: Key = schema.layout.key(&sample).unwrap();
        let names: Vec<String> = sample.iter().map(|(name, _)| name.to_owned()).collect();
        for (name, unfit) in names.iter().flat_map(|name| unfit().map(|unfit| (name, unfit))) {
            let mut item = sample.clone();
            item.insert(name.clone(), unfit.clone());
            let without: Item = item.clone().into_iter().filter(|(other, _)| other != name).collect();
            let Some(image) = schema.image(&key, &item) else { continue };
            for derivation in catalogue.derivations() {
                let kind = &derivation.kind;
                let why = kind.unreadable(&schema, &image).filter(|why| why.attribute == *name);
                if why.is_none() {
                    continue;
                }
                kinds.insert(kind.name());
                let of = format!("{} of {key} with {name} {unfit:?}", derivation.name);
                let keys = index_keys(&schema.layout, &image, &item);
                assert_eq!(keys, index_keys(&schema.layout, &image, &without), "{of}");
                // An additive derivation counts nothing of it.
                if matches!(kind.shape(), Shape::Count(_) | Shape::Rollup(_)) {
                    let items = [(key.clone(), item.clone())].into();
                    let derived = kind.derive(&derivation.name, &schema, &items, &derive::derived::Counts::default());
                    assert!(derived.is_empty(), "{of}: {derived:?}");
                }
            }
        }
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["copy", "count and sum", "display", "index key", "mirror", "path", "roll-up"]
    );
}

// ---- The captured events ----

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

/// What the engine makes of each captured event.
static CAPTURED: [(&str, Expect); 9] = [
    // Inserts count and are mirrored.
    (
        "insert.json",
        expect![[r#"
            3 records
            3 changes, 0 echoes, 0 ignored
            3 writes on the ledger
            POST#p-1842 / METADATA#COUNT#comment-count#00 for comment-count
            POST#p-1842 / METADATA#COUNT#like-count#00 for like-count
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    ),
    // A rename and a publication are changes.
    (
        "modify.json",
        expect![[r#"
            2 records
            2 changes, 0 echoes, 0 ignored
            2 writes on the ledger
            POST#p-1842 / METADATA for post-detail, post-author
            USER#ada / PROFILE#COUNT#post-count#00 for post-count
        "#]],
    ),
    // A removed follow is taken off both counts.
    (
        "remove.json",
        expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            1 writes on the ledger
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    ),
    // A view that the platform removes lowers nothing.
    (
        "ttl-removal.json",
        expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            0 writes on the ledger
        "#]],
    ),
    // A user with every type of attribute is read.
    (
        "binary-and-sets.json",
        expect![[r#"
            1 records
            1 changes, 0 echoes, 0 ignored
            1 writes on the ledger
        "#]],
    ),
    // Records without keys or images are parked, and the good one is applied.
    (
        "null-items.json",
        expect![[r#"
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
    ),
    // A record that does not decode is parked, and its neighbours are applied.
    (
        "undecodable.json",
        expect![[r#"
            3 records
            2 changes, 0 echoes, 0 ignored
            5 writes on the ledger
            POST#p-7 / METADATA#COUNT#like-count#00 for like-count
            parked d2c530e61cf1e9fd7ce7725806121264: the record does not decode: a value is missing or not of the form of a stream record, at column 15
            parked d2c530e61cf1e9fd7ce7725806121264: the record does not decode: a value is missing or not of the form of a stream record, at column 15
        "#]],
    ),
    // Items of no known type are ignored.
    (
        "unknown-entities.json",
        expect![[r#"
            4 records
            2 changes, 0 echoes, 2 ignored
            2 writes on the ledger
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / FOLLOWER#linus for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
            USER#linus / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    ),
    // A window's event is a batch like any other.
    (
        "tumbling-window.json",
        expect![[r#"
            2 records
            2 changes, 0 echoes, 0 ignored
            2 writes on the ledger
            USER#ada / FOLLOWER#grace for follower-mirror
            USER#ada / FOLLOWER#linus for follower-mirror
            USER#ada / PROFILE#COUNT#follower-count#00 for follower-count
            USER#grace / PROFILE#COUNT#following-count#00 for following-count
            USER#linus / PROFILE#COUNT#following-count#00 for following-count
        "#]],
    ),
];

#[test]
fn every_captured_event_is_handled() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (file, wanted) in &CAPTURED {
        wanted.assert_eq(&text(&runtime.block_on(handle(file))));
    }
    let is_handled = |name: &String| CAPTURED.iter().any(|(file, _)| file == name);
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("events")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || is_handled(&name), "no test handles {name}");
    }
}

/// The types of `aws_lambda_events` and the engine read the same, as far as both read an event.
#[test]
fn the_typed_events_of_lambda_and_the_raw_reading_agree() {
    let layout = catalogue::schema().layout.clone();
    for file in ["insert.json", "modify.json", "remove.json", "tumbling-window.json", "ttl-removal.json"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(file)).unwrap();
        let typed: dynamodb::Event = serde_json::from_str(&text).unwrap();
        let decoded = engine::record::Event::parse(&text).unwrap().decoded(&layout);
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
    let event = engine::record::Event::parse(text).unwrap();
    assert_eq!(window.time_window_properties.shard_id, event.lane.shard);
    assert_eq!(window.time_window_properties.event_source_arn, event.lane.stream_arn);
}

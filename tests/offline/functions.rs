//! The functions on the model of their tables.
//!
//! `MODE=observe`: an observing function leaves the tables as they are, and counts what a writing function would write.
//! Functions that write bring a table in step. Before each of them handles a batch, an observing one handles the same
//! batch on the same tables. The tables must stay the same, and the observing function must have counted exactly the
//! writes that the other one then makes.
//!
//! A table of a user: a `ripple.toml` makes the same values as the shipped one, and the functions run on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use catalogue::{catalogue, schema};
use derive::{
    catalogue::Catalogue,
    derived::{Derived, Items},
    family::Family,
    schema::{Schema, Seen},
    whole::derive,
    write::Table,
};
use engine::{
    account::Account,
    batch::{Engine, Handled},
    clock::Clock,
    ledger::{LedgerKind, recorded},
    limits::FanOutLimits,
    sweep::Bounds,
};
use expect_test::expect;
use functions::{
    config::{Config, Mode, Moded},
    handler::{Function, engine},
};
use keys::{entity::Definition, item::Item, key::Key};
use operate::verify::{Finding, marks::keeps};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{Store as _, memory::MemoryStore};
use support::{
    clock::ManualClock,
    record::{self, Record, Window, event, numbered},
};

/// The time of the first batch, in milliseconds since the epoch.
const START_MS: u64 = 1_705_315_200_000;

type ModedTables = Arc<Moded<Arc<MemoryStore>>>;

/// A writing function and an observing one, on the same tables.
struct Pair {
    writes: Engine<ModedTables>,
    observing: ModedTables,
    observes: Engine<ModedTables>,
}

/// A record: a key, with the item before and after a write.
type Made = (Key, Option<Item>, Option<Item>);

struct Bed {
    schema: Schema,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    functions: Vec<Pair>,
    sweep: Pair,
    n_records: usize,
    /// Records that are not delivered yet.
    made: Vec<Made>,
    /// The writes that were counted while observing, by table.
    counted: BTreeMap<Table, usize>,
}

/// Pages of a few items, so that jobs are created, and an index that lags, so that searches are noted.
const LIMITS: FanOutLimits = FanOutLimits {
    direct_max: 3,
    page_items: 3,
    page_ms: 0,
    page_ms_max: 0,
    page_beside_ms: 0,
    units_per_second: None,
    index_lag_ms: 1_000,
};

impl Bed {
    fn new(ledger: LedgerKind) -> Self {
        let schema = schema();
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let clock = Arc::new(ManualClock::at(START_MS));
        let catalogue = Arc::new(catalogue(&schema).unwrap());
        let shared = Arc::new(schema.clone());
        let pair = |function: Function| {
            let tables = |mode| Arc::new(Moded::new(mode, Arc::clone(&store), &schema.layout));
            let engine = |tables: &ModedTables| {
                let clock = Arc::clone(&clock) as Arc<dyn Clock>;
                let (schema, catalogue) = (Arc::clone(&shared), Arc::clone(&catalogue));
                let engine = Engine::new(schema, catalogue, function.families(), Arc::clone(tables), clock);
                engine.with_ledger(ledger).with_settling(0).with_fan_out(LIMITS)
            };
            let (writing, observing) = (tables(Mode::Apply), tables(Mode::Observe));
            Pair { writes: engine(&writing), observes: engine(&observing), observing }
        };
        let functions = vec![pair(Function::Aggregate), pair(Function::Propagate)];
        let sweep = pair(Function::Sweep);
        Self { schema, store, clock, functions, sweep, n_records: 0, made: Vec::new(), counted: BTreeMap::new() }
    }

    /// Puts an item, written as `PK / SK EntityType Name=Value …`; `N:` marks a number.
    fn put(&self, text: &str) {
        self.store.put_raw(Table::Main, record::item(&self.schema.layout, text)).unwrap();
    }

    fn tables(&self) -> [BTreeMap<Key, Item>; 2] {
        [Table::Main, Table::Ledger].map(|table| self.store.snapshot(table))
    }

    fn event(&mut self, records: &[Made]) -> String {
        let mut texts = Vec::new();
        for (key, old, new) in records {
            self.n_records += 1;
            let (keys, at_ms) = (self.schema.layout.key_item(key), self.clock.now_ms());
            texts.push(numbered(self.n_records, &keys, [old.as_ref(), new.as_ref()], at_ms));
        }
        Window::of_shard("shard-1").around(&event(&texts))
    }

    /// Each function observes a batch, and then handles it.
    async fn handle(&mut self, event: &str) {
        let before_ms = self.clock.now_ms();
        for at in 0..self.functions.len() {
            self.made.extend(self.store.take_records());
            let before = self.tables();
            let pair = &self.functions[at];
            let _turn = pair.observing.begin().await;
            let observed = pair.observes.handle(event, before_ms + 60_000).await.unwrap();
            assert_eq!(self.tables(), before, "observing wrote something");
            let records = self.store.take_records();
            assert!(records.is_empty(), "{records:?}");
            self.clock.set(before_ms);
            let handled = pair.writes.handle(event, before_ms + 60_000).await.unwrap();
            for commit in &observed.account.commits {
                *self.counted.entry(commit.table).or_default() += 1;
            }
            assert_eq!(result(&observed), result(&handled), "{event}");
        }
    }

    /// Delivers batches until no more come, with sweeps in between.
    async fn settle(&mut self) {
        loop {
            let mut records = std::mem::take(&mut self.made);
            records.extend(self.store.take_records());
            if records.is_empty() {
                return;
            }
            for batch in records.chunks(5) {
                let event = self.event(batch);
                self.handle(&event).await;
            }
        }
    }

    async fn sweeps(&mut self) {
        // Late enough that cascades and repeated searches are due.
        self.clock.advance(10_000);
        let now_ms = self.clock.now_ms();
        let before = self.tables();
        let _turn = self.sweep.observing.begin().await;
        let observed = swept(&self.sweep.observes, now_ms).await;
        assert_eq!(self.tables(), before, "observing wrote something");
        assert_eq!(observed, swept(&self.sweep.writes, now_ms).await);
    }
}

/// The result of a sweep as text. It restores the time afterwards, so that waiting takes none.
async fn swept(engine: &Engine<ModedTables>, now_ms: u64) -> String {
    let jobs = engine.sweep(|_| true, now_ms + 60_000).await.unwrap();
    let again = engine.search_again(now_ms + 60_000).await.unwrap();
    let bounds = Bounds { n_items_max: 5_000, deadline_ms: now_ms + 60_000 };
    let slice = engine.sweep_slice(bounds, |_| false).await.unwrap();
    // The items that it read are not compared: a writing run also reads items that it made itself, such as a job.
    format!("{jobs:?} {again:?} {} {} {:?}", slice.n_suspects, slice.n_zero_counters, slice.drifts)
}

/// The result of a batch, without the times of responses.
fn result(handled: &Handled) -> Value {
    let Account { commits, parked, refused, undone, .. } = &handled.account;
    let mut written: Vec<String> = commits
        .iter()
        .map(|commit| {
            let (key, table, units) = (&commit.key, commit.table, commit.units);
            format!("{key} {table:?} {units} {:?} {:?}", commit.derivations, commit.causes)
        })
        .collect();
    written.sort_unstable();
    let account = &handled.account;
    let counts = [
        account.n_records,
        account.n_changes,
        account.n_echoes,
        account.n_ignored,
        account.n_duplicates,
        account.n_retries,
        account.n_in_step,
        account.unreadable.len(),
    ];
    json!({
        "written": written, "counts": counts, "parked": format!("{parked:?}"), "refused": format!("{refused:?}"),
        "undone": format!("{undone:?}"), "failed": handled.failed_from, "state": handled.state,
    })
}

/// The work of an application: users, posts, comments enough for a job, an order, employees, unreadable items.
async fn a_day(ledger: LedgerKind) -> Bed {
    let mut bed = Bed::new(ledger);
    for user in ["ada", "bob", "cid"] {
        bed.put(&format!("USER#{user} / PROFILE : User Name={user}"));
    }
    bed.put("USER#bob / FOLLOWS#ada : Follow");
    bed.put("USER#cid / FOLLOWS#ada : Follow");
    bed.put("USER#ada / POST#2024-01-15T10:30:00.000Z#p1 : Post Title=t Status=published Content=c");
    for n in 0..9 {
        let at = format!("2024-01-15T10:30:0{n}.000Z#c{n}");
        bed.put(&format!("POST#p1 / COMMENT#{at} : Comment UserId=ada GSI1PK=USER#ada GSI1SK=COMMENT#{at}"));
    }
    bed.put("USER#bob / LIKE#POST#p1 : Like");
    bed.put("POST#p2 / COMMENT#2024-01-15T10:31:00.000Z#c : Comment UserId=N:5");
    bed.put("SENSOR#s1#2024-01-15 / 2024-01-15T10:31:00.000Z : Reading Value=N:20.5");
    bed.put("ORG#o1 / EMPLOYEE#e1 : Employee Name=e1 GSI1PK=EMP#e1 GSI1SK=EMP");
    let manager = "ManagerId=e1 GSI2PK=MANAGER#e1 GSI2SK=EMP#e2";
    bed.put(&format!("ORG#o1 / EMPLOYEE#e2 : Employee Name=e2 {manager} GSI1PK=EMP#e2 GSI1SK=EMP"));
    bed.put("GADGET#1 / METADATA : Gadget");
    bed.settle().await;
    // A rename makes a job go through the comments; a removal starts a cascade.
    bed.put("USER#ada / PROFILE : User Name=Ada");
    bed.settle().await;
    bed.sweeps().await;
    bed.settle().await;
    let post = Key::new("USER#ada", "POST#2024-01-15T10:30:00.000Z#p1");
    let delete =
        derive::write::Write { table: Table::Main, key: post, action: derive::write::Action::Delete, guard: None };
    store::Store::write(&bed.store, &delete).await.unwrap();
    bed.settle().await;
    bed.sweeps().await;
    bed.settle().await;
    bed.sweeps().await;
    bed
}

#[tokio::test]
async fn under_receipts_nothing_is_written_and_the_very_writes_are_counted() {
    let mut bed = a_day(LedgerKind::Receipts).await;
    // Some of each: counters, mirrors, copies; receipts, jobs, notes.
    assert!(bed.counted[&Table::Main] > 30 && bed.counted[&Table::Ledger] > 15, "{:?}", bed.counted);
    // A repeated record counts as a duplicate, and a record that does not decode is parked.
    bed.put("USER#cid / LIKE#POST#p1 : Like");
    let records = bed.store.take_records();
    let event = bed.event(&records);
    bed.handle(&event).await;
    bed.handle(&event).await;
    let mut broken: Value = serde_json::from_str(&event).unwrap();
    broken["Records"][0]["dynamodb"]["NewImage"] = json!(7);
    broken["Records"][0]["eventID"] = json!("broken");
    bed.handle(&broken.to_string()).await;
    assert!(bed.tables()[1].keys().any(|key| key.pk == "PARKED#additive"), "the one that writes parked it");
}

#[tokio::test]
async fn under_watermarks_nothing_is_written_and_the_very_writes_are_counted() {
    let bed = a_day(LedgerKind::Watermarks).await;
    let ledger = &bed.tables()[1];
    assert!(ledger.keys().any(|key| key.pk.starts_with("SHARD#")), "{:?}", ledger.keys().collect::<BTreeSet<_>>());
    assert!(bed.counted[&Table::Main] > 30, "{:?}", bed.counted);
}

#[tokio::test]
async fn a_ledger_is_not_claimed_by_a_function_that_observes_but_asked() {
    let layout = schema().layout;
    let store = Arc::new(MemoryStore::new(layout.clone()));
    let config = |ledger| Config { ledger, ..Config::of("t".to_owned(), "l".to_owned()) };
    let tables = |mode| Moded::new(mode, Arc::clone(&store), &layout);
    engine(Function::Aggregate, &config(LedgerKind::Watermarks), tables(Mode::Observe)).await.unwrap();
    assert_eq!(recorded(&store).await.unwrap(), None);
    engine(Function::Aggregate, &config(LedgerKind::Receipts), tables(Mode::Apply)).await.unwrap();
    let error =
        engine(Function::Aggregate, &config(LedgerKind::Watermarks), tables(Mode::Observe)).await.err().unwrap();
    assert!(
        error.to_string().starts_with("the ledger table was created for receipts, and watermarks is configured"),
        "{error}"
    );
}

// ---- missing ----

/// What is derived of one item of the shipped table, without an attribute if one is named, by one derivation.
fn derived_of(derivation: &str, entity: &str, edit: impl Fn(&mut Item)) -> Vec<Derived> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    let is_it = |sample: &&Item| keys::item::text(sample, "EntityType") == Some(entity);
    let samples = table_design::samples().unwrap();
    let mut item = samples.iter().find(is_it).unwrap().clone();
    edit(&mut item);
    let key: Key = schema.layout.key(&item).unwrap();
    let items: Items = [(key, item)].into();
    let whole = derive(&schema, &catalogue, &items);
    whole.by_derivation.into_iter().filter(|(name, _)| name == derivation).flat_map(|(_, derived)| derived).collect()
}

/// Count and sum of the only target.
fn tally(derived: &[Derived]) -> (i64, bool) {
    match derived {
        [Derived::Count { tally, .. }] => (tally.count, tally.sum.is_zero()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_item_without_the_summed_attribute_counts_and_adds_nothing_and_a_reading_without_a_value_takes_no_part() {
    for (derivation, entity, amount) in [
        ("folder-totals", "File", "SizeBytes"),
        ("product-rating", "Review", "Rating"),
        ("order-totals", "Order", "Total"),
        ("units-sold", "OrderItem", "Quantity"),
    ] {
        assert_eq!(tally(&derived_of(derivation, entity, |_| ())), (1, false), "{derivation}");
        let without = derived_of(derivation, entity, |item| drop(item.remove(amount)));
        assert_eq!(tally(&without), (1, true), "{derivation} without {amount}");
        let unreadable = AttributeValue::S("7".to_owned());
        let unreadable =
            derived_of(derivation, entity, |item| drop(item.insert(amount.to_owned(), unreadable.clone())));
        assert!(unreadable.is_empty(), "{derivation} with {amount} of type S: {unreadable:?}");
    }
    assert_eq!(derived_of("readings-rollup", "Reading", |_| ()).len(), 2, "the hour and the day");
    assert!(derived_of("readings-rollup", "Reading", |item| drop(item.remove("Value"))).is_empty());
}

#[test]
fn a_mirror_takes_what_nobody_declared() {
    let note = AttributeValue::S("x".to_owned());
    let mirrors = derived_of("follower-mirror", "Follow", |item| drop(item.insert("Note".to_owned(), note.clone())));
    let [Derived::Item { item, .. }] = &mirrors[..] else { panic!("{mirrors:?}") };
    assert_eq!(item.get("Note"), Some(&note));
}

#[test]
fn an_item_whose_id_is_not_escaped_is_named_as_unreadable_and_nothing_is_derived_of_it() {
    let follow = |sk: &str| {
        let sk = AttributeValue::S(sk.to_owned());
        derived_of("follower-mirror", "Follow", |item| drop(item.insert("SK".to_owned(), sk.clone())))
    };
    let mirrors = follow("FOLLOWS#50%25");
    let [Derived::Item { key, .. }] = &mirrors[..] else { panic!("{mirrors:?}") };
    assert_eq!(key.pk, "USER#50%25");
    let schema = catalogue::schema();
    for sk in ["FOLLOWS#50%", "FOLLOWS#5#0"] {
        assert!(follow(sk).is_empty(), "{sk}");
        let key = Key::new("USER#ann", sk);
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of("Follow"));
        let Seen::Misfit(unreadable) = schema.see(&key, &item) else { panic!("{sk}") };
        assert!(unreadable.why.contains("# is written %23 and % is written %25"), "{unreadable}");
    }
}

// ---- Which differences keep the marks of a possible loss ----

#[test]
fn a_difference_keeps_the_marks_of_its_family_if_somebody_can_correct_it() {
    let catalogue = catalogue::catalogue(&catalogue::schema()).unwrap();
    let kept = |derivation: &str, flaw: Option<&str>| {
        let (pk, sk, flaw) = ("PK".to_owned(), "SK".to_owned(), flaw.map(str::to_owned));
        keeps(&catalogue, &Finding { derivation: derivation.to_owned(), pk, sk, stored: None, derived: None, flaw })
    };
    assert_eq!(kept("like-count", None), Some(Family::Additive));
    assert_eq!(kept("folder-path", None), Some(Family::LevelTriggered));
    assert_eq!(kept("folder-path", Some("it stands in itself")), None);
    assert_eq!(kept("readings-rollup", None), None, "the reading that the bucket lacks is gone");
    assert_eq!(kept("index keys", None), Some(Family::LevelTriggered));
    assert_eq!(kept("a derivation of another version", None), Some(Family::LevelTriggered));
}

// ---- A table of a user ----

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/own-table/ripple.toml");

/// A part of the shipped table as a manifest, with each kind that a manifest supports.
const SHIPPED: &str = r##"
[table]
partition-key = "PK"
sort-key = "SK"
type = "EntityType"
time-to-live = "ExpiresAt"

[index.GSI1]
partition-key = "GSI1PK"
sort-key = "GSI1SK"
projection = ["EntityType", "Name", "Title", "Text", "Role", "Status", "Total", "Price", "Quantity", "Rating", "Path",
              "Depth", "CreatedAt"]

[index.GSI2]
partition-key = "GSI2PK"
sort-key = "GSI2SK"
projection = ["EntityType", "Name", "Title", "AuthorName", "AuthorAvatar", "Status", "Total", "Price", "CreatedAt"]

[entity.User]
partition-key = "USER#{UserId}"
sort-key = "PROFILE"
attributes = ["Name", "Email", "Avatar", "Version", "CreatedAt", "UpdatedAt"]
derived-attributes = ["FollowerCount", "FollowingCount", "PostCount", "OrderCount", "LifetimeValue"]
[entity.User.index.GSI1]
partition-key = "EMAIL#{Email}"
sort-key = "USER#{UserId}"
[entity.User.index.GSI2]
partition-key = "USERS#{UserId%8}"
sort-key = "{CreatedAt}#{UserId}"

[entity.Follow]
partition-key = "USER#{FollowerId}"
sort-key = "FOLLOWS#{FolloweeId}"
attributes = ["CreatedAt", "UpdatedAt"]
derived-attributes = ["FolloweeName"]

[entity.Follower]
partition-key = "USER#{FolloweeId}"
sort-key = "FOLLOWER#{FollowerId}"
derived = true
attributes = ["CreatedAt", "UpdatedAt"]
derived-attributes = ["FollowerName"]

[derivation.follower-mirror]
kind = "mirror"
from = "Follow"
to = "Follower"

[derivation.follower-count]
kind = "count"
from = "Follow"
into = "User.FollowerCount"
link = { UserId = "FolloweeId" }
shards = 8

[derivation.following-count]
kind = "count"
from = "Follow"
into = "User.FollowingCount"
link = { UserId = "FollowerId" }

[derivation.followee-name]
kind = "copy"
from = "User"
to = "Follow"
link = { UserId = "FolloweeId" }
attributes = { Name = "FolloweeName" }
found = "Follower"

[derivation.follower-name]
kind = "copy"
from = "User"
to = "Follower"
link = { UserId = "FollowerId" }
attributes = { Name = "FollowerName" }
found = "Follow"
"##;

/// The same definition, but without the id of the table's design, which a manifest lacks.
fn unnumbered(definition: &Definition) -> Definition {
    Definition { id: String::new(), ..definition.clone() }
}

/// The definition of a derivation in the catalogue.
fn declared(catalogue: &Catalogue, name: &str) -> String {
    let derivation = catalogue.derivations().find(|derivation| derivation.name == name);
    format!("{:?}", derivation.expect("it is declared").kind)
}

#[test]
fn a_part_of_the_shipped_manifest_makes_the_same_values() {
    let (schema, catalogue) = manifest::load(SHIPPED).unwrap();
    let shipped = catalogue::schema();
    let typed = catalogue::catalogue(&shipped).unwrap();
    assert_eq!(schema.layout, shipped.layout);
    for definition in schema.entities() {
        assert_eq!(unnumbered(definition), unnumbered(shipped.entity(&definition.name).unwrap()));
    }
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    for name in &names {
        assert_eq!(declared(&catalogue, name), declared(&typed, name));
    }
    expect!["follower-mirror follower-count follower-count-display following-count following-count-display followee-name follower-name"]
        .assert_eq(&names.join(" "));
}

fn configured(manifest: &str) -> Config {
    Config { manifest: Some(PathBuf::from(manifest)), ..Config::of("own".to_owned(), "own-ledger".to_owned()) }
}

fn follow() -> Value {
    json!({
        "pk": { "S": "USER#grace" }, "sk": { "S": "FOLLOWS#ada" }, "Type": { "S": "Follow" },
        "since": { "S": "2024-02-01" },
    })
}

/// The event of a new follow.
fn followed() -> String {
    let new = item(&follow());
    let keys = ["pk", "sk"].into_iter().map(|name| (name.to_owned(), new.get(name).unwrap().clone())).collect();
    let (keys, new) = (&keys, Some(&new));
    let record = Record { id: "1", sequence_number: "100", keys, old: None, new, at_ms: 0, is_expiry: false };
    event(&[record.json()])
}

fn item(value: &Value) -> Item {
    serde_json::from_value(value.clone()).expect("an item")
}

/// The table with the follow and both users.
fn table(schema: &Schema) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    store.put_raw(Table::Main, item(&follow())).unwrap();
    for (user, name) in [("ada", "Ada"), ("grace", "Grace")] {
        let id = json!({ "S": format!("USER#{user}") });
        let user = json!({ "pk": id, "sk": id, "Type": { "S": "User" }, "userName": { "S": name } });
        store.put_raw(Table::Main, item(&user)).unwrap();
    }
    store
}

#[tokio::test]
async fn a_function_runs_on_the_manifest_that_its_configuration_names() {
    let (schema, _) = manifest::read(Path::new(EXAMPLE)).unwrap();
    let store = table(&schema);
    let function = engine(Function::Propagate, &configured(EXAMPLE), Arc::clone(&store)).await.unwrap();
    let Handled { account, failed_from, .. } = function.handle(&followed(), u64::MAX).await.unwrap();
    assert_eq!((account.n_changes, failed_from), (1, None));
    let mirror = Key::new("USER#ada", "FOLLOWEDBY#grace");
    let made = store.get(Table::Main, std::slice::from_ref(&mirror)).await.unwrap();
    let wanted = json!({
        "pk": { "S": "USER#ada" }, "sk": { "S": "FOLLOWEDBY#grace" }, "Type": { "S": "FollowedBy" },
        "since": { "S": "2024-02-01" }, "followerName": { "S": "Grace" },
    });
    assert_eq!(made, [(mirror, item(&wanted))]);
}

#[tokio::test]
async fn a_function_whose_manifest_is_wrong_does_not_start() {
    let store = || MemoryStore::new(catalogue::schema().layout);
    let error = engine(Function::Propagate, &configured("no/ripple.toml"), store()).await.err().unwrap();
    assert_eq!(error.to_string(), "cannot read no/ripple.toml");
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = engine(Function::Propagate, &configured(other), store()).await.err().unwrap().to_string();
    let wanted = format!(
        "{other}:1:2: package: there is no such key: there are table, index, tables, entity, derivation, access"
    );
    assert_eq!(error, wanted);
}

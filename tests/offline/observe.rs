//! `MODE=observe`: an observing function leaves the tables as they are, and counts what a writing function would write.
//!
//! Functions that write bring a table in step. Before each of them handles a batch, an observing one handles the same
//! batch on the same tables. The tables must stay the same, and the observing function must have counted exactly the
//! writes that the other one then makes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use catalogue::{catalogue, schema};
use derive::{
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
    ledger::{LedgerKind, settings::recorded},
    limits::FanOutLimits,
    sweep::Bounds,
};
use functions::{
    config::{Config, Mode, Moded},
    handler::{Function, engine},
};
use keys::{item::Item, key::Key};
use operate::verify::{Finding, marks::keeps};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use support::{
    clock::ManualClock,
    record::{Record, Window, event},
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
    n_records: u64,
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
        let (key, rest) = text.split_once(" : ").unwrap();
        let (pk, sk) = key.split_once(" / ").unwrap();
        let mut words = rest.split(' ');
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut item = self.schema.layout.key_item(&Key::new(pk, sk));
        item.insert("EntityType".to_owned(), text(words.next().unwrap()));
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            let number = |number: &str| AttributeValue::N(number.to_owned());
            item.insert(name.to_owned(), value.strip_prefix("N:").map_or_else(|| text(value), number));
        }
        self.store.put_raw(Table::Main, item).unwrap();
    }

    fn tables(&self) -> [BTreeMap<Key, Item>; 2] {
        [Table::Main, Table::Ledger].map(|table| self.store.snapshot(table))
    }

    fn event(&mut self, records: &[Made]) -> String {
        let mut texts = Vec::new();
        for (key, old, new) in records {
            self.n_records += 1;
            let (id, sequence_number) = (format!("{:032x}", self.n_records), format!("{:021}", self.n_records));
            let (keys, at_ms) = (self.schema.layout.key_item(key), self.clock.now_ms());
            let (old, new) = (old.as_ref(), new.as_ref());
            let record =
                Record { id: &id, sequence_number: &sequence_number, keys: &keys, old, new, at_ms, is_expiry: false };
            texts.push(record.json());
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

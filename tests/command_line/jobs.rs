//! What operators do with what waits: `ripple jobs` lists, shows, pauses, resumes and cancels jobs; `ripple parked --about`
//! and `--discard` find the parked changes about a person, and give changes up.

#![expect(clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::sync::Arc;

use derive::{
    catalogue::Catalogue,
    family::Family,
    write::{Action, Table, Update, Write},
};
use engine::{
    batch::Engine,
    jobs::sweep::jobs,
    limits::FanOutLimits,
    park::{ExceptionKind, Parking},
    publishing::begin,
    record::{Head, Lane},
};
use expect_test::expect;
use functions::declared::{Choice, declared};
use keys::{fields::Fields, item::Item, key::Key};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{
    Store as _,
    dynamo::{DynamoStore, TableNames},
};
use support::{
    clock::ManualClock,
    database::client,
    record::{Record, event},
};

use crate::{Ended, misused, refuses, ripple, ripple_with, with_tables};

/// The time of everything in this file, in milliseconds since the epoch.
const NOW_MS: u64 = 1_705_315_200_000;

/// A page of two items for each record of a job.
const LIMITS: FanOutLimits = FanOutLimits {
    direct_max: 2,
    page_items: 2,
    page_ms: 0,
    page_ms_max: 0,
    page_beside_ms: 0,
    units_per_second: None,
    index_lag_ms: 0,
};

/// Ids of a renamed user's fan-out, and of a removed user's cascade.
const FAN_OUT: &str = "followee-name#8:USER%23ada|PROFILE";
const CASCADE: &str = "user-cascade#removed@a0a46f48";

/// A table with a database and an engine, but without a stream.
struct Shop {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    store: Arc<DynamoStore>,
    engine: Engine<Arc<DynamoStore>>,
    schema: Arc<derive::schema::Schema>,
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

impl Shop {
    fn new() -> Self {
        let (runtime, endpoint) = with_tables();
        let schema = Arc::new(catalogue::schema());
        let derivations = catalogue::derivations().into_iter();
        let derivations = derivations.filter(|it| ["followee-name", "user-cascade"].contains(&it.name.as_str()));
        let catalogue = Arc::new(Catalogue::new(&schema, derivations.collect()).unwrap());
        let names = TableNames { main: "ripple".to_owned(), ledger: "ripple-ledger".to_owned() };
        let store = Arc::new(DynamoStore::new(client(&endpoint), schema.layout.clone(), names));
        let families = vec![Family::LevelTriggered];
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let engine = Engine::new(Arc::clone(&schema), catalogue, families, Arc::clone(&store), clock);
        Self { runtime, endpoint, store, engine: engine.with_fan_out(LIMITS), schema }
    }

    fn item(&self, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)]) -> (Key, Item) {
        let key = self.schema.entity(entity).unwrap().build(&fields.iter().copied().collect::<Fields>()).unwrap();
        let mut item = self.schema.layout.key_item(&key);
        item.extend(self.schema.layout.type_of(entity));
        item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), text(value))));
        (key, item)
    }

    fn write(&self, key: &Key, action: Action) {
        let write = Write { table: Table::Main, key: key.clone(), action, guard: None };
        self.runtime.block_on(self.store.write(&write)).unwrap();
    }

    fn put(&self, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)]) -> (Key, Item) {
        let (key, item) = self.item(entity, fields, attributes);
        self.write(&key, Action::Put(item.clone()));
        (key, item)
    }

    fn stored(&self, key: &Key) -> Option<Item> {
        let stored = self.runtime.block_on(self.store.get(Table::Main, std::slice::from_ref(key))).unwrap();
        stored.into_iter().next().map(|(_, item)| item)
    }

    fn handle(&self, id: &str, key: &Key, images: [Option<&Item>; 2]) {
        let keys = Item::from([("PK".to_owned(), text(&key.pk)), ("SK".to_owned(), text(&key.sk))]);
        let ([old, new], at_ms) = (images, NOW_MS);
        let record = Record { id, sequence_number: "1000", keys: &keys, old, new, at_ms, is_expiry: false };
        let event = event(&[record.json()]);
        let handled = self.runtime.block_on(self.engine.handle(&event, NOW_MS + 60_000)).unwrap();
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 0));
    }

    /// Renames a user with ten followers, which starts a job. One record of it does a page.
    fn renamed(&self) -> Key {
        let (key, user) = self.put("User", &[("UserId", "ada")], &[("Name", "new name")]);
        for number in 0..10 {
            let follower = format!("u{number}");
            let pair = [("FollowerId", follower.as_str()), ("FolloweeId", "ada")];
            self.put("Follow", &pair, &[("FolloweeName", "old name")]);
            self.put("Follower", &pair, &[]);
        }
        let (_, old) = self.item("User", &[("UserId", "ada")], &[("Name", "old name")]);
        self.handle("renamed", &key, [Some(&old), Some(&user)]);
        let jobs = self.runtime.block_on(jobs(self.engine.store(), &self.engine.schema().layout)).unwrap();
        jobs.into_iter().find(|job| job.key.sk == FAN_OUT).unwrap().key
    }

    fn page(&self, job: &Key) {
        let item = self.stored(job).unwrap();
        self.handle("page", job, [Some(&item), Some(&item)]);
    }

    /// Removes a user, so that a job waits.
    fn removed(&self) {
        let (key, user) = self.item("User", &[("UserId", "bob")], &[]);
        self.handle("removed", &key, [Some(&user), None]);
    }

    /// The number of follows with the new name.
    fn n_named(&self) -> usize {
        let follow = |number: usize| {
            let follower = format!("u{number}");
            self.item("Follow", &[("FollowerId", &follower), ("FolloweeId", "ada")], &[]).0
        };
        let is_named = |key: &Key| self.stored(key).unwrap().get("FolloweeName") == Some(&text("new name"));
        (0..10).map(follow).filter(is_named).count()
    }

    fn jobs(&self, arguments: &[&str]) -> Ended {
        ripple(&[&["jobs", "--endpoint", &self.endpoint], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let ended = self.jobs(&[arguments, &["--json"]].concat());
        assert_eq!(ended.stderr.is_empty(), ended.code != Some(2), "{ended:?}");
        (ended.code, serde_json::from_str(&ended.stdout).unwrap())
    }

    /// State of each job, by id.
    fn states(&self) -> Vec<(String, String)> {
        let (_, listed) = self.json(&[]);
        let text = |job: &Value, name: &str| job[name].as_str().unwrap().to_owned();
        let jobs = listed["jobs"].as_array().unwrap().iter();
        let mut states: Vec<_> = jobs.map(|job| (text(job, "id"), text(job, "state"))).collect();
        states.sort_unstable();
        states
    }
}

#[test]
fn jobs_are_listed_a_line_each_and_shown_whole() {
    let shop = Shop::new();
    let ended = shop.jobs(&[]);
    let none = "0 jobs: 0 running, 0 waiting, 0 paused\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), none, ""));

    let job = shop.renamed();
    shop.page(&job);
    shop.removed();
    let ended = shop.jobs(&[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        user-cascade#removed@a0a46f48  waiting  of USER#bob / PROFILE  0 dealt with  started 2024-01-15T10:40:00.000Z  moved 2024-01-15T10:40:00.000Z  due 2024-01-16T11:40:00.000Z
        followee-name#8:USER%23ada|PROFILE  running  of USER#ada / PROFILE  2 looked at  started 2024-01-15T10:40:00.000Z  moved 2024-01-15T10:40:00.000Z
        2 jobs: 1 running, 1 waiting, 0 paused
    "#]].assert_eq(&ended.stdout);

    // By the sort key, or by the whole key.
    let whole = job.to_string();
    let ended = shop.jobs(&[&whole, CASCADE]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        job         user-cascade#removed@a0a46f48
          key       JOBS#05 / user-cascade#removed@a0a46f48
          does      cascade: deletes what belonged to a removed item
          for       user-cascade
          item      USER#bob / PROFILE
          state     waiting
          so far    0 dealt with
          started   2024-01-15T10:40:00.000Z
          due       2024-01-16T11:40:00.000Z
          moved     2024-01-15T10:40:00.000Z
          moves     0
        job         followee-name#8:USER%23ada|PROFILE
          key       JOBS#07 / followee-name#8:USER%23ada|PROFILE
          does      fan-out: recomputes the items that depend on a changed item
          for       followee-name
          item      USER#ada / PROFILE
          state     running
          so far    2 looked at
          last      USER#ada / FOLLOWER#u1
          started   2024-01-15T10:40:00.000Z
          due       2024-01-15T10:40:00.000Z
          moved     2024-01-15T10:40:00.000Z
          moves     1
    "#]]
    .assert_eq(&ended.stdout);
}

#[test]
fn jobs_are_printed_as_one_json_object() {
    let shop = Shop::new();
    let job = shop.renamed();
    shop.page(&job);
    // A newer change starts its second round.
    let (key, user) = shop.item("User", &[("UserId", "ada")], &[("Name", "new name")]);
    let (_, newer) = shop.item("User", &[("UserId", "ada")], &[("Name", "newer name")]);
    shop.handle("renamed-again", &key, [Some(&user), Some(&newer)]);
    let (code, shown) = shop.json(&[FAN_OUT, "no-such-job"]);
    assert_eq!((code, &shown["unknown"]), (Some(2), &json!(["no-such-job"])));
    expect![[r#"
        [
          {
            "derivation": "followee-name",
            "due_at": "2024-01-15T10:40:00.000Z",
            "has_begun": true,
            "held_by": null,
            "id": "followee-name#8:USER%23ada|PROFILE",
            "item": {
              "pk": "USER#ada",
              "sk": "PROFILE"
            },
            "key": {
              "pk": "JOBS#07",
              "sk": "followee-name#8:USER%23ada|PROFILE"
            },
            "kind": "fan_out",
            "last": {
              "pk": "USER#ada",
              "sk": "FOLLOWER#u1"
            },
            "left_ms": null,
            "moved_at": "2024-01-15T10:40:00.000Z",
            "moves": 2,
            "pages": null,
            "per_second": null,
            "round": {
              "has_begun": false,
              "until": "FOLLOWER#u1"
            },
            "started_at": "2024-01-15T10:40:00.000Z",
            "state": "running",
            "touched": 2
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&shown["jobs"]).unwrap());
    let (code, listed) = shop.json(&[]);
    assert_eq!((code, &listed["jobs"]), (Some(0), &shown["jobs"]));
}

#[test]
fn a_job_is_paused_and_resumed() {
    let shop = Shop::new();
    let job = shop.renamed();
    shop.page(&job);
    let said = |arguments: &[&str]| {
        let ended = shop.jobs(&[arguments, &[FAN_OUT]].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        ended.stdout.replace(FAN_OUT, "JOB")
    };
    let n_before = shop.n_named();
    assert_eq!(said(&["--resume"]), "JOB  was not paused\n");
    assert_eq!(said(&["--pause"]), "JOB  paused\n");
    assert_eq!(said(&["--pause"]), "JOB  was paused already\n");
    shop.page(&job);
    assert_eq!((shop.n_named(), shop.states()), (n_before, vec![(FAN_OUT.to_owned(), "paused".to_owned())]));
    assert!(said(&[]).contains("\n  state     paused, it has begun\n"));

    assert_eq!(said(&["--resume"]), "JOB  resumed\n");
    shop.page(&job);
    assert_eq!((shop.n_named() > n_before, shop.stored(&job).unwrap().contains_key("Paused")), (true, false));
}

#[test]
fn a_job_that_is_cancelled_says_what_stays_undone() {
    let shop = Shop::new();
    let job = shop.renamed();
    shop.page(&job);
    shop.removed();
    let ended = shop.jobs(&["--cancel", FAN_OUT, CASCADE]);
    assert_eq!((ended.code, ended.stderr.as_str(), shop.states()), (Some(0), "", Vec::new()));
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    expect![[r#"
        followee-name#8:USER%23ada|PROFILE  cancelled: 2 looked at; items that it had not reached stay as they are, until `ripple verify` finds them or USER#ada / PROFILE changes again
        user-cascade#removed@a0a46f48  cancelled: 0 dealt with; the rest of what belonged to USER#bob / PROFILE stays, and nothing deletes it later"#]].assert_eq(&lines.join("\n"));
}

/// The functions were deployed without the derivation of a job: nothing moves the job any more.
#[test]
fn a_job_whose_derivation_is_dropped_is_cancelled_with_the_manifest_of_the_functions_only() {
    let shop = Shop::new();
    let job = shop.renamed();
    let disabled = ["followee-name".to_owned()];
    let (schema, catalogue) = declared(Choice { disabled: &disabled, ..Choice::default() }).unwrap();
    shop.runtime.block_on(begin(&shop.store, &schema, &catalogue, NOW_MS)).unwrap();
    let before = shop.stored(&job);
    for order in ["--pause", "--resume", "--cancel"] {
        let ended = shop.jobs(&[order, FAN_OUT]);
        let says =
            "ripple: the manifest is not that of the functions: it declares followee-name, which no function has; ";
        assert!(ended.code == Some(2) && ended.stderr.starts_with(says), "{ended:?}");
        assert_eq!(shop.stored(&job), before, "{order}");
    }
    let ended = shop.jobs(&["--disable", "followee-name", "--cancel", FAN_OUT]);
    assert_eq!((ended.code, ended.stderr.as_str(), shop.stored(&job)), (Some(0), "", None), "{ended:?}");
}

#[test]
fn an_id_that_is_no_job_or_whose_job_has_ended_is_named_and_the_others_are_dealt_with() {
    let shop = Shop::new();
    let job = shop.renamed();
    let ended = shop.jobs(&["no-such-job"]);
    let none = |id: &str| format!("ripple: {id} is no job: `ripple jobs` lists all\n");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(2), "", none("no-such-job")));
    let ended = shop.jobs(&["--pause", "no-such-job", FAN_OUT]);
    let said = format!("{FAN_OUT}  paused\n");
    assert_eq!((ended.code, ended.stdout, ended.stderr), (Some(2), said, none("no-such-job")));

    shop.write(&job, Action::Delete);
    for order in ["--pause", "--resume", "--cancel"] {
        let ended = shop.jobs(&[order, FAN_OUT]);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(2), "", none(FAN_OUT)), "{order}");
        assert_eq!(shop.stored(&job), None, "nothing is written where it was");
    }
    // An item that is no job.
    let torso = Update::set(Item::from([("Value".to_owned(), text("x"))]));
    shop.write(&job, Action::Update(torso));
    assert_eq!(shop.jobs(&["--cancel", FAN_OUT]).code, Some(2));
    assert!(shop.stored(&job).is_some());
}

#[test]
fn one_thing_is_asked_of_jobs_that_are_named() {
    misused(
        &["jobs", "--pause", "--cancel", "an-id"],
        "the argument '--pause' cannot be used with '--cancel'\n\nUsage: ripple jobs --pause <ID>...",
    );
    misused(
        &["jobs", "--pause"],
        "the following required arguments were not provided:\n  <ID>...\n\nUsage: ripple jobs --pause <ID>...",
    );
}

// ---- Parked changes ----

/// When everything here was parked, in milliseconds since the epoch.
const PARKED_MS: u64 = 1_705_315_200_000;

/// The ids of the parked changes.
const FOLLOW: &str = "11111111111111111111111111111111";
const REMOVAL: &str = "22222222222222222222222222222222";
const DAMAGED: &str = "33333333333333333333333333333333";

/// Tables with parked changes, without a service.
struct Ledger {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    store: DynamoStore,
}

fn item(pairs: &[(&str, &str)]) -> Item {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), AttributeValue::S((*text).to_owned()))).collect()
}

impl Ledger {
    /// A follow of `ada` whose counts and copies are parked, the removal of `ada`, and a record that does not decode.
    fn new() -> Self {
        let (runtime, endpoint) = with_tables();
        let names = TableNames { main: "ripple".to_owned(), ledger: "ripple-ledger".to_owned() };
        let store = DynamoStore::new(client(&endpoint), catalogue::schema().layout, names);
        let ledger = Self { runtime, endpoint, store };
        let [pk, sk] = [("PK", "USER#grace"), ("SK", "FOLLOWS#ada")];
        let (keys, new) = (item(&[pk, sk]), item(&[pk, sk, ("EntityType", "Follow")]));
        for family in [Family::Additive, Family::LevelTriggered] {
            ledger.park(FOLLOW, family, &keys, [None, Some(&new)]);
        }
        let [pk, sk] = [("PK", "USER#ada"), ("SK", "PROFILE")];
        let (keys, old) = (item(&[pk, sk]), item(&[pk, sk, ("EntityType", "User"), ("Name", "Ada of Canada")]));
        ledger.park(REMOVAL, Family::LevelTriggered, &keys, [Some(&old), None]);
        ledger.park_text(DAMAGED, Family::Additive, r#"{"dynamodb": {"NewImage": {"Text": {"S": "from ada"}}}}"#);
        ledger
    }

    fn park(&self, id: &str, family: Family, keys: &Item, [old, new]: [Option<&Item>; 2]) {
        let record =
            Record { id, sequence_number: "1000", keys, old, new, at_ms: PARKED_MS - 60_000, is_expiry: false };
        self.park_text(id, family, &record.json());
    }

    fn park_text(&self, id: &str, family: Family, record: &str) {
        let head = Head { id: Some(id.into()), sequence_number: Some("1000".into()), ..Head::default() };
        let lane = Lane { stream_arn: None, shard: Some("shard-1".to_owned()) };
        let exception = Some(ExceptionKind::Uncounted).filter(|_| family == Family::Additive);
        let parking = Parking { head: &head, record, cause: "a test", family, lane: &lane, counter: None, exception };
        for write in parking.writes(&catalogue::schema().layout, PARKED_MS) {
            self.runtime.block_on(self.store.write(&write)).unwrap();
        }
    }

    fn parked(&self, arguments: &[&str]) -> Ended {
        ripple(&[&["parked", "--endpoint", &self.endpoint], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.parked(&[arguments, &["--json"]].concat()).stdout).unwrap()
    }
}

#[test]
fn parked_changes_about_an_item_are_found_by_its_key_by_what_they_would_change_and_by_their_text() {
    let ledger = Ledger::new();
    let about = ledger.parked(&["--about", "USER#ada"]);
    assert_eq!((about.code, about.stderr.as_str()), (Some(3), ""), "{about:?}");
    let why = |line: &&str| {
        line.starts_with("parked") || line.starts_with("  why") || line.contains(" parked changes about ")
    };
    let lines: Vec<&str> = about.stdout.lines().filter(why).collect();
    expect![[r#"
        parked      11111111111111111111111111111111  additive  2024-01-15T10:40:00.000Z
          why       it would count for it; it contains ada
        parked      33333333333333333333333333333333  additive  2024-01-15T10:40:00.000Z
          why       it contains ada
        parked      11111111111111111111111111111111  level-triggered  2024-01-15T10:40:00.000Z
          why       it would refresh it; it contains ada
        parked      22222222222222222222222222222222  level-triggered  2024-01-15T10:40:00.000Z
          why       it changed the item; it would refresh items that depend on it; it would start its cascade; it contains USER#ada; it contains ada
        4 parked changes about the partition key USER#ada"#]].assert_eq(&lines.join("\n"));
    let one = ledger.parked(&["--about", "USER#ada / PROFILE"]);
    assert!(one.stdout.ends_with("4 parked changes about USER#ada / PROFILE\n"), "{}", one.stdout);
    let none = ledger.parked(&["--about", "USER#eve"]);
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(0), "0 parked changes about the partition key USER#eve\n"),
        "{none:?}"
    );
    let object = ledger.json(&["--about", "USER#grace / FOLLOWS#ada"]);
    assert_eq!(object["about"], json!({"pk": "USER#grace", "sk": "FOLLOWS#ada"}));
    assert_eq!(object["parked"][0]["why"][0], "it changed the item", "{object:#}");
    let both = ripple(&["parked", FOLLOW, "--about", "USER#ada"]);
    assert!(both.code == Some(2) && both.stderr.contains("cannot be used with"), "{both:?}");
}

#[test]
fn a_discarded_change_is_gone_and_its_counts_are_listed_for_a_recount() {
    let ledger = Ledger::new();
    let line = "an-id is no parked change: `ripple parked` lists all";
    refuses(&["parked", "--discard", FOLLOW, "an-id", "--endpoint", &ledger.endpoint], line);
    assert_eq!(ledger.json(&[])["parked"].as_array().unwrap().len(), 4, "an unknown id discards nothing");
    let without = ledger.parked(&["--discard"]);
    assert!(without.code == Some(2) && without.stderr.contains("<ID>"), "{without:?}");

    let discarded = ledger.parked(&["--discard", FOLLOW, REMOVAL, DAMAGED]);
    assert_eq!((discarded.code, discarded.stderr.as_str()), (Some(0), ""), "{discarded:?}");
    let said = |line: &&str| line.starts_with("  lost") || !line.starts_with(' ');
    let lines: Vec<&str> = discarded.stdout.lines().filter(said).collect();
    expect![[r#"
        parked      11111111111111111111111111111111  additive  2024-01-15T10:40:00.000Z
          lost      its change of follower-count at USER#ada / PROFILE: it is listed for a recount
          lost      its change of following-count at USER#grace / PROFILE: it is listed for a recount
        parked      33333333333333333333333333333333  additive  2024-01-15T10:40:00.000Z
          lost      its change of any count, because it cannot be read: it is listed for a recount
        parked      11111111111111111111111111111111  level-triggered  2024-01-15T10:40:00.000Z
          lost      the refresh of USER#ada / FOLLOWER#grace: run `ripple repair`
          lost      the refresh of USER#grace / FOLLOWS#ada: run `ripple repair`
        parked      22222222222222222222222222222222  level-triggered  2024-01-15T10:40:00.000Z
          lost      the refresh by comment-author of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by followee-name of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by follower-name of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by group-user-name of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by member-user-name of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by post-author of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the refresh by review-author of the items that depend on USER#ada / PROFILE: run `ripple repair`
          lost      the cascade user-cascade of USER#ada / PROFILE: it will not run, so delete what belonged to it yourself
        11111111111111111111111111111111  additive  discarded
        33333333333333333333333333333333  additive  discarded
        11111111111111111111111111111111  level-triggered  discarded
        22222222222222222222222222222222  level-triggered  discarded"#]].assert_eq(&lines.join("\n"));
    let left = ledger.json(&[]);
    assert_eq!(left["parked"], json!([]));
    let recount = left["recount"].as_array().unwrap();
    let listed: Vec<&Value> = recount.iter().map(|entry| &entry["derivation"]).collect();
    assert_eq!(listed, [&json!(null), &json!("follower-count"), &json!("following-count")], "{left:#}");
}

#[test]
fn discarding_on_the_real_aws_says_what_is_lost_and_wants_a_yes() {
    let ledger = Ledger::new();
    // An emulator in the standard AWS environment stands for the real AWS.
    let variables = [
        ("AWS_ENDPOINT_URL_DYNAMODB", ledger.endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "else"),
        ("AWS_REGION", "us-east-1"),
    ];
    let ended = ripple_with(&["parked", "--discard", REMOVAL, "--aws"], &variables);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains("\n  lost      the cascade user-cascade of USER#ada / PROFILE: it will not run"));
    assert!(ended.stderr.ends_with("on the real AWS: give --yes to confirm\n"), "{}", ended.stderr);
    assert_eq!(ledger.json(&[REMOVAL])["parked"].as_array().unwrap().len(), 1, "it is still parked");
    let ended = ripple_with(&["parked", "--discard", REMOVAL, "--aws", "--yes", "--json"], &variables);
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &object["discarded"][0]["outcome"]), (Some(0), &json!("discarded")), "{object:#}");
}

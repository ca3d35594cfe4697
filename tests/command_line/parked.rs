//! `ripple parked --about` and `--discard`: the parked changes about a person, and those that an operator gives up.

use aws_sdk_dynamodb::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
};
use derive::family::Family;
use engine::{
    park::{ExceptionKind, Parking},
    record::{Head, event::Lane},
};
use expect_test::expect;
use keys::item::Item;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{
    Store as _,
    dynamo::{DynamoStore, TableNames},
};
use support::record::Record;

use super::{Ended, database, refuses, ripple, ripple_with, table_without_stream};

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
        let (runtime, endpoint) = database();
        for table in ["ripple", "ripple-ledger"] {
            runtime.block_on(table_without_stream(&endpoint, table));
        }
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).endpoint_url(&endpoint);
        let config = config.region(Region::new("us-east-1"));
        let client =
            Client::from_conf(config.credentials_provider(Credentials::new("a", "b", None, None, "any")).build());
        let names = TableNames { main: "ripple".to_owned(), ledger: "ripple-ledger".to_owned() };
        let ledger =
            Self { runtime, endpoint, store: DynamoStore::new(client, catalogue::schema().layout.clone(), names) };
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

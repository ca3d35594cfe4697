//! The price of an action: derived write units by part, with one change in each batch and items under 1 KB.
//!
//! The units are the model's, which the contract suite compares with those of the embedded DynamoDB. A change of a
//! price shows here, and must be made in docs/figures.md and the README too.

mod batches;
mod counted;
mod echoes;
mod estimated;
mod follow;
mod ground;
mod growth;
mod hot;
mod ordered;

use std::{collections::BTreeMap, sync::Arc};

use catalogue::{catalogue, schema};
use derive::{catalogue::Catalogue, family::Family, schema::Schema, write::Table};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use expect_test::{Expect, expect};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{
    memory::MemoryStore,
    recording::{Recording, Request},
};
use support::record::{Record, Window, event};

/// The service over the model.
pub(crate) struct Bed {
    pub(crate) schema: Schema,
    ledger: LedgerKind,
    pub(crate) store: Arc<MemoryStore>,
    functions: [Engine<Arc<Recording<Arc<MemoryStore>>>>; 2],
    /// What the functions ask of the store.
    requests: Arc<Recording<Arc<MemoryStore>>>,
    n_records: usize,
    /// Invocations that asked the database for anything, and their reads.
    n_invocations: usize,
    n_reads: usize,
}

impl Bed {
    pub(crate) fn new(ledger: LedgerKind) -> Self {
        let schema = schema();
        let catalogue = catalogue(&schema).unwrap();
        Self::of(ledger, schema, catalogue)
    }

    /// The service of another table.
    pub(crate) fn of(ledger: LedgerKind, schema: Schema, catalogue: Catalogue) -> Self {
        let store = Arc::new(MemoryStore::new(schema.layout.clone()));
        let requests = Arc::new(Recording::new(Arc::clone(&store)));
        let shared = Arc::new(schema.clone());
        let catalogue = Arc::new(catalogue);
        let function = |family| {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            Engine::new(Arc::clone(&shared), Arc::clone(&catalogue), vec![family], Arc::clone(&requests), clock)
                .with_settling(0)
                .with_ledger(ledger)
        };
        let functions = [function(Family::Additive), function(Family::LevelTriggered)];
        Self { schema, ledger, store, functions, requests, n_records: 0, n_invocations: 0, n_reads: 0 }
    }

    /// Puts an item as an application, written as `PK / SK EntityType Name=Value …`.
    fn put(&self, text: &str) {
        let (key, rest) = text.split_once(" : ").unwrap();
        let (pk, sk) = key.split_once(" / ").unwrap();
        let mut words = rest.split(' ');
        let key = Key::new(pk, sk);
        let mut item = self.schema.layout.key_item(&key);
        item.insert("EntityType".to_owned(), AttributeValue::S(words.next().unwrap().to_owned()));
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            let text = || AttributeValue::S(value.to_owned());
            let value = value.strip_prefix("N:").map_or_else(text, |number| AttributeValue::N(number.to_owned()));
            item.insert(name.to_owned(), value);
        }
        self.store.put_raw(Table::Main, item).unwrap();
    }

    /// Delivers batches of this many records until no more come: write units by part, and the number of records that
    /// Ripple made.
    pub(crate) async fn settle(&mut self, batch_size: usize) -> (BTreeMap<String, f64>, usize) {
        let mut units = BTreeMap::new();
        let n_before = self.n_records;
        loop {
            let records = self.store.take_records();
            if records.is_empty() {
                return (units, self.n_records - n_before);
            }
            for batch in records.chunks(batch_size) {
                let mut batch_records = Vec::new();
                for (key, old, new) in batch {
                    self.n_records += 1;
                    batch_records.push(self.record(key, old.as_ref(), new.as_ref()));
                }
                let mut event = event(&batch_records);
                if self.ledger == LedgerKind::Watermarks {
                    event = Window::of_shard("shardId-00000001573689847184-864758bb").around(&event);
                }
                for function in &self.functions {
                    let handled = function.handle(&event, SystemClock.now_ms() + 60_000).await.unwrap();
                    assert!(handled.failed_from.is_none() && handled.account.parked.is_empty());
                    let requests = self.requests.take();
                    let is_read = |request: &&Request| matches!(request, Request::Read(..) | Request::Query(..));
                    self.n_invocations += usize::from(!requests.is_empty());
                    self.n_reads += requests.iter().filter(is_read).count();
                    for commit in handled.account.commits {
                        let part = match commit.table {
                            Table::Ledger if commit.key.pk.starts_with("RECEIPT#") => "receipt".to_owned(),
                            Table::Ledger => "other items of the ledger".to_owned(),
                            Table::Main => commit.derivations.join(" + "),
                        };
                        *units.entry(part).or_default() += commit.units;
                    }
                }
            }
        }
    }

    fn record(&self, key: &Key, old: Option<&Item>, new: Option<&Item>) -> String {
        let (id, sequence_number) = (format!("{:032x}", self.n_records), format!("{:021}", self.n_records));
        let (keys, at_ms) = (self.schema.layout.key_item(key), SystemClock.now_ms());
        Record { id: &id, sequence_number: &sequence_number, keys: &keys, old, new, at_ms, is_expiry: false }.json()
    }
}

async fn check(given: &[&str], action: &str, wanted: Expect) {
    check_under(LedgerKind::Receipts, given, action, wanted).await;
}

async fn check_under(ledger: LedgerKind, given: &[&str], action: &str, wanted: Expect) {
    let mut bed = Bed::new(ledger);
    for item in given {
        bed.put(item);
    }
    bed.settle(1).await;
    bed.put(action);
    let (units, n_records) = bed.settle(1).await;
    let mut lines: Vec<String> = units.iter().map(|(part, units)| format!("{part}: {units}\n")).collect();
    lines.push(format!(
        "in all {}, and {} stream records of ours\n",
        units.values().fold(0.0, |sum, units| sum + units),
        n_records - 1
    ));
    wanted.assert_eq(&lines.concat());
}

const ANN: &str = "USER#ann / PROFILE : User Name=Ann Avatar=a.png";
const BOB: &str = "USER#bob / PROFILE : User Name=Bob Avatar=b.png";
const POST: &str = "USER#bob / POST#2024#p : Post Status=published Title=Hello";

#[tokio::test]
async fn a_follow() {
    check(
        &[ANN, BOB],
        "USER#ann / FOLLOWS#bob : Follow",
        expect![[r#"
            followee-name: 1
            follower-count: 2
            follower-count-display: 1
            follower-mirror + follower-name: 1
            following-count: 2
            following-count-display: 1
            receipt: 2
            in all 10, and 6 stream records of ours
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_like() {
    check(
        &[ANN, BOB, POST],
        "USER#ann / LIKE#POST#p : Like GSI1PK=POST#p GSI1SK=LIKE#USER#ann",
        expect![[r#"
            like-count: 2
            like-count-display: 1
            receipt: 2
            in all 5, and 2 stream records of ours
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_comment() {
    let comment = "POST#p / COMMENT#2024#c : Comment UserId=ann Text=Yes GSI1PK=USER#ann GSI1SK=COMMENT#2024#c";
    check(
        &[ANN, BOB, POST],
        comment,
        expect![[r#"
            comment-author: 1
            comment-count: 2
            comment-count-display: 1
            receipt: 2
            in all 6, and 3 stream records of ours
        "#]],
    )
    .await;
}

/// No item of the ledger: the watermark stands on the counter.
#[tokio::test]
async fn a_follow_a_like_and_a_comment_under_watermarks() {
    let comment = "POST#p / COMMENT#2024#c : Comment UserId=ann Text=Yes GSI1PK=USER#ann GSI1SK=COMMENT#2024#c";
    for (action, wanted) in [
        (
            "USER#ann / FOLLOWS#bob : Follow",
            expect![[r#"
            followee-name: 1
            follower-count: 1
            follower-count-display: 1
            follower-mirror + follower-name: 1
            following-count: 1
            following-count-display: 1
            in all 6, and 6 stream records of ours
        "#]],
        ),
        (
            "USER#ann / LIKE#POST#p : Like GSI1PK=POST#p GSI1SK=LIKE#USER#ann",
            expect![[r#"
            like-count: 1
            like-count-display: 1
            in all 2, and 2 stream records of ours
        "#]],
        ),
        (
            comment,
            expect![[r#"
            comment-author: 1
            comment-count: 1
            comment-count-display: 1
            in all 3, and 3 stream records of ours
        "#]],
        ),
    ] {
        check_under(LedgerKind::Watermarks, &[ANN, BOB, POST], action, wanted).await;
    }
}

#[tokio::test]
async fn a_reading() {
    let reading = |minute: u8, value: u8| {
        format!("SENSOR#s#2024-01-15 / 2024-01-15T10:{minute}:00.000Z : Reading Value=N:{value}")
    };
    check(
        &[],
        &reading(30, 21),
        expect![[r#"
        readings-rollup: 4
        receipt: 2
        in all 6, and 2 stream records of ours
    "#]],
    )
    .await;
    check(
        &[&reading(30, 21)],
        &reading(31, 20),
        expect![[r#"
        readings-rollup: 4
        receipt: 2
        in all 6, and 2 stream records of ours
    "#]],
    )
    .await;
    // A late change costs nothing.
    check(
        &[&reading(30, 21)],
        &reading(30, 22),
        expect![[r#"
            in all 0, and 0 stream records of ours
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_order_and_its_cancellation() {
    let order = |status: &str| format!("USER#ann / ORDER#2024#o : Order Status={status} Total=N:19.90");
    check(
        &[ANN],
        &order("paid"),
        expect![[r#"
            order-detail: 1
            order-totals: 2
            order-totals-count-display + order-totals-sum-display: 1
            receipt: 2
            in all 6, and 3 stream records of ours
        "#]],
    )
    .await;
    check(
        &[ANN, &order("paid")],
        &order("packed"),
        expect![[r#"
            order-detail: 1
            in all 1, and 1 stream records of ours
        "#]],
    )
    .await;
    check(
        &[ANN, &order("paid")],
        &order("cancelled"),
        expect![[r#"
            order-detail: 1
            order-totals: 2
            order-totals-count-display + order-totals-sum-display: 1
            receipt: 2
            in all 6, and 3 stream records of ours
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_rename_of_a_user_with_ten_comments() {
    let comment =
        |n: usize| format!("POST#p / COMMENT#2024#c{n} : Comment UserId=ann GSI1PK=USER#ann GSI1SK=COMMENT#2024#c{n}");
    let comments: Vec<String> = (0..10).map(comment).collect();
    let mut given = vec![ANN, BOB, POST];
    given.extend(comments.iter().map(String::as_str));
    check(
        &given,
        "USER#ann / PROFILE : User Name=Anna Avatar=a.png",
        expect![[r#"
            comment-author: 10
            other items of the ledger: 1
            in all 11, and 10 stream records of ours
        "#]],
    )
    .await;
}

const TOP: &str = "FOLDER#top / METADATA : Folder Name=top";

/// A folder below another, with its index key.
fn folder(id: &str, parent: &str) -> String {
    let index = format!("GSI1PK=FOLDER#{parent} GSI1SK=FOLDER#{id}#{id}");
    format!("FOLDER#{id} / METADATA : Folder Name={id} ParentId={parent} {index}")
}

#[tokio::test]
async fn a_rename_of_a_folder_with_ten_folders_that_have_a_file_each() {
    let folders: Vec<String> = (0..10).map(|n| folder(&format!("f{n}"), "top")).collect();
    let files: Vec<String> = (0..10).map(|n| format!("FOLDER#f{n} / FILE#2024#a{n} : File Name=a{n}")).collect();
    let given: Vec<&str> = [TOP].into_iter().chain(folders.iter().chain(&files).map(String::as_str)).collect();
    // As an update leaves it: with the old path.
    check(
        &given,
        "FOLDER#top / METADATA : Folder Name=papers Path=/top",
        expect![[r#"
            file-path: 10
            folder-path: 21
            other items of the ledger: 11
            in all 42, and 21 stream records of ours
        "#]],
    )
    .await;
}

/// The derived write units of 25 actions in one batch, per action.
async fn each_of_25(ledger: LedgerKind, given: &[&str], action: impl Fn(usize) -> String) -> f64 {
    let mut bed = Bed::new(ledger);
    for item in given {
        bed.put(item);
    }
    for n in 0..25 {
        bed.put(&format!("USER#u{n} / PROFILE : User Name=U{n}"));
    }
    bed.settle(100).await;
    for n in 0..25 {
        bed.put(&action(n));
    }
    bed.settle(100).await.0.values().sum::<f64>() / 25.0
}

#[tokio::test]
async fn actions_that_come_together_share_counter_and_display() {
    for (ledger, wanted) in [(LedgerKind::Receipts, "7.12 2.12 3.12"), (LedgerKind::Watermarks, "4.12 0.08 1.08")] {
        let follow = each_of_25(ledger, &[BOB], |n| format!("USER#u{n} / FOLLOWS#bob : Follow")).await;
        let like = each_of_25(ledger, &[BOB, POST], |n| format!("USER#u{n} / LIKE#POST#p : Like")).await;
        let comment = |n: usize| format!("POST#p / COMMENT#2024#c{n} : Comment UserId=u{n}");
        let comment = each_of_25(ledger, &[BOB, POST], comment).await;
        assert_eq!(format!("{follow} {like} {comment}"), wanted, "{ledger}");
    }
}

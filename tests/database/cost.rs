//! The price of an action: derived write units by part, with one change in each batch and items under 1 KB.
//!
//! The units are the model's, which the contract suite compares with those of the embedded DynamoDB. A change of a
//! price shows here, and must be made in docs/figures.md and the README too.

mod estimated;
mod hot;
mod paced;

use std::{collections::BTreeMap, sync::Arc};

use catalogue::{catalogue, schema};
use derive::{
    catalogue::Catalogue,
    family::Family,
    schema::Schema,
    write::{Action, Table, Write},
};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use expect_test::{Expect, expect};
use infra::mapping::{StreamTable, needed};
use keys::{item::Item, key::Key};
use store::{
    Store as _,
    memory::MemoryStore,
    recording::{Recording, Request},
};
use stream::filter::Filters;
use support::record::{self, Window, event, numbered};

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
        self.store.put_raw(Table::Main, record::item(&self.schema.layout, text)).unwrap();
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
        numbered(self.n_records, &self.schema.layout.key_item(key), [old, new], SystemClock.now_ms())
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
    let wanted = expect![[r#"
        followee-name: 1
        follower-count: 2
        follower-count-display: 1
        follower-mirror + follower-name: 1
        following-count: 2
        following-count-display: 1
        receipt: 2
        in all 10, and 6 stream records of ours
        "#]];
    check(&[ANN, BOB], "USER#ann / FOLLOWS#bob : Follow", wanted).await;
}

#[tokio::test]
async fn a_like() {
    let wanted = expect![[r#"
        like-count: 2
        like-count-display: 1
        receipt: 2
        in all 5, and 2 stream records of ours
        "#]];
    check(&[ANN, BOB, POST], "USER#ann / LIKE#POST#p : Like GSI1PK=POST#p GSI1SK=LIKE#USER#ann", wanted).await;
}

#[tokio::test]
async fn a_comment() {
    let comment = "POST#p / COMMENT#2024#c : Comment UserId=ann Text=Yes GSI1PK=USER#ann GSI1SK=COMMENT#2024#c";
    let wanted = expect![[r#"
        comment-author: 1
        comment-count: 2
        comment-count-display: 1
        receipt: 2
        in all 6, and 3 stream records of ours
        "#]];
    check(&[ANN, BOB, POST], comment, wanted).await;
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
    let wanted = expect![[r#"
        readings-rollup: 4
        receipt: 2
        in all 6, and 2 stream records of ours
    "#]];
    check(&[], &reading(30, 21), wanted).await;
    let wanted = expect![[r#"
        readings-rollup: 4
        receipt: 2
        in all 6, and 2 stream records of ours
    "#]];
    check(&[&reading(30, 21)], &reading(31, 20), wanted).await;
    // A late change costs nothing.
    let wanted = expect![[r#"
        in all 0, and 0 stream records of ours
        "#]];
    check(&[&reading(30, 21)], &reading(30, 22), wanted).await;
}

#[tokio::test]
async fn an_order_and_its_cancellation() {
    let order = |status: &str| format!("USER#ann / ORDER#2024#o : Order Status={status} Total=N:19.90");
    let wanted = expect![[r#"
        order-detail: 1
        order-totals: 2
        order-totals-count-display + order-totals-sum-display: 1
        receipt: 2
        in all 6, and 3 stream records of ours
        "#]];
    check(&[ANN], &order("paid"), wanted).await;
    let wanted = expect![[r#"
        order-detail: 1
        in all 1, and 1 stream records of ours
        "#]];
    check(&[ANN, &order("paid")], &order("packed"), wanted).await;
    let wanted = expect![[r#"
        order-detail: 1
        order-totals: 2
        order-totals-count-display + order-totals-sum-display: 1
        receipt: 2
        in all 6, and 3 stream records of ours
        "#]];
    check(&[ANN, &order("paid")], &order("cancelled"), wanted).await;
}

#[tokio::test]
async fn a_rename_of_a_user_with_ten_comments() {
    let comment =
        |n: usize| format!("POST#p / COMMENT#2024#c{n} : Comment UserId=ann GSI1PK=USER#ann GSI1SK=COMMENT#2024#c{n}");
    let comments: Vec<String> = (0..10).map(comment).collect();
    let mut given = vec![ANN, BOB, POST];
    given.extend(comments.iter().map(String::as_str));
    let wanted = expect![[r#"
        comment-author: 10
        other items of the ledger: 1
        in all 11, and 10 stream records of ours
        "#]];
    check(&given, "USER#ann / PROFILE : User Name=Anna Avatar=a.png", wanted).await;
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
    let wanted = expect![[r#"
        file-path: 10
        folder-path: 21
        other items of the ledger: 11
        in all 42, and 21 stream records of ours
        "#]];
    check(&given, "FOLDER#top / METADATA : Folder Name=papers Path=/top", wanted).await;
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

// ---- One follow between existing users, with everything that follows from it ----

async fn price(ledger: LedgerKind) -> String {
    let mut bed = Bed::new(ledger);
    // The second user follows first, so that the item of the stream shard is made.
    for item in [ANN, BOB, "USER#bob / FOLLOWS#ann : Follow"] {
        bed.put(item);
    }
    bed.settle(1).await;
    (bed.n_invocations, bed.n_reads) = (0, 0);
    bed.put("USER#ann / FOLLOWS#bob : Follow");
    let (units, n_records) = bed.settle(1).await;
    let units = units.values().fold(0.0, |sum, units| sum + units);
    let (n_ours, n_reads, n_invocations) = (n_records - 1, bed.n_reads, bed.n_invocations);
    format!(
        "{ledger}: {units} write units, {n_ours} stream records of ours, {n_reads} reads, {n_invocations} invocations with calls\n"
    )
}

/// Under receipts `propagate` shows each count when the record of its counter arrives; under watermarks `aggregate` shows
/// the count of a counter of one item when it has counted.
#[tokio::test]
async fn a_follow_costs_less_where_the_function_that_counts_shows_it() {
    let found = price(LedgerKind::Receipts).await + &price(LedgerKind::Watermarks).await;
    print!("{found}");
    expect![[r#"
        receipts: 10 write units, 6 stream records of ours, 15 reads, 8 invocations with calls
        watermarks: 6 write units, 6 stream records of ours, 10 reads, 4 invocations with calls
    "#]]
    .assert_eq(&found);
}

// ---- The application's own items: a deletion by a cascade, and a move ----

/// The units of everything that follows from a removal or a put, including the jobs that it starts.
async fn check_ground(given: &[&str], act: impl AsyncFnOnce(&Bed), wanted: Expect) {
    let mut bed = Bed::new(LedgerKind::Receipts);
    for item in given {
        bed.put(item);
    }
    bed.settle(1).await;
    act(&bed).await;
    let mut units = std::collections::BTreeMap::<String, f64>::new();
    loop {
        let (more, n_records) = bed.settle(1).await;
        for (part, more) in more {
            *units.entry(part).or_default() += more;
        }
        if n_records == 0 {
            break;
        }
        bed.functions[1].sweep(|_| true, u64::MAX).await.unwrap();
    }
    let lines: Vec<String> = units.iter().map(|(part, units)| format!("{part}: {units}\n")).collect();
    wanted.assert_eq(&lines.concat());
}

async fn delete(bed: &Bed, pk: &str, sk: &str) {
    let write = Write { table: Table::Main, key: Key::new(pk, sk), action: Action::Delete, guard: None };
    bed.store.write(&write).await.unwrap();
}

#[tokio::test]
async fn a_post_with_ten_comments_is_removed() {
    let comment = |n: usize| format!("POST#p / COMMENT#2024#c{n} : Comment Text=Yes");
    let comments: Vec<String> = (0..10).map(comment).collect();
    let mut given = vec![ANN, BOB, POST];
    given.extend(comments.iter().map(String::as_str));
    let wanted = expect![[r#"
        comment-count: 20
        other items of the ledger: 12
        post-cascade: 38
        post-count: 2
        post-count-display: 1
        post-detail: 2
        receipt: 26
        "#]];
    check_ground(&given, async |bed| delete(bed, "USER#bob", "POST#2024#p").await, wanted).await;
}

/// A 0 costs the write that the removal of the attribute would.
#[tokio::test]
async fn the_last_follow_is_removed() {
    let wanted = expect![[r#"
        follower-count: 2
        follower-count-display: 1
        follower-mirror: 1
        following-count: 2
        following-count-display: 1
        receipt: 2
        "#]];
    check_ground(
        &[ANN, BOB, "USER#ann / FOLLOWS#bob : Follow"],
        async |bed| delete(bed, "USER#ann", "FOLLOWS#bob").await,
        wanted,
    )
    .await;
}

/// An item that is put back while its count is zero gets its 0 again, for one write. Without counters it costs none.
#[tokio::test]
async fn a_user_is_put_back_whose_counts_are_zero() {
    let counter = |name: &str| format!("USER#ann / PROFILE#COUNT#{name}#00 : Counter Value=N:0");
    let given = [ANN.to_owned(), counter("follower-count"), counter("post-count")];
    for (n_given, wanted) in [
        (1, expect![""]),
        (
            3,
            expect![[r#"
                follower-count-display + post-count-display: 1
            "#]],
        ),
    ] {
        let given: Vec<&str> = given.iter().take(n_given).map(String::as_str).collect();
        check_ground(&given, async |bed| bed.put(ANN), wanted).await;
    }
}

#[tokio::test]
async fn an_employee_moves_with_one_below_them() {
    let employee = |id: &str, manager: Option<&str>, path: &str| {
        let below = manager.map(|it| format!("ManagerId={it} GSI2PK=MANAGER#{it} GSI2SK=EMP#{id} "));
        let below = below.unwrap_or_default();
        format!("ORG#o / EMPLOYEE#{id} : Employee {below}GSI1PK=EMP#{id} GSI1SK=EMP{path}")
    };
    let given =
        [employee("a", None, ""), employee("b", None, ""), employee("c", Some("a"), ""), employee("d", Some("c"), "")];
    let moved = employee("c", Some("b"), " Path=/a/c");
    let wanted = expect![[r#"
        employee-path: 4
        org-chart: 5
        other items of the ledger: 2
        "#]];
    check_ground(&given.each_ref().map(String::as_str), async |bed| bed.put(&moved), wanted).await;
}

// ---- What the first or the last of some items decides, what is unread, and counts into each member of a list ----

const MANIFEST: &str = r##"
[table]
partition-key = "pk"
sort-key = "sk"
type = "EntityType"

[entity.Product]
partition-key = "PRODUCT#{productId}"
sort-key = "PRODUCT"
derived-attributes = ["lowestPrice"]

[entity.Offer]
partition-key = "OFFER#{offerId}"
sort-key = "OFFER"
attributes = ["productId", "price", "ended"]

[entity.Message]
partition-key = "ROOM#{room}"
sort-key = "MSG#{sentAt}"

[entity.Member]
partition-key = "ROOM#{room}"
sort-key = "MEMBER#{user}"
attributes = ["lastReadAt"]
derived-attributes = ["unread"]

[derivation.cheapest]
kind = "extreme"
from = "Offer"
into = "Product.lowestPrice"
link = { productId = "productId" }
min = "price"
where = "ended <> 'x'"

[derivation.unread]
kind = "unread"
from = "Message"
into = "Member.unread"
link = { room = "room" }
after = { sentAt = "lastReadAt" }
limit = 100
"##;

#[tokio::test]
async fn an_entry_is_a_write_and_a_message_is_one_for_each_member() {
    let (schema, catalogue) = manifest::load(MANIFEST).unwrap();
    let mut bed = Bed::of(LedgerKind::Watermarks, schema, catalogue);
    let mut found = String::new();
    for (what, items) in [
        ("a product", &["PRODUCT#p / PRODUCT : Product"][..]),
        ("its first offer", &["OFFER#a / OFFER : Offer productId=p price=N:15"]),
        ("a dearer one", &["OFFER#b / OFFER : Offer productId=p price=N:20"]),
        ("a cheaper one", &["OFFER#c / OFFER : Offer productId=p price=N:9"]),
        ("a change of the dearer one", &["OFFER#b / OFFER : Offer productId=p price=N:21"]),
        ("the end of the cheaper one", &["OFFER#c / OFFER : Offer productId=p price=N:9 ended=x"]),
        (
            "three members",
            &[
                "ROOM#r / MEMBER#ann : Member lastReadAt=2024-01-15",
                "ROOM#r / MEMBER#bob : Member lastReadAt=2024-01-15",
                "ROOM#r / MEMBER#cid : Member",
            ],
        ),
        ("a message", &["ROOM#r / MSG#2024-01-16 : Message"]),
        ("a member reads", &["ROOM#r / MEMBER#ann : Member lastReadAt=2024-01-17 unread=N:1"]),
    ] {
        for item in items {
            bed.put(item);
        }
        (bed.n_invocations, bed.n_reads) = (0, 0);
        let (units, _) = bed.settle(1).await;
        let units = units.values().fold(0.0, |sum, units| sum + units);
        found.extend([format!("{what}: {units} write units, {} reads\n", bed.n_reads)]);
    }
    expect![[r#"
        a product: 0 write units, 1 reads
        its first offer: 2 write units, 6 reads
        a dearer one: 1 write units, 5 reads
        a cheaper one: 2 write units, 6 reads
        a change of the dearer one: 2 write units, 8 reads
        the end of the cheaper one: 2 write units, 6 reads
        three members: 3 write units, 9 reads
        a message: 3 write units, 7 reads
        a member reads: 1 write units, 3 reads
    "#]]
    .assert_eq(&found);
}

// ---- Which of the records that follow from an action the deployed filters deliver, and how many of them ask for work ----

fn comment(n: usize) -> String {
    format!("POST#p / COMMENT#2024#{n} : Comment UserId=ann Text=Yes GSI1PK=USER#ann GSI1SK=COMMENT#2024#{n}")
}

/// The records that follow from an item, and by function those delivered and those that ask for work.
async fn line(action: &str, n_comments: usize, item: &str) -> String {
    let mut bed = Bed::new(LedgerKind::Watermarks);
    for item in [ANN, BOB, POST] {
        bed.put(item);
    }
    for n in 0..n_comments {
        bed.put(&comment(n));
    }
    bed.settle(1).await;
    bed.put(item);
    let catalogue = catalogue::catalogue(&bed.schema).unwrap();
    let table = StreamTable::all(&bed.schema).next().unwrap();
    let filters = [Family::Additive, Family::LevelTriggered]
        .map(|family| -> Filters { infra::mapping::filters(&needed(table, &catalogue, &[family])).unwrap() });
    let (mut n_records, mut counted) = (0, [[0, 0]; 2]);
    loop {
        let records = bed.store.take_records();
        if records.is_empty() {
            break;
        }
        for (key, old, new) in &records {
            n_records += 1;
            bed.n_records += 1;
            let record = bed.record(key, old.as_ref(), new.as_ref());
            let event =
                Window::of_shard("shardId-00000001573689847184-864758bb").around(&event(std::slice::from_ref(&record)));
            for ((function, filters), counted) in bed.functions.iter().zip(&filters).zip(&mut counted) {
                if !filters.matches(&record) {
                    continue;
                }
                function.handle(&event, SystemClock.now_ms() + 60_000).await.unwrap();
                let asks = !bed.requests.take().is_empty();
                *counted = [counted[0] + 1, counted[1] + usize::from(asks)];
            }
        }
    }
    let [aggregate, propagate] = counted.map(|[delivered, asking]| format!("{asking} of {delivered}"));
    format!(
        "{action}: {n_records} records, {} of them ours; aggregate {aggregate}, propagate {propagate}\n",
        n_records - 1
    )
}

#[tokio::test]
async fn echoes_are_delivered_and_so_many_records_ask_for_work() {
    let mut lines = String::new();
    for (action, n_comments, item) in [
        ("follow", 0, "USER#ann / FOLLOWS#bob : Follow"),
        ("like", 0, "USER#ann / LIKE#POST#p : Like GSI1PK=POST#p GSI1SK=LIKE#USER#ann"),
        ("comment", 0, comment(0).as_str()),
        ("post", 0, "USER#bob / POST#2025#q : Post Status=published Title=Hello"),
        ("rename of a user with 10 comments", 10, "USER#ann / PROFILE : User Name=Anna Avatar=a.png"),
    ] {
        lines.push_str(&line(action, n_comments, item).await);
    }
    expect![[r#"
        follow: 7 records, 6 of them ours; aggregate 1 of 2, propagate 3 of 7
        like: 3 records, 2 of them ours; aggregate 1 of 1, propagate 0 of 2
        comment: 4 records, 3 of them ours; aggregate 1 of 2, propagate 2 of 4
        post: 4 records, 3 of them ours; aggregate 1 of 1, propagate 2 of 4
        rename of a user with 10 comments: 11 records, 10 of them ours; aggregate 0 of 10, propagate 11 of 11
    "#]]
    .assert_eq(&lines);
}

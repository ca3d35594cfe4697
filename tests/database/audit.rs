//! `ripple audit`: the numbers of a table that a naive application maintains, on the model store.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use engine::ledger::LedgerKind;
use expect_test::expect;
use keys::{item::Item, key::Key};
use operate::{
    audit::{
        AuditOptions, Audited, SeenSoFar, audit,
        totals::{DerivationAudit, WorstValue},
    },
    tables::Deployment,
    verify::Progress,
};
use serde_dynamo::AttributeValue;
use store::{
    Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated,
    memory::MemoryStore,
    recording::{Recording, Request},
};

use crate::{
    at_work::{TableAtWork, Unseen, deployment},
    n, s,
};

const MANIFEST: &str = include_str!("audit.toml");

/// The options at rest, with values.
const AT_REST: AuditOptions = AuditOptions { segments: 4, read_units: None, at_rest: true, has_values: true };

async fn audited<S: Store + 'static>(opened: &Deployment<S>, options: &AuditOptions) -> Audited {
    let progress: Arc<dyn Progress> = Arc::new(Unseen);
    audit(opened, options, &Arc::<SeenSoFar>::default(), &progress).await.unwrap()
}

/// The deployment on another store.
fn on<S, T>(opened: &Deployment<S>, store: T) -> Deployment<T> {
    deployment(Arc::clone(&opened.schema), Arc::clone(&opened.catalogue), Arc::new(store))
}

fn line(line: &DerivationAudit) -> String {
    let DerivationAudit { derivation, values, right, wrong, missing, extra, undecided, unknown, unreadable, .. } = line;
    let errors = line.errors.as_ref().map(|errors| {
        let bands: Vec<_> = errors.bands.iter().map(|(band, n)| (band.is_high, band.range().0, *n)).collect();
        format!(" off {} / {} / {} {bands:?}", errors.mean().unwrap(), errors.largest, errors.sum)
    });
    let cannot_tell = line.cannot_tell.as_ref().map(|why| format!(" ({why})"));
    let [errors, cannot_tell] = [errors, cannot_tell].map(Option::unwrap_or_default);
    format!(
        "{derivation}: {right}/{values} w{wrong} m{missing} x{extra} u{undecided} ?{unknown} r{unreadable}{errors}{cannot_tell}\n"
    )
}

fn worst(named: &WorstValue) -> String {
    let WorstValue { finding, wrong, error } = named;
    let error = error.as_ref().map(ToString::to_string).unwrap_or_default();
    let shown = |item: &Option<Item>| {
        let names = |item: &Item| item.iter().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>();
        item.as_ref().map_or_else(|| "-".to_owned(), |item| names(item).join(","))
    };
    let [stored, derived] = [&finding.stored, &finding.derived].map(shown);
    format!("{wrong:?} {error} {} {} / {}: {stored} -> {derived}\n", finding.derivation, finding.pk, finding.sk)
}

fn report(audited: &Audited) -> String {
    let totals = &audited.totals;
    let mut text: String = totals.derivations.iter().map(line).collect();
    text.extend(totals.about_nothing.iter().map(|it| format!("{} {} {:?}\n", it.derivation, it.counts, it.examples)));
    let unreadable = totals.unreadable.iter();
    text.extend(unreadable.map(|it| format!("{} {} {} {:?}\n", it.items, it.derivation, it.why, it.examples)));
    text.extend(totals.worst.iter().map(worst));
    let mend = totals
        .to_mend
        .iter()
        .map(|(names, n)| format!("{n} {}\n", names.iter().cloned().collect::<Vec<_>>().join("+")));
    text.extend(mend);
    text
}

/// A right table: three users, who follow each other, and a post with two likes.
fn right() -> TableAtWork {
    let table = TableAtWork::new(LedgerKind::Watermarks, MANIFEST);
    for (user, followers) in [("ada", Some("2")), ("bob", Some("1")), ("cid", None)] {
        let count = followers.map(|count| ("followerCount", n(count)));
        let name = [("userName", s(&user.to_uppercase()))];
        table.put(&format!("USER#{user}"), "USER", "User", &name.into_iter().chain(count).collect::<Vec<_>>());
    }
    for (follower, followed, name) in [("bob", "ada", "ADA"), ("cid", "ada", "ADA"), ("ada", "bob", "BOB")] {
        let since = ("since", s("2024"));
        let copied = [since.clone(), ("followedName", s(name))];
        table.put(&format!("USER#{follower}"), &format!("FOLLOWS#{followed}"), "Follow", &copied);
        table.put(&format!("USER#{followed}"), &format!("FOLLOWEDBY#{follower}"), "FollowedBy", &[since]);
    }
    let popular = AttributeValue::Bool(true);
    let likes = [("likeCount", n("2")), ("weight", n("5")), ("average", n("2.5")), ("popular", popular)];
    let likes = likes.into_iter().chain([("largestLike", n("3"))]);
    table.put("POST#p", "POST", "Post", &likes.chain([("viewCount", n("1"))]).collect::<Vec<_>>());
    for (user, size) in [("ada", "2"), ("bob", "3")] {
        table.put("POST#p", &format!("LIKE#{user}"), "Like", &[("size", n(size))]);
        table.put(&format!("LIKER#{user}"), "LIKER", "Liker", &[("likes", n("1"))]);
    }
    table.put("POST#p", "VIEW#1", "View", &[]);
    table.put("USER#ada", "ORDER#2024#o1", "Order", &[("status", s("paid"))]);
    let detail = [("userId", s("ada")), ("placedAt", s("2024")), ("status", s("paid"))];
    table.put("ORDER#o1", "DETAIL", "OrderDetail", &detail);
    table.put("SENSOR#s", "READING#2024-01-15T10:30:00.000Z", "Reading", &[("value", n("7"))]);
    let bucket = ["n", "sum", "min", "max"].map(|name| (name, n(if name == "n" { "1" } else { "7" })));
    for key in ["HOUR#2024-01-15T10", "DAY#2024-01-15"] {
        table.put("SENSOR#s", key, "Totals", &bucket);
    }
    table
}

/// What a naive application leaves: counts off by retries, stale copies, missing and forgotten mirrors, and counts of
/// items that do not exist.
fn wrong() -> TableAtWork {
    let table = right();
    // A handler that ran twice, one that was lost, and one that did not decrement.
    table.put("USER#ada", "USER", "User", &[("userName", s("ADA")), ("followerCount", n("14"))]);
    table.put("USER#bob", "USER", "User", &[("userName", s("BOB"))]);
    table.put("USER#cid", "USER", "User", &[("userName", s("CID")), ("followerCount", n("1"))]);
    // A stale copy, and a follow of a deleted user.
    table.put("USER#bob", "FOLLOWS#ada", "Follow", &[("since", s("2024")), ("followedName", s("Ada before"))]);
    table.put("USER#cid", "FOLLOWS#gone", "Follow", &[("since", s("2025")), ("followedName", s("Gone"))]);
    // A mirror that differs, and one without a source. The last follow has no mirror.
    table.put("USER#ada", "FOLLOWEDBY#bob", "FollowedBy", &[("since", s("1999"))]);
    table.put("USER#cid", "FOLLOWEDBY#eve", "FollowedBy", &[("since", s("2024"))]);
    // A number that is a text, and counts of items that do not exist.
    let shown = [
        ("likeCount", n("3")),
        ("weight", s("5")),
        ("average", n("3")),
        ("viewCount", n("40")),
        ("largestLike", n("2")),
    ];
    table.put("POST#p", "POST", "Post", &shown);
    table.put("POST#q", "LIKE#cid", "Like", &[("size", n("1"))]);
    table.put("POST#q", "LIKE#eve", "Like", &[("size", s("large"))]);
    table.put("LIKER#dan", "LIKER", "Liker", &[("likes", n("1"))]);
    // An order without its detail, a detail without its order, and a stale one.
    table.put("USER#bob", "ORDER#2024#o2", "Order", &[("status", s("open"))]);
    let detail = |user: &str, status: &str| [("userId", s(user)), ("placedAt", s("2024")), ("status", s(status))];
    table.put("ORDER#o3", "DETAIL", "OrderDetail", &detail("bob", "paid"));
    table.put("ORDER#o1", "DETAIL", "OrderDetail", &detail("ada", "open"));
    // A bucket that lacks a reading, and one with more of them than there are.
    table.put("SENSOR#s", "READING#2024-01-15T10:40:00.000Z", "Reading", &[("value", n("9"))]);
    table.put("SENSOR#s", "DAY#2024-01-15", "Totals", &["n", "sum", "min", "max"].map(|name| (name, n("9"))));
    // An item whose key is not that of its type, and one of another application.
    table.put("PERSON#x", "USER", "User", &[]);
    table.put("GADGET#x", "GADGET", "Gadget", &[]);
    table
}

/// Writes to the table or to the ledger, and reads of the ledger.
fn forbidden(requests: &[Request]) -> usize {
    let is_read_of_main = |request: &Request| match request {
        Request::Read(table, ..) | Request::Query(table, ..) | Request::Scan(table, ..) => *table == Table::Main,
        _ => false,
    };
    requests.iter().filter(|request| !is_read_of_main(request)).count()
}

#[tokio::test]
async fn an_audit_only_reads_and_never_reads_the_ledger() {
    let table = wrong();
    let store = MemoryStore::new(table.opened.schema.layout.clone());
    for item in table.opened.store.snapshot(Table::Main).into_values() {
        store.put_raw(Table::Main, item).unwrap();
    }
    let opened = on(&table.opened, Recording::new(store));
    let whole = report(&audited(&table.opened, &AT_REST).await);
    // Without `at_rest` the table is read twice, and at rest both reads see the same.
    let twice = audited(&opened, &AuditOptions { at_rest: false, ..AT_REST }).await;
    assert_eq!((twice.reads.len(), report(&twice)), (2, whole));
    let requests = opened.store.take();
    assert_eq!((requests.is_empty(), forbidden(&requests)), (false, 0), "{requests:?}");
}

#[tokio::test]
async fn values_are_left_out_unless_they_are_asked_for() {
    let audited = audited(&wrong().opened, &AuditOptions { has_values: false, ..AT_REST }).await;
    let has_value = |it: &WorstValue| it.finding.stored.is_some() || it.finding.derived.is_some();
    assert!(!audited.totals.worst.is_empty() && !audited.totals.worst.iter().any(has_value));
}

#[tokio::test]
async fn an_empty_table_is_right_and_another_manifests_items_are_ignored() {
    let empty = TableAtWork::new(LedgerKind::Watermarks, MANIFEST);
    let none = audited(&empty.opened, &AT_REST).await;
    assert!(none.is_clean() && none.extent.n_items == 0);
    empty.put("GADGET#x", "GADGET", "Gadget", &[("followerCount", n("1"))]);
    let ignored = audited(&empty.opened, &AT_REST).await;
    assert_eq!((ignored.is_clean(), ignored.extent.n_items, ignored.extent.n_ignored), (true, 1, 1));
}

#[tokio::test]
async fn an_item_of_400_kb_is_audited() {
    let table = right();
    let long = "x".repeat(390_000);
    table.put("USER#cid", "USER", "User", &[("userName", s("CID")), ("text", s(&long)), ("followerCount", n("5"))]);
    let audited = audited(&table.opened, &AT_REST).await;
    let found: Vec<_> = audited.totals.worst.iter().map(|it| it.error.as_ref().unwrap().to_string()).collect();
    assert_eq!(found, ["5"]);
}

/// The counters, claims and revisions of Ripple are no differences.
#[tokio::test]
async fn a_table_that_ripple_maintains_is_right() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let mut table = TableAtWork::new(ledger, MANIFEST);
        table.put("USER#ada", "USER", "User", &[("userName", s("ADA"))]);
        table.put("USER#bob", "FOLLOWS#ada", "Follow", &[("since", s("2024"))]);
        table.put("POST#p", "POST", "Post", &[]);
        table.put("POST#p", "LIKE#ada", "Like", &[("size", n("2"))]);
        table.put("USER#ada", "ORDER#2024#o1", "Order", &[("status", s("paid"))]);
        table.put("SENSOR#s", "READING#2024-01-15T10:30:00.000Z", "Reading", &[("value", n("7"))]);
        assert!(!table.settle().await.is_empty());
        let audited = audited(&table.opened, &AT_REST).await;
        assert!(audited.is_clean(), "{ledger:?}: {}", report(&audited));
        let n_right: usize = audited.totals.derivations.iter().map(|line| line.right).sum();
        assert!(n_right > 10, "{n_right}");
    }
}

#[tokio::test]
async fn a_right_table_has_only_right_values() {
    let audited = audited(&right().opened, &AT_REST).await;
    expect![[r#"
        follower-count: 0/0 w0 m0 x0 u0 ?0 r0
        follower-count-display: 3/3 w0 m0 x0 u0 ?0 r0
        followed-by: 3/3 w0 m0 x0 u0 ?0 r0
        followed-name: 3/3 w0 m0 x0 u0 ?0 r0
        likes: 0/0 w0 m0 x0 u0 ?0 r0
        likes-count-display: 1/1 w0 m0 x0 u0 ?0 r0
        likes-sum-display: 1/1 w0 m0 x0 u0 ?0 r0
        likes-average-display: 1/1 w0 m0 x0 u0 ?0 r0
        likes-exists-display: 1/1 w0 m0 x0 u0 ?0 r0
        largest-like: 1/1 w0 m0 x0 u0 ?0 r0
        likers: 0/0 w0 m0 x0 u0 ?0 r0
        likers-item: 2/2 w0 m0 x0 u0 ?0 r0
        likers-display: 2/2 w0 m0 x0 u0 ?0 r0
        views: 0/0 w0 m0 x0 u0 ?0 r0
        views-display: 1/1 w0 m0 x0 u0 ?0 r0 (some counted items may have expired, so a higher number may be right)
        order-detail: 1/1 w0 m0 x0 u0 ?0 r0
        readings: 2/2 w0 m0 x0 u0 ?0 r0 (only the number of readings is compared, and a higher one may be right)
        what-a-post-has: 0/0 w0 m0 x0 u0 ?0 r0 (a table does not show which items were deleted)
    "#]]
    .assert_eq(&report(&audited));
    assert!(audited.is_clean() && audited.reads.len() == 1);
}

#[tokio::test]
async fn each_wrong_value_of_a_naive_application_is_counted() {
    let audited = audited(&wrong().opened, &AT_REST).await;
    expect![[r#"
        follower-count: 0/0 w0 m0 x0 u0 ?0 r0
        follower-count-display: 0/3 w2 m1 x0 u0 ?0 r0 off 4.666667 / 12 / 14 [(false, 0, 1), (true, 0, 1), (true, 10, 1)]
        followed-by: 2/5 w1 m1 x1 u0 ?0 r0
        followed-name: 2/4 w1 m0 x1 u0 ?0 r0
        likes: 0/0 w0 m0 x0 u0 ?0 r0
        likes-count-display: 0/1 w1 m0 x0 u0 ?0 r0 off 1 / 1 / 1 [(true, 0, 1)]
        likes-sum-display: 0/1 w1 m0 x0 u0 ?0 r0
        likes-average-display: 0/1 w1 m0 x0 u0 ?0 r0 off 0.5 / 0.5 / 0.5 [(true, 0, 1)]
        likes-exists-display: 0/1 w0 m1 x0 u0 ?0 r0
        largest-like: 0/1 w1 m0 x0 u0 ?0 r0
        likers: 0/0 w0 m0 x0 u0 ?0 r0
        likers-item: 2/5 w0 m2 x1 u0 ?0 r0
        likers-display: 3/3 w0 m0 x0 u0 ?0 r0
        views: 0/0 w0 m0 x0 u0 ?0 r0
        views-display: 0/1 w0 m0 x0 u0 ?1 r0 (some counted items may have expired, so a higher number may be right)
        order-detail: 0/3 w1 m1 x1 u0 ?0 r0
        readings: 0/2 w1 m0 x0 u0 ?1 r0 off 1 / 1 / 1 [(false, 0, 1)] (only the number of readings is compared, and a higher one may be right)
        what-a-post-has: 0/0 w0 m0 x0 u0 ?0 r0 (a table does not show which items were deleted)
        follower-count 1 [("USER#gone", "USER")]
        likes 1 [("POST#q", "POST")]
        1 * pk, sk are not USER#{userId} / USER, the form of User [Key { pk: "PERSON#x", sk: "USER" }]
        1 likes size is S, and N is wanted [Key { pk: "POST#q", sk: "LIKE#eve" }]
        Differs 12 follower-count-display USER#ada / USER: followerCount=N("14") -> followerCount=N("2")
        Missing -1 follower-count-display USER#bob / USER:  -> followerCount=N("1")
        Differs 1 follower-count-display USER#cid / USER: followerCount=N("1") -> followerCount=N("0")
        Differs 1 likes-count-display POST#p / POST: likeCount=N("3") -> likeCount=N("2")
        Differs -1 readings SENSOR#s / HOUR#2024-01-15T10: max=N("7"),min=N("7"),n=N("1"),sum=N("7") -> n=N("2")
        Differs 0.5 likes-average-display POST#p / POST: average=N("3") -> average=N("2.5")
        Differs  followed-by USER#ada / FOLLOWEDBY#bob: since=S("1999") -> since=S("2024")
        Extra  followed-by USER#cid / FOLLOWEDBY#eve: Type=S("FollowedBy"),pk=S("USER#cid"),since=S("2024"),sk=S("FOLLOWEDBY#eve") -> -
        Missing  followed-by USER#gone / FOLLOWEDBY#cid: - -> Type=S("FollowedBy"),pk=S("USER#gone"),since=S("2025"),sk=S("FOLLOWEDBY#cid")
        Differs  followed-name USER#bob / FOLLOWS#ada: followedName=S("Ada before") -> followedName=S("ADA")
        Extra  followed-name USER#cid / FOLLOWS#gone: followedName=S("Gone") -> 
        Differs  largest-like POST#p / POST: largestLike=N("2") -> largestLike=N("3")
        Missing  likers-item LIKER#cid / LIKER: - -> Type=S("Liker"),likes=N("1"),pk=S("LIKER#cid"),sk=S("LIKER")
        Extra  likers-item LIKER#dan / LIKER: Type=S("Liker"),likes=N("1"),pk=S("LIKER#dan"),sk=S("LIKER") -> -
        Missing  likers-item LIKER#eve / LIKER: - -> Type=S("Liker"),likes=N("1"),pk=S("LIKER#eve"),sk=S("LIKER")
        Missing  likes-exists-display POST#p / POST:  -> popular=Bool(true)
        Differs  likes-sum-display POST#p / POST: weight=S("5") -> weight=N("5")
        Differs  order-detail ORDER#o1 / DETAIL: status=S("open") -> status=S("paid")
        Missing  order-detail ORDER#o2 / DETAIL: - -> Type=S("OrderDetail"),pk=S("ORDER#o2"),placedAt=S("2024"),sk=S("DETAIL"),status=S("open"),userId=S("bob")
        Extra  order-detail ORDER#o3 / DETAIL: Type=S("OrderDetail"),pk=S("ORDER#o3"),placedAt=S("2024"),sk=S("DETAIL"),status=S("paid"),userId=S("bob") -> -
        3 followed-by
        2 followed-name
        3 follower-count-display
        1 largest-like+likes-average-display+likes-count-display+likes-exists-display+likes-sum-display
        3 likers-item
        3 order-detail
    "#]].assert_eq(&report(&audited));
    assert!(!audited.is_clean());
}

/// A table whose application writes between the two reads of an audit.
struct Written {
    store: MemoryStore,
    n_scans: AtomicUsize,
    later: Vec<Item>,
}

impl Store for Written {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.store.read(table, keys, how).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.store.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        if self.n_scans.fetch_add(1, Ordering::Relaxed) == 1 {
            self.later.iter().for_each(|item| self.store.put_raw(Table::Main, item.clone()).unwrap());
        }
        self.store.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        unreachable!("an audit writes nothing: {write:?}")
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        unreachable!("an audit writes nothing: {write:?}")
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        unreachable!("an audit writes nothing: {transaction:?}")
    }
}

/// Of three wrong counts, one is corrected between both reads and one is changed.
#[tokio::test]
async fn only_what_two_reads_find_equally_wrong_is_wrong() {
    let table = TableAtWork::new(LedgerKind::Watermarks, MANIFEST);
    for (user, count) in [("ada", "3"), ("bob", "4"), ("cid", "5")] {
        table.put(&format!("USER#{user}"), "USER", "User", &[("followerCount", n(count))]);
    }
    let store = MemoryStore::new(table.opened.schema.layout.clone());
    for item in table.opened.store.snapshot(Table::Main).into_values() {
        store.put_raw(Table::Main, item).unwrap();
    }
    table.put("USER#bob", "USER", "User", &[]);
    table.put("USER#cid", "USER", "User", &[("followerCount", n("6"))]);
    let later = table.opened.store.snapshot(Table::Main).into_values().collect();
    let opened = on(&table.opened, Written { store, n_scans: AtomicUsize::new(0), later });
    let audited = audited(&opened, &AuditOptions { segments: 1, at_rest: false, ..AT_REST }).await;
    let display = line(&audited.totals.derivations[1]);
    assert_eq!(display, "follower-count-display: 1/3 w1 m0 x0 u1 ?0 r0 off 3 / 3 / 3 [(true, 2, 1)]\n");
}

//! Verify and repair over a table in memory: findings, repairs, and a repair that was killed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::{path::Path, sync::Arc};

use derive::write::{Action, Table, Update, Write};
use engine::clock::Clock as _;
use keys::{
    counter::{CounterKey, REVISION, VALUE},
    item::Item,
    key::Key,
};
use operate::{
    OperateError,
    repair::{
        self, Mended, PlannedRepair, Summary,
        remedy::{Remedy, Repaired},
    },
    tables::{Deployment, VerifyOptions},
    verify::{
        CountsAboutNothing, Finding, Progress, UnreadableItem,
        check::{self, ABOUT_NOTHING, Checked, Difference, FINDING, UNREADABLE, UnlikeItems},
    },
};
use serde_dynamo::AttributeValue;
use store::{Store, memory::MemoryStore};

const MANIFEST: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [entity.User]
    partition-key = "USER#{userId}"
    sort-key = "USER#{userId}"
    derived-attributes = ["orderCount"]

    [entity.Order]
    partition-key = "USER#{userId}"
    sort-key = "ORDER#{orderId}"

    [derivation.order-count]
    kind = "count"
    from = "Order"
    into = "User.orderCount"
"##;

/// Orders that are found by their numbers.
const CLAIMED: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [entity.Order]
    partition-key = "USER#{userId}"
    sort-key = "ORDER#{orderId}"
    attributes = ["number"]

    [entity.OrderByNumber]
    partition-key = "NUMBER#{number}"
    sort-key = "ORDER"
    derived = true
    derived-attributes = ["Claims"]

    [derivation.order-by-number]
    kind = "mirror"
    from = "Order"
    to = "OrderByNumber"
"##;

/// Ignores the progress.
struct Unseen;

impl Progress for Unseen {}

fn unseen() -> Arc<dyn Progress> {
    Arc::new(Unseen)
}

/// A table with these users, each with this number of orders, and without derived data.
async fn table(users: &[(&str, usize)]) -> Deployment<MemoryStore> {
    let tables = declared(MANIFEST);
    for (user, n_orders) in users {
        let pk = format!("USER#{user}");
        put(&tables.store, &pk, &pk, "User").await;
        for order in 0..*n_orders {
            put(&tables.store, &pk, &format!("ORDER#{order}"), "Order").await;
        }
    }
    tables
}

/// An empty table.
fn declared(manifest: &str) -> Deployment<MemoryStore> {
    let (schema, catalogue) = manifest::load(manifest).unwrap();
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    Deployment {
        schema: Arc::new(schema),
        catalogue: Arc::new(catalogue),
        store,
        name: "shop".to_owned(),
        arn: "arn:aws:dynamodb:eu-west-1:1:table/shop".to_owned(),
        streams: Vec::new(),
        n_items: 0,
        bytes: 0,
        is_aws: false,
    }
}

async fn put(store: &MemoryStore, pk: &str, sk: &str, entity: &str) {
    let pairs = [("pk", pk), ("sk", sk), ("Type", entity)];
    let item: Item = pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).into();
    let write = Write { table: Table::Main, key: Key::new(pk, sk), action: Action::Put(item), guard: None };
    store.write(&write).await.unwrap();
}

/// The value of a user's counter.
async fn count(tables: &Deployment<MemoryStore>, user: &str) -> Option<String> {
    let target = Key::new(format!("USER#{user}"), format!("USER#{user}"));
    let counter = CounterKey::home(target, "order-count").key().unwrap();
    let stored = tables.store.get(Table::Main, &[counter]).await.unwrap();
    match stored.first()?.1.get(VALUE)? {
        AttributeValue::N(count) => Some(count.clone()),
        other => panic!("{other:?} is no count"),
    }
}

fn at_rest(file: Option<&Path>) -> VerifyOptions {
    VerifyOptions { at_rest: true, progress: file.map(Path::to_owned), ..VerifyOptions::default() }
}

async fn check(tables: &Deployment<MemoryStore>) -> Checked {
    check::check(tables, &at_rest(None), true, &unseen()).await.unwrap()
}

async fn begin(tables: &Deployment<MemoryStore>, file: &Path) -> Result<PlannedRepair, OperateError> {
    repair::begin(tables, &at_rest(Some(file)), true, &unseen()).await
}

async fn mend(found: PlannedRepair, tables: &Deployment<MemoryStore>) -> Result<(Summary, Vec<Mended>), OperateError> {
    let mut all = Vec::new();
    let request = at_rest(None);
    let summary = found.mend(tables, &request, |mended| {
        all.push(mended.clone());
        Ok(())
    });
    let summary = summary.await?;
    Ok((summary, all))
}

#[tokio::test]
async fn what_differs_is_found_and_mended_and_then_nothing_is_found() {
    let tables = table(&[("ann", 3)]).await;
    let checked = check(&tables).await;
    let mut found: Vec<Difference> = Vec::new();
    checked
        .verified
        .each_entry(FINDING, |entry| {
            found.push(serde_json::from_str(entry)?);
            Ok(())
        })
        .unwrap();
    assert!(!checked.is_clean && checked.verified.is_whole);
    assert_eq!(checked.verified.extent.n_items, 4);
    let counted = found.iter().find(|it| it.finding.derivation == "order-count").unwrap();
    assert_eq!(counted.finding.derived.as_ref().unwrap().get(VALUE), Some(&AttributeValue::N("3".to_owned())));
    assert_eq!(counted.why.as_deref(), Some("assumed at rest, not checked"));

    let folder = tempfile::tempdir().unwrap();
    // The count first, then its display.
    for file in ["first", "second"] {
        let found = begin(&tables, &folder.path().join(file)).await.unwrap();
        let (summary, mended) = mend(found, &tables).await.unwrap();
        assert_eq!((summary.sums.done, summary.is_left()), (mended.len(), false), "{mended:?}");
    }
    assert_eq!(count(&tables, "ann").await.as_deref(), Some("3"));
    assert!(check(&tables).await.is_clean);
}

/// A counter with a revision, and an item that shows another count under another revision.
#[tokio::test]
async fn a_finding_names_every_attribute_of_its_derivation_that_differs() {
    let tables = table(&[("ann", 2)]).await;
    rounds(&tables, &at_rest(None)).await;
    let user = Key::new("USER#ann", "USER#ann");
    let counter = CounterKey::home(user.clone(), "order-count").key().unwrap();
    for (key, given) in
        [(counter, [(REVISION, "1")].as_slice()), (user, &[("orderCount", "5"), ("orderCount:rev", "5")])]
    {
        let mut item = tables.store.get(Table::Main, std::slice::from_ref(&key)).await.unwrap().remove(0).1;
        item.extend(given.iter().map(|(name, n)| ((*name).to_owned(), AttributeValue::N((*n).to_owned()))));
        tables.store.put_raw(Table::Main, item).unwrap();
    }
    let checked = check(&tables).await;
    let mut found: Vec<Finding> = Vec::new();
    let read = checked.verified.each_entry(FINDING, |entry| {
        found.push(serde_json::from_str::<Difference>(entry)?.finding);
        Ok(())
    });
    read.unwrap();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    let text = format!("{:?} {:?}", one.stored, one.derived);
    for name in ["orderCount", "orderCount:rev"] {
        let held = [&one.stored, &one.derived].map(|item| item.as_ref().unwrap().contains_key(name));
        assert_eq!(held, [true, true], "{name}: {text}");
    }
}

#[tokio::test]
async fn a_table_with_an_unreadable_item_is_clean_only_where_that_is_allowed() {
    let tables = table(&[("ann", 2)]).await;
    rounds(&tables, &at_rest(None)).await;
    put(&tables.store, "USER#ann", "ORDERS-7", "Order").await;
    for (allow_unreadable, is_clean) in [(false, false), (true, true)] {
        let request = VerifyOptions { allow_unreadable, ..at_rest(None) };
        let checked = check::check(&tables, &request, true, &unseen()).await.unwrap();
        assert_eq!((checked.is_clean, checked.verified.n_entries(UNREADABLE).unwrap()), (is_clean, 1));
    }
}

#[tokio::test]
async fn a_selection_that_nothing_fits_is_refused_by_the_options_that_make_it() {
    let tables = table(&[("ann", 2)]).await;
    let of =
        |pk: &str, sk: Option<&str>| VerifyOptions { pk: pk.to_owned(), sk: sk.map(str::to_owned), ..at_rest(None) };
    let orders = VerifyOptions { entity: vec!["Order".to_owned()], ..at_rest(None) };
    for request in [of("USER#a", None), of("USER#ann", Some("USER#ann")), of("USER#ann", Some("ORDER#1")), orders] {
        check::check(&tables, &request, false, &unseen()).await.unwrap();
    }
    for (request, options) in [(of("USER#x", None), "--pk USER#x"), (of("USER#", Some("x")), "--pk USER# --sk x")] {
        let checked = check::check(&tables, &request, false, &unseen()).await.map(drop);
        let repaired = repair::begin(&tables, &request, false, &unseen()).await.map(drop);
        for error in [checked, repaired].map(Result::unwrap_err) {
            let is_named =
                matches!(&error, OperateError::Usage(why) if why.contains(&format!("that {options} selects")));
            assert!(is_named, "{error}");
        }
    }
}

#[tokio::test]
async fn counts_about_items_that_do_not_exist_are_named_by_derivation() {
    let tables = table(&[("ann", 2), ("bob", 1)]).await;
    for user in ["cid", "dan", "eve", "fay"] {
        put(&tables.store, &format!("USER#{user}"), "ORDER#1", "Order").await;
    }
    rounds(&tables, &at_rest(None)).await;
    let checked = check(&tables).await;
    assert!(checked.is_clean);
    let mut about: Vec<CountsAboutNothing> = Vec::new();
    let read = checked.verified.each_entry(ABOUT_NOTHING, |entry| {
        about.push(serde_json::from_str(entry)?);
        Ok(())
    });
    read.unwrap();
    let examples = ["cid", "dan", "eve"].map(|user| (format!("USER#{user}"), format!("USER#{user}")));
    let one = CountsAboutNothing { derivation: "order-count".to_owned(), counts: 4, examples: examples.to_vec() };
    assert_eq!(about, [one]);
}

#[tokio::test]
async fn a_condition_that_compares_two_types_is_named_with_the_number_of_such_items() {
    let where_text = "into = \"User.orderCount\"\n    where = \"state <> 'void'\"";
    let manifest = MANIFEST.replace("into = \"User.orderCount\"", where_text);
    let tables = declared(&manifest.replace("{orderId}\"", "{orderId}\"\n    attributes = [\"state\"]"));
    put(&tables.store, "USER#ann", "USER#ann", "User").await;
    for (order, state) in [("1", "N:1"), ("2", "paid"), ("3", "N:0")] {
        let (pk, sk) = ("USER#ann", format!("ORDER#{order}"));
        put(&tables.store, pk, &sk, "Order").await;
        let state = match state.strip_prefix("N:") {
            Some(number) => AttributeValue::N(number.to_owned()),
            None => AttributeValue::S(state.to_owned()),
        };
        let action = Action::Update(Update::set(Item::from([("state".to_owned(), state)])));
        let write = Write { table: Table::Main, key: Key::new(pk, sk), action, guard: None };
        tables.store.write(&write).await.unwrap();
    }
    rounds(&tables, &at_rest(None)).await;
    let checked = check(&tables).await;
    assert!(checked.is_clean, "it is as DynamoDB decides, and no finding");
    let why = "state is N, and the condition compares it with S".to_owned();
    let (derivation, pk, sk) = ("order-count".to_owned(), "USER#ann".to_owned(), "ORDER#1".to_owned());
    let example = UnreadableItem { derivation, pk, sk, why };
    assert_eq!(checked.verified.unlike().unwrap(), [UnlikeItems { items: 2, example }]);
    assert_eq!(count(&tables, "ann").await.as_deref(), Some("3"));
}

/// 50 users, 200 orders of theirs and 50 counters, in four segments: the scan takes 5 read units, and what is parked one. While
/// all counters are missing, each target is read again.
#[tokio::test]
async fn a_table_that_is_in_step_is_read_once() {
    let names: Vec<String> = (0..50).map(|user| format!("{user:03}")).collect();
    let users: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 4)).collect();
    let tables = table(&users).await;
    let differing = check(&tables).await.verified;
    rounds(&tables, &at_rest(None)).await;
    let checked = check(&tables).await;
    assert!(checked.is_clean);
    assert_eq!(checked.verified.extent.n_items, 300);
    let units = [differing.read_units, checked.verified.read_units];
    expect_test::expect!["[56.0, 6.0]"].assert_eq(&format!("{units:?}"));
}

/// Repairs in rounds, and returns what is left with the outcomes.
async fn rounds(tables: &Deployment<MemoryStore>, request: &VerifyOptions) -> (Summary, Vec<Mended>) {
    let mut all = Vec::new();
    let act = |mended: &Mended| {
        all.push(mended.clone());
        Ok(())
    };
    let report = repair::repair(tables, request, true, &unseen(), act).await.unwrap();
    assert_eq!(report.summary.is_left(), !report.last.is_clean().unwrap());
    (report.summary, all)
}

#[tokio::test]
async fn a_repair_that_leaves_nothing_is_followed_by_a_verification_that_finds_nothing() {
    let tables = table(&[("ann", 3), ("bob", 2)]).await;
    let (summary, mended) = rounds(&tables, &at_rest(None)).await;
    // Two counts, and their displays, which differ only when the counts are right.
    assert_eq!((summary.sums.done, mended.len(), summary.is_left()), (4, 4, false), "{mended:?}");
    assert!(check(&tables).await.is_clean);
}

#[tokio::test]
async fn what_a_repair_cannot_correct_is_named_once_and_left() {
    let tables = table(&[("ann", 3), ("bob", 2)]).await;
    let target = Key::new("USER#bob", "USER#bob");
    let counter = CounterKey::home(target, "order-count").key().unwrap();
    put(&tables.store, &counter.pk, &counter.sk, "Counter").await;
    let stored = tables.store.get(Table::Main, std::slice::from_ref(&counter)).await.unwrap();
    let text = (VALUE.to_owned(), AttributeValue::S("two".to_owned()));
    let broken: Item = stored[0].1.clone().into_iter().chain([text]).collect();
    let write = Write { table: Table::Main, key: counter.clone(), action: Action::Put(broken), guard: None };
    tables.store.write(&write).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let request = at_rest(Some(&folder.path().join("file")));
    for _ in 0..2 {
        let (summary, mended) = rounds(&tables, &request).await;
        let refused = mended.iter().filter(|mended| matches!(mended.remedy, Remedy::None { .. }));
        let refused: Vec<&str> = refused.map(|mended| mended.difference.finding.sk.as_str()).collect();
        assert_eq!((refused.as_slice(), summary.sums.refused), ([counter.sk.as_str()].as_slice(), 1), "{mended:?}");
        assert!(summary.is_left());
    }
}

/// Puts an order with the number 7.
async fn put_numbered(store: &MemoryStore, user: &str) {
    let pairs = [("pk", format!("USER#{user}")), ("sk", "ORDER#1".to_owned()), ("Type", "Order".to_owned())];
    let given = [("userId", user.to_owned()), ("orderId", "1".to_owned()), ("number", "7".to_owned())];
    let text = |(name, text): (&str, String)| (name.to_owned(), AttributeValue::S(text));
    let item: Item = pairs.into_iter().chain(given).map(text).collect();
    let key = Key::new(format!("USER#{user}"), "ORDER#1");
    let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
    store.write(&write).await.unwrap();
}

/// A finding of single attributes names no entity and no source: its derivation and the mirror do.
#[tokio::test]
async fn a_mirror_with_wrong_attributes_is_repaired_and_not_deleted() {
    let tables = declared(CLAIMED);
    put_numbered(&tables.store, "ann").await;
    rounds(&tables, &at_rest(None)).await;
    let key = Key::new("NUMBER#7", "ORDER");
    let stored = || tables.store.view(Table::Main, |items| items.get(&key).cloned());
    let mirror = stored().unwrap();
    for (altered, removed) in
        [("orderId", None), ("note", None), ("orderId", Some("Claims")), ("orderId", Some("userId"))]
    {
        let mut item = mirror.clone();
        item.insert(altered, AttributeValue::S("altered".to_owned()));
        removed.map(|name| item.remove(name));
        tables.store.put_raw(Table::Main, item).unwrap();
        let (summary, mended) = rounds(&tables, &at_rest(None)).await;
        assert_eq!((stored(), summary.is_left()), (Some(mirror.clone()), false), "{altered} {removed:?}: {mended:?}");
    }
    // Without its type it is none of Ripple's: it stays, and the mirror waits for the key.
    let mut untyped = mirror.clone();
    untyped.remove("Type");
    tables.store.put_raw(Table::Main, untyped.clone()).unwrap();
    let (summary, _) = rounds(&tables, &at_rest(None)).await;
    assert_eq!((stored(), summary.is_left()), (Some(untyped), true));
    let write = Write { table: Table::Main, key: key.clone(), action: Action::Delete, guard: None };
    tables.store.write(&write).await.unwrap();
    rounds(&tables, &at_rest(None)).await;
    assert_eq!(stored(), Some(mirror));
}

#[tokio::test]
async fn a_mirror_that_two_items_claim_is_left_and_named_when_both_have_written_it() {
    let tables = declared(CLAIMED);
    for user in ["ann", "bob"] {
        put_numbered(&tables.store, user).await;
    }
    let (summary, mended) = rounds(&tables, &at_rest(None)).await;
    let flaws = mended.iter().filter_map(|mended| mended.difference.finding.flaw.as_deref());
    let flaws: Vec<&str> = flaws.collect();
    assert!(matches!(flaws.as_slice(), [why] if why.starts_with("several items claim it")), "{mended:?}");
    assert_eq!((summary.sums.refused, summary.is_left()), (1, true));
    assert!(!check(&tables).await.is_clean);
}

#[tokio::test]
async fn without_the_right_to_it_nothing_is_written_and_the_remedy_is_named() {
    let tables = table(&[("ann", 2)]).await;
    let found = repair::begin(&tables, &at_rest(None), false, &unseen()).await.unwrap();
    let (summary, mended) = mend(found, &tables).await.unwrap();
    let counted = mended.iter().find(|it| it.difference.finding.derivation == "order-count").unwrap();
    assert!(matches!(counted.remedy, Remedy::Add { count: 2, .. }) && counted.repaired.is_none(), "{counted:?}");
    assert_eq!((summary.sums.would, summary.is_left()), (mended.len(), true));
    assert_eq!(count(&tables, "ann").await, None);
}

#[tokio::test]
async fn a_repair_that_was_killed_goes_on_and_adds_nothing_twice() {
    let tables = table(&[("ann", 1), ("bob", 2), ("cid", 3)]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("repair");
    let found = begin(&tables, &file).await.unwrap();
    let mut n_mended = 0;
    let request = at_rest(None);
    let killed = found.mend(&tables, &request, |_| {
        n_mended += 1;
        if n_mended < 2 { Ok(()) } else { Err(OperateError::Refused("killed".to_owned())) }
    });
    assert_eq!(killed.await.unwrap_err().to_string(), "killed");
    drop(found);
    let counted = [count(&tables, "ann").await, count(&tables, "bob").await, count(&tables, "cid").await];
    assert_eq!(counted.iter().flatten().count(), 2, "{counted:?}");

    let (summary, mended) = mend(begin(&tables, &file).await.unwrap(), &tables).await.unwrap();
    let done = mended.iter().filter(|mended| mended.difference.finding.derivation == "order-count");
    assert!(done.clone().all(|mended| mended.repaired == Some(Repaired::Done)), "{mended:?}");
    assert_eq!((done.count(), summary.sums.refused), (3, 0));
    for (user, n_orders) in [("ann", "1"), ("bob", "2"), ("cid", "3")] {
        assert_eq!(count(&tables, user).await.as_deref(), Some(n_orders), "{user}");
    }
}

#[tokio::test]
async fn what_a_run_found_is_added_no_more_once_another_has_begun() {
    let tables = table(&[("ann", 2)]).await;
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let overtaken = begin(&tables, &first).await.unwrap();
    let overtaking = begin(&tables, &second).await.unwrap();
    let error = mend(overtaken, &tables).await.unwrap_err();
    assert!(error.to_string().starts_with("another repair has started since"), "{error}");
    assert_eq!(count(&tables, "ann").await, None);
    let error = begin(&tables, &first).await.err().unwrap();
    assert!(matches!(error, OperateError::Refused(_)), "{error}");
    mend(overtaking, &tables).await.unwrap();
    assert_eq!(count(&tables, "ann").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_file_of_a_verification_is_no_file_of_a_repair() {
    let tables = table(&[("ann", 2)]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verification");
    check::check(&tables, &at_rest(Some(&file)), true, &unseen()).await.unwrap();
    let error = begin(&tables, &file).await.err().unwrap();
    let why = "the --progress file belongs to a verification without the right to repair: give another file";
    assert_eq!(error.to_string(), why);
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_said_before_anything_is_read() {
    let tables = table(&[]).await;
    let named = |derivation: &str| VerifyOptions { derivation: vec![derivation.to_owned()], ..at_rest(None) };
    let wrong = [
        (
            VerifyOptions::default(),
            "the table shop has no stream, so it is unknown which records are still to be handled",
        ),
        (named("likes"), "there is no derivation likes"),
        (VerifyOptions { entity: vec!["Likes".to_owned()], ..at_rest(None) }, "there is no entity Likes"),
    ];
    for (request, why) in wrong {
        let error = check::check(&tables, &request, true, &unseen()).await.err().unwrap();
        assert!(matches!(&error, OperateError::Usage(text) if text.starts_with(why)), "{error}");
    }
    let error = repair::backfill(&tables, "likes", VerifyOptions::default()).err().unwrap();
    assert!(matches!(&error, OperateError::Usage(text) if text.starts_with("there is no derivation likes")), "{error}");
    let one = repair::backfill(&tables, "order-count", VerifyOptions::default()).unwrap();
    assert_eq!(one.derivation, ["order-count"]);
    // No function has published which derivations it has.
    let tables = Deployment { streams: Vec::new(), ..tables };
    let at_ms = engine::clock::SystemClock.now_ms();
    assert!(tables.engine().registry(at_ms + 1_000).await.unwrap().is_empty());
}

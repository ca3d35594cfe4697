//! On the model: concurrent writers, lost responses and conflicts.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use derive::{guard::Guard, write::Table};
use futures::future::{BoxFuture, join, join_all};
use keys::{item::Item, key::Key, number::Decimal};
use queries::{
    Queries,
    write_error::WriteError,
    writes::{
        TRIES_MAX,
        folders::NewFile,
        orders::{OrderStatus, PlacedOrder},
        posts::{NewPost, PostEdit},
        products::{ProductEdit, ReviewEdit},
        readings::NewReading,
        users::ProfileEdit,
    },
};
use store::{
    faulty::{Call, Database, Decider, Fault, Faulty, Side},
    memory::PAGE_BYTES,
};

use crate::{
    s,
    writes::{
        START_MS, layout, n,
        orders::{line, product},
        people::user,
        runtime, shown,
    },
};

/// Number of callers that want one of the last [`PIECES`].
const CALLERS: usize = 1_000;

const PIECES: i64 = 10;

#[tokio::test]
async fn wp_08_a_thousand_concurrent_orders_for_the_last_10_pieces_sell_exactly_10() {
    for seed in 0..3 {
        a_thousand_orders(seed).await;
    }
}

async fn a_thousand_orders(seed: u64) {
    let calm = Model::new(Faults::None);
    calm.queries.create_product("pen", product("1.5", PIECES)).await.unwrap();
    let model = Model::on(&calm.database, Faults::OneInThree(Mutex::new(seed)));
    let orders = (0..CALLERS).map(|at| {
        let (user, order) = (format!("u{at}"), format!("o{at}"));
        let queries = &model.queries;
        async move { queries.place_order(&user, &order, &[line("pen", 1)]).await }
    });
    let answers: Vec<Result<PlacedOrder, WriteError>> = join_all(orders).await;
    let n_placed = answers.iter().filter(|answer| answer.is_ok()).count();
    let short = |error: &WriteError| matches!(error, WriteError::NotEnough { product_id } if product_id == "pen");
    let others: Vec<_> =
        answers.iter().filter_map(|answer| answer.as_ref().err()).filter(|error| !short(error)).collect();
    assert!(others.is_empty(), "seed {seed}: {others:?}");
    assert_eq!(n_placed, 10, "seed {seed}");
    assert!(model.n_faults() > CALLERS, "seed {seed}: {} faults", model.n_faults());
    let items = model.items();
    let n_of = |entity: &str| items.iter().filter(|(_, item)| item.get("EntityType") == Some(&s(entity))).count();
    assert_eq!((n_of("Order"), n_of("OrderItem")), (10, 10), "seed {seed}");
    assert_eq!(stock(&model, "pen"), 0, "seed {seed}");
    for placed in answers.into_iter().flatten() {
        assert!(model.item(&placed.key.pk, &placed.key.sk).is_some(), "seed {seed}");
    }
}

fn stock(model: &Model, product_id: &str) -> i64 {
    let product: Item = model.item(&format!("PRODUCT#{product_id}"), "METADATA").unwrap();
    keys::value::whole_number(product.get("Inventory").unwrap()).unwrap()
}

#[tokio::test]
async fn wp_01_two_users_who_want_one_email_do_not_both_get_it() {
    let model = Model::new(Faults::None);
    let (ada, eve) = ("ada", "eve");
    let one = model.queries.create_user(ada, user("Ada", "same@example.org"));
    let other = model.queries.create_user(eve, user("Eve", "same@example.org"));
    let answers = join(one, other).await;
    assert!(matches!(answers, (Ok(()), Err(WriteError::EmailTaken { .. }))), "{answers:?}");
    assert_eq!(model.items().len(), 2);
}

#[tokio::test]
async fn wp_02_two_edits_of_one_version_are_not_both_done() {
    let model = Model::new(Faults::None);
    let ada = "ada";
    model.queries.create_user(ada, user("Ada", "ada@example.org")).await.unwrap();
    let edit = |email: &str| ProfileEdit { email: Some(email.to_owned()), ..ProfileEdit::default() };
    let one = model.queries.update_profile(ada, 1, edit("one@example.org"));
    let other = model.queries.update_profile(ada, 1, edit("two@example.org"));
    let answers = join(one, other).await;
    assert!(matches!(answers, (Ok(2), Err(WriteError::VersionConflict { version: 1, .. }))), "{answers:?}");
    let keys: Vec<String> = model.items().into_iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["EMAIL#one@example.org / CLAIM", "USER#ada / PROFILE"]);
}

#[tokio::test]
async fn wp_08_one_order_that_is_sent_twice_at_once_is_placed_once() {
    let model = Model::new(Faults::None);
    model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    let later = Model::at(&model.database, Faults::None, START_MS + 1);
    let (ada, order, lines) = ("ada", "o1", [line("pen", 1)]);
    let answers = join(model.queries.place_order(ada, order, &lines), later.queries.place_order(ada, order, &lines));
    let answers = answers.await;
    assert!(matches!(answers, (Ok(_), Err(WriteError::AlreadyPlaced { .. }))), "{answers:?}");
    assert_eq!((stock(&model, "pen"), model.items().len()), (9, 3));
}

#[tokio::test]
async fn wp_08_a_price_that_changes_meanwhile_is_the_new_one() {
    let model = Model::new(Faults::None);
    let (pen, ada, order) = ("pen", "ada", "o1");
    model.queries.create_product(pen, product("1.5", 10)).await.unwrap();
    // The order's first transaction is delayed until the price has changed.
    let stored = Model::on(&model.database, Faults::Writes(Side::Before, Fault::Conflict(0), 0..1));
    let edit =
        queries::writes::products::ProductEdit { price: keys::number::Decimal::parse("2"), ..Default::default() };
    let lines = [line("pen", 3)];
    let (placed, changed) =
        join(stored.queries.place_order(ada, order, &lines), model.queries.change_product(pen, edit)).await;
    changed.unwrap();
    assert_eq!(placed.unwrap().total, keys::number::Decimal::from(6));
    assert_eq!(model.item("ORDER#o1", "ITEM#pen").unwrap().get("Price"), Some(&n(2)));
}

#[tokio::test]
async fn wp_09_two_who_cancel_restock_once() {
    let model = Model::new(Faults::None);
    model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    let order = model.queries.place_order("ada", "o1", &[line("pen", 4)]).await.unwrap().key;
    let later = Model::at(&model.database, Faults::None, START_MS + 1);
    let cancel = OrderStatus::Cancelled;
    let answers =
        join(model.queries.change_order_status(&order, cancel), later.queries.change_order_status(&order, cancel));
    let answers = answers.await;
    assert!(matches!(answers, (Ok(()), Err(WriteError::Unchanged { .. }))), "{answers:?}");
    assert_eq!(stock(&model, "pen"), 10);
}

#[tokio::test]
async fn wp_09_one_status_is_set_once_and_no_status_follows_cancelled() {
    let model = Model::new(Faults::None);
    model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    let order = model.queries.place_order("ada", "o1", &[line("pen", 4)]).await.unwrap().key;
    let change = |status| model.queries.change_order_status(&order, status);
    let answers = join(change(OrderStatus::Paid), change(OrderStatus::Paid)).await;
    assert!(matches!(answers, (Ok(()), Err(WriteError::Unchanged { .. }))), "{answers:?}");
    let (cancelled, shipped) = join(change(OrderStatus::Cancelled), change(OrderStatus::Shipped)).await;
    // Shipping is one call and comes first; cancelling first reads the items.
    assert!(cancelled.is_ok() && shipped.is_ok(), "{cancelled:?} {shipped:?}");
    assert_eq!(stock(&model, "pen"), 10);
    let late = change(OrderStatus::Shipped).await;
    assert!(matches!(late, Err(WriteError::OrderCancelled { .. })), "{late:?}");
}

#[tokio::test]
async fn wp_10_two_moves_that_would_make_a_loop_are_not_both_done() {
    let model = Model::new(Faults::None);
    for folder in ["a", "b"] {
        model.queries.create_folder(folder, None, folder).await.unwrap();
    }
    let (a, b) = ("a", "b");
    let answers = join(model.queries.move_folder(a, Some(b)), model.queries.move_folder(b, Some(a))).await;
    assert!(matches!(answers, (Ok(()), Err(WriteError::FolderUnderItself { .. }))), "{answers:?}");
    assert_eq!(model.item("FOLDER#b", "METADATA").unwrap().get("ParentId"), None);
}

#[tokio::test]
async fn wp_10_a_file_that_is_renamed_while_it_moves_keeps_the_new_name() {
    let model = Model::new(Faults::None);
    for folder in ["a", "b"] {
        model.queries.create_folder(folder, None, folder).await.unwrap();
    }
    let new = NewFile { name: "old.txt".to_owned(), size_bytes: 1 };
    let file = model.queries.upload_file("a", "x", new).await.unwrap();
    let to = "b";
    let (moved, renamed) = join(model.queries.move_file(&file, to), model.queries.rename_file(&file, "new.txt")).await;
    renamed.unwrap();
    let moved = moved.unwrap();
    let item = model.item(&moved.pk, &moved.sk).unwrap();
    assert_eq!(item.get("Name"), Some(&s("new.txt")));
    assert_eq!(model.items().len(), 3);
}

#[tokio::test]
async fn wp_11_two_moves_that_would_make_a_loop_are_not_both_done() {
    let (model, acme) = (Model::new(Faults::None), "acme");
    for employee in ["a", "b"] {
        model.queries.hire(acme, employee, employee, None).await.unwrap();
    }
    let (a, b) = ("a", "b");
    let one = model.queries.move_employee(acme, a, Some(b));
    let other = model.queries.move_employee(acme, b, Some(a));
    let answers = join(one, other).await;
    assert!(matches!(answers, (Ok(()), Err(WriteError::EmployeeUnderItself { .. }))), "{answers:?}");
    assert_eq!(model.item("ORG#acme", "EMPLOYEE#b").unwrap().get("ManagerId"), None);
}

#[tokio::test]
async fn wp_11_nobody_is_hired_below_a_manager_who_is_dismissed_meanwhile() {
    let (model, acme) = (Model::new(Faults::None), "acme");
    model.queries.hire(acme, "boss", "Boss", None).await.unwrap();
    // The hire's transaction is delayed until the manager is gone.
    let stored = Model::on(&model.database, Faults::Writes(Side::Before, Fault::Conflict(0), 0..3));
    let (new, boss) = ("new", "boss");
    let (hired, dismissed) =
        join(stored.queries.hire(acme, new, "New", Some(boss)), model.queries.dismiss(acme, boss)).await;
    dismissed.unwrap();
    assert!(matches!(hired, Err(WriteError::NotFound { .. })), "{hired:?}");
    assert!(model.items().is_empty());
}

// ---- The model with faults, and the query interface on it ----

/// The calls that fail.
enum Faults {
    /// None.
    None,
    /// The writes with these numbers fail in this way, counted from 0; reads are not counted.
    Writes(Side, Fault, std::ops::Range<usize>),
    /// One call in three fails in some way, at random from this state.
    OneInThree(Mutex<u64>),
}

/// Decides by the faults, and counts the decisions.
struct Chance {
    faults: Faults,
    n_writes: AtomicUsize,
    n_faults: Arc<AtomicUsize>,
}

/// The model with faults.
struct Model {
    pub(crate) database: Arc<Database>,
    pub(crate) queries: Queries<Arc<Faulty<Chance>>>,
    pub(crate) n_faults: Arc<AtomicUsize>,
}

impl Model {
    /// An empty table.
    pub(crate) fn new(faults: Faults) -> Self {
        Self::on(&Arc::new(Database::new(layout(), PAGE_BYTES)), faults)
    }

    /// Another caller of the same table, with other faults.
    pub(crate) fn on(database: &Arc<Database>, faults: Faults) -> Self {
        Self::at(database, faults, START_MS)
    }

    /// The same caller at another time.
    pub(crate) fn at(database: &Arc<Database>, faults: Faults, now_ms: u64) -> Self {
        let n_faults = Arc::new(AtomicUsize::new(0));
        let chance = Chance { faults, n_writes: AtomicUsize::new(0), n_faults: Arc::clone(&n_faults) };
        let store = Arc::new(Faulty::new(database, chance));
        let queries = Queries::new(store, move || now_ms).pausing(|_| Box::pin(tokio::task::yield_now()));
        Self { database: Arc::clone(database), queries, n_faults }
    }

    /// All items, in order of their keys.
    pub(crate) fn items(&self) -> Vec<(Key, Item)> {
        self.database.memory().snapshot(Table::Main).into_iter().collect()
    }

    pub(crate) fn item(&self, pk: &str, sk: &str) -> Option<Item> {
        self.database.memory().view(Table::Main, |items| items.get(&Key::new(pk, sk)).cloned())
    }

    /// Number of failed calls.
    fn n_faults(&self) -> usize {
        self.n_faults.load(Ordering::Relaxed)
    }
}

impl Chance {
    fn decided(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        match &self.faults {
            Faults::None => None,
            Faults::Writes(side, fault, numbers) => {
                let number = (!call.is_read()).then(|| self.n_writes.fetch_add(1, Ordering::Relaxed))?;
                numbers.contains(&number).then(|| (*side, fault.clone()))
            }
            Faults::OneInThree(state) => {
                let mut state = state.lock().unwrap();
                let mut below = |bound: u64| {
                    // Knuth's multiplier; its upper bits are the good ones.
                    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (*state >> 33) % bound
                };
                if below(3) > 0 {
                    return None;
                }
                let side = if below(2) == 0 { Side::Before } else { Side::After };
                let position = below(call.n_writes().max(1) as u64);
                let conflict = Fault::Conflict(usize::try_from(position).unwrap());
                Some((side, if below(2) == 0 { conflict } else { Fault::Unanswered }))
            }
        }
    }
}

impl Decider for Chance {
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        let fault = self.decided(call);
        self.n_faults.fetch_add(usize::from(fault.is_some()), Ordering::Relaxed);
        fault
    }

    fn ended(&self, _call: &Call<'_>, _how: &str) {}

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}

// ---- Lost responses and conflicts: every write ends as in a table where none is lost ----

type Interface = Queries<Arc<Faulty<Chance>>>;
type Step = for<'a> fn(&'a Interface) -> BoxFuture<'a, Result<String, WriteError>>;

/// A step of the story: a write and its result.
macro_rules! steps {
    ($(|$queries:ident| $write:expr;)*) => {
        [$((|$queries| Box::pin(async move { Ok(format!("{:?}", $write.await?)) })) as Step),*]
    };
}

fn post_key() -> Key {
    Key::new("USER#ada", "POST#2024-01-15T10:30:00.000Z#p1")
}

fn order_key() -> Key {
    Key::new("USER#ada", "ORDER#2024-01-15T10:30:00.000Z#o1")
}

fn file_key(folder: &str) -> Key {
    Key::new(format!("FOLDER#{folder}"), "FILE#2024-01-15T10:30:00.000Z#x")
}

/// A story with every kind of write, each on the items of the earlier ones.
fn story() -> Vec<Step> {
    let people = steps! {
        |queries| queries.create_user("ada", user("Ada", "ada@example.org"));
        |queries| queries.update_profile("ada", 1, ProfileEdit { name: Some("A".to_owned()), ..Default::default() });
        |queries| queries.update_profile("ada", 2, ProfileEdit { email: Some("new@b.c".to_owned()), ..Default::default() });
        |queries| queries.follow("ada", "bob");
        |queries| queries.unfollow("ada", "bob");
        |queries| queries.like("ada", "p1");
        |queries| queries.unlike("ada", "p1");
        |queries| queries.record_view("ada", "p1");
        |queries| queries.create_post("ada", "p1", NewPost { title: "T".to_owned(), content: None, is_published: false });
        |queries| queries.publish_post(&post_key());
        |queries| queries.edit_post(&post_key(), PostEdit { title: Some("U".to_owned()), ..Default::default() });
        |queries| queries.delete_post(&post_key());
        |queries| queries.comment("ada", "p1", "c1", "Yes.");
        |queries| queries.join_group("ada", "g1", "member");
        |queries| queries.leave_group("ada", "g1");
        |queries| queries.create_group("g1", "G", None);
        |queries| queries.add_team("acme", "t1", "T");
        |queries| queries.subscribe("ada", "s1", "monthly");
        |queries| queries.put_into_cart("ada", "c1", "pen", 1);
        |queries| queries.put_into_cart("ada", "c1", "pen", 2);
    };
    let things = steps! {
        |queries| queries.create_product("pen", product("1.5", 10));
        |queries| queries.create_product("ink", product("2.5", 10));
        |queries| queries.change_product("pen", ProductEdit { category: Some("gifts".to_owned()), ..Default::default() });
        |queries| queries.set_inventory("pen", 10, 20);
        |queries| queries.add_tag("pen", "new");
        |queries| queries.remove_tag("pen", "new");
        |queries| queries.write_review("ada", "pen", "r1", 5, None);
        |queries| queries.place_order("ada", "o1", &[line("pen", 2), line("ink", 1)]);
        |queries| queries.change_order_status(&order_key(), OrderStatus::Paid);
        |queries| queries.change_order_status(&order_key(), OrderStatus::Cancelled);
        |queries| queries.add_reading(&NewReading { sensor_id: "s1".to_owned(), at_ms: START_MS, value: Decimal::from(1) });
        |queries| queries.create_folder("a", None, "A");
        |queries| queries.create_folder("b", Some("a"), "B");
        |queries| queries.upload_file("a", "x", NewFile { name: "x".to_owned(), size_bytes: 1 });
        |queries| queries.move_file(&file_key("a"), "b");
        |queries| queries.delete_file(&file_key("b"));
        |queries| queries.rename_folder("b", "C");
        |queries| queries.move_folder("b", None);
        |queries| queries.delete_folder("a");
        |queries| queries.hire("acme", "ceo", "Ceo", None);
        |queries| queries.hire("acme", "vp", "Vp", Some("ceo"));
        |queries| queries.move_employee("acme", "vp", None);
        |queries| queries.dismiss("acme", "vp");
        |queries| queries.delete_user("ada");
    };
    people.into_iter().chain(things).collect()
}

/// The story with failing first writes in every step: the result of each step, and the table afterwards.
async fn outcome(faults: impl Fn() -> Faults) -> (Vec<String>, Vec<(Key, Item)>) {
    let calm = Model::new(Faults::None);
    let mut said = Vec::new();
    for (at, step) in story().into_iter().enumerate() {
        let model = Model::on(&calm.database, faults());
        said.push(match step(&model.queries).await {
            Ok(answer) => answer,
            Err(error) => panic!("step {at}: {error:?}"),
        });
    }
    (said, calm.items())
}

#[tokio::test]
async fn what_goes_wrong_with_a_write_makes_no_difference() {
    let wanted = outcome(|| Faults::None).await;
    for side in [Side::Before, Side::After] {
        for fault in [Fault::Unanswered, Fault::Conflict(0), Fault::Throttle([0].into())] {
            for n_faults in [1, 3] {
                let (said, items) = outcome(|| Faults::Writes(side, fault.clone(), 0..n_faults)).await;
                assert_eq!(said, wanted.0, "{side:?} {fault:?}");
                assert_eq!(shown(&items), shown(&wanted.1), "{side:?} {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn wp_08_an_order_that_somebody_else_placed_is_not_ours_when_an_answer_is_lost() {
    let model = Model::new(Faults::None);
    let (ada, order, lines) = ("ada", "o1", [line("pen", 1)]);
    model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    // Both read before either is placed; the one whose responses are lost is never done, and comes second.
    let lost = Model::at(&model.database, Faults::Writes(Side::Before, Fault::Unanswered, 0..1), START_MS + 1);
    let (lost, placed) = futures::future::join(
        lost.queries.place_order(ada, order, &lines),
        model.queries.place_order(ada, order, &lines),
    )
    .await;
    placed.unwrap();
    assert!(matches!(lost, Err(WriteError::AlreadyPlaced { .. })), "{lost:?}");
    assert_eq!(model.items().len(), 3);
}

#[tokio::test]
async fn wp_15_a_view_that_was_not_answered_is_not_counted_twice() {
    let model = Model::new(Faults::None);
    model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
    let lost = Model::on(&model.database, Faults::Writes(Side::After, Fault::Unanswered, 0..1));
    let error = lost.queries.count_product_view("pen").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "PRODUCT#pen / METADATA: not done in 1 tries, as far as it was answered; send it again later"
    );
    let pen = model.item("PRODUCT#pen", "METADATA").unwrap();
    assert_eq!(pen.get("ViewCount"), Some(&crate::writes::n(1)));
}

#[tokio::test]
async fn a_write_gives_up_after_so_many_tries_and_says_whether_it_may_be_done() {
    for (fault, is_lost) in [(Fault::Conflict(0), false), (Fault::Unanswered, true)] {
        let model = Model::new(Faults::Writes(Side::Before, fault, 0..usize::MAX));
        let error = model.queries.create_user("ada", user("Ada", "ada@example.org")).await.unwrap_err();
        match &error {
            WriteError::Busy { n_tries, is_uncertain, .. } => {
                assert_eq!((*n_tries, *is_uncertain), (TRIES_MAX, is_lost));
            }
            other => panic!("{other:?}"),
        }
        assert!(!error.to_string().contains("example.org"), "{error}");
        assert!(model.items().is_empty());
    }
}

#[test]
fn a_pause_is_bounded_and_grows() {
    let bounds = Arc::new(std::sync::Mutex::new(Vec::new()));
    runtime().block_on(async {
        let model = Model::new(Faults::Writes(Side::Before, Fault::Conflict(0), 0..9));
        let seen = Arc::clone(&bounds);
        let queries = model.queries.pausing(move |bound_ms| {
            seen.lock().unwrap().push(bound_ms);
            Box::pin(std::future::ready(()))
        });
        queries.create_group("g1", "G", None).await.unwrap();
    });
    assert_eq!(*bounds.lock().unwrap(), [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
}

#[tokio::test]
async fn wp_16_an_edit_that_nobody_answers_is_done_once() {
    let model = Model::new(Faults::None);
    let review = model.queries.write_review("ada", "pen", "r1", 5, None).await.unwrap();
    let lost = Model::on(&model.database, Faults::Writes(Side::After, Fault::Unanswered, 0..2));
    lost.queries.edit_review(&review, ReviewEdit { rating: Some(1), ..Default::default() }).await.unwrap();
    let records = model.database.take_records();
    assert_eq!(records.len(), 2, "{records:?}");
}

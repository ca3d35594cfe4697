//! Concurrent writers, on the model.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use derive::{guard::Guard, write::Table};
use futures::future::{join, join_all};
use keys::{item::Item, key::Key};
use queries::{
    Queries,
    write_error::WriteError,
    writes::{
        folders::NewFile,
        orders::{OrderStatus, PlacedOrder},
        users::ProfileEdit,
    },
};
use store::{
    faulty::{Call, Database, Decider, Fault, Faulty, Side},
    memory::PAGE_BYTES,
};

use crate::writes::{
    bed::{START_MS, layout, n, runtime, s},
    orders::line,
    products::product,
    users::user,
};

/// Number of callers that want one of the last [`PIECES`].
const CALLERS: usize = 1_000;

/// Number of pieces.
const PIECES: i64 = 10;

#[test]
fn wp_08_a_thousand_concurrent_orders_for_the_last_10_pieces_sell_exactly_10() {
    for seed in 0..3 {
        runtime().block_on(a_thousand_orders(seed));
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

#[test]
fn wp_01_two_users_who_want_one_email_do_not_both_get_it() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        let (ada, eve) = ("ada", "eve");
        let one = model.queries.create_user(ada, user("Ada", "same@example.org"));
        let other = model.queries.create_user(eve, user("Eve", "same@example.org"));
        let answers = join(one, other).await;
        assert!(matches!(answers, (Ok(()), Err(WriteError::EmailTaken { .. }))), "{answers:?}");
        assert_eq!(model.items().len(), 2);
    });
}

#[test]
fn wp_02_two_edits_of_one_version_are_not_both_done() {
    runtime().block_on(async {
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
    });
}

#[test]
fn wp_08_one_order_that_is_sent_twice_at_once_is_placed_once() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
        let later = Model::at(&model.database, Faults::None, crate::writes::bed::START_MS + 1);
        let (ada, order, lines) = ("ada", "o1", [line("pen", 1)]);
        let answers =
            join(model.queries.place_order(ada, order, &lines), later.queries.place_order(ada, order, &lines));
        let answers = answers.await;
        assert!(matches!(answers, (Ok(_), Err(WriteError::AlreadyPlaced { .. }))), "{answers:?}");
        assert_eq!((stock(&model, "pen"), model.items().len()), (9, 3));
    });
}

#[test]
fn wp_08_a_price_that_changes_meanwhile_is_the_new_one() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        let (pen, ada, order) = ("pen", "ada", "o1");
        model.queries.create_product(pen, product("1.5", 10)).await.unwrap();
        // The order's first transaction is delayed until the price has changed.
        let held = Model::on(&model.database, Faults::Writes(Side::Before, Fault::Conflict(0), 0..1));
        let edit =
            queries::writes::products::ProductEdit { price: keys::number::Decimal::parse("2"), ..Default::default() };
        let lines = [line("pen", 3)];
        let (placed, changed) =
            join(held.queries.place_order(ada, order, &lines), model.queries.change_product(pen, edit)).await;
        changed.unwrap();
        assert_eq!(placed.unwrap().total, keys::number::Decimal::from(6));
        assert_eq!(model.item("ORDER#o1", "ITEM#pen").unwrap().get("Price"), Some(&n(2)));
    });
}

#[test]
fn wp_09_two_who_cancel_restock_once() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        model.queries.create_product("pen", product("1.5", 10)).await.unwrap();
        let order = model.queries.place_order("ada", "o1", &[line("pen", 4)]).await.unwrap().key;
        let later = Model::at(&model.database, Faults::None, crate::writes::bed::START_MS + 1);
        let cancel = OrderStatus::Cancelled;
        let answers =
            join(model.queries.change_order_status(&order, cancel), later.queries.change_order_status(&order, cancel));
        let answers = answers.await;
        assert!(matches!(answers, (Ok(()), Err(WriteError::Unchanged { .. }))), "{answers:?}");
        assert_eq!(stock(&model, "pen"), 10);
    });
}

#[test]
fn wp_09_one_status_is_set_once_and_no_status_follows_cancelled() {
    runtime().block_on(async {
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
    });
}

#[test]
fn wp_10_two_moves_that_would_make_a_loop_are_not_both_done() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        for folder in ["a", "b"] {
            model.queries.create_folder(folder, None, folder).await.unwrap();
        }
        let (a, b) = ("a", "b");
        let answers = join(model.queries.move_folder(a, Some(b)), model.queries.move_folder(b, Some(a))).await;
        assert!(matches!(answers, (Ok(()), Err(WriteError::FolderUnderItself { .. }))), "{answers:?}");
        assert_eq!(model.item("FOLDER#b", "METADATA").unwrap().get("ParentId"), None);
    });
}

#[test]
fn wp_10_a_file_that_is_renamed_while_it_moves_keeps_the_new_name() {
    runtime().block_on(async {
        let model = Model::new(Faults::None);
        for folder in ["a", "b"] {
            model.queries.create_folder(folder, None, folder).await.unwrap();
        }
        let new = NewFile { name: "old.txt".to_owned(), size_bytes: 1 };
        let file = model.queries.upload_file("a", "x", new).await.unwrap();
        let to = "b";
        let (moved, renamed) =
            join(model.queries.move_file(&file, to), model.queries.rename_file(&file, "new.txt")).await;
        renamed.unwrap();
        let moved = moved.unwrap();
        let item = model.item(&moved.pk, &moved.sk).unwrap();
        assert_eq!(item.get("Name"), Some(&s("new.txt")));
        assert_eq!(model.items().len(), 3);
    });
}

#[test]
fn wp_11_two_moves_that_would_make_a_loop_are_not_both_done() {
    runtime().block_on(async {
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
    });
}

#[test]
fn wp_11_nobody_is_hired_below_a_manager_who_is_dismissed_meanwhile() {
    runtime().block_on(async {
        let (model, acme) = (Model::new(Faults::None), "acme");
        model.queries.hire(acme, "boss", "Boss", None).await.unwrap();
        // The hire's transaction is delayed until the manager is gone.
        let held = Model::on(&model.database, Faults::Writes(Side::Before, Fault::Conflict(0), 0..3));
        let (new, boss) = ("new", "boss");
        let (hired, dismissed) =
            join(held.queries.hire(acme, new, "New", Some(boss)), model.queries.dismiss(acme, boss)).await;
        dismissed.unwrap();
        assert!(matches!(hired, Err(WriteError::NotFound { .. })), "{hired:?}");
        assert!(model.items().is_empty());
    });
}

// ---- The model with faults, and the query interface on it ----

/// The calls that fail.
pub(crate) enum Faults {
    /// None.
    None,
    /// The writes with these numbers fail in this way, counted from 0; reads are not counted.
    Writes(Side, Fault, std::ops::Range<usize>),
    /// One call in three fails in some way, at random from this state.
    OneInThree(Mutex<u64>),
}

/// Decides by the faults, and counts the decisions.
pub(crate) struct Chance {
    faults: Faults,
    n_writes: AtomicUsize,
    n_faults: Arc<AtomicUsize>,
}

/// The model with faults.
pub(crate) struct Model {
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
    pub(crate) fn n_faults(&self) -> usize {
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

//! Each fault on each side of a call, and an index that lags.

use std::collections::BTreeSet;

use derive::write::{Action, Update};
use futures::{FutureExt as _, executor::block_on, poll};
use keys::layout::{Index, Layout};
use serde_dynamo::AttributeValue;

use super::*;
use crate::Busy;

/// Decides the same for every call.
struct Says(Option<(Side, Fault)>);

impl Decider for Says {
    fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
        self.0.clone()
    }

    fn ended(&self, _call: &Call<'_>, _how: &str) {}

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}

fn layout() -> Layout {
    let index = Index { name: "I".into(), pk: "IPK".into(), sk: "ISK".into(), projection: Some(vec![]) };
    Layout { entity_type: Some("EntityType".into()), indexes: vec![index], ..Layout::of("PK", "SK") }
}

fn add(pk: &str) -> Write {
    let add = [("Value".to_owned(), AttributeValue::N("1".to_owned()))].into();
    let action = Action::Update(Update { add, ..Update::default() });
    Write { table: Table::Main, key: Key::new(pk, "S"), action, guard: None }
}

fn value(database: &Database, pk: &str) -> Option<AttributeValue> {
    database.memory().view(Table::Main, |items| items.get(&Key::new(pk, "S"))?.get("Value").cloned())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

/// The outcome of a single addition, whether it was done, and its units for the caller.
fn added(side: Side, fault: Fault) -> (Option<bool>, bool, Units) {
    let database = Arc::new(Database::new(layout(), 400));
    let handle = Faulty::new(&database, Says(Some((side, fault))));
    let write = add("P");
    // A call with a response takes fewer than these polls.
    let answer = block_on(async {
        let mut call = Box::pin(handle.write(&write));
        for _ in 0..4 {
            if let std::task::Poll::Ready(answer) = poll!(&mut call) {
                return Some(answer);
            }
        }
        None
    });
    let is_retry = answer.map(|answer| answer.is_err_and(|error| error.is_retry()));
    let done = value(&database, "P") == Some(n("1"));
    while database.land(0).is_some() {
        assert!(!done && value(&database, "P") == Some(n("1")), "it lands once");
    }
    (is_retry, done, handle.answered())
}

#[test]
fn a_fault_is_before_the_call_or_after_it() {
    let throttle = || Fault::Throttle(BTreeSet::from([0]));
    for fault in [Fault::Unanswered, Fault::Conflict(0), throttle()] {
        assert_eq!(added(Side::Before, fault.clone()), (Some(true), false, 0.0), "{fault:?}");
        assert_eq!(added(Side::After, fault.clone()), (Some(true), true, 0.0), "{fault:?}");
    }
    assert_eq!(added(Side::Before, Fault::Killed), (None, false, 0.0));
    assert_eq!(added(Side::After, Fault::Killed), (None, true, 0.0));
    assert_eq!(added(Side::Before, Fault::Late), (None, false, 0.0), "it lands later");
    assert_eq!(added(Side::After, Fault::Late), (Some(true), false, 0.0), "it lands later");
}

#[test]
fn a_transaction_is_cancelled_at_the_positions_and_its_units_are_counted_when_it_is_done() {
    let database = Arc::new(Database::new(layout(), 400));
    let transaction = Transaction::new(vec![add("P"), add("Q")]).unwrap();
    let busy = Faulty::new(&database, Says(Some((Side::Before, Fault::Conflict(1)))));
    let cancelled = TransactOutcome::Cancelled { reasons: vec![Reason::None, Reason::Busy(Busy::Conflict)] };
    assert_eq!(block_on(busy.transact(&transaction)).unwrap(), cancelled);
    assert_eq!((value(&database, "P"), busy.answered()), (None, 0.0));
    let handle = Faulty::new(&database, Says(None));
    block_on(handle.transact(&transaction)).unwrap();
    assert_eq!((value(&database, "P"), handle.answered()), (Some(n("1")), 4.0));
}

#[test]
fn every_call_lets_others_run_before_it_is_done_and_after() {
    let database = Arc::new(Database::new(layout(), 400));
    let handle = Faulty::new(&database, Says(None));
    let write = add("P");
    let mut call = Box::pin(handle.write(&write));
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(value(&database, "P"), None);
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(value(&database, "P"), Some(n("1")));
    assert!(call.now_or_never().is_some());
}

#[test]
fn an_index_lags_item_by_item() {
    let database = Arc::new(Database::lagging(layout(), 400, Lagging::Indexes));
    let handle = Faulty::new(&database, Says(None));
    let query = Query::prefix(Some("I"), "I", "");
    let found = || {
        let page = block_on(handle.query(Table::Main, &query, None)).unwrap();
        page.items.iter().map(|item| keys::item::text(item, "PK").unwrap().to_owned()).collect::<String>()
    };
    for pk in ["P", "Q"] {
        let key = Key::new(pk, "S");
        let mut item = layout().key_item(&key);
        item.extend(["IPK", "ISK"].map(|name| (name.to_owned(), AttributeValue::S("I".to_owned()))));
        let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
        block_on(handle.write(&write)).unwrap();
    }
    assert_eq!((found(), database.n_behind()), (String::new(), 2));
    database.catch_up(1);
    assert_eq!((found(), database.n_behind()), ("Q".to_owned(), 1));
    database.catch_up(0);
    assert_eq!((found(), database.n_behind()), ("PQ".to_owned(), 0));
    let table = Query::prefix(None, "P", "");
    assert_eq!(
        block_on(handle.query(Table::Main, &table, None)).unwrap().items.len(),
        1,
        "the table itself never lags"
    );
    assert_eq!(database.take_records().len(), 2, "the stream has every record once");
}

/// Conflicts when calls overlap.
struct Overlaps;

impl Decider for Overlaps {
    fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
        None
    }

    fn conflicts(&self, _call: &Call<'_>) -> bool {
        true
    }

    fn ended(&self, _call: &Call<'_>, _how: &str) {}

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}

#[test]
fn a_transaction_and_another_write_of_its_item_conflict_only_while_both_are_under_way() {
    let database = Arc::new(Database::new(layout(), 400));
    let [one, other] = [(); 2].map(|()| Faulty::new(&database, Overlaps));
    let both = Transaction::new(vec![add("P"), add("Q")]).unwrap();
    let later = Transaction::new(vec![add("R"), add("Q")]).unwrap();
    let (single, elsewhere) = (add("P"), add("S"));
    block_on(async {
        let mut first = Box::pin(one.transact(&both));
        assert!(poll!(&mut first).is_pending());
        let TransactOutcome::Cancelled { reasons } = other.transact(&later).await.unwrap() else {
            panic!("it is done")
        };
        assert_eq!(reasons, [Reason::None, Reason::Busy(Busy::Conflict)]);
        let error = other.write(&single).await.unwrap_err();
        assert!(matches!(error, StoreError::Retry { busy: Some(Busy::Conflict), .. }), "{error}");
        assert!(matches!(other.write(&elsewhere).await.unwrap(), Outcome::Done { .. }));
        assert!(matches!(first.await.unwrap(), TransactOutcome::Done { .. }));
        assert!(matches!(other.write(&single).await.unwrap(), Outcome::Done { .. }), "it is answered");

        // Two single writes wait for each other, and a caller that is gone blocks nothing.
        let mut write = Box::pin(one.write(&single));
        assert!(poll!(&mut write).is_pending());
        assert!(matches!(other.write(&single).await.unwrap(), Outcome::Done { .. }));
        assert!(matches!(other.transact(&both).await.unwrap(), TransactOutcome::Cancelled { .. }));
        drop(write);
        assert!(matches!(other.transact(&both).await.unwrap(), TransactOutcome::Done { .. }));
    });
    assert_eq!(value(&database, "P"), Some(n("4")));
}

/// Stores the outcome of each call.
#[derive(Default)]
struct Keeps(Mutex<Vec<String>>);

impl Decider for &Keeps {
    fn fault(&self, _call: &Call<'_>) -> Option<(Side, Fault)> {
        None
    }

    fn ended(&self, _call: &Call<'_>, how: &str) {
        self.0.lock().unwrap().push(how.to_owned());
    }

    fn sends(&self, _guard: &Guard) -> bool {
        true
    }
}

#[test]
fn a_read_is_torn_if_the_table_is_written_between_its_halves_or_its_pages() {
    // A page of 1 byte holds one item.
    let database = Arc::new(Database::new(layout(), 1));
    let write = |pk: &str| {
        let outcome = database.memory().write(&add(pk)).now_or_never().unwrap().unwrap();
        assert!(matches!(outcome, Outcome::Done { .. }));
    };
    ["P", "Q", "R"].into_iter().for_each(write);
    let ends = Keeps::default();
    let handle = Faulty::new(&database, &ends);
    let segment = Segment { number: 0, of: 1 };
    let next = |after| block_on(handle.scan(Table::Main, segment, after)).unwrap().next;
    let first = next(None);
    let second = next(first.clone());
    write("P");
    next(second);
    next(first);
    let keys = ["P", "Q"].map(|pk| Key::new(pk, "S"));
    for is_written in [false, true] {
        block_on(async {
            let mut read = Box::pin(handle.get(Table::Main, &keys));
            assert!(poll!(&mut read).is_pending());
            assert!(poll!(&mut read).is_pending());
            if is_written {
                write("R");
            }
            assert_eq!(read.await.unwrap().len(), 2);
        });
    }
    assert_eq!(*ends.0.lock().unwrap(), ["read", "read", TORN, "read", "read", TORN]);
}

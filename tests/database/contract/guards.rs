//! Guards: each succeeds and fails, on every action, alone and in a transaction; and the engine's transactions, in the
//! forms that it sends.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    catalogue::Catalogue,
    family::Family,
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use engine::{
    batch::Engine,
    clock::Clock as _,
    registry::{
        Hold, RegistryWatch, Standing,
        difference::{DerivationState, differences},
    },
};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, TransactOutcome, Updated};
use support::clock::ManualClock;

use crate::{
    contract::{Bed, add, delete, guarded, in_ledger, item, item_of_bytes, key, put, set, unchanged, write},
    n, s,
};

/// An attribute that needs a placeholder.
const ATTRIBUTE: &str = "claims.#1";

/// Guards, each with items (or none) on which it succeeds or fails.
fn guards() -> Vec<(Guard, Option<AttributeValue>, bool, bool)> {
    let (one, two) = (Some(n("1")), Some(n("2")));
    // Guard, the attribute's value, whether an item exists, whether the guard succeeds.
    vec![
        (absent(), None, false, true),
        (absent(), None, true, false),
        (present(), None, true, true),
        (present(), None, false, false),
        (theirs("1"), Some(s("1")), true, true),
        (theirs("1"), Some(s("2")), true, false),
        (theirs("1"), one.clone(), true, false),
        (theirs("1"), None, true, false),
        (theirs("1"), None, false, false),
        (as_read(Some(n("1.0"))), one.clone(), true, true),
        (as_read(one.clone()), two.clone(), true, false),
        (as_read(one.clone()), None, true, false),
        (as_read(one.clone()), None, false, false),
        (as_read(None), None, true, true),
        (as_read(None), one.clone(), true, false),
        (unchanged(ATTRIBUTE, None), None, true, true),
        (unchanged(ATTRIBUTE, None), None, false, true),
        (unchanged(ATTRIBUTE, None), one.clone(), true, false),
        (unchanged(ATTRIBUTE, one.clone()), one.clone(), true, true),
        (unchanged(ATTRIBUTE, one.clone()), two, true, false),
        (unchanged(ATTRIBUTE, one.clone()), Some(s("1")), true, false),
        (unchanged(ATTRIBUTE, one.clone()), None, true, false),
        (unchanged(ATTRIBUTE, one), None, false, false),
        (bounds_as_read(None), None, true, true),
        (bounds_as_read(None), None, false, true),
        (bounds_as_read(None), Some(n("1")), true, false),
        (bounds_as_read(Some(n("1.0"))), Some(n("1")), true, true),
        (bounds_as_read(Some(n("1"))), Some(n("2")), true, false),
        (bounds_as_read(Some(n("1"))), None, false, false),
        (asks(Ask::Equal, n("2.0")), Some(n("2")), true, true),
        (asks(Ask::Differs, s("a")), Some(s("b")), true, true),
        (asks(Ask::Differs, s("a")), Some(s("a")), true, false),
        (asks(Ask::Differs, s("1")), Some(n("1")), true, true),
        (asks(Ask::Differs, s("a")), None, true, true),
        (asks(Ask::Differs, s("a")), None, false, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), None, true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), None, false, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[1, 255])), true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[2])), true, true),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[2, 0])), true, false),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(b(&[200])), true, false),
        (asks(Ask::LacksOrBelow, b(&[2, 0])), Some(s("1")), true, false),
        (below_or_lacks("Other"), None, true, true),
        (below_or_lacks("Other"), None, false, true),
        (below_or_lacks("Other"), Some(b(&[1])), true, true),
        (below_or_lacks("Other"), Some(b(&[2])), true, false),
        (below_or_lacks("PK"), None, true, false),
        (below_or_lacks("PK"), None, false, true),
        (below_or_lacks("PK"), Some(b(&[1])), true, true),
        (below_or_lacks("PK"), Some(b(&[2])), true, false),
        (asks(Ask::AtLeast, n("10.0")), Some(n("10")), true, true),
        (asks(Ask::AtLeast, n("10")), Some(n("9.99")), true, false),
        (asks(Ask::AtLeast, n("10")), Some(s("9")), true, false),
        (asks(Ask::AtLeast, n("10")), None, true, false),
        (asks(Ask::AtLeast, n("10")), None, false, false),
        (Guard::still_zero(None), None, true, true),
        (Guard::still_zero(None), None, false, true),
        (Guard::still_zero(None), Some(n("0")), true, true),
        (Guard::still_zero(None), Some(n("0.01")), true, false),
        (Guard::still_zero(None), Some(n("-1")), true, false),
        (Guard::still_zero(None), Some(s("0")), true, false),
        (both(), None, true, true),
        (both(), None, false, false),
        (both(), Some(n("1")), true, false),
    ]
}

fn absent() -> Guard {
    Guard::absent(Purpose::Receipt)
}

fn present() -> Guard {
    Guard::present(Purpose::Update)
}

/// The attribute is below 2, or is missing together with another one.
fn below_or_lacks(other: &str) -> Guard {
    let ask = Ask::BelowOrLacksBoth(ATTRIBUTE.to_owned(), b(&[2]), other.to_owned());
    Guard { purpose: Purpose::Application, asks: vec![ask] }
}

/// An item exists, but lacks the attribute.
fn both() -> Guard {
    Guard { purpose: Purpose::Application, asks: vec![Ask::Present, Ask::Lacks(ATTRIBUTE.to_owned())] }
}

/// The least value of a bucket that had no greatest one.
fn bounds_as_read(value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::Bucket, [(ATTRIBUTE, value), ("Max", None)])
}

/// Two conditions on the item.
fn theirs(text: &str) -> Guard {
    Guard::as_read(Purpose::StillTheirs, [(ATTRIBUTE, Some(s(text))), ("Name", Some(s("old")))])
}

/// The item is as it was read: with this attribute and its name, and without a third one.
fn as_read(value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::Job, [(ATTRIBUTE, value), ("Name", Some(s("old"))), ("Third", None)])
}

fn b(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(bytes.to_vec())
}

fn asks(ask: impl Fn(String, AttributeValue) -> Ask, value: AttributeValue) -> Guard {
    Guard { purpose: Purpose::Application, asks: vec![ask(ATTRIBUTE.to_owned(), value)] }
}

/// Every guard on every action: the write, the item before and after it, and whether the guard succeeds.
fn cases() -> Vec<(Write, Option<Item>, Option<Item>, bool)> {
    let mut cases = Vec::new();
    for (position, (guard, value, is_there, holds)) in guards().into_iter().enumerate() {
        // A counter's guard checks all attributes of a counter, because any of them may not be zero.
        let attributes: &[&str] = if guard == Guard::still_zero(None) { &["Value", "Sum"] } else { &[ATTRIBUTE] };
        let actions = ["put", "update", "delete"];
        for (attribute, action) in attributes.iter().flat_map(|attribute| actions.map(|action| (*attribute, action))) {
            let key = key(&format!("{position:02}#{attribute}#{action}"));
            let before = is_there.then(|| {
                let mut before = item(&key, [("Name", s("old"))]);
                before.extend(value.clone().map(|value| (attribute.to_owned(), value)));
                before
            });
            let (write, after) = acted(&key, action, before.as_ref());
            let after = if holds { after } else { before.clone() };
            cases.push((guarded(write, guard.clone()), before, after, holds));
        }
    }
    cases
}

fn acted(key: &Key, action: &str, before: Option<&Item>) -> (Write, Option<Item>) {
    match action {
        "put" => {
            let new = item(key, [("Name", s("new"))]);
            (put(key, new.clone()), Some(new))
        }
        "update" => {
            let mut after = before.cloned().unwrap_or_else(|| item(key, []));
            after.insert("Name".to_owned(), s("new"));
            (set(key, [("Name", s("new"))]), Some(after))
        }
        _ => (delete(key), None),
    }
}

async fn arrange<S: Store>(bed: &Bed<S>, write: &Write, before: Option<Item>) {
    if let Some(before) = before {
        bed.done(&put(&write.key, before)).await;
    }
}

pub(crate) async fn every_ask_is_tried<S: Store>(bed: Bed<S>) {
    let name = |ask: &Ask| match ask {
        Ask::Absent => "absent",
        Ask::Present => "present",
        Ask::Lacks(_) => "lacks",
        Ask::Equal(..) => "equal",
        Ask::Differs(..) => "differs",
        Ask::AtLeast(..) => "at least",
        Ask::LacksOrEqual(..) => "lacks or equal",
        Ask::LacksOrBelow(..) => "lacks or below",
        Ask::BelowOrLacksBoth(..) => "below or lacks both",
    };
    let tried: BTreeSet<&str> = guards().iter().flat_map(|(guard, ..)| guard.asks.iter().map(name)).collect();
    bed.same(&tried.len(), &9, "what guards ask");
}

pub(crate) async fn a_guard_decides_over_a_single_write<S: Store>(bed: Bed<S>) {
    for (write, before, after, holds) in cases() {
        arrange(&bed, &write, before).await;
        let outcome = bed.store.write(&write).await.unwrap();
        let outcome_wanted = if holds { Outcome::Done { units: 1.0 } } else { Outcome::GuardFailed };
        bed.same(&outcome, &outcome_wanted, &write);
        bed.same(&bed.item(&write.key).await, &after, &write);
    }
}

/// Does a write in a transaction with another, and compares what becomes of both items.
async fn together<S: Store>(bed: &Bed<S>, write: &Write, after: Option<&Item>, holds: bool) {
    let other = Key::new("P#2", &write.key.sk);
    let outcome = bed.transact(vec![put(&other, item(&other, [])), write.clone()]).await;
    if let TransactOutcome::Cancelled { reasons } = &outcome {
        bed.same(reasons, &vec![Reason::None, Reason::GuardFailed], write);
    }
    bed.same(&matches!(outcome, TransactOutcome::Done { .. }), &holds, write);
    bed.same(&bed.item(&write.key).await.as_ref(), &after, write);
    bed.same(&bed.item(&other).await.is_some(), &holds, write);
}

pub(crate) async fn a_guard_decides_over_a_transaction<S: Store>(bed: Bed<S>) {
    for (write, before, after, holds) in cases() {
        arrange(&bed, &write, before).await;
        together(&bed, &write, after.as_ref(), holds).await;
    }
}

pub(crate) async fn a_transaction_checks_an_item_that_it_does_not_write<S: Store>(bed: Bed<S>) {
    for (write, before, _, holds) in cases().into_iter().filter(|(write, ..)| write.key.sk.ends_with("put")) {
        arrange(&bed, &write, before.clone()).await;
        together(&bed, &Write { action: Action::Check, ..write }, before.as_ref(), holds).await;
    }
    let alone = Write { action: Action::Check, ..guarded(put(&key("a"), item(&key("a"), [])), absent()) };
    bed.same(&bed.store.write(&alone).await.unwrap_err().is_retry(), &false, "a check alone");
}

pub(crate) async fn a_value_is_unchanged_whatever_its_form<S: Store>(bed: Bed<S>) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let list = |values: Vec<AttributeValue>| AttributeValue::L(values);
    let of = |name: &str, value| AttributeValue::M([(name.to_owned(), value)].into());
    for (position, (stored, asked, holds)) in [
        (n("2"), n("2.0"), true),
        (n("100"), n("1E2"), true),
        (AttributeValue::Ss(texts(&["a", "b"])), AttributeValue::Ss(texts(&["b", "a"])), true),
        (AttributeValue::Ns(texts(&["1", "2"])), AttributeValue::Ns(texts(&["2.0", "1"])), true),
        (AttributeValue::Bs(vec![vec![1], vec![2]]), AttributeValue::Bs(vec![vec![2], vec![1]]), true),
        (list(vec![n("1"), s("a")]), list(vec![n("1.0"), s("a")]), true),
        (list(vec![n("1"), s("a")]), list(vec![s("a"), n("1")]), false),
        (of("k", n("1")), of("k", n("1.0")), true),
        (of("k", n("1")), of("l", n("1")), false),
        (AttributeValue::Null(true), AttributeValue::Null(true), true),
        (AttributeValue::Bool(true), AttributeValue::Bool(false), false),
        (s(""), s(""), true),
        (AttributeValue::B(vec![0, 255]), AttributeValue::B(vec![0, 255]), true),
    ]
    .into_iter()
    .enumerate()
    {
        let key = key(&position.to_string());
        bed.done(&put(&key, item(&key, [(ATTRIBUTE, stored.clone())]))).await;
        let write = guarded(set(&key, [("Name", s("new"))]), unchanged(ATTRIBUTE, Some(asked.clone())));
        let is_done = matches!(bed.store.write(&write).await.unwrap(), Outcome::Done { .. });
        bed.same(&is_done, &holds, (stored, asked));
    }
}

// ---- The engine's transactions ----

fn receipt(id: &str) -> Write {
    let key = Key::new(format!("RECEIPT#{id}"), "RECEIPT");
    guarded(in_ledger(put(&key, item(&key, [("ExpiresAt", n("1705315200"))]))), Guard::absent(Purpose::Receipt))
}

/// An update that adds changes up to a number and moves the watermark to it, if the watermark is below the first of them.
fn marked(counter: &Key, first: u8, last: u8, n_changes: i64) -> Write {
    let binary = |number: u8| AttributeValue::B(vec![number]);
    let update = Update {
        set: [("w00000000".to_owned(), binary(last)), ("EntityType".to_owned(), s("Counter"))].into(),
        add: [("Value".to_owned(), n(&n_changes.to_string()))].into(),
        count_from: [("Rev".to_owned(), n("100"))].into(),
        ..Update::default()
    };
    let asks = vec![
        Ask::LacksOrBelow("w00000000".to_owned(), binary(first)),
        Ask::LacksOrEqual("EntityType".to_owned(), s("Counter")),
    ];
    guarded(write(counter, Action::Update(update)), Guard { purpose: Purpose::Watermark, asks })
}

/// Puts a change among the exceptions of a shard.
fn excepted(id: &str) -> Write {
    let key = Key::new("SHARD#shard", format!("EXCEPTION#1#{id}"));
    guarded(in_ledger(put(&key, item(&key, []))), Guard::absent(Purpose::Exception))
}

fn reasons(outcome: TransactOutcome) -> Vec<Reason> {
    match outcome {
        TransactOutcome::Cancelled { reasons } => reasons,
        done @ TransactOutcome::Done { .. } => panic!("should be cancelled, and is {done:?}"),
    }
}

pub(crate) async fn receipts_say_by_position_which_changes_are_in<S: Store>(bed: Bed<S>) {
    let counter = key("COUNT");
    bed.all_done(vec![receipt("2"), receipt("4"), add(&counter, "Value", 2)]).await;
    let again = (1..=5).map(|id| receipt(&id.to_string())).chain([add(&counter, "Value", 5)]).collect();
    let (none, failed) = (Reason::None, Reason::GuardFailed);
    let wanted = [&none, &failed, &none, &failed, &none, &none].map(Clone::clone).to_vec();
    bed.same(&reasons(bed.transact(again).await), &wanted, "reasons");
    let rest = vec![receipt("1"), receipt("3"), receipt("5"), add(&counter, "Value", 3)];
    let units = bed.all_done(rest).await;
    bed.same_units(&units, &[(Table::Main, 2.0), (Table::Ledger, 6.0)], "units");
    bed.same(&bed.item(&counter).await, &Some(item(&counter, [("Value", n("5"))])), "the counter");
}

pub(crate) async fn a_watermark_moves_only_past_what_it_is_below<S: Store>(bed: Bed<S>) {
    let counter = key("COUNT");
    let updated = |first, last, n_changes| {
        let (write, store) = (marked(&counter, first, last, n_changes), &bed.store);
        async move { store.update(&write).await.unwrap() }
    };
    let stored = |last: u8, value: &str, revision: &str| {
        let mark = AttributeValue::B(vec![last]);
        item(&counter, [("w00000000", mark), ("EntityType", s("Counter")), ("Value", n(value)), ("Rev", n(revision))])
    };
    bed.same(
        &updated(3, 7, 2).await,
        &Updated::Done { units: 1.0, item: stored(7, "2", "101") },
        "the item comes back",
    );
    // The same again, as after a lost response; one by a caller that is behind; and one that begins at the watermark.
    for (first, last) in [(3, 7), (2, 9), (7, 9)] {
        let failed = Updated::GuardFailed { item: Some(stored(7, "2", "101")) };
        bed.same(&updated(first, last, 1).await, &failed, "the item comes back with the failure");
    }
    bed.same(
        &updated(8, 200, 0).await,
        &Updated::Done { units: 1.0, item: stored(200, "2", "102") },
        "a net of nothing",
    );
    bed.same(
        &updated(201, 202, 1).await,
        &Updated::Done { units: 1.0, item: stored(202, "3", "103") },
        "bytes are not signed",
    );
    let other = Write { guard: None, ..marked(&counter, 1, 2, 1) };
    let updated = bed.store.update(&other).await.unwrap();
    bed.same(
        &updated,
        &Updated::Done { units: 1.0, item: Item::new() },
        "only the update of a watermark returns the item",
    );
    let foreign = key("OTHER");
    bed.done(&put(&foreign, item(&foreign, [("EntityType", s("User"))]))).await;
    let failed = Updated::GuardFailed { item: Some(item(&foreign, [("EntityType", s("User"))])) };
    bed.same(&bed.store.update(&marked(&foreign, 1, 2, 1)).await.unwrap(), &failed, "an item of another type");
}

pub(crate) async fn a_change_is_excepted_once<S: Store>(bed: Bed<S>) {
    let parked = |id: &str| {
        let key = Key::new("PARKED#additive", format!("{id}#00"));
        in_ledger(put(&key, item(&key, [])))
    };
    bed.all_done(vec![excepted("e1"), parked("e1")]).await;
    bed.all_done(vec![excepted("e2"), parked("e2")]).await;
    let outcome = bed.transact(vec![excepted("e1"), parked("e1")]).await;
    bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None], "it is among them");
}

pub(crate) async fn a_change_is_parked_with_its_proof_and_once<S: Store>(bed: Bed<S>) {
    // A record in two parts, each close to the size limit of an item.
    let part = |at: usize| {
        let key = Key::new("PARKED#additive", format!("e1#{at:02}"));
        in_ledger(put(&key, item_of_bytes(&key, 352 * 1024)))
    };
    bed.all_done(vec![receipt("e1"), part(0), part(1)]).await;
    let outcome = bed.transact(vec![receipt("e1"), part(0), part(1)]).await;
    bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None, Reason::None], "in already");
}

pub(crate) async fn a_parked_change_is_redriven_once<S: Store>(bed: Bed<S>) {
    let (parked, counter) = (Key::new("PARKED#additive", "e1#00"), key("COUNT"));
    bed.done(&in_ledger(put(&parked, item(&parked, [])))).await;
    let redrive =
        || vec![guarded(in_ledger(delete(&parked)), Guard::present(Purpose::StillParked)), add(&counter, "Value", 1)];
    bed.all_done(redrive()).await;
    let outcome = bed.transact(redrive()).await;
    bed.same(&reasons(outcome), &vec![Reason::GuardFailed, Reason::None], "not parked any more");
    bed.same(&bed.item(&counter).await, &Some(item(&counter, [("Value", n("1"))])), "the counter");
}

// ---- The registry: instances of two versions publish, and operators read ----

const LOOK_MS: u64 = 1_000;
const HOLD: Hold = Hold { hold_ms: 60_000, margin_ms: 500 };

/// Time limit of a call, in milliseconds.
const CALL_MS: u64 = 10_000;

/// The time at the start of the case, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

struct Scene<S> {
    store: Arc<S>,
    clock: ManualClock,
}

impl<S: Store + 'static> Scene<S> {
    /// An engine without these of the shipped derivations.
    fn engine(&self, lacks: &[&str], watch: RegistryWatch) -> Engine<Arc<S>> {
        let schema = catalogue::schema();
        let mut derivations = catalogue::derivations();
        derivations.retain(|derivation| !lacks.contains(&derivation.name.as_str()));
        let catalogue = Arc::new(Catalogue::new(&schema, derivations).unwrap());
        let families = vec![Family::Additive, Family::LevelTriggered];
        let clock = Arc::new(self.clock.clone());
        Engine::new(Arc::new(schema), catalogue, families, Arc::clone(&self.store), clock).watching(watch)
    }

    fn deadline_ms(&self) -> u64 {
        self.clock.now_ms() + CALL_MS
    }

    /// The derivations that are not in step with the whole catalogue.
    async fn stands(&self) -> Vec<String> {
        let engine = self.engine(&[], RegistryWatch::reading(0));
        let registry = engine.registry(self.deadline_ms()).await.unwrap();
        let schema = catalogue::schema();
        let catalogue = Catalogue::new(&schema, catalogue::derivations()).unwrap();
        let all = differences(&schema, &catalogue, &registry, self.clock.now_ms()).into_iter();
        let open = all.filter(|it| !matches!(it.state, DerivationState::InStep { .. }));
        open.map(|it| format!("{} {:?}", it.name, it.state)).collect()
    }
}

pub(crate) async fn instances_publish_their_derivations_and_operators_read_them<S: Store + 'static>(bed: Bed<S>) {
    let scene = Scene { store: Arc::new(bed.store), clock: ManualClock::at(BEGIN_MS) };
    let lacks = ["like-count", "like-count-display"];
    let old = scene.engine(&lacks, RegistryWatch::publishing(LOOK_MS, HOLD));
    let new = scene.engine(&[], RegistryWatch::publishing(LOOK_MS, HOLD));
    let operator = scene.engine(&[], RegistryWatch::reading(0));
    let all: BTreeSet<String> = catalogue::derivations().into_iter().map(|it| it.name).collect();
    assert!(operator.registry(scene.deadline_ms()).await.unwrap().is_empty(), "nobody has published");
    assert!(operator.publish(scene.deadline_ms()).await.unwrap().is_empty(), "so nobody has anything else");

    // The first publishes, and again after its derivations change.
    assert_eq!(old.publish(scene.deadline_ms()).await.unwrap().len(), 2);
    scene.clock.advance(LOOK_MS);
    assert_eq!(old.publish(scene.deadline_ms()).await.unwrap().len(), 0);
    let before = operator.registry(scene.deadline_ms()).await.unwrap();
    let refused = operator.publish(scene.deadline_ms()).await.unwrap_err().to_string();
    assert!(refused.contains("like-count"), "{refused}");
    scene.clock.advance(120_000);
    let begun_ms = scene.clock.now_ms();
    let n_known = old.mark_filled(&all, &before, 0, scene.deadline_ms()).await.unwrap();
    assert_eq!(n_known, all.len() - lacks.len());
    assert_eq!(new.publish(scene.deadline_ms()).await.unwrap().len(), 2);
    operator.publish(scene.deadline_ms()).await.unwrap();
    let ready_ms = begun_ms + 61_000;
    let young = lacks.map(|name| format!("{name} Young {{ ready_ms: {ready_ms} }}"));
    assert_eq!(scene.stands().await, young);

    // It is ready when the old instance can no longer run.
    let shipped = Catalogue::new(&catalogue::schema(), catalogue::derivations()).unwrap();
    let likes = shipped.position("like-count").unwrap();
    let standing = async || {
        let registry = operator.registry(scene.deadline_ms()).await.unwrap();
        operator.standing(&registry, likes)
    };
    assert_eq!(standing().await, Standing::Young { ready_ms });
    scene.clock.advance(61_000);
    assert_eq!(standing().await, Standing::Ready);
    let ready = operator.registry(scene.deadline_ms()).await.unwrap();

    // The old instance returns, so what was measured meanwhile marks nothing as filled.
    assert_eq!(old.publish(scene.deadline_ms()).await.unwrap().len(), 2);
    scene.clock.advance(LOOK_MS);
    assert_eq!(new.publish(scene.deadline_ms()).await.unwrap().len(), 2);
    let likes_alone = BTreeSet::from(["like-count".to_owned()]);
    assert_eq!(operator.mark_filled(&likes_alone, &ready, 0, scene.deadline_ms()).await.unwrap(), 0);
    assert!(matches!(standing().await, Standing::Young { .. }));
    // No instance that published anything runs any more.
    operator.leave(scene.deadline_ms()).await.unwrap();
    scene.clock.advance(61_000);
    let ready = operator.registry(scene.deadline_ms()).await.unwrap();
    assert_eq!(operator.mark_filled(&all, &ready, 0, scene.deadline_ms()).await.unwrap(), all.len());
    assert_eq!(scene.stands().await, [""; 0]);

    // It is dropped, and then forgotten.
    scene.clock.advance(LOOK_MS);
    old.publish(scene.deadline_ms()).await.unwrap();
    assert_eq!(operator.forget(&all, scene.deadline_ms()).await.unwrap(), lacks.len());
    let registry = operator.registry(scene.deadline_ms()).await.unwrap();
    assert_eq!(registry.entry(Family::Additive, "like-count"), None);
}

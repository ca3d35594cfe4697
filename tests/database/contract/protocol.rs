//! The engine's transactions, in the forms that it sends.

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
use store::{Reason, Store, TransactOutcome, Updated};
use support::clock::ManualClock;

use crate::contract::{
    bed::Bed,
    items::{add, delete, guarded, in_ledger, item, item_of_bytes, key, n, put, s, write},
};

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
    let held = |last: u8, value: &str, revision: &str| {
        let mark = AttributeValue::B(vec![last]);
        item(&counter, [("w00000000", mark), ("EntityType", s("Counter")), ("Value", n(value)), ("Rev", n(revision))])
    };
    bed.same(&updated(3, 7, 2).await, &Updated::Done { units: 1.0, item: held(7, "2", "101") }, "the item comes back");
    // The same again, as after a lost response; one by a caller that is behind; and one that begins at the watermark.
    for (first, last) in [(3, 7), (2, 9), (7, 9)] {
        let failed = Updated::GuardFailed { item: Some(held(7, "2", "101")) };
        bed.same(&updated(first, last, 1).await, &failed, "the item comes back with the failure");
    }
    bed.same(&updated(8, 200, 0).await, &Updated::Done { units: 1.0, item: held(200, "2", "102") }, "a net of nothing");
    bed.same(
        &updated(201, 202, 1).await,
        &Updated::Done { units: 1.0, item: held(202, "3", "103") },
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

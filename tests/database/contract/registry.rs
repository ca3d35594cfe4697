//! The registry: instances of two versions publish, and operators read.

use std::{collections::BTreeSet, sync::Arc};

use derive::{catalogue::Catalogue, family::Family};
use engine::{
    batch::Engine,
    clock::Clock as _,
    registry::{
        Hold, Standing,
        difference::{DerivationState, differences},
        publishing::RegistryWatch,
    },
};
use store::Store;

use support::clock::ManualClock;

use crate::contract::bed::Bed;

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

//! Operators whose manifest is not that of the functions: a repair of index keys refuses to write.

use std::sync::Arc;

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, guard::Purpose, schema::Schema};
use engine::{
    batch::Engine,
    clock::Clock as _,
    registry::{Hold, edit::begin, publishing::RegistryWatch},
};
use keys::key::Key;
use operate::{
    repair::{Repaired, Repairing},
    verify::Finding,
};
use store::Store;

use crate::{
    cases::bed::Bed,
    executor::{Gone, Task},
};

/// The shipped catalogue without this derivation, or with this one counting another way.
fn lacking(bed: &Bed, name: &str) -> Arc<Catalogue> {
    let mut derivations = catalogue::derivations();
    derivations.retain(|derivation| derivation.name != name);
    Arc::new(Catalogue::new(&bed.schema, derivations).unwrap())
}

fn otherwise(bed: &Bed, name: &str, like: &str) -> Arc<Catalogue> {
    let mut derivations = catalogue::derivations();
    let like = derivations.iter().find(|derivation| derivation.name == like).unwrap().clone();
    derivations.retain(|derivation| derivation.name != name);
    derivations.push(Derivation { name: name.to_owned(), ..like });
    Arc::new(Catalogue::new(&bed.schema, derivations).unwrap())
}

/// An operator's engine with this catalogue.
fn operator(bed: &Bed, catalogue: &Arc<Catalogue>) -> Engine<impl Store + use<>> {
    operator_with(bed, &bed.schema, catalogue)
}

fn operator_with(bed: &Bed, schema: &Arc<Schema>, catalogue: &Arc<Catalogue>) -> Engine<impl Store + use<>> {
    let (schema, clock) = (Arc::clone(schema), Arc::new(bed.clock.clone()));
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(schema, Arc::clone(catalogue), families, bed.store(), clock);
    engine.watching(RegistryWatch::reading(0))
}

async fn registered(bed: &Bed) {
    begin(&bed.store(), &bed.schema, &bed.catalogue, bed.clock.now_ms()).await.unwrap();
}

/// A folder with an index key that somebody wrote by hand.
async fn folder(bed: &Bed) -> Key {
    let folder = bed.put("Folder", &[("FolderId", "f")], &[("Name", "docs"), ("ParentId", "top")]).await;
    bed.set(&folder, "GSI1SK", "by hand").await;
    folder
}

async fn index_keys_repaired<S: Store>(engine: &Engine<S>, key: &Key, deadline_ms: u64) -> Repaired {
    let Key { pk, sk } = key.clone();
    let finding = Finding { derivation: "index keys".to_owned(), pk, sk, stored: None, derived: None, flaw: None };
    Repairing::new(engine).repair(&finding, "run", deadline_ms).await.unwrap()
}

#[tokio::test]
async fn a_repair_sets_no_index_keys_with_a_catalogue_that_is_not_that_of_the_functions() {
    let bed = Bed::new();
    registered(&bed).await;
    let folder = folder(&bed).await;
    for wrong in [lacking(&bed, "comment-author"), otherwise(&bed, "like-count", "comment-count")] {
        let repaired = index_keys_repaired(&operator(&bed, &wrong), &folder, bed.deadline_ms()).await;
        let Repaired::Refused { why } = repaired else { panic!("{repaired:?}") };
        assert!(why.ends_with("repair with their version and manifest"), "{why}");
        assert_eq!(bed.shown(&folder, "GSI1SK"), "by hand");
    }
    // Nothing is written into an order, so no derivation shows the template of its key.
    let entities = bed.schema.entities().cloned().map(|mut definition| {
        definition.indexes.retain(|_| definition.name != "Order");
        definition
    });
    let schema = Arc::new(Schema::new(bed.schema.layout.clone(), entities));
    let repaired = index_keys_repaired(&operator_with(&bed, &schema, &bed.catalogue), &folder, bed.deadline_ms()).await;
    let Repaired::Refused { why } = repaired else { panic!("{repaired:?}") };
    assert_eq!(why, "the functions have other index keys of Order: repair with their version and manifest");
    let repaired = index_keys_repaired(&operator(&bed, &bed.catalogue), &folder, bed.deadline_ms()).await;
    assert_eq!(repaired, Repaired::Done);
    assert_ne!(bed.shown(&folder, "GSI1SK"), "by hand");
}

/// A deployment comes between the look at the registry and the write.
#[tokio::test]
async fn a_repair_sets_no_index_keys_when_the_functions_have_changed_since_it_asked() {
    let bed = Bed::new();
    registered(&bed).await;
    let folder = folder(&bed).await;
    let (engine, key, deadline_ms) = (operator(&bed, &bed.catalogue), folder.clone(), bed.deadline_ms());
    let mut repair = Task::new(&Gone::default(), async move { index_keys_repaired(&engine, &key, deadline_ms).await });
    bed.stops_before(&mut repair, Purpose::IndexKeys);
    let deployed = operator(&bed, &lacking(&bed, "comment-author"));
    let deployed = deployed.watching(RegistryWatch::publishing(0, Hold::default()));
    deployed.publish(bed.deadline_ms()).await.unwrap();
    let repaired = repair.finish().unwrap();
    assert!(matches!(repaired, Repaired::Refused { .. }), "{repaired:?}");
    assert_eq!(bed.shown(&folder, "GSI1SK"), "by hand");
}

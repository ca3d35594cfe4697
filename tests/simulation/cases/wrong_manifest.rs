//! Operators whose manifest is not that of the functions: a repair of index keys refuses to write.

use std::sync::Arc;

use derive::{
    catalogue::Catalogue, derivation::Derivation, family::Family, guard::Purpose, schema::Schema, write::Table,
};
use engine::{
    batch::Engine,
    clock::Clock as _,
    publishing::begin,
    registry::{Hold, RegistryWatch},
};
use keys::{
    item::{Item, text},
    key::{Key, SORT_KEY_BYTES_MAX},
};
use operate::{
    repair::remedy::{Repaired, Repairing},
    verify::{Finding, definition::compare},
};
use store::Store;

use crate::{
    cases::bed::Bed,
    executor::{Gone, Task},
    items::n,
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

// ---- Items with more attributes than a condition can compare ----

/// More than the 150 comparisons of the longest condition.
const N_ATTRIBUTES: usize = 400;

/// Puts an item with many attributes of its own, whose names are short or long.
async fn put_wide(bed: &Bed, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)], name: &str) -> Key {
    let names: Vec<String> = (0..N_ATTRIBUTES).map(|number| format!("{name}{number}")).collect();
    let own = names.iter().map(|name| (name.as_str(), "N:1"));
    bed.put(entity, fields, &own.chain(attributes.iter().copied()).collect::<Vec<_>>()).await
}

/// The sort key in `GSI1` of a folder with this name and the id `f` has so many bytes more.
const AROUND_NAME: usize = "FOLDER##f".len();

/// Items of the list of those that cannot be read, with the reason of each.
fn listed(bed: &Bed) -> Vec<String> {
    let entry = |item: Item| {
        let shown =
            ["Derivation", "ItemPK", "Attribute", "Why"].map(|name| text(&item, name).unwrap_or_default().to_owned());
        shown.join(" ")
    };
    let ledger = bed.memory().snapshot(Table::Ledger);
    ledger.into_iter().filter(|(key, _)| key.pk == "UNREADABLE").map(|(_, item)| entry(item)).collect()
}

#[tokio::test]
async fn an_item_whose_key_in_an_index_would_be_too_long_is_listed_until_it_is_shorter() {
    let mut bed = Bed::new();
    let longest = "n".repeat(SORT_KEY_BYTES_MAX - AROUND_NAME);
    let folder = bed.put("Folder", &[("FolderId", "f")], &[("Name", &longest), ("ParentId", "top")]).await;
    bed.settle().await;
    assert_eq!((bed.shown(&folder, "GSI1SK").len(), listed(&bed)), (SORT_KEY_BYTES_MAX, Vec::new()));

    let too_long = format!("{longest}n");
    bed.put("Folder", &[("FolderId", "f")], &[("Name", &too_long), ("ParentId", "top")]).await;
    bed.settle().await;
    let why = "makes a key of 1025 bytes; the limit is 1024, so the item is not in the index GSI1";
    assert_eq!(listed(&bed), [format!("* FOLDER#f FolderId {why}")]);
    let items = bed.memory().snapshot(Table::Main);
    let unreadable = compare(&bed.schema, &bed.catalogue, &items).unreadable;
    assert_eq!(
        unreadable.iter().map(|it| (&*it.derivation, &*it.why)).collect::<Vec<_>>(),
        [("*", &*format!("FolderId {why}"))]
    );

    bed.put("Folder", &[("FolderId", "f")], &[("Name", "short"), ("ParentId", "top")]).await;
    bed.settle().await;
    assert_eq!((listed(&bed), bed.findings()), (Vec::new(), Vec::new()));
}

/// A mirror is Ripple's own, so it is written whole however many of its attributes change.
#[tokio::test]
async fn a_mirror_of_which_300_attributes_change_at_once_is_in_step_after_one_write() {
    let mut bed = Bed::new();
    let names: Vec<String> = (0..300).map(|number| format!("Note{number}")).collect();
    for value in ["N:1", "N:2"] {
        let attributes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value)).collect();
        bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &attributes).await;
        let handled = bed.settle().await;
        let writes = |derivation: &str| {
            let commits = handled.iter().flat_map(|it| &it.account.commits);
            commits.filter(|commit| commit.key.sk == derivation).count()
        };
        assert_eq!((writes("FOLLOWER#ann"), bed.findings()), (1, Vec::new()), "{value}");
    }
    let mirror = bed.memory().snapshot(Table::Main).remove(&Key::new("USER#bob", "FOLLOWER#ann")).unwrap();
    assert!(names.iter().all(|name| mirror.get(name) == Some(&n("2"))), "{mirror:?}");
}

fn names() -> [String; 2] {
    ["Note".to_owned(), "Note".repeat(60)]
}

#[tokio::test]
async fn the_index_keys_of_an_item_of_400_attributes_are_repaired() {
    for name in names() {
        let bed = Bed::new();
        let attributes = [("Name", "new"), ("ParentId", "top")];
        let folder = put_wide(&bed, "Folder", &[("FolderId", "f")], &attributes, &name).await;
        bed.set(&folder, "GSI1SK", "by hand").await;
        let Key { pk, sk } = folder.clone();
        let finding = Finding { derivation: "index keys".to_owned(), pk, sk, stored: None, derived: None, flaw: None };
        let engine = bed.engine();
        let repaired = Repairing::new(&engine).repair(&finding, "run", bed.deadline_ms()).await.unwrap();
        assert_eq!(repaired, Repaired::Done);
        assert_eq!(bed.shown(&folder, "GSI1SK"), "FOLDER#new#f");
    }
}

#[tokio::test]
async fn a_cascade_deletes_an_item_of_400_attributes() {
    for name in names() {
        let mut bed = Bed::new();
        let user = bed.put("User", &[("UserId", "ann")], &[]).await;
        let fields = [("UserId", "ann"), ("SubscriptionId", "s")];
        let subscription = put_wide(&bed, "Subscription", &fields, &[], &name).await;
        bed.settle().await;
        bed.delete(&user).await;
        bed.settle().await;
        bed.two_days_pass().await;
        assert!(!bed.has(&subscription));
        assert_eq!(bed.parked(), Vec::<String>::new());
    }
}

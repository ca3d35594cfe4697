//! The list of unreadable items is what the table says.

use std::collections::BTreeSet;

use derive::{derived::Items, write::Table};
use keys::{
    entity::Definition,
    item::{Item, text},
    key::Key,
};
use operate::verify::definition::Comparison;

use crate::{failure::Failure, platform::stream::Stream, scene::Scene};

/// Each item that cannot be interpreted is listed, by derivation, and no other item is; each item that has the key of a
/// derived item is while that waits, and may be as long as it has the key.
pub(crate) fn list_is_exact(scene: &Scene, stream: &Stream, verified: &Comparison) -> Result<(), Failure> {
    // A new version does not see again what only an instance of the old one saw.
    if scene.rollout.is_any() {
        return Ok(());
    }
    let items = scene.database.memory().snapshot(Table::Main);
    let occupied =
        verified.findings.iter().filter(|it| occupies(scene, &items, &it.derivation, &Key::new(&it.pk, &it.sk)));
    let occupied = occupied.map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    let wanted = verified.unreadable.iter().map(|it| [&it.derivation, &it.pk, &it.sk].map(String::clone));
    // Only a record of one of its sources lists an item under a mirror's key, and it may be lost.
    // Only a record lists an item, or takes it off.
    let lost = stream.lost.keys(&stream.made);
    let wanted = wanted.chain(occupied.filter(|_| lost.is_empty()));
    let is_sure = |[_, pk, sk]: &[String; 3]| !lost.contains(&Key::new(pk, sk));
    let wanted: BTreeSet<[String; 3]> = wanted.filter(is_sure).collect();
    let listed: BTreeSet<[String; 3]> = scene.database.memory().view(Table::Ledger, |items| {
        let entries = items.iter().filter(|(key, _)| key.pk == "UNREADABLE");
        let names = ["Derivation", "ItemPK", "ItemSK"];
        let listed = entries.map(|(_, entry)| names.map(|name| text(entry, name).unwrap_or_default().to_owned()));
        listed.filter(is_sure).collect()
    });
    scene.count_all("listed unreadable", listed.len());
    let is_left = |[derivation, pk, sk]: &&[String; 3]| occupies(scene, &items, derivation, &Key::new(pk, sk));
    let left: BTreeSet<[String; 3]> = listed.iter().filter(is_left).cloned().collect();
    scene.count_all("occupied keys", left.len());
    let listed: BTreeSet<[String; 3]> =
        listed.into_iter().filter(|it| wanted.contains(it) || !left.contains(it)).collect();
    if listed == wanted {
        return Ok(());
    }
    let text = format!(
        "listed as unreadable and should not be: {:?}; should be and is not: {:?}",
        listed.difference(&wanted).collect::<Vec<_>>(),
        wanted.difference(&listed).collect::<Vec<_>>()
    );
    Err(Failure::new("unreadable", text))
}

/// Does an item that is not Ripple's have the key of an item that this derivation creates?
fn occupies(scene: &Scene, items: &Items, derivation: &str, key: &Key) -> bool {
    let maker = scene.catalogue.position(derivation).and_then(|at| scene.catalogue.refresh(at));
    let maker = maker.filter(|maker| maker.makes_item());
    maker.is_some_and(|maker| is_taken(scene, items, maker.target(), key))
}

/// Does an item of another entity than this, or of none, have this key?
fn is_taken(scene: &Scene, items: &Items, entity: &str, key: &Key) -> bool {
    let is_of = |item: &Item| scene.schema.image(key, item).is_some_and(|image| image.is(entity));
    items.get(key).is_some_and(|item| !is_of(item))
}

/// Is this item found through a mirror whose key another item has, and which is needed itself, since its key alone does not lead
/// to the item or an index is searched? Then what the item carries may be old until the key is free.
pub(crate) fn is_way_taken(scene: &Scene, items: &Items, derivation: &str, key: &Key) -> bool {
    let refresh = scene.catalogue.position(derivation).and_then(|at| scene.catalogue.refresh(at));
    let Some(found) = refresh.and_then(|refresh| refresh.found()) else { return false };
    let target = refresh.and_then(|refresh| scene.schema.entity(refresh.target()));
    let leads = |via: &Definition, target: &Definition| {
        let known = via.key.field_names();
        found.index.is_none() && target.key.field_names().iter().all(|name| known.contains(name))
    };
    let via = scene.schema.entity(&found.via).filter(|via| via.derived);
    let via = via.filter(|via| !target.is_some_and(|target| leads(via, target)));
    let image = items.get(key).and_then(|item| scene.schema.image(key, item));
    let (Some(via), Some(image)) = (via, image) else { return false };
    let through = via.build_of(|name| image.field(name).ok().flatten());
    through.is_ok_and(|through| is_taken(scene, items, &via.name, &through))
}

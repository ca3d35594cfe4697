//! What a cascade may delete: nothing that was written or changed after it was listed, and nothing that was written
//! after its post came back, under any key.

use keys::{counter::CounterKey, item::Item, key::Key};

use crate::{checks::history::Past, scene::Scene};

/// The first record since which an item could have been listed in its present form. Fails when it is too recent.
pub(crate) fn listed_at(scene: &Scene, past: &Past, key: &Key, item: &Item, at_ms: u64) -> Result<usize, String> {
    let as_it_is = judged(scene, key, item);
    let mut versions = past.versions.get(key).into_iter().flatten();
    let first = versions.find(|version| version.item.as_ref().is_some_and(|item| judged(scene, key, item) == as_it_is));
    match first {
        // One instance sets the time, and another one, whose clock is off as well, sees that it has come.
        Some(first) if first.at_ms + scene.settle_ms() <= at_ms + 2 * scene.clocks_off_ms as u64 => Ok(first.at),
        _ => Err("it was not so long as it is when it would have been listed".to_owned()),
    }
}

/// Does a post with this id exist, under any key, since before this record? Its mirror may not exist yet.
pub(crate) fn has_come_back(scene: &Scene, past: &Past, id: &str, before: usize) -> bool {
    let post = scene.schema.entity("Post").unwrap();
    let is_of = |key: &Key| post.key.parse_key(key).is_some_and(|fields| fields.get("PostId") == Some(id));
    let is_post = |key: &Key, item: &Item| scene.schema.image(key, item).is_some_and(|image| image.is("Post"));
    let mut of_id = past.versions.iter().filter(|(key, _)| is_of(key));
    of_id.any(|(key, versions)| {
        let lately = versions.iter().rev();
        let lately = lately.take_while(|version| version.item.as_ref().is_some_and(|item| is_post(key, item)));
        lately.last().is_some_and(|first| first.at < before)
    })
}

/// The attributes that the service did not write; all attributes of a counter.
fn judged(scene: &Scene, key: &Key, item: &Item) -> Item {
    let image = scene.schema.image(key, item).filter(|_| CounterKey::parse(key).is_none());
    item.iter()
        .filter(|(name, _)| !image.as_ref().is_some_and(|image| image.definition.derives(name)))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

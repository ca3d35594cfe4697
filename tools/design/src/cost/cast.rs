//! An item of the application with the items that it names, and everything derived from them: a small data set for
//! examples.

use std::{collections::BTreeMap, sync::Arc};

use engine::ledger::LedgerKind;
use keys::{item::Item, key::Key};
use store::memory::MemoryStore;

use super::{load::Load, usage::named, world::World};
use crate::Design;

/// An item with the items that it names.
pub struct Cast {
    /// The item, as the application creates it.
    pub item: Item,
    /// The items that it names, as the application creates them.
    pub named: BTreeMap<Key, Item>,
    /// The model with all of these items and everything derived from them.
    pub store: Arc<MemoryStore>,
}

/// An item of an entity that the application writes, by its number, with the items that it names. `None` if no sample
/// of the entity can be made, or if the chain of named items does not end.
pub async fn cast(design: &Design, entity: &str, n: u64) -> Option<Cast> {
    let load = Load {
        rates: BTreeMap::new(),
        targets: BTreeMap::new(),
        fan_outs: BTreeMap::new(),
        reads: BTreeMap::new(),
        ledger: LedgerKind::default(),
        n_shards: 1,
        window_seconds: 0.0,
        n_batch_max: 1,
        n_lanes: 1,
        memory_mb: 0,
        call_ms: 0.0,
    };
    let world = World::new(design, &load);
    let item = world.item(entity, n)?;
    let (named, store) = named(design, &world, &load, std::slice::from_ref(&item)).await?;
    let own = design.schema.layout.key(&item);
    let named = named.into_iter().filter(|(key, _)| Some(key) != own.as_ref()).collect();
    Some(Cast { item, named, store })
}

#[cfg(test)]
mod tests {
    use derive::write::Table;

    use super::*;

    #[tokio::test]
    async fn an_item_comes_with_the_items_that_it_names_and_what_follows() {
        let schema = catalogue::schema();
        let design = Design::declared(schema.clone(), catalogue::catalogue(&schema).unwrap());
        let Cast { item, named, store } = cast(&design, "Follow", 7).await.unwrap();
        let key = design.schema.layout.key(&item).unwrap();
        assert!(!named.contains_key(&key));
        let entity = |(key, item): (&Key, &Item)| design.schema.image(key, item).unwrap().definition.name.clone();
        assert_eq!(named.iter().map(entity).collect::<Vec<_>>(), ["User", "User"]);
        store.view(Table::Main, |items| {
            let of = |name: &str| items.values().filter(|item| item.contains_key(name)).count();
            assert_eq!((of("FollowerCount"), of("FolloweeName"), of("FollowerName")), (1, 1, 1), "{items:?}");
        });
        assert!(cast(&design, "Follower", 7).await.is_none(), "Ripple writes it");
    }

    #[tokio::test]
    async fn a_number_of_few_digits_in_a_key_ends_no_series_of_items() {
        let text = "[table]\npartition-key = \"PK\"\nsort-key = \"SK\"\n[entity.Lot]\npartition-key = \"T#{t}\"\nsort-key = \
                    \"LOT#{no:3}#{price:4.2}\"\n";
        let (schema, catalogue) = manifest::load(text).unwrap();
        let design = Design::declared(schema, catalogue);
        for n in [7, 99, 100, 999, 1_000, 123_456] {
            assert!(cast(&design, "Lot", n).await.is_some(), "{n}");
        }
    }
}

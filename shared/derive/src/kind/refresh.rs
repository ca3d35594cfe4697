//! What a level-triggered kind must be able to do: to compute its part of an item, from what it asks to be read.

use std::{collections::BTreeSet, fmt};

use keys::{entity::Definition, item::Item, key::Key};

use crate::{
    declaration::found_by::FoundBy,
    derived::Items,
    effect::Find,
    flaw::Flaw,
    schema::{Image, Schema},
    sources::{Source, Sources},
    write::Wanted,
};

/// How a level-triggered kind looks at an item.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Entity of the items that it writes into.
    fn target(&self) -> &str;

    /// Does it make the whole item?
    fn makes_item(&self) -> bool {
        false
    }

    /// Does it read in one item of its entity what it writes into another? Then it ends at a depth of its own.
    fn recurs(&self) -> bool {
        false
    }

    /// What must be read to compute its part of an item.
    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source>;

    /// Its part of an item that was not read, when the item names this source and has it of no other: the attributes by
    /// which it names it, beside its key, and the part. `None` where that does not decide it.
    fn taken_from(&self, schema: &Schema, source: &Key, item: &Key, sources: &Sources) -> Option<(Item, Vec<Wanted>)> {
        let (_, _, _, _) = (schema, source, item, sources);
        None
    }

    /// Its part of an item, from what was read.
    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed;

    /// The search for all items that follow from a source of this key, the same as a change of the source asks for;
    /// `None` where the source itself names the item.
    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        let (_, _) = (schema, source);
        None
    }

    /// The search that finds the items of a changed source; `None` if the kind searches for none.
    fn found(&self) -> Option<&FoundBy> {
        None
    }

    /// Name of the count that it shows; `None` where it shows none.
    fn shows(&self) -> Option<&str> {
        None
    }

    /// Name of the count that it reads; `None` where it reads none.
    fn reads_count(&self) -> Option<&str> {
        self.shows()
    }

    /// May it derive nothing for an item that can be read?
    fn has_flaws(&self) -> bool {
        false
    }

    /// Items for which it derives nothing though all can be read. `items` are those that
    /// [`Kind::derive`](super::Kind::derive) is given.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let (_, _) = (schema, items);
        Vec::new()
    }
}

/// The item that a kind computes its part of.
#[derive(Clone, Debug)]
pub struct RefreshTarget<'a> {
    /// Its key.
    pub key: &'a Key,
    /// What items of its entity look like.
    pub definition: &'a Definition,
    /// Its attributes, as far as they are known; `None` when it does not exist.
    pub item: Option<&'a Item>,
    /// Sources that changes named.
    pub named: &'a BTreeSet<Key>,
}

impl<'a> RefreshTarget<'a> {
    /// The item as the schema sees it, when it is of the target's entity.
    #[must_use]
    pub fn image(&self, schema: &'a Schema) -> Option<Image<'a>> {
        schema.image(self.key, self.item?).filter(|image| image.definition.name == self.definition.name)
    }
}

/// A derivation's part of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// Some attributes.
    Attributes(Vec<Wanted>),
    /// The whole item but for the attributes of other derivations; `None` when it should not exist.
    Item(Option<Item>),
}

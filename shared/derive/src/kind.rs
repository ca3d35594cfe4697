//! The interface of a kind of derivation.
//!
//! A new kind is a file in [`kinds`](crate::kinds) with a declaration that implements [`Kind`], and [`Refresh`] too if
//! it is level-triggered. It has one of the [shapes](Shape). If none fits, it adds one, with its declaration in
//! [`declaration`](crate::declaration), and the compiler names every place that must handle it.

use std::{collections::BTreeSet, fmt};

use keys::{entity::Definition, item::Item, key::Key};

use crate::{
    change::Sight,
    condition::Condition,
    declaration::{Cascade, Count, FoundBy, Mirror, Rollup},
    derived::{Counts, Derived, Flaw, Items},
    effect::{Effect, Find},
    expression::Input,
    family::Family,
    outline::Outline,
    part::Reach,
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// A kind of derivation, with its declaration.
///
/// It implements its definition twice: [`plan`](Kind::plan) is incremental, from one change to effects;
/// [`derive`](Kind::derive) is complete, the simplest loop over all items. Neither calls the other, and they must
/// agree.
pub trait Kind: fmt::Debug + Send + Sync {
    /// The kind's name, for people. It is part of stored definitions, so it is stable.
    fn name(&self) -> &'static str;

    /// How it is applied. Code that depends on the kind matches on this.
    fn shape(&self) -> Shape<'_>;

    /// What it reads and writes.
    ///
    /// # Errors
    ///
    /// A sentence with the declared name that the schema lacks.
    fn reach(&self, schema: &Schema) -> Result<Reach, String>;

    /// Its declaration, for people.
    fn outline(&self, schema: &Schema) -> Outline {
        let _: &Schema = schema;
        Outline { from: self.entities().into_iter().map(str::to_owned).collect(), ..Outline::default() }
    }

    /// The entities whose items it considers in a change. It never receives a change or an item of another entity.
    fn entities(&self) -> Vec<&str>;

    /// The effects of a change.
    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect>;

    /// The reason if the item, as it is now, cannot be interpreted.
    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable>;

    /// The condition for an entity's items to take part.
    fn condition(&self) -> Option<(&str, &Condition)> {
        None
    }

    /// Its complete derived data. `items` has the application's items, and the data of derivations before it.
    fn derive(&self, name: &str, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived>;
}

/// Properties that depend on the shape.
impl dyn Kind + '_ {
    /// Why its effects are correct under repeats and reordering.
    #[must_use]
    pub fn family(&self) -> Family {
        match self.shape() {
            Shape::Count(_) | Shape::Rollup(_) => Family::Additive,
            Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => Family::LevelTriggered,
        }
    }

    /// True if sources may be gone, so that the existing items do not give all that it counted.
    #[must_use]
    pub fn is_history(&self) -> bool {
        match self.shape() {
            Shape::Count(count) => count.is_lower_bound(),
            Shape::Rollup(_) => true,
            Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => false,
        }
    }

    /// True if it keeps [entries](crate::kinds::entries), which another derivation reads.
    #[must_use]
    pub fn keeps_entries(&self) -> bool {
        self.name() == crate::kinds::entries::NAME
    }

    /// How it refreshes an item, if it does.
    #[must_use]
    pub fn refresh(&self) -> Option<&dyn Refresh> {
        match self.shape() {
            Shape::Mirror(mirror) => Some(mirror),
            Shape::Attributes(refresh) => Some(refresh),
            Shape::Count(_) | Shape::Rollup(_) | Shape::Cascade(_) => None,
        }
    }
}

// ---- refresh ----

/// How a level-triggered kind refreshes an item.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Entity of the items that it writes into.
    fn target(&self) -> &str;

    /// True if it creates the whole item.
    fn makes_item(&self) -> bool {
        false
    }

    /// True if it reads from one item of its entity what it writes into another. Then its depth is limited.
    fn recurs(&self) -> bool {
        false
    }

    /// The sources that must be read to compute its part of an item.
    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source>;

    /// Its part of an item that was not read, if the part depends only on this source: the attributes by which the item
    /// names the source, besides its key, and the part. `None` if that does not decide it.
    fn taken_from(&self, schema: &Schema, source: &Key, item: &Key, sources: &Sources) -> Option<(Item, Vec<Wanted>)> {
        let (_, _, _, _) = (schema, source, item, sources);
        None
    }

    /// Its part of an item, computed from what was read.
    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed;

    /// The search for all dependent items of a source with this key, as in the effects of a change of the source;
    /// `None` if the source itself names the item.
    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        let (_, _) = (schema, source);
        None
    }

    /// The search that finds the dependent items of a changed source; `None` if the kind does not search.
    fn found(&self) -> Option<&FoundBy> {
        None
    }

    /// Pairs of (what of a source it copies, attribute of the target); empty if it copies nothing as it is.
    fn copied(&self) -> &[(Input, String)] {
        &[]
    }

    /// Name of the count that it displays, if any.
    fn shows(&self) -> Option<&str> {
        None
    }

    /// Names of the counts that it reads.
    fn reads_counts(&self) -> Vec<&str> {
        self.shows().into_iter().collect()
    }

    /// The type of what it writes, such as `N`, if that is the same for all items.
    fn gives(&self) -> Option<&'static str> {
        None
    }

    /// True if its part of an item depends on the [clock](crate::clock). Then [`sources`](Self::sources) requests the
    /// clock, and more once its hour is known.
    fn reads_clock(&self) -> bool {
        false
    }

    /// True if an item can be readable and still be invalid for it.
    fn has_flaws(&self) -> bool {
        false
    }

    /// Readable items for which it derives nothing. `items` are those that [`Kind::derive`] receives.
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
    /// Definition of its entity.
    pub definition: &'a Definition,
    /// Its attributes, as far as they are known; `None` if it does not exist.
    pub item: Option<&'a Item>,
    /// Sources that changes named.
    pub named: &'a BTreeSet<Key>,
    /// The hour that the [clock](crate::clock) shows, as far as it is known, for a kind that reads it.
    pub hour: Option<u64>,
}

impl<'a> RefreshTarget<'a> {
    /// The item as the schema sees it, if it is of the target's entity.
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
    /// The whole item without the attributes of other derivations; `None` if it should not exist.
    Item(Option<Item>),
}

// ---- Shapes: how a kind is applied ----

/// How a kind is applied, with the parts that only kinds of that shape have.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// It adds to counters.
    Count(&'a Count),
    /// It adds to buckets, and widens their bounds.
    Rollup(&'a Rollup),
    /// It refreshes items and creates them whole.
    Mirror(&'a Mirror),
    /// It refreshes items and writes some of their attributes.
    Attributes(&'a dyn Refresh),
    /// It deletes or changes the application's items after a removal.
    Cascade(&'a Cascade),
}

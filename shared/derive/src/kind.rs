//! What a kind of derivation must be able to do.
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
    derived::{Counts, Derived, Items},
    effect::{Effect, Find},
    family::Family,
    flaw::Flaw,
    outline::Outline,
    part::Reach,
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};

/// A kind of derivation, with the declaration of one.
///
/// It has one definition twice: [`plan`](Kind::plan) is incremental, from one change to effects;
/// [`derive`](Kind::derive) is whole, the simplest loop over all items. Neither calls the other, and they must agree.
pub trait Kind: fmt::Debug + Send + Sync {
    /// The kind's name, for people. It stands in stored definitions, so it is stable.
    fn name(&self) -> &'static str;

    /// How it is applied. Match on it wherever the kind matters.
    fn shape(&self) -> Shape<'_>;

    /// What it reads and writes.
    ///
    /// # Errors
    ///
    /// A sentence that says which declared name the schema does not have.
    fn reach(&self, schema: &Schema) -> Result<Reach, String>;

    /// What it declares, for people.
    fn outline(&self, schema: &Schema) -> Outline {
        let _: &Schema = schema;
        Outline { from: self.entities().into_iter().map(str::to_owned).collect(), ..Outline::default() }
    }

    /// The entities whose items it considers in a change. It is not asked about a change or an item of any other.
    fn entities(&self) -> Vec<&str>;

    /// What a change asks for.
    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect>;

    /// Can the item, as it is now, not be interpreted?
    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable>;

    /// The entity whose items must meet a condition to take part, and the condition.
    fn condition(&self) -> Option<(&str, &Condition)> {
        None
    }

    /// What all of its derived data should be. `items` holds the ground, and what derivations before it derived.
    fn derive(&self, name: &str, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived>;
}

/// What follows from the shape.
impl dyn Kind + '_ {
    /// Why its effects are right under repeats and reordering.
    #[must_use]
    pub fn family(&self) -> Family {
        match self.shape() {
            Shape::Count(_) | Shape::Rollup(_) => Family::Additive,
            Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => Family::LevelTriggered,
        }
    }

    /// May the sources of its values be gone, so that the ground does not show all of what it counted?
    #[must_use]
    pub fn is_history(&self) -> bool {
        match self.shape() {
            Shape::Count(count) => count.history,
            Shape::Rollup(_) => true,
            Shape::Mirror(_) | Shape::Attributes(_) | Shape::Cascade(_) => false,
        }
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
    /// [`Kind::derive`] is given.
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

// ---- Shapes: the ways in which a kind is applied ----

/// How a kind is applied, with what only kinds of that shape have.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// It adds to counters.
    Count(&'a Count),
    /// It adds to buckets, and widens their bounds.
    Rollup(&'a Rollup),
    /// It refreshes items and makes them whole.
    Mirror(&'a Mirror),
    /// It refreshes items and writes some of their attributes.
    Attributes(&'a dyn Refresh),
    /// It deletes or changes the application's items after a removal.
    Cascade(&'a Cascade),
}

//! What a kind of derivation must be able to do.
//!
//! A new kind is a file in [`kinds`](crate::kinds) with a declaration that implements [`Kind`], and [`Refresh`] too if it
//! is level-triggered. It has one of the [shapes](Shape). If none fits, it adds one, with its declaration in
//! [`declaration`](crate::declaration), and the compiler names every place that must handle it.

pub mod refresh;
pub mod shape;

use std::fmt;

use crate::{
    change::Sight,
    condition::Condition,
    derived::{Counts, Derived, Items},
    effect::Effect,
    family::Family,
    kind::{refresh::Refresh, shape::Shape},
    outline::Outline,
    part::Reach,
    schema::{Image, Schema, Unreadable},
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

    /// The entities whose items it looks at in a change. It is not asked about a change or an item of any other.
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

    /// How it looks at an item, if it does.
    #[must_use]
    pub fn refresh(&self) -> Option<&dyn Refresh> {
        match self.shape() {
            Shape::Mirror(mirror) => Some(mirror),
            Shape::Attributes(refresh) => Some(refresh),
            Shape::Count(_) | Shape::Rollup(_) | Shape::Cascade(_) => None,
        }
    }
}

//! Derivations: declarations of derived data.

use std::sync::Arc;

use crate::{
    change::Sight,
    declaration::Count,
    derived::{Counts, Derived, Items},
    effect::{Add, Effect},
    kind::{Kind, Shape},
    schema::{Image, Schema, Unreadable},
};

/// One declared rule.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// Its row in the table's design, such as `D-03`.
    pub id: String,
    /// The stored name: in the keys of counters, in the registry, in jobs and lists. It is stable.
    pub name: String,
    /// The label once it is renamed: in messages, metrics, reports and options.
    pub renamed: Option<String>,
    /// Its kind.
    pub kind: Arc<dyn Kind>,
}

impl Derivation {
    /// A derivation of a kind.
    pub fn new(id: &str, name: &str, kind: impl Kind + 'static) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), renamed: None, kind: Arc::new(kind) }
    }

    /// The effects of a change of an item. An item with a counter that cannot be stored counts nothing.
    #[must_use]
    pub fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        if matches!(self.kind.shape(), Shape::Count(Count { each: Some(_), .. })) {
            // Its other counters count nothing of the item either.
            return self.kind.plan(schema, &sight.only(|image| self.unreadable(schema, image).is_none()));
        }
        let mut effects = self.kind.plan(schema, sight);
        let is_unstorable = |add: &Add| Count::too_long(&self.name, &add.target).is_some();
        effects.retain(|effect| !matches!(effect, Effect::Add(add) if is_unstorable(add)));
        effects
    }

    /// Why an item cannot be interpreted, and so counts as absent; `None` if it can, or is not one of its items.
    #[must_use]
    pub fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let Shape::Count(count) = self.kind.shape() else { return self.kind.unreadable(schema, image) };
        if !image.is(&count.source) {
            return None;
        }
        let targets = match count.counted(schema, image) {
            Ok((targets, _)) => targets,
            Err(unreadable) => return Some(unreadable),
        };
        // A counter that cannot be stored.
        let problem = targets.iter().find_map(|target| Count::too_long(&self.name, target))?;
        let attribute = count.each.as_deref().or_else(|| count.link.from_fields().last())?.to_owned();
        Some(Unreadable { attribute, why: format!("leads to a counter whose key {problem}") })
    }

    /// A comparison in its condition with a value of another type in an item. It is decided as DynamoDB decides it, and
    /// is probably a mistake.
    #[must_use]
    pub fn unlike(&self, image: &Image<'_>) -> Option<Unreadable> {
        let (_, condition) = self.kind.condition().filter(|(entity, _)| image.is(entity))?;
        condition.unlike(image.item).map(|(path, why)| Unreadable { attribute: path.to_string(), why })
    }

    /// The data that it derives from the items of a table: see [`Kind::derive`].
    #[must_use]
    pub fn derive(&self, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived> {
        self.kind.derive(&self.name, schema, items, counts)
    }

    /// The name that people use.
    #[must_use]
    pub fn label(&self) -> &str {
        self.renamed.as_ref().unwrap_or(&self.name)
    }

    /// True if an option with this name refers to it. The stored name does too, since the option may predate the
    /// renaming.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.label() == name || self.name == name
    }
}

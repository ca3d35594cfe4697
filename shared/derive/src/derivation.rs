//! Derivations: declarations of derived data.

use std::sync::Arc;

use keys::{
    counter::CounterKey,
    key::{Key, PARTITION_KEY_BYTES_MAX},
};

use crate::{
    change::Sight,
    derived::{Counts, Derived, Items},
    effect::Effect,
    kind::{Kind, Shape},
    schema::{Image, Schema, Unreadable},
};

/// The key of a counter surely fits if the target's sort key and the derivation's name together have fewer bytes than
/// this; then it need not be built to check it.
const SURELY_FITS: usize = 512;

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

    /// The effects of a change of an item. A counter that cannot be stored counts nothing.
    #[must_use]
    pub fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let mut effects = self.kind.plan(schema, sight);
        effects.retain(|effect| !matches!(effect, Effect::Add(add) if self.too_long(&add.target).is_some()));
        effects
    }

    /// Why an item cannot be interpreted, and so counts as absent; `None` if it can, or is not one of its items.
    #[must_use]
    pub fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        self.kind.unreadable(schema, image).or_else(|| {
            let Shape::Count(count) = self.kind.shape() else { return None };
            let (target, _) = count.counted(schema, image).ok().flatten().filter(|_| image.is(&count.source))?;
            let why = format!("leads to a counter whose key {}", self.too_long(&target)?);
            Some(Unreadable { attribute: count.link.from_fields().last()?.to_owned(), why })
        })
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
        let mut derived = self.kind.derive(&self.name, schema, items, counts);
        derived.retain(|part| !matches!(part, Derived::Count { target, .. } if self.too_long(target).is_some()));
        derived
    }

    /// The problem with the key of a target's counter if it is too long to be stored, for example after a long sort
    /// key.
    fn too_long(&self, target: &Key) -> Option<String> {
        if target.pk.len() <= PARTITION_KEY_BYTES_MAX && target.sk.len() + self.name.len() < SURELY_FITS {
            return None;
        }
        let counter = CounterKey::home(target.clone(), &self.name);
        counter.key().err().map(|error| error.problem.to_string())
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

//! Items that are ignored, because of their type: each type is told once, with the declared one that is nearest.

use std::collections::BTreeSet;

use derive::{
    change::Change,
    schema::{Schema, Seen},
};
use keys::item::text;
use manifest::meant::meant;

/// Types that are remembered. Of more nothing is told: no application has so many by mistake.
const TYPES_MAX: usize = 100;

/// The types that were told.
#[derive(Debug, Default)]
pub(super) struct IgnoredTypes(BTreeSet<Option<String>>);

impl IgnoredTypes {
    /// A sentence about the item of a change, if it is ignored and its type was not told before.
    pub(super) fn new_of(&mut self, schema: &Schema, change: &Change) -> Option<String> {
        let image = change.new_image().or(change.old_image())?;
        let attribute = schema.layout.entity_type.as_deref();
        let (name, what) = match (schema.see(&change.key, image), attribute) {
            (Seen::Untyped, Some(attribute)) => (None, format!("items without {attribute} are ignored")),
            (Seen::Unknown, None) => (None, "items with the key of no entity are ignored".to_owned()),
            (Seen::Unknown, Some(attribute)) => {
                let name = text(image, attribute)?;
                let near = meant(name, schema.entities().map(|entity| entity.name.as_str()));
                let what = format!("items of the type \"{name}\" are ignored, because there is no such entity{near}");
                (Some(name.to_owned()), what)
            }
            (Seen::Untyped | Seen::Known(_) | Seen::Misfit(_), _) => return None,
        };
        let is_new = self.0.len() < TYPES_MAX && self.0.insert(name);
        is_new.then(|| match what.strip_suffix('?') {
            Some(what) => format!("{what}? One is {}", change.key),
            None => format!("{what}; one is {}", change.key),
        })
    }
}

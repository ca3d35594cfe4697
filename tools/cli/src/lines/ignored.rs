//! Items that are ignored, because of their type: each type is told once, with the declared one that is nearest.

use std::collections::BTreeSet;

use derive::{
    change::Change,
    schema::{Schema, Seen},
};
use keys::{item::text, job::JobKey};
use manifest::meant::meant;

/// Types that are remembered. Of more nothing is told: no application has so many by mistake.
const TYPES_MAX: usize = 100;

/// The types that were told.
#[derive(Debug, Default)]
pub(super) struct IgnoredTypes(BTreeSet<Option<String>>);

impl IgnoredTypes {
    /// A sentence about the item of a change, if it is ignored and its type was not told before.
    pub(super) fn new_of(&mut self, schema: &Schema, change: &Change) -> Option<String> {
        // A job is an item of the service's own, and of no entity.
        if JobKey::parse(&change.key).is_some() {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use derive::change::Images;
    use functions::declared::{Choice, declared};
    use keys::{item::Item, job::JOB, key::Key};
    use serde_dynamo::AttributeValue;

    use super::*;

    #[test]
    fn a_type_is_told_once_and_a_job_of_the_service_never() {
        let (schema, _) = declared(Choice::default()).unwrap();
        let mut ignored = IgnoredTypes::default();
        let mut said = |key: Key, kind: &str| {
            let item = Item::from([("EntityType".to_owned(), AttributeValue::S(kind.to_owned()))]);
            let images = Images::Inserted(item);
            let change = Change { id: String::new(), sequence_number: String::new(), created_ms: None, key, images };
            ignored.new_of(&schema, &change)
        };
        let job = JobKey { derivation: "comment-author".to_owned(), id: "e1".to_owned() };
        assert_eq!(said(job.key(), JOB), None);
        let what = "items of the type \"Usre\" are ignored, because there is no such entity: did you mean \"User\"? One is \
                    a / b";
        assert_eq!(said(Key::new("a", "b"), "Usre").as_deref(), Some(what));
        for key in [Key::new("a", "c"), Key::new("USER#ada", "PROFILE"), Key::new("USER#ada", "FOLLOWER#bob")] {
            assert_eq!(said(key, "Usre"), None);
        }
    }
}

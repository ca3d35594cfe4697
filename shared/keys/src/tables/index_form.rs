//! Indexes of tables of any form.

use serde_dynamo::AttributeValue;

use super::{NO_SORT_KEY, key_attribute::KeyAttribute, range};
use crate::item::{Item, text};

/// A global secondary index: over plain attributes, or over texts of declared forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexForm {
    /// Its name in the table.
    pub name: String,
    /// The attributes of its partition key, one to four.
    pub pk: Vec<KeyAttribute>,
    /// The attributes of its sort key, none to four.
    pub sk: Vec<KeyAttribute>,
    /// Attributes that it projects beside keys; `None` for all.
    pub projection: Option<Vec<String>>,
    /// The entities whose items have its key, as they are declared.
    pub entities: Vec<String>,
}

/// The attributes inside of the key of a table's index. With a dot or a bracket their names would be paths into others.
pub(super) fn attributes(table: &str, index: &str) -> [String; 2] {
    ["pk", "sk"].map(|part| format!("{table}/{index}/{part}"))
}

impl IndexForm {
    /// The attributes of both parts of its key.
    pub fn parts(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.pk.iter().chain(&self.sk)
    }

    /// Is it over plain attributes, whose items are in it whenever they have them?
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.parts().all(|attribute| attribute.is_plain)
    }

    /// The key of a stored item inside; `None` where the item is not in the index.
    pub(super) fn key(&self, table: &str, item: &Item) -> Option<[(String, AttributeValue); 2]> {
        let [pk, sk] = attributes(table, &self.name);
        Some([(pk, AttributeValue::S(joined(&self.pk, item)?)), (sk, AttributeValue::S(joined(&self.sk, item)?))])
    }

    /// What a stored item of an entity has of the key inside.
    pub(super) fn inward(&self, table: &str, entity: Option<&str>, item: &Item) -> Vec<(String, AttributeValue)> {
        if self.is_plain() {
            let is_in = entity.is_some_and(|entity| self.entities.iter().any(|other| other == entity));
            return self.key(table, item).filter(|_| is_in).into_iter().flatten().collect();
        }
        // Each by itself: an application may write one of them.
        let [pk, sk] = attributes(table, &self.name);
        let has_pk = joined(&self.pk, item);
        let has_sk = joined(&self.sk, item).filter(|_| has_pk.is_some() || !self.sk.is_empty());
        [(pk, has_pk), (sk, has_sk)]
            .into_iter()
            .filter_map(|(name, text)| Some((name, AttributeValue::S(text?))))
            .collect()
    }

    /// The stored attributes behind an attribute inside; `None` if that one is not in this index's key.
    pub(super) fn part(&self, table: &str, name: &str) -> Option<&[KeyAttribute]> {
        match name.strip_prefix(table)?.strip_prefix('/')?.strip_prefix(&self.name)?.strip_prefix('/')? {
            "pk" => Some(&self.pk),
            "sk" => Some(&self.sk),
            _ => None,
        }
    }

    /// The attributes of a cursor, as they are stored.
    pub(super) fn cursor(&self, table: &str, cursor: &Item) -> Option<Vec<(String, AttributeValue)>> {
        let [pk, sk] = attributes(table, &self.name);
        let mut stored = range::values(&self.pk, text(cursor, &pk)?)?;
        if !self.sk.is_empty() {
            stored.extend(range::values(&self.sk, text(cursor, &sk)?)?);
        }
        Some(stored)
    }
}

/// The texts of an item's attributes, as one; `None` where it lacks one of them.
fn joined(attributes: &[KeyAttribute], item: &Item) -> Option<String> {
    let texts: Option<Vec<String>> =
        attributes.iter().map(|attribute| attribute.text(item.get(&attribute.name)?)).collect();
    texts.map(|texts| if texts.is_empty() { NO_SORT_KEY.to_owned() } else { texts.join("#") })
}

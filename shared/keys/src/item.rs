//! Items in memory: attributes in order of their names.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_dynamo::AttributeValue;
use smol_str::SmolStr;

/// An item's attributes by name, in order of the names, so that computations over an item have the same result in every
/// run.
///
/// It is used like a map. It is one allocation that includes the names, since creating and dropping items is most of
/// the cost of a batch: as a `BTreeMap<String, _>`, it took half of the time from an event to its writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item(Vec<(SmolStr, AttributeValue)>);

impl Item {
    /// An item without attributes.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Number of attributes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has no attribute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.0.get(self.at(name).ok()?).map(|(_, value)| value)
    }

    /// The value of an attribute, mutable.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut AttributeValue> {
        let at = self.at(name).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// True if it has this attribute.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.at(name).is_ok()
    }

    /// Sets an attribute, and returns its former value.
    pub fn insert(&mut self, name: impl Into<SmolStr>, value: AttributeValue) -> Option<AttributeValue> {
        let name = name.into();
        match self.at(&name) {
            Ok(at) => self.0.get_mut(at).map(|(_, former)| std::mem::replace(former, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes an attribute, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<AttributeValue> {
        let at = self.at(name).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Keeps only the attributes for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut AttributeValue) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    /// The attributes in order of their names.
    pub fn iter(&self) -> Iter<'_> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The names in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// The values in order of their names.
    pub fn values(&self) -> impl Iterator<Item = &AttributeValue> {
        self.iter().map(|(_, value)| value)
    }

    /// Position of an attribute, or where it would be inserted.
    fn at(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}

/// An iterator over the attributes of an item.
pub type Iter<'a> = std::iter::Map<
    std::slice::Iter<'a, (SmolStr, AttributeValue)>,
    fn(&'a (SmolStr, AttributeValue)) -> (&'a str, &'a AttributeValue),
>;

/// An iterator that consumes an item.
pub type IntoIter = std::iter::Map<
    std::vec::IntoIter<(SmolStr, AttributeValue)>,
    fn((SmolStr, AttributeValue)) -> (String, AttributeValue),
>;

impl<'a> IntoIterator for &'a Item {
    type Item = (&'a str, &'a AttributeValue);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for Item {
    type Item = (String, AttributeValue);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        self.0.into_iter().map(|(name, value)| (name.into(), value))
    }
}

/// If a name occurs several times, its last value is kept.
impl<N: Into<SmolStr>> FromIterator<(N, AttributeValue)> for Item {
    fn from_iter<T: IntoIterator<Item = (N, AttributeValue)>>(pairs: T) -> Self {
        let pairs = pairs.into_iter();
        let mut attributes = Vec::with_capacity(pairs.size_hint().0);
        attributes.extend(pairs.map(|(name, value)| (name.into(), value)));
        Self::from(attributes)
    }
}

/// If a name occurs several times, its last value is kept.
impl From<Vec<(SmolStr, AttributeValue)>> for Item {
    fn from(mut attributes: Vec<(SmolStr, AttributeValue)>) -> Self {
        if !attributes.is_sorted_by(|(one, _), (other, _)| one < other) {
            attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
            // `dedup_by` keeps the first of equal entries, so the last value is swapped into it.
            attributes.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Self(attributes)
    }
}

impl<N: Into<SmolStr>, const LEN: usize> From<[(N, AttributeValue); LEN]> for Item {
    fn from(pairs: [(N, AttributeValue); LEN]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<N: Into<SmolStr>> Extend<(N, AttributeValue)> for Item {
    fn extend<T: IntoIterator<Item = (N, AttributeValue)>>(&mut self, pairs: T) {
        for (name, value) in pairs {
            self.insert(name, value);
        }
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Attributes)
    }
}

/// Reads attributes in any order.
struct Attributes;

impl<'de> Visitor<'de> for Attributes {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item in DynamoDB's JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut attributes = Vec::with_capacity(map.size_hint().unwrap_or(8));
        while let Some(attribute) = map.next_entry()? {
            attributes.push(attribute);
        }
        Ok(Item::from(attributes))
    }
}

/// The text of an attribute, if it has type S.
#[must_use]
pub fn text<'a>(item: &'a Item, attribute: &str) -> Option<&'a str> {
    match item.get(attribute) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}

/// True for an attribute that DynamoDB itself writes, such as those of global tables version 2017.
#[must_use]
pub fn is_stores_own(attribute: &str) -> bool {
    attribute.starts_with("aws:")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prop_assert_eq};

    use super::*;

    fn n(number: u8) -> AttributeValue {
        AttributeValue::N(number.to_string())
    }

    proptest::proptest! {
        #[test]
        fn an_item_is_a_map(made in vec(("[ab]{0,3}", 0u8..9), 0..24), steps in vec(("[ab]{0,3}", 0u8..9), 0..24)) {
            let pairs = || made.iter().map(|(name, number)| (name.clone(), n(*number)));
            let (mut item, mut map) = (pairs().collect::<Item>(), pairs().collect::<BTreeMap<_, _>>());
            for (name, number) in steps {
                match number {
                    0..3 => prop_assert_eq!(item.remove(&name), map.remove(&name)),
                    3..8 => prop_assert_eq!(item.insert(&name, n(number)), map.insert(name.clone(), n(number))),
                    _ => {
                        item.retain(|stored, _| stored.len() != name.len());
                        map.retain(|stored, _| stored.len() != name.len());
                    }
                }
                prop_assert_eq!(item.get(&name), map.get(&name));
                prop_assert_eq!(item.get_mut(&name), map.get_mut(&name));
                prop_assert_eq!(item.contains_key(&name), map.contains_key(&name));
                prop_assert_eq!((item.len(), item.is_empty()), (map.len(), map.is_empty()));
            }
            prop_assert_eq!(item.keys().collect::<Vec<_>>(), map.keys().collect::<Vec<_>>());
            prop_assert_eq!(item.values().collect::<Vec<_>>(), map.values().collect::<Vec<_>>());
            let mut again = Item::new();
            again.extend(map.clone());
            prop_assert_eq!(&again, &item);
            prop_assert_eq!(item.into_iter().collect::<BTreeMap<_, _>>(), map);
        }
    }
}

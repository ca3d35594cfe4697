//! An item that differs, and how, as a checksum: two checks with the same checksum found the same difference.

use std::collections::BTreeSet;

use derive::{
    position::DerivationAt,
    refresh::Look,
    sources::Source,
    tally::Tally,
    write::{Action, Write},
};
use flate2::Crc;
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

/// An item that is not correct.
pub(super) struct Differing {
    /// The item, as it was checked.
    pub(super) look: Look,
    /// The stored item.
    pub(super) held: Option<Item>,
    /// What decides its value.
    pub(super) decided_by: BTreeSet<Source>,
    /// Positions of the derivations whose part differs.
    pub(super) derivations: Vec<DerivationAt>,
    /// Checksum of the difference.
    pub(super) difference: String,
}

/// Checksum of a write's effect on an item, and of the item's values that it would replace. Other attributes are left
/// out, because they may change all the time beside a part that has drifted.
pub(crate) fn difference(write: &Write, held: Option<&Item>) -> String {
    let mut sum = Checksum(Crc::new());
    match &write.action {
        Action::Put(item) => {
            sum.text("put");
            item.iter().for_each(|(name, value)| sum.attribute(name, Some(value)));
        }
        Action::Update(update) => {
            sum.text("update");
            for (name, value) in &update.set {
                sum.attribute(name, Some(value));
                sum.attribute(name, held.and_then(|held| held.get(name)));
            }
            for name in &update.remove {
                sum.attribute(name, None);
                sum.attribute(name, held.and_then(|held| held.get(name)));
            }
        }
        Action::Delete | Action::Check => sum.text("delete"),
    }
    format!("{:08x}", sum.0.sum())
}

/// Checksum of items and of a number for each.
pub(super) fn of_numbers(numbers: impl IntoIterator<Item = (Key, Tally)>) -> String {
    let mut sum = Checksum(Crc::new());
    for (key, tally) in numbers {
        for text in [&key.pk, &key.sk, &tally.count.to_string(), &tally.sum.to_string()] {
            sum.text(text);
        }
    }
    format!("{:08x}", sum.0.sum())
}

/// A checksum of texts and values. Maps and sets have no fixed order, so their elements are sorted.
struct Checksum(Crc);

impl Checksum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn attribute(&mut self, name: &str, value: Option<&AttributeValue>) {
        self.text(name);
        match value {
            Some(value) => self.value(value),
            None => self.text("none"),
        }
    }

    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::S(text) => ["S", text].iter().for_each(|text| self.text(text)),
            AttributeValue::N(text) => ["N", text].iter().for_each(|text| self.text(text)),
            AttributeValue::B(bytes) => {
                self.text("B");
                self.bytes(bytes);
            }
            AttributeValue::Bool(truth) => self.text(if *truth { "true" } else { "false" }),
            AttributeValue::Null(_) => self.text("null"),
            AttributeValue::L(values) => {
                self.text(&format!("L{}", values.len()));
                for value in values {
                    self.value(value);
                }
            }
            AttributeValue::M(map) => {
                self.text(&format!("M{}", map.len()));
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(name, _)| *name);
                for (name, value) in entries {
                    self.attribute(name, Some(value));
                }
            }
            AttributeValue::Ss(texts) => self.set("SS", texts),
            AttributeValue::Ns(texts) => self.set("NS", texts),
            AttributeValue::Bs(all) => self.set("BS", all),
        }
    }

    fn set<T: AsRef<[u8]> + Ord>(&mut self, kind: &str, elements: &[T]) {
        self.text(&format!("{kind}{}", elements.len()));
        let mut elements: Vec<&T> = elements.iter().collect();
        elements.sort();
        for element in elements {
            self.bytes(element.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use derive::write::{Table, Update};
    use keys::key::Key;

    use super::*;

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn setting(value: AttributeValue) -> Write {
        let action = Action::Update(Update::set(Item::from([("Claims", value)])));
        Write { table: Table::Main, key: Key::new("P", "S"), action, guard: None }
    }

    fn of(value: AttributeValue) -> String {
        difference(&setting(value), None)
    }

    #[test]
    fn a_map_and_a_set_are_the_same_in_any_order() {
        let names = ["PK", "SK", "a", "b", "c", "d"];
        let map = |names: &mut dyn Iterator<Item = &str>| {
            AttributeValue::M(names.map(|name| (name.to_owned(), s(name))).collect::<HashMap<_, _>>())
        };
        assert_eq!(of(map(&mut names.into_iter())), of(map(&mut names.into_iter().rev())));
        let set = |texts: &[&str]| AttributeValue::Ss(texts.iter().map(|&text| text.to_owned()).collect());
        assert_eq!(of(set(&["a", "b"])), of(set(&["b", "a"])));
        assert_ne!(of(set(&["a", "b"])), of(set(&["ab"])));
        assert_ne!(of(AttributeValue::L(vec![s("a"), s("b")])), of(AttributeValue::L(vec![s("b"), s("a")])));
    }

    #[test]
    fn what_is_held_counts_where_it_would_be_written_and_nowhere_else() {
        let write = setting(s("new"));
        let held = |pairs: &[(&str, &str)]| {
            let item: Item = pairs.iter().map(|(name, text)| (*name, s(text))).collect();
            difference(&write, Some(&item))
        };
        assert_eq!(held(&[("Claims", "old"), ("Seen", "1")]), held(&[("Claims", "old"), ("Seen", "2")]));
        assert_ne!(held(&[("Claims", "old")]), held(&[("Claims", "older")]));
        assert_ne!(held(&[("Claims", "old")]), held(&[]));
        assert_ne!(of(s("new")), of(s("newer")));
    }
}

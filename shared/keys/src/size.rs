//! The size of an item, by DynamoDB's rule.
//!
//! An attribute counts its name and its value, in UTF-8 bytes; a list or map adds 3, and 1 for each element.
//! Source: DynamoDB developer guide, "Item sizes and formats".

use serde_dynamo::AttributeValue;

use crate::{item::Item, number};

/// The size of an item, in bytes, names included.
///
/// ```
/// # use serde_dynamo::AttributeValue;
/// let item = keys::item::Item::from([("id".to_owned(), AttributeValue::S("id_value".to_owned()))]);
/// assert_eq!(keys::size::item_bytes(&item), 10);
/// ```
#[must_use]
pub fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::N(text) => number::bytes(text),
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.len(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|text| number::bytes(text)).sum(),
        AttributeValue::Bs(set) => set.iter().map(Vec::len).sum(),
        AttributeValue::L(list) => 3 + list.iter().map(|value| 1 + value_bytes(value)).sum::<usize>(),
        AttributeValue::M(map) => {
            3 + map.iter().map(|(name, value)| 1 + name.len() + value_bytes(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: AttributeValue) -> usize {
        item_bytes(&Item::from([("a".to_owned(), value)])) - 1
    }

    #[test]
    fn every_type_has_its_size() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        assert_eq!(bytes(text("ä€")), 5, "UTF-8 bytes, not characters");
        assert_eq!(bytes(text("")), 0);
        assert_eq!(bytes(AttributeValue::N("-12.5".to_owned())), 4);
        assert_eq!(bytes(AttributeValue::B(vec![0; 6])), 6);
        assert_eq!(bytes(AttributeValue::Bool(true)), 1);
        assert_eq!(bytes(AttributeValue::Null(true)), 1);
        assert_eq!(bytes(AttributeValue::Ss(vec!["a".to_owned(), "bc".to_owned()])), 3);
        assert_eq!(bytes(AttributeValue::Ns(vec!["1".to_owned(), "1234".to_owned()])), 5);
        assert_eq!(bytes(AttributeValue::Bs(vec![vec![1], vec![1, 2]])), 3);
        assert_eq!(bytes(AttributeValue::L(vec![])), 3);
        assert_eq!(bytes(AttributeValue::L(vec![text("ab"), text("c")])), 3 + 2 + 3);
        assert_eq!(bytes(AttributeValue::M([("k".to_owned(), text("ab"))].into())), 3 + 1 + 1 + 2);
    }

    #[test]
    fn names_count() {
        let item = Item::from([
            ("PK".to_owned(), AttributeValue::S("USER#a".to_owned())),
            ("ä".to_owned(), AttributeValue::Bool(false)),
        ]);
        assert_eq!(item_bytes(&item), 8 + 3);
    }
}

//! Attribute values as the Streams API gives them: their JSON, their size, and whether two are equal by value.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodbstreams::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keys::number::{self, Decimal};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// An item or its key: attribute values by attribute name.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// The bytes that a list or a map counts on top of its content.
///
/// Source: `DynamoDB` developer guide, item sizes and formats; each element counts one more.
const CONTAINER_SIZE_BYTES: usize = 3;

/// Serialises an attribute value as `DynamoDB` JSON, binary as base64: `{"B":"Zm9v"}`.
///
/// A type that this SDK does not know becomes `{}`, which no reader takes for a value.
pub(crate) struct Wire<'a>(pub(crate) &'a AttributeValue);

impl Serialize for Wire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            AttributeValue::S(text) => map.serialize_entry("S", text)?,
            AttributeValue::N(number) => map.serialize_entry("N", number)?,
            AttributeValue::B(blob) => map.serialize_entry("B", &STANDARD.encode(blob))?,
            AttributeValue::Bool(flag) => map.serialize_entry("BOOL", flag)?,
            AttributeValue::Null(flag) => map.serialize_entry("NULL", flag)?,
            AttributeValue::Ss(texts) => map.serialize_entry("SS", texts)?,
            AttributeValue::Ns(numbers) => map.serialize_entry("NS", numbers)?,
            AttributeValue::Bs(blobs) => {
                map.serialize_entry("BS", &blobs.iter().map(|blob| STANDARD.encode(blob)).collect::<Vec<_>>())?;
            }
            AttributeValue::L(values) => map.serialize_entry("L", &values.iter().map(Wire).collect::<Vec<_>>())?,
            AttributeValue::M(item) => map.serialize_entry("M", &wire(item))?,
            _ => {}
        }
        map.end()
    }
}

/// An item, ready to be serialised, its attributes in the order of their names.
pub(crate) fn wire(item: &Item) -> BTreeMap<&str, Wire<'_>> {
    item.iter().map(|(name, value)| (name.as_str(), Wire(value))).collect()
}

/// The size of an item by `DynamoDB`'s rule, in bytes: names and values, as UTF-8.
pub(crate) fn item_size_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size_bytes(value)).sum()
}

fn size_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number::bytes(number),
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|number| number::bytes(number)).sum(),
        AttributeValue::Bs(blobs) => blobs.iter().map(|blob| blob.as_ref().len()).sum(),
        AttributeValue::L(values) => CONTAINER_SIZE_BYTES + values.len() + values.iter().map(size_bytes).sum::<usize>(),
        AttributeValue::M(item) => CONTAINER_SIZE_BYTES + item.len() + item_size_bytes(item),
        _ => 0,
    }
}

/// Whether two items are equal by value, as AWS compares them before it writes a stream record: numbers by value, sets
/// and maps in any order, lists in order.
pub(crate) fn items_equal(a: &Item, b: &Item) -> bool {
    a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| values_equal(value, other)))
}

fn values_equal(a: &AttributeValue, b: &AttributeValue) -> bool {
    match (a, b) {
        (AttributeValue::N(a), AttributeValue::N(b)) => number::same(a, b),
        (AttributeValue::Ss(a), AttributeValue::Ss(b)) => sorted(a, String::clone) == sorted(b, String::clone),
        (AttributeValue::Ns(a), AttributeValue::Ns(b)) => {
            sorted(a, |text| number_key(text)) == sorted(b, |text| number_key(text))
        }
        (AttributeValue::Bs(a), AttributeValue::Bs(b)) => {
            sorted(a, |blob| blob.as_ref().to_vec()) == sorted(b, |blob| blob.as_ref().to_vec())
        }
        (AttributeValue::L(a), AttributeValue::L(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| values_equal(a, b))
        }
        (AttributeValue::M(a), AttributeValue::M(b)) => items_equal(a, b),
        _ => a == b,
    }
}

/// A number by value, or its text when it is none.
fn number_key(text: &str) -> (Option<Decimal>, Option<String>) {
    match Decimal::parse(text) {
        Some(number) => (Some(number), None),
        None => (None, Some(text.to_owned())),
    }
}

fn sorted<T, K: Ord>(values: &[T], key: impl Fn(&T) -> K) -> Vec<K> {
    let mut keys: Vec<K> = values.iter().map(key).collect();
    keys.sort();
    keys
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::primitives::Blob;
    use aws_sdk_dynamodbstreams::types::AttributeValue as Value;

    use super::{Item, Wire, item_size_bytes, items_equal};

    fn item(values: &[(&str, Value)]) -> Item {
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn number(text: &str) -> Value {
        Value::N(text.to_owned())
    }

    #[test]
    fn items_are_equal_by_value_and_lists_by_order() {
        let equal = |a: Value, b: Value| items_equal(&item(&[("a", a)]), &item(&[("a", b)]));
        let numbers = |texts: &[&str]| Value::Ns(texts.iter().map(|text| (*text).to_owned()).collect());
        let blobs = |bytes: &[&[u8]]| Value::Bs(bytes.iter().map(|bytes| Blob::new(bytes.to_vec())).collect());
        assert!(equal(number("2.0"), number("2")));
        assert!(equal(numbers(&["1", "2.0"]), numbers(&["2", "1.0"])));
        assert!(equal(blobs(&[b"a", b"b"]), blobs(&[b"b", b"a"])));
        assert!(equal(
            Value::M(item(&[("x", number("1")), ("y", Value::Null(true))])),
            Value::M(item(&[("y", Value::Null(true)), ("x", number("1.0"))])),
        ));
        assert!(!equal(Value::L(vec![number("1"), number("2")]), Value::L(vec![number("2"), number("1")])));
        assert!(!equal(number("2"), Value::S("2".to_owned())));
        assert!(!equal(numbers(&["1"]), numbers(&["1", "2"])));
        assert!(!items_equal(&item(&[("a", number("1"))]), &item(&[("b", number("1"))])));
    }

    #[test]
    fn sizes_follow_the_item_size_rule() {
        assert_eq!(item_size_bytes(&item(&[("id", Value::S("id_value".to_owned()))])), 10);
        assert_eq!(item_size_bytes(&item(&[("é", Value::Bool(true))])), 3);
        let list = Value::L(vec![number("42"), Value::Null(true)]);
        assert_eq!(item_size_bytes(&item(&[("l", list)])), 1 + 3 + 2 + 2 + 1);
        let map = Value::M(item(&[("ab", Value::B(Blob::new(b"xyz".to_vec())))]));
        assert_eq!(item_size_bytes(&item(&[("m", map)])), 1 + 3 + 1 + 2 + 3);
    }

    #[test]
    fn binary_values_become_base64() {
        let value = Value::L(vec![
            Value::B(Blob::new(b"foobar".to_vec())),
            Value::Bs(vec![Blob::new(b"foo".to_vec())]),
            Value::Bool(false),
        ]);
        assert_eq!(
            serde_json::to_string(&Wire(&value)).unwrap(),
            r#"{"L":[{"B":"Zm9vYmFy"},{"BS":["Zm9v"]},{"BOOL":false}]}"#
        );
    }
}

//! Attribute values of the Streams API: as JSON, and in the form that is measured and compared.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodbstreams::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keys::item;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// An item or its key: attribute values by attribute name.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// Serialises an attribute value as `DynamoDB` JSON, binary as base64: `{"B":"Zm9v"}`.
///
/// A type that this SDK does not know becomes `{}`, which no reader accepts as a value.
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

/// An item for serialisation, with its attributes in the order of their names.
pub(crate) fn wire(item: &Item) -> BTreeMap<&str, Wire<'_>> {
    item.iter().map(|(name, value)| (name.as_str(), Wire(value))).collect()
}

/// An item in the workspace's own type, which can be measured and compared. A value of a type that this SDK does not
/// know counts as NULL.
pub(crate) fn held(item: &Item) -> item::Item {
    item.iter().map(|(name, value)| (name.as_str(), held_value(value))).collect()
}

fn held_value(value: &AttributeValue) -> serde_dynamo::AttributeValue {
    use serde_dynamo::AttributeValue as Held;
    match value {
        AttributeValue::S(text) => Held::S(text.clone()),
        AttributeValue::N(number) => Held::N(number.clone()),
        AttributeValue::B(blob) => Held::B(blob.as_ref().to_vec()),
        AttributeValue::Bool(flag) => Held::Bool(*flag),
        AttributeValue::Ss(texts) => Held::Ss(texts.clone()),
        AttributeValue::Ns(numbers) => Held::Ns(numbers.clone()),
        AttributeValue::Bs(blobs) => Held::Bs(blobs.iter().map(|blob| blob.as_ref().to_vec()).collect()),
        AttributeValue::L(values) => Held::L(values.iter().map(held_value).collect()),
        AttributeValue::M(item) => {
            Held::M(item.iter().map(|(name, value)| (name.clone(), held_value(value))).collect())
        }
        _ => Held::Null(true),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::primitives::Blob;
    use aws_sdk_dynamodbstreams::types::AttributeValue as Value;
    use keys::{size::item_bytes, value::same_item};

    use super::{Item, Wire, held};

    fn item(values: &[(&str, Value)]) -> Item {
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn same(a: &Item, b: &Item) -> bool {
        same_item(&held(a), &held(b))
    }

    fn bytes(values: &[(&str, Value)]) -> usize {
        item_bytes(&held(&item(values)))
    }

    fn number(text: &str) -> Value {
        Value::N(text.to_owned())
    }

    #[test]
    fn items_are_equal_by_value_and_lists_by_order() {
        let equal = |a: Value, b: Value| same(&item(&[("a", a)]), &item(&[("a", b)]));
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
        assert!(!same(&item(&[("a", number("1"))]), &item(&[("b", number("1"))])));
    }

    #[test]
    fn sizes_follow_the_item_size_rule() {
        assert_eq!(bytes(&[("id", Value::S("id_value".to_owned()))]), 10);
        assert_eq!(bytes(&[("é", Value::Bool(true))]), 3);
        let list = Value::L(vec![number("42"), Value::Null(true)]);
        assert_eq!(bytes(&[("l", list)]), 1 + 3 + 2 + 2 + 1);
        let map = Value::M(item(&[("ab", Value::B(Blob::new(b"xyz".to_vec())))]));
        assert_eq!(bytes(&[("m", map)]), 1 + 3 + 1 + 2 + 3);
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

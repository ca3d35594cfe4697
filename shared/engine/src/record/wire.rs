//! A stream record as it stands in an event's JSON.

use std::{borrow::Cow, fmt};

use keys::item::Item;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor, value::MapDeserializer},
};
use serde_dynamo::AttributeValue;

/// A record as it stands in the event.
#[derive(Deserialize)]
pub(crate) struct Record<'a> {
    #[serde(rename = "eventID")]
    pub(crate) event_id: String,
    #[serde(rename = "eventName", borrow)]
    pub(crate) event_name: Cow<'a, str>,
    /// The ARN of the stream, by which the table is known where there are several.
    #[serde(rename = "eventSourceARN", borrow, default)]
    pub(crate) event_source_arn: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) dynamodb: StreamRecord<'a>,
}

/// The record's own part of it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StreamRecord<'a> {
    #[serde(deserialize_with = "item", default)]
    pub(crate) keys: Option<Item>,
    #[serde(deserialize_with = "item", default)]
    pub(crate) new_image: Option<Item>,
    #[serde(deserialize_with = "item", default)]
    pub(crate) old_image: Option<Item>,
    pub(crate) sequence_number: String,
    /// Since the epoch; AWS gives seconds.
    pub(crate) approximate_creation_date_time: Option<f64>,
    /// Which images the stream has; some emulators do not say.
    #[serde(borrow, default)]
    pub(crate) stream_view_type: Option<Cow<'a, str>>,
}

fn item<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Item>, D::Error> {
    Ok(Option::<WireAttributes>::deserialize(deserializer)?.map(|WireAttributes(item)| item))
}

/// An item in DynamoDB's JSON. Decoding items is most of the work, so they are read by hand, with no text made that
/// the item does not keep; `serde_dynamo` makes one for the type of every value.
struct WireAttributes(Item);

/// A value in DynamoDB's JSON: an object whose one key is the value's type.
pub(crate) struct WireValue(pub(crate) AttributeValue);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "UPPERCASE")]
enum ValueType {
    S,
    N,
    B,
    Bool,
    Null,
    M,
    L,
    Ss,
    Ns,
    Bs,
}

impl<'de> Deserialize<'de> for WireAttributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AttributesVisitor).map(Self)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut attributes = Vec::with_capacity(16);
        while let Some((name, WireValue(value))) = map.next_entry::<String, WireValue>()? {
            attributes.push((name, value));
        }
        Ok(attributes.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for WireValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = AttributeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AttributeValue, A::Error> {
        let value_type = map.next_key()?.ok_or_else(|| A::Error::custom("a value has no type"))?;
        let value = match value_type {
            ValueType::S => AttributeValue::S(map.next_value()?),
            ValueType::N => AttributeValue::N(map.next_value()?),
            ValueType::Bool => AttributeValue::Bool(map.next_value()?),
            ValueType::Null => AttributeValue::Null(map.next_value()?),
            ValueType::M => AttributeValue::M(map.next_value()?),
            ValueType::L => AttributeValue::L(map.next_value()?),
            ValueType::Ss => AttributeValue::Ss(map.next_value()?),
            ValueType::Ns => AttributeValue::Ns(map.next_value()?),
            // `serde_dynamo` undoes the base64.
            ValueType::B => {
                let text: String = map.next_value()?;
                AttributeValue::deserialize(MapDeserializer::new([("B", text)].into_iter()))?
            }
            ValueType::Bs => {
                let texts: Vec<String> = map.next_value()?;
                AttributeValue::deserialize(MapDeserializer::new([("BS", texts)].into_iter()))?
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(value),
            Some(_) => Err(A::Error::custom("a value has two types")),
        }
    }
}

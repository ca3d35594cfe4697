//! Converts stream records to the event that Lambda sends.
//!
//! Pure. Each record is read once ([`read`]) and its JSON is kept, so a retry sends the same bytes. Deviations of the
//! emulators are corrected here:
//!
//! | field | emulators | here |
//! |---|---|---|
//! | a `MODIFY` that changes nothing | dynoxide writes it | [`Reading::Equal`]: AWS writes no such record |
//! | `userIdentity` | keys that the SDK does not know, so it reads as empty | Lambda's `principalId` and `type` |
//! | `SizeBytes` | length of the JSON text | item size of keys and images, by DynamoDB's rule |
//! | `eventSourceARN` | not in `GetRecords` | the stream's ARN |
//! | `eventVersion` | varies | `"1.1"` |
//!
//! Images are compared only if the record has both. With another view type than `NEW_AND_OLD_IMAGES`, every record is
//! delivered.
//!
//! `ApproximateCreationDateTime` is not corrected: AWS and dynoxide round it down to the second, `DynamoDB` Local to
//! the minute.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodbstreams::{
    primitives::DateTime,
    types::{AttributeValue, Identity, OperationType, Record, StreamRecord, StreamViewType},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use keys::{item, size::item_bytes, value::same_item};
use serde::{Serialize, Serializer, ser::SerializeMap};
use thiserror::Error;

/// The version in live events. Source: LS.
const EVENT_VERSION: &str = "1.1";

/// [`event_text`] puts these around the records, and [`EVENT_OVERHEAD_BYTES`] counts them.
const EVENT_OPEN: &str = r#"{"Records":["#;
const EVENT_CLOSE: &str = "]}";

/// Bytes of an event without its records. Each record adds its length and one comma.
pub const EVENT_OVERHEAD_BYTES: usize = EVENT_OPEN.len() + EVENT_CLOSE.len();

/// One record of a Lambda event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LambdaRecord {
    /// The record's sequence number, as in the stream.
    pub sequence_number: String,
    /// `ApproximateCreationDateTime`.
    pub created: Option<SystemTime>,
    /// The record's JSON text.
    pub json: String,
}

/// The result of reading a stream record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A record to deliver.
    Deliver(LambdaRecord),
    /// A `MODIFY` whose images are equal by value. AWS does not write such a record.
    Equal,
}

/// Why a stream record cannot be converted.
#[derive(Debug, Error)]
pub enum StreamEventError {
    /// It has no sequence number, so neither a response nor a checkpoint could name it.
    #[error("a stream record has no sequence number")]
    NoSequenceNumber,
    /// It cannot be written as JSON.
    #[error("stream record {sequence_number} cannot be written as JSON")]
    Json {
        /// The record's sequence number.
        sequence_number: String,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Reads one stream record.
///
/// # Errors
///
/// [`StreamEventError`] if the record has no sequence number or cannot be written as JSON.
pub fn read(record: &Record, stream_arn: &str) -> Result<Reading, StreamEventError> {
    let change = record.dynamodb().ok_or(StreamEventError::NoSequenceNumber)?;
    let sequence_number = change.sequence_number().ok_or(StreamEventError::NoSequenceNumber)?.to_owned();
    if let (Some(OperationType::Modify), Some(new), Some(old)) =
        (record.event_name(), change.new_image(), change.old_image())
        && same_item(&held(new), &held(old))
    {
        return Ok(Reading::Equal);
    }
    match serde_json::to_string(&RecordText::of(record, change, stream_arn)) {
        Ok(json) => Ok(Reading::Deliver(LambdaRecord { sequence_number, created: created(change), json })),
        Err(source) => Err(StreamEventError::Json { sequence_number, source }),
    }
}

/// The event of one batch, without tumbling windows. `Records` is its only key; nothing in it names the shard.
pub fn event_text<'a>(records: impl IntoIterator<Item = &'a LambdaRecord>) -> String {
    let mut text = String::from(EVENT_OPEN);
    for (index, record) in records.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&record.json);
    }
    text.push_str(EVENT_CLOSE);
    text
}

fn created(change: &StreamRecord) -> Option<SystemTime> {
    let seconds = u64::try_from(change.approximate_creation_date_time()?.secs()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Bytes of the keys and images, by DynamoDB's item size rule. Checked against records from AWS (LS).
fn size_bytes(change: &StreamRecord) -> usize {
    [change.keys(), change.new_image(), change.old_image()]
        .into_iter()
        .flatten()
        .map(|item| item_bytes(&held(item)))
        .sum()
}

/// A record as Lambda writes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordText<'a> {
    #[serde(rename = "eventID")]
    event_id: &'a str,
    event_name: &'a str,
    event_version: &'static str,
    event_source: &'static str,
    aws_region: &'a str,
    dynamodb: ChangeText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_identity: Option<IdentityText<'a>>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    approximate_creation_date_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<ItemText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<ItemText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<ItemText<'a>>,
    sequence_number: &'a str,
    size_bytes: usize,
    stream_view_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdentityText<'a> {
    principal_id: &'a str,
    r#type: &'a str,
}

impl<'a> RecordText<'a> {
    fn of(record: &'a Record, change: &'a StreamRecord, stream_arn: &'a str) -> Self {
        let event_name = record.event_name();
        Self {
            event_id: record.event_id().unwrap_or_default(),
            event_name: event_name.map(OperationType::as_str).unwrap_or_default(),
            event_version: EVENT_VERSION,
            event_source: "aws:dynamodb",
            aws_region: record.aws_region().or_else(|| stream_arn.split(':').nth(3)).unwrap_or_default(),
            dynamodb: ChangeText {
                approximate_creation_date_time: change.approximate_creation_date_time().map(DateTime::as_secs_f64),
                keys: change.keys().map(wire),
                new_image: change.new_image().map(wire),
                old_image: change.old_image().map(wire),
                sequence_number: change.sequence_number().unwrap_or_default(),
                size_bytes: size_bytes(change),
                stream_view_type: change.stream_view_type().map(StreamViewType::as_str).unwrap_or_default(),
            },
            user_identity: record.user_identity().and_then(|identity| identity_text(identity, event_name)),
            event_source_arn: stream_arn,
        }
    }
}

/// The identity with Lambda's keys. Only removals by time to live have an identity. An identity that reads as empty on
/// a `REMOVE` had keys that the SDK does not know, so it is the TTL service's.
fn identity_text<'a>(identity: &'a Identity, event_name: Option<&OperationType>) -> Option<IdentityText<'a>> {
    match (identity.principal_id(), identity.r#type()) {
        (None, None) if event_name != Some(&OperationType::Remove) => None,
        (principal_id, r#type) => Some(IdentityText {
            principal_id: principal_id.unwrap_or("dynamodb.amazonaws.com"),
            r#type: r#type.unwrap_or("Service"),
        }),
    }
}

// ---- The order of sequence numbers ----

/// The sort key of a sequence number. Sequence numbers are in the order of these keys.
///
/// Sequence numbers are decimal integers of up to 40 digits. Some emulators pad them with zeros; AWS does not. So they
/// compare neither as text (`"820…"` sorts after `"1683…"`) nor as machine integers.
///
/// ```
/// use stream::event::order;
/// assert!(order("820400000000000001192334") < order("1683700000000000001135967"));
/// assert_eq!(order("000000000000000000042"), order("42"));
/// ```
#[must_use]
pub fn order(sequence_number: &str) -> (usize, &str) {
    let digits = sequence_number.trim_start_matches('0');
    (digits.len(), digits)
}

// ---- Attribute values: as JSON, and in the form that is measured and compared ----

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
type ItemText<'a> = BTreeMap<&'a str, Wire<'a>>;

fn wire(item: &Item) -> ItemText<'_> {
    item.iter().map(|(name, value)| (name.as_str(), Wire(value))).collect()
}

/// An item in the workspace's own type, which can be measured and compared. A value of a type that this SDK does not
/// know counts as NULL.
fn held(item: &Item) -> item::Item {
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
    use aws_lambda_events::event::dynamodb;
    use aws_sdk_dynamodbstreams::{
        primitives::{Blob, DateTime},
        types::{AttributeValue, Identity, OperationType, Record, StreamRecord, StreamViewType},
    };
    use expect_test::{Expect, expect};
    use keys::{size::item_bytes, value::same_item};
    use serde_json::json;

    use super::{Item, LambdaRecord, Reading, Wire, event_text, held, read};

    fn item(values: &[(&str, AttributeValue)]) -> Item {
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn same(a: &Item, b: &Item) -> bool {
        same_item(&held(a), &held(b))
    }

    fn bytes(values: &[(&str, AttributeValue)]) -> usize {
        item_bytes(&held(&item(values)))
    }

    fn number(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn items_are_equal_by_value_and_lists_by_order() {
        let equal = |a: AttributeValue, b: AttributeValue| same(&item(&[("a", a)]), &item(&[("a", b)]));
        let numbers = |texts: &[&str]| AttributeValue::Ns(texts.iter().map(|text| (*text).to_owned()).collect());
        let blobs = |bytes: &[&[u8]]| AttributeValue::Bs(bytes.iter().map(|bytes| Blob::new(bytes.to_vec())).collect());
        assert!(equal(number("2.0"), number("2")));
        assert!(equal(numbers(&["1", "2.0"]), numbers(&["2", "1.0"])));
        assert!(equal(blobs(&[b"a", b"b"]), blobs(&[b"b", b"a"])));
        assert!(equal(
            AttributeValue::M(item(&[("x", number("1")), ("y", AttributeValue::Null(true))])),
            AttributeValue::M(item(&[("y", AttributeValue::Null(true)), ("x", number("1.0"))])),
        ));
        assert!(!equal(
            AttributeValue::L(vec![number("1"), number("2")]),
            AttributeValue::L(vec![number("2"), number("1")])
        ));
        assert!(!equal(number("2"), AttributeValue::S("2".to_owned())));
        assert!(!equal(numbers(&["1"]), numbers(&["1", "2"])));
        assert!(!same(&item(&[("a", number("1"))]), &item(&[("b", number("1"))])));
    }

    #[test]
    fn sizes_follow_the_item_size_rule() {
        assert_eq!(bytes(&[("id", AttributeValue::S("id_value".to_owned()))]), 10);
        assert_eq!(bytes(&[("é", AttributeValue::Bool(true))]), 3);
        let list = AttributeValue::L(vec![number("42"), AttributeValue::Null(true)]);
        assert_eq!(bytes(&[("l", list)]), 1 + 3 + 2 + 2 + 1);
        let map = AttributeValue::M(item(&[("ab", AttributeValue::B(Blob::new(b"xyz".to_vec())))]));
        assert_eq!(bytes(&[("m", map)]), 1 + 3 + 1 + 2 + 3);
    }

    #[test]
    fn binary_values_become_base64() {
        let value = AttributeValue::L(vec![
            AttributeValue::B(Blob::new(b"foobar".to_vec())),
            AttributeValue::Bs(vec![Blob::new(b"foo".to_vec())]),
            AttributeValue::Bool(false),
        ]);
        assert_eq!(
            serde_json::to_string(&Wire(&value)).unwrap(),
            r#"{"L":[{"B":"Zm9vYmFy"},{"BS":["Zm9v"]},{"BOOL":false}]}"#
        );
    }

    const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

    fn text(value: &str) -> AttributeValue {
        AttributeValue::S(value.to_owned())
    }

    fn record(operation: OperationType, change: impl FnOnce(&mut StreamRecord)) -> Record {
        let mut stream_record = StreamRecord::builder()
            .approximate_creation_date_time(DateTime::from_secs(1_480_642_020))
            .keys("id", text("id_value"))
            .sequence_number("000000000000000000042")
            .size_bytes(999)
            .stream_view_type(StreamViewType::NewAndOldImages)
            .build();
        change(&mut stream_record);
        Record::builder()
            .event_id("f07f8ca4b0b26cb9c4e5e77e69f274ee")
            .event_name(operation)
            .event_version("1.0")
            .aws_region("ddblocal")
            .dynamodb(stream_record)
            .build()
    }

    fn delivered(record: &Record) -> LambdaRecord {
        match read(record, ARN).unwrap() {
            Reading::Deliver(record) => record,
            Reading::Equal => panic!("the record was taken for one that changes nothing"),
        }
    }

    fn check(record: &Record, expected: &Expect) {
        let value: serde_json::Value = serde_json::from_str(&delivered(record).json).unwrap();
        // Cargo features of other crates decide whether a JSON map keeps its order, so the lines are sorted.
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let mut lines: Vec<&str> = pretty.lines().map(|line| line.trim_end_matches(',')).collect();
        lines.sort_unstable();
        expected.assert_eq(&format!("{}\n", lines.join("\n")));
    }

    /// Source: LS.
    #[test]
    fn an_insert_becomes_the_record_that_lambda_sends() {
        let insert = record(OperationType::Insert, |change| {
            change.new_image =
                Some([("id".into(), text("id_value")), ("data".into(), text("0123456789abcdefgh"))].into());
        });
        let delivered = delivered(&insert);
        assert_eq!(delivered.sequence_number, "000000000000000000042");
        assert_eq!(
            delivered.json,
            concat!(
                r#"{"eventID":"f07f8ca4b0b26cb9c4e5e77e69f274ee","eventName":"INSERT","eventVersion":"1.1","#,
                r#""eventSource":"aws:dynamodb","awsRegion":"ddblocal","dynamodb":{"#,
                r#""ApproximateCreationDateTime":1480642020.0,"Keys":{"id":{"S":"id_value"}},"#,
                r#""NewImage":{"data":{"S":"0123456789abcdefgh"},"id":{"S":"id_value"}},"#,
                r#""SequenceNumber":"000000000000000000042","SizeBytes":42,"StreamViewType":"NEW_AND_OLD_IMAGES"},"#,
                r#""eventSourceARN":"arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000"}"#,
            )
        );
    }

    /// Functions that use `aws_lambda_events` can read the events of this crate.
    #[test]
    fn an_event_is_one_to_the_types_of_aws_lambda_events() {
        let modify = record(OperationType::Modify, |change| {
            change.old_image = Some([("id".into(), text("id_value")), ("n".into(), number("1"))].into());
            change.new_image = Some([("id".into(), text("id_value")), ("n".into(), number("2"))].into());
        });
        let typed: dynamodb::Event = serde_json::from_str(&event_text(&[delivered(&modify)])).unwrap();
        let [typed] = typed.records.as_slice() else { panic!("{typed:?}") };
        assert_eq!((typed.event_name.as_str(), typed.aws_region.as_str()), ("MODIFY", "ddblocal"));
        assert_eq!(typed.event_source_arn.as_deref(), Some(ARN));
        let change = &typed.change;
        assert_eq!(change.approximate_creation_date_time.timestamp(), 1_480_642_020);
        assert_eq!(change.stream_view_type, Some(dynamodb::StreamViewType::NewAndOldImages));
        let item = |n: &str| json!({ "id": { "S": "id_value" }, "n": { "N": n } });
        assert_eq!((json!(change.old_image), json!(change.new_image)), (item("1"), item("2")));
    }

    #[test]
    fn an_identity_that_reads_as_empty_on_a_remove_is_the_ttl_service() {
        let mut remove = record(OperationType::Remove, |_| ());
        remove.user_identity = Some(Identity::builder().build());
        check(
            &remove,
            &expect![[r#"
                      "S": "id_value"
                    "id": {
                    }
                  "ApproximateCreationDateTime": 1480642020.0
                  "Keys": {
                  "SequenceNumber": "000000000000000000042"
                  "SizeBytes": 10
                  "StreamViewType": "NEW_AND_OLD_IMAGES"
                  "principalId": "dynamodb.amazonaws.com"
                  "type": "Service"
                  }
                "awsRegion": "ddblocal"
                "dynamodb": {
                "eventID": "f07f8ca4b0b26cb9c4e5e77e69f274ee"
                "eventName": "REMOVE"
                "eventSource": "aws:dynamodb"
                "eventSourceARN": "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000"
                "eventVersion": "1.1"
                "userIdentity": {
                }
                }
              {
              }
            "#]],
        );
    }

    #[test]
    fn an_identity_that_the_sdk_could_read_keeps_its_values_under_lambdas_keys() {
        let mut remove = record(OperationType::Remove, |_| ());
        remove.user_identity = Some(Identity::builder().principal_id("someone").r#type("Service").build());
        assert!(delivered(&remove).json.contains(r#""userIdentity":{"principalId":"someone","type":"Service"}"#));
        let mut insert = record(OperationType::Insert, |_| ());
        insert.user_identity = Some(Identity::builder().build());
        assert!(!delivered(&insert).json.contains("userIdentity"));
    }

    #[test]
    fn a_modify_that_changes_nothing_by_value_is_not_delivered() {
        let modify = |old: &str, new: &str| {
            record(OperationType::Modify, |change| {
                change.old_image = Some([("n".into(), number(old))].into());
                change.new_image = Some([("n".into(), number(new))].into());
            })
        };
        assert_eq!(read(&modify("2.0", "2"), ARN).unwrap(), Reading::Equal);
        assert!(matches!(read(&modify("2", "3"), ARN).unwrap(), Reading::Deliver(_)));
    }

    #[test]
    fn a_record_without_both_images_is_always_delivered() {
        let modify = record(OperationType::Modify, |change| change.stream_view_type = Some(StreamViewType::KeysOnly));
        assert!(matches!(read(&modify, ARN).unwrap(), Reading::Deliver(_)));
    }

    #[test]
    fn a_record_without_a_sequence_number_is_an_error() {
        let broken = record(OperationType::Insert, |change| change.sequence_number = None);
        assert_eq!(read(&broken, ARN).unwrap_err().to_string(), "a stream record has no sequence number");
    }

    #[test]
    fn an_event_is_its_records_and_nothing_else() {
        let one = |json: &str| LambdaRecord { sequence_number: "1".into(), created: None, json: json.into() };
        assert_eq!(event_text(&[one("{}"), one("[]")]), r#"{"Records":[{},[]]}"#);
        assert_eq!(event_text(&[]).len(), super::EVENT_OVERHEAD_BYTES);
    }
}

//! Stream records, decoded one by one.
//!
//! An event is divided into raw records, so that one that does not decode fails alone. The original text of each record
//! is kept for parking. `quick` parses records in the usual form; this module parses all others.
//!
//! *Why not the types of `aws_lambda_events`*: they decode an event as a whole, so a record that does not decode would
//! fail the others too. They drop fields that they do not know, but a parked record must keep all fields. And they are
//! slower: compare `a_typed` and `c_decode` of `cargo bench -p benches --bench plan`.

pub(crate) mod quick;

use std::borrow::Cow;

use derive::{
    change::{Change, Images},
    fit::BOTH_IMAGES,
};
use flate2::Crc;
use keys::{item::Item, key::Key, layout::Layout, tables::TableForm};
use serde::Deserialize;
use serde_dynamo::AttributeValue;
use serde_json::value::RawValue;

/// Length of an event id from DynamoDB, which is documented as globally unique.
const UNIQUE_ID_BYTES: usize = 32;

/// The view types of a stream that lack an image. Source: DynamoDB API reference, `StreamSpecification`.
const VIEW_TYPES: [&str; 3] = ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"];

/// The text is no batch of stream records. Nothing of it was handled.
#[derive(Debug, thiserror::Error)]
#[error("the event is no batch of DynamoDB stream records: it wants an object with a list `Records`")]
pub struct EventError(#[source] pub(crate) serde_json::Error);

/// Why a record does not decode. It names what is wrong, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}", at(*.column))]
pub struct RecordError {
    /// What is wrong; the same text for all records with the same error.
    pub why: String,
    /// Its column in the record, if known.
    pub column: Option<usize>,
}

/// The known fields of a record that may not decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its id for the ledger: that of the event, with a checksum of its stream if the id is not in DynamoDB's form.
    pub id: Option<String>,
    /// Its sequence number.
    pub sequence_number: Option<String>,
    /// Time of the write according to the record, in milliseconds since the epoch.
    pub created_ms: Option<u64>,
}

/// A record of an event, decoded once.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Its original text, for parking.
    pub text: &'a str,
    /// The fields that every record has, whether it decodes or not.
    pub head: Head,
    /// The change in the record.
    pub change: Result<Change, RecordError>,
}

impl<'a> Decoded<'a> {
    /// Decodes a raw record.
    #[must_use]
    pub fn of(layout: &Layout, text: &'a str) -> Self {
        let change = decode(layout, text);
        let head = change.as_ref().map_or_else(|_| head(text), Head::of);
        Self { text, head, change }
    }

    /// Key of its item, if readable, whether the record decodes or not.
    #[must_use]
    pub fn key(&self, layout: &Layout) -> Option<Key> {
        self.change.as_ref().map_or_else(|_| key_of(layout, self.text), |change| Some(change.key.clone()))
    }
}

impl Head {
    fn of(change: &Change) -> Self {
        let (id, sequence_number) = (Some(change.id.clone()), Some(change.sequence_number.clone()));
        Self { id, sequence_number, created_ms: change.created_ms }
    }
}

/// Decodes a record.
///
/// # Errors
///
/// [`RecordError`] with what is wrong.
pub fn decode(layout: &Layout, record: &str) -> Result<Change, RecordError> {
    let record = match quick::record(record) {
        Some(record) => record,
        None => serde_json::from_str(record).map_err(|source| undecodable(&source))?,
    };
    change(layout, record)
}

fn change(layout: &Layout, record: Record<'_>) -> Result<Change, RecordError> {
    let error = |why: &str| RecordError { why: why.to_owned(), column: None };
    let stream_record = record.dynamodb;
    // Under another view type, an insert or a removal looks complete, but its opposite never does.
    if let Some(found) = stream_record.stream_view_type.as_deref().filter(|found| *found != BOTH_IMAGES) {
        return Err(error(&format!(
            "the stream's view type is {}; it must be {BOTH_IMAGES}, because a count needs both images",
            VIEW_TYPES.into_iter().find(|known| *known == found).unwrap_or("unknown")
        )));
    }
    let keys = stream_record.keys.ok_or_else(|| error("the record has no keys"))?;
    let stream = record.event_source_arn.as_deref();
    let form = stream.and_then(|arn| form(layout, arn));
    let key = key(layout, form, keys).ok_or_else(|| error(&wanted(layout, form, stream)))?;
    // Every item has its key, so an image without attributes, which some emulators write, counts as no image.
    let inward = |image: Option<Item>| match (form, image.filter(|image| !image.is_empty())) {
        (Some(form), Some(image)) => form.inward(image),
        (_, image) => image,
    };
    let (old_image, new_image) = (inward(stream_record.old_image), inward(stream_record.new_image));
    let images = match (record.event_name.as_ref(), old_image, new_image) {
        ("INSERT", _, Some(new)) => Images::Inserted(new),
        ("MODIFY", Some(old), Some(new)) => Images::Modified { old, new },
        ("REMOVE", Some(old), _) if record.user_identity.is_some_and(|it| it.is_time_to_live()) => Images::Expired(old),
        ("REMOVE", Some(old), _) => Images::Removed(old),
        ("INSERT", ..) => return Err(error("the record is an INSERT without a new image")),
        ("MODIFY", ..) => return Err(error("the record is a MODIFY without both images")),
        ("REMOVE", ..) => return Err(error("the record is a REMOVE without an old image")),
        _ => return Err(error("the event name is none of INSERT, MODIFY and REMOVE")),
    };
    let created_ms = stream_record.approximate_creation_date_time.map(milliseconds);
    let id = known_id(record.event_id, stream);
    Ok(Change { id, sequence_number: stream_record.sequence_number, created_ms, key, images })
}

/// The id of a record for the ledger: that of its event. DynamoDB's ids are 32 hexadecimal digits that no other event
/// has. Other tools number the events of each stream, so the stream distinguishes their ids.
fn known_id(event_id: String, stream: Option<&str>) -> String {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_unique = event_id.len() == UNIQUE_ID_BYTES && event_id.bytes().all(is_digit);
    match stream {
        Some(stream) if !is_unique => {
            let mut checksum = Crc::new();
            checksum.update(stream.as_bytes());
            format!("{event_id}@{:08x}", checksum.sum())
        }
        _ => event_id,
    }
}

/// The form of the stream's table, if it differs from the layout.
fn form<'a>(layout: &'a Layout, stream_arn: &str) -> Option<&'a TableForm> {
    let name = table_of(stream_arn)?;
    layout.forms.as_ref()?.0.iter().find(|form| form.called == name)
}

/// The table of a stream: `…:table/NAME/stream/LABEL`.
#[must_use]
pub fn table_of(stream_arn: &str) -> Option<&str> {
    stream_arn.split_once(":table/")?.1.split('/').next()
}

/// A message with the keys that the record should have.
fn wanted(layout: &Layout, form: Option<&TableForm>, stream: Option<&str>) -> String {
    let Some(form) = form else {
        let keys = format!("the record's keys are not {} and {} of type S", layout.pk, layout.sk);
        return match (&layout.forms, stream.and_then(table_of)) {
            (None, _) => keys,
            (Some(_), Some(table)) => format!("{keys}, and no table {table} is declared"),
            (Some(_), None) => format!("{keys}, and it does not name its stream, by which its table is known"),
        };
    };
    let keys: Vec<String> = [Some(&form.pk), form.sk.as_ref()].into_iter().flatten().map(ToString::to_string).collect();
    format!("the record's keys are not {}, which the table {} has", keys.join(" and "), form.name)
}

/// The key in these attributes.
fn key(layout: &Layout, form: Option<&TableForm>, mut keys: Item) -> Option<Key> {
    if let Some(form) = form {
        return form.key(&keys);
    }
    let mut text = |name: &str| match keys.remove(name) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    };
    Some(Key { pk: text(&layout.pk)?, sk: text(&layout.sk)? })
}

/// A record's time in milliseconds since the epoch. AWS writes seconds; some emulators and copies of a stream write
/// milliseconds, microseconds or nanoseconds, which are all greater than any number of seconds before the year 5138.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and no time is negative"
)]
fn milliseconds(time: f64) -> u64 {
    let milliseconds = match time {
        seconds if seconds < 1e11 => seconds * 1e3,
        milliseconds if milliseconds < 1e14 => milliseconds,
        microseconds if microseconds < 1e17 => microseconds / 1e3,
        nanoseconds => nanoseconds / 1e6,
    };
    milliseconds as u64
}

/// Key of a record's item, if readable, whether the record decodes or not.
#[must_use]
pub fn key_of(layout: &Layout, record: &str) -> Option<Key> {
    let mut value: serde_json::Value = serde_json::from_str(record).ok()?;
    let form = value.pointer("/eventSourceARN").and_then(|arn| form(layout, arn.as_str()?));
    let keys = value.pointer_mut("/dynamodb/Keys").map(serde_json::Value::take)?;
    key(layout, form, serde_json::from_value(keys).ok()?)
}

/// The known fields of a record, whether it decodes or not.
#[must_use]
pub fn head(record: &str) -> Head {
    let value: serde_json::Value = serde_json::from_str(record).unwrap_or_default();
    let text = |pointer: &str| value.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
    let created = value.pointer("/dynamodb/ApproximateCreationDateTime").and_then(serde_json::Value::as_f64);
    Head {
        id: text("/eventID").map(|id| known_id(id, text("/eventSourceARN").as_deref())),
        sequence_number: text("/dynamodb/SequenceNumber"),
        created_ms: created.map(milliseconds),
    }
}

/// Why a JSON text does not decode, without the values that serde's own messages quote.
fn undecodable(error: &serde_json::Error) -> RecordError {
    let what = match error.classify() {
        serde_json::error::Category::Data => "a value is missing or not of the form of a stream record",
        _ => "it is not JSON",
    };
    RecordError { why: format!("the record does not decode: {what}"), column: Some(error.column()) }
}

fn at(column: Option<usize>) -> String {
    column.map(|column| format!(", at column {column}")).unwrap_or_default()
}

// ---- The event: a batch of raw records, and their origin ----

/// The origin of a batch, as far as the event states it: the stream and the shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// ARN of the stream.
    pub stream_arn: Option<String>,
    /// Name of the shard; only events of tumbling windows have it.
    pub shard: Option<String>,
}

/// An undecoded batch.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Its raw records.
    pub records: Vec<&'a RawValue>,
    /// Its origin.
    pub lane: Lane,
    /// JSON of the state of its tumbling window, which the response must return; `None` if there is no window.
    pub state: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent<'a> {
    #[serde(rename = "Records", borrow)]
    records: Option<Vec<&'a RawValue>>,
    shard_id: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    window: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RecordSource {
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

impl<'a> Event<'a> {
    /// Divides an event into its records.
    ///
    /// # Errors
    ///
    /// [`EventError`] if the text is no event of stream records. The last event of a tumbling window may have none.
    pub fn parse(text: &'a str) -> Result<Self, EventError> {
        let wire: WireEvent<'a> = serde_json::from_str(text).map_err(EventError)?;
        let has_window = wire.window.is_some() || wire.state.is_some();
        let records = match wire.records {
            Some(records) => records,
            None if has_window => Vec::new(),
            None => return Err(EventError(serde::de::Error::missing_field("Records"))),
        };
        let first = || records.first().and_then(|record| source(record.get()));
        let lane = Lane { stream_arn: wire.event_source_arn.or_else(first), shard: wire.shard_id };
        let state = has_window.then(|| wire.state.map_or("{}", RawValue::get));
        Ok(Self { records, lane, state })
    }

    /// Its records in their order, each decoded alone.
    #[must_use]
    pub fn decoded(&self, layout: &Layout) -> Vec<Decoded<'a>> {
        self.records.iter().map(|record| Decoded::of(layout, record.get())).collect()
    }
}

/// The stream that a record names.
fn source(record: &str) -> Option<String> {
    serde_json::from_str::<RecordSource>(record).ok()?.event_source_arn
}

// ---- A stream record in an event's JSON ----

/// A record in the event.
#[derive(Deserialize)]
pub(crate) struct Record<'a> {
    #[serde(rename = "eventID")]
    pub(crate) event_id: String,
    #[serde(rename = "eventName", borrow)]
    event_name: Cow<'a, str>,
    /// The ARN of the stream, which identifies the table if there are several.
    #[serde(rename = "eventSourceARN", borrow, default)]
    event_source_arn: Option<Cow<'a, str>>,
    /// Who made the change, if it was no client.
    #[serde(rename = "userIdentity", borrow, default)]
    user_identity: Option<UserIdentity<'a>>,
    #[serde(borrow)]
    pub(crate) dynamodb: StreamRecord<'a>,
}

/// Who made the change of a record, if it was no client.
#[derive(Deserialize)]
pub(crate) struct UserIdentity<'a> {
    #[serde(rename = "type", borrow, default)]
    identity_type: Option<Cow<'a, str>>,
    #[serde(rename = "principalId", borrow, default)]
    principal_id: Option<Cow<'a, str>>,
}

impl UserIdentity<'_> {
    /// True if this is DynamoDB itself, which removes items by their time to live. Source: DynamoDB developer guide,
    /// "DynamoDB Streams and Time to Live".
    fn is_time_to_live(&self) -> bool {
        self.identity_type.as_deref() == Some("Service")
            && self.principal_id.as_deref() == Some("dynamodb.amazonaws.com")
    }
}

/// The part under `dynamodb`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StreamRecord<'a> {
    pub(crate) keys: Option<Item>,
    pub(crate) new_image: Option<Item>,
    pub(crate) old_image: Option<Item>,
    pub(crate) sequence_number: String,
    /// Since the epoch; AWS writes seconds.
    approximate_creation_date_time: Option<f64>,
    /// The images in the stream; some emulators do not state it.
    #[serde(borrow, default)]
    pub(crate) stream_view_type: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use keys::tables::{EntityBy, KeyAttribute, KeyType, TableForms};
    use proptest::{
        collection::{hash_map, vec},
        prelude::{Strategy as _, any},
        sample::Index,
        test_runner::TestRunner,
    };

    use super::*;
    use crate::fixture::layout;

    fn decoded(json: &str) -> Result<Change, String> {
        decode(&layout(), json).map_err(|error| error.to_string())
    }

    const KEYS: &str = r#""Keys": {"PK": {"S": "a"}, "SK": {"S": "b"}}"#;

    fn record(name: &str, rest: &str) -> String {
        format!(r#"{{"eventID": "1", "eventName": "{name}", "dynamodb": {{{KEYS}, "SequenceNumber": "100", {rest}}}}}"#)
    }

    #[test]
    fn a_record_with_both_images_is_a_change() {
        let images = r#""OldImage": {"A": {"N": "1"}}, "NewImage": {"A": {"N": "2"}}"#;
        let change = decoded(&record("MODIFY", images)).unwrap();
        assert_eq!((change.key.pk.as_str(), change.sequence_number.as_str()), ("a", "100"));
        assert!(matches!(change.images, Images::Modified { .. }));
    }

    #[test]
    fn what_does_not_decode_says_why_and_holds_no_value() {
        let error = decoded(&record("INSERT", r#""NewImage": {"PK": {"Q": "secret"}}"#)).unwrap_err();
        assert!(error.starts_with("the record does not decode: a value is missing or not of the form"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        let error = decoded(
            r#"{"eventID":"1","eventName":"INSERT","dynamodb":{"Keys":{"id":{"S":"a"}},"SequenceNumber":"1"}}"#,
        );
        assert_eq!(error.unwrap_err(), "the record's keys are not PK and SK of type S");
    }

    #[test]
    fn an_empty_image_is_none() {
        let image = r#"{"A": {"N": "1"}}"#;
        for (name, images, error) in [
            ("INSERT", format!(r#""NewImage": {image}, "OldImage": {{}}"#), None),
            ("REMOVE", format!(r#""NewImage": {{}}, "OldImage": {image}"#), None),
            ("REMOVE", format!(r#""NewImage": null, "OldImage": {image}"#), None),
            ("INSERT", r#""NewImage": {}"#.to_owned(), Some("the record is an INSERT without a new image")),
            (
                "MODIFY",
                format!(r#""NewImage": {image}, "OldImage": {{}}"#),
                Some("the record is a MODIFY without both images"),
            ),
            ("MODIFY", format!(r#""OldImage": {image}"#), Some("the record is a MODIFY without both images")),
            ("REMOVE", r#""OldImage": {}"#.to_owned(), Some("the record is a REMOVE without an old image")),
            ("REMOVE", r#""OldImage": null"#.to_owned(), Some("the record is a REMOVE without an old image")),
        ] {
            assert_eq!(decoded(&record(name, &images)).err().as_deref(), error, "{name} {images}");
        }
    }

    #[test]
    fn a_record_of_another_view_type_is_refused_although_it_looks_whole() {
        let image = r#"{"A": {"N": "1"}}"#;
        let images = [
            ("INSERT", format!(r#""NewImage": {image}"#)),
            ("MODIFY", format!(r#""OldImage": {image}, "NewImage": {image}"#)),
            ("REMOVE", format!(r#""OldImage": {image}"#)),
        ];
        for (name, images) in &images {
            for view_type in VIEW_TYPES {
                let record = record(name, &format!(r#"{images}, "StreamViewType": "{view_type}""#));
                let error = format!(
                    "the stream's view type is {view_type}; it must be NEW_AND_OLD_IMAGES, because a count needs both \
                     images"
                );
                assert_eq!(decoded(&record), Err(error), "{name}");
            }
            let error = decoded(&record(name, &format!(r#"{images}, "StreamViewType": "secret""#))).unwrap_err();
            assert!(error.starts_with("the stream's view type is unknown; it must be"), "{error}");
            for whole in [r#""NEW_AND_OLD_IMAGES""#, "null"] {
                assert!(decoded(&record(name, &format!(r#"{images}, "StreamViewType": {whole}"#))).is_ok(), "{name}");
            }
        }
    }

    /// A table with a numeric sort key and one entity.
    fn messages() -> Layout {
        let attribute = KeyAttribute::plain;
        let messages = TableForm {
            name: "Messages".to_owned(),
            called: "prod-messages".to_owned(),
            pk: attribute("roomId", KeyType::S),
            sk: Some(attribute("sentAt", KeyType::N)),
            entity: EntityBy::Table("Message".to_owned()),
            time_to_live: None,
            indexes: Vec::new(),
        };
        TableForms(vec![messages]).layout()
    }

    #[test]
    fn a_record_is_of_the_table_whose_stream_it_names() {
        let arn = |table: &str| format!("arn:aws:dynamodb:eu-west-1:1:table/{table}/stream/2026");
        let record = |table: &str, keys: &str| {
            format!(
                r#"{{"eventID": "1", "eventName": "INSERT", "eventSourceARN": "{}",
                "dynamodb": {{"Keys": {{{keys}}}, "SequenceNumber": "100", "NewImage": {{{keys}, "text": {{"S": "hi"}}}}}}}}"#,
                arn(table)
            )
        };
        let keys = r#""roomId": {"S": "r#1"}, "sentAt": {"N": "1700"}"#;
        let text = record("prod-messages", keys);
        let change = decode(&messages(), &text).unwrap();
        assert_eq!(change.key, Key::new("Messages#r%231", "04:1700"));
        assert_eq!(key_of(&messages(), &text), Some(change.key));
        let Images::Inserted(item) = change.images else { unreachable!() };
        let names: Vec<&str> = item.keys().collect();
        assert_eq!(names, ["RipplePK", "RippleSK", "RippleType", "text"]);
        let own = record("ripple", r#""RipplePK": {"S": "Messages#r"}, "RippleSK": {"S": "-#COUNT#n#00"}"#);
        assert_eq!(decode(&messages(), &own).unwrap().key, Key::new("Messages#r", "-#COUNT#n#00"));
        let error = decode(&messages(), &record("prod-messages", r#""roomId": {"S": "r"}"#)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the record's keys are not roomId (S) and sentAt (N), which the table Messages has"
        );
        let error = decode(&messages(), &record("another", keys)).unwrap_err().to_string();
        assert_eq!(
            error,
            "the record's keys are not RipplePK and RippleSK of type S, and no table another is declared"
        );
    }

    #[test]
    fn an_id_that_two_streams_may_give_is_told_apart_by_the_stream_whether_the_record_decodes_or_not() {
        let record = |id: &str, stream: &str, image: &str| {
            format!(
                r#"{{"eventID": "{id}", "eventName": "INSERT", "eventSourceARN": "{stream}",
                "dynamodb": {{{KEYS}, "SequenceNumber": "111", "NewImage": {image}}}}}"#
            )
        };
        let ids = |id: &str| {
            ["source_arn", "stream-ARN"].map(|stream| {
                let known = decoded(&record(id, stream, r#"{"A": {"N": "1"}}"#)).unwrap().id;
                assert_eq!(head(&record(id, stream, "7")).id.as_ref(), Some(&known));
                known
            })
        };
        let [one, other] = ids("1");
        assert!(one.starts_with("1@") && other.starts_with("1@") && one != other, "{one} {other}");
        let unique = "f07f8ca4b0b26cb9c4e5e77e69f274ee";
        assert_eq!(ids(unique), [unique; 2]);
    }

    #[test]
    fn a_head_is_read_from_a_record_that_does_not_decode() {
        let text = r#"{"eventID": "7", "dynamodb": {"SequenceNumber": "42"}}"#;
        assert_eq!(head(text), Head { id: Some("7".into()), sequence_number: Some("42".into()), created_ms: None });
    }

    #[test]
    fn no_damage_of_a_record_makes_the_decoder_panic() {
        let leaf = proptest::prop_oneof![
            "(?s).{0,4}".prop_map(AttributeValue::S),
            any::<i64>().prop_map(|number| AttributeValue::N(number.to_string())),
            any::<bool>().prop_map(AttributeValue::Bool),
            vec(any::<u8>(), 0..4).prop_map(AttributeValue::B),
            vec("[a-z]{0,3}", 0..3).prop_map(AttributeValue::Ss),
        ];
        let value = leaf.prop_recursive(2, 8, 3, |inner| {
            let list = vec(inner.clone(), 0..3).prop_map(AttributeValue::L);
            let map = hash_map("[A-Z]{0,3}", inner, 0..3).prop_map(AttributeValue::M);
            proptest::prop_oneof![list, map]
        });
        let image = vec(("[A-Z]{1,4}", value), 1..4).prop_map(|pairs| pairs.into_iter().collect::<Item>());
        let cut = proptest::option::of((any::<Index>(), any::<char>()));
        let (n_cases, n_decoded) = (Cell::new(0), Cell::new(0));
        let check = |(name, old, new, damage): (&str, Item, Item, Option<(Index, char)>)| {
            let images = [("OldImage", old), ("NewImage", new)]
                .map(|(name, image)| format!(r#""{name}": {}"#, serde_json::to_string(&image).unwrap()));
            let mut text: Vec<char> = record(name, &images.join(", ")).chars().collect();
            if let Some((at, character)) = damage {
                let at = at.index(text.len());
                text[at] = character;
            }
            let read = decode(&layout(), &text.into_iter().collect::<String>());
            n_cases.set(n_cases.get() + 1);
            n_decoded.set(n_decoded.get() + u32::from(read.is_ok()));
            Ok(())
        };
        let name = proptest::sample::select(vec!["INSERT", "MODIFY", "REMOVE"]);
        TestRunner::deterministic().run(&(name, image.clone(), image, cut), check).unwrap();
        let (n_cases, n_decoded): (u32, u32) = (n_cases.get(), n_decoded.get());
        assert!(n_decoded * 2 > n_cases && n_decoded < n_cases, "{n_decoded} of {n_cases} decoded");
    }

    #[test]
    fn a_plain_event_names_no_shard_and_its_stream_by_its_records() {
        let event = Event::parse(r#"{"Records": [{"eventSourceARN": "arn:s"}, {}]}"#).unwrap();
        assert_eq!((event.records.len(), event.state), (2, None));
        assert_eq!(event.lane, Lane { stream_arn: Some("arn:s".to_owned()), shard: None });
    }

    #[test]
    fn an_event_of_a_tumbling_window_names_its_shard_and_brings_its_state() {
        let text = r#"{"Records": [], "window": {}, "state": {"a": 1}, "shardId": "shardId-1",
            "eventSourceARN": "arn:s", "isFinalInvokeForWindow": true}"#;
        let event = Event::parse(text).unwrap();
        assert_eq!(event.state, Some(r#"{"a": 1}"#));
        assert_eq!(event.lane, Lane { stream_arn: Some("arn:s".to_owned()), shard: Some("shardId-1".to_owned()) });
    }

    #[test]
    fn the_last_event_of_a_window_may_have_no_records() {
        let event = Event::parse(r#"{"window": {}, "shardId": "s", "isFinalInvokeForWindow": true}"#).unwrap();
        assert_eq!((event.records.len(), event.state), (0, Some("{}")));
    }

    #[test]
    fn what_has_no_records_is_no_event() {
        for text in ["{}", "[]", "7", "{\"Records\": 7}", "", "{\"Records\": null}"] {
            assert!(Event::parse(text).is_err(), "{text}");
        }
    }
}

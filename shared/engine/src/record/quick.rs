//! Parses a stream record in Lambda's form in one pass.
//!
//! *Keeps true*: the result is the same as that of the general parser in [`record`](crate::record). Anything unusual
//! (an escape, a `null`, a repeated field, a text that is no JSON) gives `None` here, never an error, and the general
//! parser decides. A property in `tests/offline/records.rs` compares the two.
//!
//! *Why*: decoding is most of the work of a batch with few effects, and `serde_json` reads every value through an
//! interface for any format. For a batch of 100 records from `benches::event`, dividing and decoding takes 174
//! microseconds instead of 282, and with planning for the counting family 259 instead of 368 (medians of `c_decode` and
//! `d_aggregate` of `cargo bench -p benches --bench plan`, with and without this module).

use keys::item::Item;
use serde_dynamo::AttributeValue;

use crate::record::{Record, StreamRecord, UserIdentity};

/// Maximum number of digits with which every parser gives the same nearest `f64`.
const EXACT_DIGITS_MAX: usize = 15;

/// Number of attributes of most images.
const ATTRIBUTES: usize = 12;

/// A partition key and a sort key.
const KEYS: usize = 2;

/// A text that is read from its start. It has no control character: between tokens one would be white space, and within
/// a text it would be invalid JSON.
pub(crate) struct JsonReader<'a> {
    rest: &'a str,
}

/// A record; `None` if the general parser must decide.
pub(crate) fn record(text: &str) -> Option<Record<'_>> {
    let mut reader = JsonReader::new(text)?;
    let record = reader.record()?;
    reader.ends().map(|()| record)
}

impl<'a> JsonReader<'a> {
    fn new(text: &'a str) -> Option<Self> {
        // A fold processes many bytes at once, whereas a search would stop at each.
        let has_control = text.bytes().fold(0, |found, byte| found | u8::from(byte < b' ')) != 0;
        (!has_control).then_some(Self { rest: text })
    }

    fn record(&mut self) -> Option<Record<'a>> {
        let (mut id, mut name, mut stream, mut stream_record, mut identity) = (None, None, None, None, None);
        self.object(|reader, field| match field {
            "eventID" => once(&mut id, reader.text()?),
            "eventName" => once(&mut name, reader.text()?),
            "eventSourceARN" => once(&mut stream, reader.text()?),
            "userIdentity" => {
                let read = reader.identity()?;
                once(&mut identity, read)
            }
            "dynamodb" => {
                let read = reader.stream_record()?;
                once(&mut stream_record, read)
            }
            _ => reader.ignored(),
        })?;
        let event_source_arn = stream.map(Into::into);
        Some(Record {
            event_id: id?.to_owned(),
            event_name: name?.into(),
            event_source_arn,
            user_identity: identity,
            dynamodb: stream_record?,
        })
    }

    fn identity(&mut self) -> Option<UserIdentity<'a>> {
        let (mut identity_type, mut principal_id) = (None, None);
        self.object(|reader, field| match field {
            "type" => once(&mut identity_type, reader.text()?.into()),
            "principalId" => once(&mut principal_id, reader.text()?.into()),
            _ => reader.text_or_number(),
        })?;
        Some(UserIdentity { identity_type, principal_id })
    }

    fn stream_record(&mut self) -> Option<StreamRecord<'a>> {
        let (mut keys, mut new_image, mut old_image) = (None, None, None);
        let (mut sequence_number, mut created, mut view_type) = (None, None, None);
        self.object(|reader, field| match field {
            "Keys" => once(&mut keys, reader.item(KEYS)?),
            "NewImage" => once(&mut new_image, reader.item(ATTRIBUTES)?),
            "OldImage" => once(&mut old_image, reader.item(ATTRIBUTES)?),
            "SequenceNumber" => once(&mut sequence_number, reader.text()?),
            "ApproximateCreationDateTime" => once(&mut created, reader.number()?.parse().ok()?),
            "StreamViewType" => once(&mut view_type, reader.text()?),
            _ => reader.ignored(),
        })?;
        Some(StreamRecord {
            keys,
            new_image,
            old_image,
            sequence_number: sequence_number?.to_owned(),
            approximate_creation_date_time: created,
            stream_view_type: view_type.map(Into::into),
        })
    }

    fn item(&mut self, n_attributes: usize) -> Option<Item> {
        let mut attributes = Vec::with_capacity(n_attributes);
        self.object(|reader, name| {
            attributes.push((name.into(), reader.value()?));
            Some(())
        })?;
        Some(Item::from(attributes))
    }

    fn value(&mut self) -> Option<AttributeValue> {
        // A text in Lambda's compact form is by far the most frequent value.
        if let Some(rest) = self.rest.strip_prefix(r#"{"S":"#) {
            self.rest = rest;
            let text = self.text()?.to_owned();
            return self.byte(b'}').map(|()| AttributeValue::S(text));
        }
        let whole = self.rest;
        self.byte(b'{')?;
        let value_type = self.text()?;
        self.byte(b':')?;
        let value = match value_type {
            "S" => AttributeValue::S(self.text()?.to_owned()),
            "N" => AttributeValue::N(self.text()?.to_owned()),
            "BOOL" => AttributeValue::Bool(self.truth()?),
            "NULL" => AttributeValue::Null(self.truth()?),
            _ => {
                // The general parser reads nested values, and stops at their end.
                let mut values = serde_json::Deserializer::from_str(whole).into_iter::<AttributeValue>();
                let value = values.next()?.ok()?;
                self.rest = whole.get(values.byte_offset()..)?;
                return Some(value);
            }
        };
        self.byte(b'}').map(|()| value)
    }

    /// An unused value: a text, a number, or an object of those.
    fn ignored(&mut self) -> Option<()> {
        if self.peek()? == b'{' {
            return self.object(|reader, _| reader.text_or_number());
        }
        self.text_or_number()
    }

    fn text_or_number(&mut self) -> Option<()> {
        if self.peek()? == b'"' { self.text().map(drop) } else { self.number().map(drop) }
    }

    /// Calls `member` at the value of every member.
    fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.byte(b'{')?;
        if self.peek()? == b'}' {
            return self.byte(b'}');
        }
        loop {
            let name = self.text()?;
            self.byte(b':')?;
            member(self, name)?;
            if self.ends_with(b'}')? {
                return Some(());
            }
        }
    }

    /// After a member or an element: true if it is the last.
    fn ends_with(&mut self, end: u8) -> Option<bool> {
        let found = self.peek()?;
        self.byte(found)?;
        (found == end || found == b',').then_some(found == end)
    }

    /// A text without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let end = memchr::memchr2(b'"', b'\\', self.rest.as_bytes())?;
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix('"')?;
        Some(text)
    }

    /// The text of a number like `1705314600` or `1705314600.5`.
    fn number(&mut self) -> Option<&'a str> {
        self.peek()?;
        let end = self.rest.bytes().position(|byte| !byte.is_ascii_digit() && byte != b'.')?;
        let (number, rest) = self.rest.split_at_checked(end)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && !text.contains('.');
        let is_plain = digits(whole) && digits(part) && (whole == "0" || !whole.starts_with('0'));
        // An exponent would follow here and is not supported; a comma or a brace is.
        let ends = !rest.starts_with(['e', 'E']);
        self.rest = rest;
        (is_plain && ends && number.len() <= EXACT_DIGITS_MAX).then_some(number)
    }

    fn truth(&mut self) -> Option<bool> {
        self.peek()?;
        let (truth, rest) = match self.rest.strip_prefix("true") {
            Some(rest) => (true, rest),
            None => (false, self.rest.strip_prefix("false")?),
        };
        self.rest = rest;
        Some(truth)
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let first = *self.rest.as_bytes().first()?;
        if first > b' ' {
            return Some(first);
        }
        self.rest = self.rest.trim_start_matches(' ');
        self.rest.bytes().next()
    }

    /// Consumes this byte, which must be a one-byte character.
    fn byte(&mut self, wanted: u8) -> Option<()> {
        if self.peek()? != wanted {
            return None;
        }
        self.rest = self.rest.get(1..)?;
        Some(())
    }

    fn ends(&mut self) -> Option<()> {
        self.rest.trim_matches(' ').is_empty().then_some(())
    }
}

/// Sets a value that is not set yet.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use derive::change::Images;
    use keys::layout::Layout;

    use super::*;

    const RECORD: &str = concat!(
        r#"{"eventID":"1","eventName":"MODIFY","awsRegion":"eu-west-1","userIdentity":{"type":"Service"},"dynamodb":{"#,
        r#""ApproximateCreationDateTime":1705314600.5,"Keys":{"PK":{"S":"a"},"SK":{"S":"b"}},"#,
        r#""NewImage":{"B":{"BOOL":true},"A":{"L":[{"N":"1"},{"M":{}}]}},"OldImage":{},"#,
        r#""SequenceNumber":"100","SizeBytes":26,"StreamViewType":"NEW_AND_OLD_IMAGES"}}"#
    );

    #[test]
    fn a_plain_record_is_read_here() {
        for text in [RECORD.to_owned(), format!(" {} ", RECORD.replace(':', ": "))] {
            let images = record(&text).unwrap().dynamodb;
            assert_eq!(images.approximate_creation_date_time, Some(1_705_314_600.5));
            assert_eq!(images.new_image.as_ref().unwrap().keys().collect::<Vec<_>>(), ["A", "B"]);
        }
    }

    #[test]
    fn a_removal_by_the_time_to_live_is_told_from_that_by_a_client() {
        let keys = r#"{"PK":{"S":"a"},"SK":{"S":"b"}}"#;
        let removed = RECORD.replace("MODIFY", "REMOVE").replace(r#""OldImage":{}"#, &format!(r#""OldImage":{keys}"#));
        for (identity, is_expired) in [
            (r#"{"type":"Service","principalId":"dynamodb.amazonaws.com"}"#, true),
            (r#"{"principalId":"dynamodb.amazonaws.com","type":"Service"}"#, true),
            (r#"{"type":"Service"}"#, false),
            (r#"{"type":"Service","principalId":"someone"}"#, false),
            ("null", false),
        ] {
            let text = removed.replace(r#"{"type":"Service"}"#, identity);
            // An escape leaves the record to the general parser.
            for text in [text.clone(), text.replace("userIdentity", r"user\u0049dentity")] {
                let change = crate::record::decode(&Layout::of("PK", "SK"), &text).unwrap();
                assert_eq!(matches!(change.images, Images::Expired(_)), is_expired, "{text}");
            }
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_general_reading() {
        assert!(record(RECORD).is_some());
        for (from, to) in [
            ("\"a\"", "\"\\u0061\""),
            ("\"a\"", "null"),
            ("{\"S\":\"a\"}", "{\"S\":\"a\",\"N\":\"1\"}"),
            ("\"eventID\":\"1\"", "\"eventID\":\"1\",\"eventID\":\"1\""),
            ("1705314600.5", "1705314600.123456"),
            ("1705314600.5", "17e8"),
            ("26", "026"),
            ("26", "2.6.1"),
            ("IMAGES\"}", "IMAGES\",}"),
            ("\"SequenceNumber\":\"100\",", ""),
            ("}}", "}} x"),
            (",", ",\n"),
        ] {
            assert!(RECORD.contains(from), "{from}");
            assert!(record(&RECORD.replacen(from, to, 1)).is_none(), "{from} as {to}");
        }
        for text in ["", "{}", "[]", "{\"dynamodb\":{}}"] {
            assert!(record(text).is_none(), "{text}");
        }
    }
}

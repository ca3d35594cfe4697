//! Converts a record of `GetRecords` to that of a Lambda event.
//!
//! The differences, beside the stream's ARN that only the event has:
//!
//! | field | the API prints | an event has |
//! |---|---|---|
//! | `userIdentity` | `PrincipalId`, `Type` | `principalId`, `type` |
//! | `ApproximateCreationDateTime` | seconds since the epoch; ISO 8601 by version 2 of the AWS command line and by SDKs | seconds since the epoch |
//!
//! Binary values are base64 in both, as the AWS command line prints them.

use serde_json::{Map, Value, value::RawValue};

use crate::time;

/// Converts one record. The error is a time that cannot be read.
pub(super) fn shaped(record: &RawValue, stream_arn: Option<&str>) -> Result<Box<RawValue>, String> {
    // A record that is no object, or that cannot be written again, stays as it is: it does not decode, and the caller
    // reports that.
    let Ok(Value::Object(mut fields)) = serde_json::from_str(record.get()) else { return Ok(record.to_owned()) };
    fields.entry("eventSource").or_insert_with(|| "aws:dynamodb".into());
    if let Some(arn) = stream_arn {
        fields.insert("eventSourceARN".to_owned(), arn.into());
    }
    if let Some(identity) = fields.remove("userIdentity").as_ref().and_then(Value::as_object).map(recased) {
        fields.insert("userIdentity".to_owned(), identity);
    }
    if let Some(created) = fields.get_mut("dynamodb").and_then(|it| it.get_mut("ApproximateCreationDateTime"))
        && let Some(text) = created.as_str()
    {
        *created = time::seconds(text).ok_or_else(|| text.to_owned())?.into();
    }
    Ok(serde_json::value::to_raw_value(&fields).unwrap_or_else(|_| record.to_owned()))
}

fn recased(identity: &Map<String, Value>) -> Value {
    let lower = |name: &String| {
        let mut letters = name.chars();
        letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect::<String>()
    };
    Value::Object(identity.iter().map(|(name, value)| (lower(name), value.clone())).collect())
}

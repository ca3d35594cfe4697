//! An invocation that is held, with its records that are still to be delivered.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, value::RawValue};

/// An invocation of a function, held before the function gets it.
#[derive(Debug)]
pub(super) struct HeldBatch {
    /// Everything in the event but its records and the state of its tumbling window.
    pub(super) envelope: BatchEnvelope,
    /// The records that were not delivered yet, in their order.
    pub(super) waiting: VecDeque<HeldRecord>,
    /// How many were.
    pub(super) n_delivered: usize,
}

/// What an event says beside its records.
#[derive(Clone, Debug)]
pub(super) struct BatchEnvelope {
    /// Other fields, each with its JSON text.
    fields: BTreeMap<String, Box<RawValue>>,
    /// JSON of the state of the tumbling window; `None` without a window.
    pub(super) state: Option<String>,
}

/// A record of a held invocation.
#[derive(Clone, Debug)]
pub(super) struct HeldRecord {
    /// Its JSON text, as the function gets it.
    pub(super) json: String,
    pub(super) sequence_number: String,
    /// How many invocations with it were killed or failed.
    pub(super) n_failed: usize,
}

impl HeldBatch {
    /// The parts of an event; `None` for one without records, which there is nothing to hold of.
    pub(super) fn of(event: &str) -> Option<Self> {
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(event).ok()?;
        let records: Vec<Box<RawValue>> = serde_json::from_str(fields.remove("Records")?.get()).ok()?;
        let state = fields.remove("state").map(|state| state.get().to_owned());
        let record = |json: Box<RawValue>| HeldRecord {
            json: json.get().to_owned(),
            sequence_number: engine::record::head(json.get()).sequence_number.unwrap_or_default(),
            n_failed: 0,
        };
        let waiting: VecDeque<HeldRecord> = records.into_iter().map(record).collect();
        let envelope = BatchEnvelope { fields, state };
        (!waiting.is_empty()).then_some(Self { envelope, waiting, n_delivered: 0 })
    }

    /// The event with the records that are left.
    pub(super) fn rest(&self) -> String {
        self.envelope.event(self.waiting.iter().map(|record| record.json.as_str()))
    }
}

impl BatchEnvelope {
    /// An event with these records.
    pub(super) fn event<'a>(&self, records: impl Iterator<Item = &'a str>) -> String {
        let records = records.collect::<Vec<_>>().join(",");
        let state = self.state.iter().map(|state| format!(r#","state":{state}"#));
        let fields = self.fields.iter().map(|(name, value)| format!(",{}:{}", Value::from(name.as_str()), value.get()));
        let more: String = state.chain(fields).collect();
        format!(r#"{{"Records":[{records}]{more}}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_cut_and_put_together_as_it_was() {
        let first =
            r#"{"eventID":"a","dynamodb":{"SequenceNumber":"1","NewImage":{"N":{"N":"12345678901234567890.50"}}}}"#;
        let second = r#"{"eventID":"b","dynamodb":{"SequenceNumber":"2"}}"#;
        let state = r#"{"n":12345678901234567890.50}"#;
        let event =
            format!(r#"{{"Records":[{first},{second}],"state":{state},"shardId":"s","window":{{"start":"t"}}}}"#);
        let mut batch = HeldBatch::of(&event).unwrap();
        assert_eq!(batch.rest(), event);
        let numbers: Vec<&str> = batch.waiting.iter().map(|record| record.sequence_number.as_str()).collect();
        assert_eq!(numbers, ["1", "2"]);
        let delivered = batch.waiting.pop_front().unwrap();
        batch.envelope.state = Some("{}".to_owned());
        let tail = r#","state":{},"shardId":"s","window":{"start":"t"}}"#;
        assert_eq!(batch.rest(), format!(r#"{{"Records":[{second}]{tail}"#));
        assert_eq!(
            batch.envelope.event([delivered.json.as_str()].into_iter()),
            format!(r#"{{"Records":[{first}]{tail}"#)
        );
        assert!(HeldBatch::of(r#"{"Records":[],"state":{}}"#).is_none() && HeldBatch::of("no event").is_none());
        assert_eq!(
            HeldBatch::of(&format!(r#"{{"Records":[{first}]}}"#)).unwrap().rest(),
            format!(r#"{{"Records":[{first}]}}"#)
        );
    }
}

//! Stream records and events as text, as a function in Lambda gets them.

use keys::{item::Item, size::item_bytes};

/// ARN of a stream that belongs to no existing table.
pub const STREAM_ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/Main/stream/2024-01-15T10:00:00.000";

/// A record of a change.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The event's id.
    pub id: &'a str,
    /// Its sequence number.
    pub sequence_number: &'a str,
    /// The item's key attributes.
    pub keys: &'a Item,
    /// The item before the change.
    pub old: Option<&'a Item>,
    /// The item after the change.
    pub new: Option<&'a Item>,
    /// When the change was made, in milliseconds since the epoch; the record contains whole seconds.
    pub at_ms: u64,
    /// Did DynamoDB remove the item, by its time to live?
    pub is_expiry: bool,
}

impl Record<'_> {
    /// The record as JSON.
    ///
    /// # Panics
    ///
    /// If an item has no JSON, which is impossible for an item of a table.
    #[must_use]
    pub fn json(&self) -> String {
        let Self { id, sequence_number, keys, old, new, at_ms, is_expiry } = *self;
        let name = match (old, new) {
            (None, _) => "INSERT",
            (Some(_), Some(_)) => "MODIFY",
            (Some(_), None) => "REMOVE",
        };
        let json = |item: &Item| serde_json::to_string(item).unwrap();
        let image =
            |name: &str, item: Option<&Item>| item.map(|it| format!(r#""{name}":{},"#, json(it))).unwrap_or_default();
        let size = [Some(keys), old, new].into_iter().flatten().map(item_bytes).sum::<usize>();
        let identity = r#""userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"#;
        format!(
            concat!(
                r#"{{"eventID":"{id}","eventName":"{name}","eventVersion":"1.1","eventSource":"aws:dynamodb","#,
                r#""awsRegion":"eu-west-1",{identity}"dynamodb":{{"ApproximateCreationDateTime":{seconds}.0,"#,
                r#""Keys":{keys},{old}{new}"SequenceNumber":"{sequence_number}","SizeBytes":{size},"#,
                r#""StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"{arn}"}}"#
            ),
            id = id,
            name = name,
            identity = if is_expiry { identity } else { "" },
            seconds = at_ms / 1000,
            keys = json(keys),
            old = image("OldImage", old),
            new = image("NewImage", new),
            sequence_number = sequence_number,
            size = size,
            arn = STREAM_ARN,
        )
    }
}

/// The members that a tumbling window adds to an event.
#[derive(Clone, Debug)]
pub struct Window {
    /// When it begins.
    pub start: String,
    /// When it ends.
    pub end: String,
    /// The state of the invocation before, as JSON.
    pub state: String,
    /// The shard of the event.
    pub shard_id: String,
    /// Is it the last invocation of the window?
    pub is_final: bool,
    /// Did Lambda end the window early?
    pub is_ended_early: bool,
}

impl Window {
    /// A window of a minute with an empty state, which is not the last invocation.
    #[must_use]
    pub fn of_shard(shard_id: &str) -> Self {
        Self {
            start: "2024-01-15T10:40:00Z".to_owned(),
            end: "2024-01-15T10:41:00Z".to_owned(),
            state: "{}".to_owned(),
            shard_id: shard_id.to_owned(),
            is_final: false,
            is_ended_early: false,
        }
    }

    /// Adds this window to the event.
    ///
    /// # Panics
    ///
    /// If the text is not an object.
    #[must_use]
    pub fn around(&self, event: &str) -> String {
        let Self { start, end, state, shard_id, is_final, is_ended_early } = self;
        let event = event.strip_suffix('}').unwrap();
        format!(
            concat!(
                r#"{},"window":{{"start":"{}","end":"{}"}},"state":{},"shardId":"{}","eventSourceARN":"{}","#,
                r#""isFinalInvokeForWindow":{},"isWindowTerminatedEarly":{}}}"#
            ),
            event, start, end, state, shard_id, STREAM_ARN, is_final, is_ended_early
        )
    }
}

/// An event with these records.
#[must_use]
pub fn event<T: AsRef<str>>(records: &[T]) -> String {
    let records: Vec<&str> = records.iter().map(AsRef::as_ref).collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}

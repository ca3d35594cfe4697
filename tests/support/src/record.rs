//! Stream records and events as text, as a function in Lambda gets them, and the patterns of event filters.

use keys::{item::Item, key::Key, layout::Layout, size::item_bytes};
use serde_json::{Value, json};

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

/// The JSON of a change with this number, by which its id and its sequence number go. No time to live made it.
#[must_use]
pub fn numbered(number: usize, keys: &Item, [old, new]: [Option<&Item>; 2], at_ms: u64) -> String {
    let (id, sequence_number) = (&*format!("{number:032x}"), &*format!("{number:021}"));
    Record { id, sequence_number, keys, old, new, at_ms, is_expiry: false }.json()
}

/// An item of a table, written as `PK / SK : EntityType Name=Value …`; `N:` marks a number.
///
/// # Panics
///
/// If the text has another form.
#[must_use]
pub fn item(layout: &Layout, text: &str) -> Item {
    let (key, rest) = text.split_once(" : ").unwrap();
    let (pk, sk) = key.split_once(" / ").unwrap();
    let mut words = rest.split(' ');
    let mut item = layout.key_item(&Key::new(pk, sk));
    item.extend(layout.type_of(words.next().unwrap()));
    for (name, value) in words.map(|word| word.split_once('=').unwrap()) {
        let value = value.strip_prefix("N:").map_or_else(|| json!({ "S": value }), |number| json!({ "N": number }));
        item.insert(name, serde_json::from_value(value).unwrap());
    }
    item
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

// ---- Does a record match a pattern? The syntax of the generated patterns: objects, strings, and prefixes ----

/// Does the record match one of these patterns?
///
/// # Panics
///
/// When a pattern has another syntax.
#[must_use]
pub fn passes(patterns: &[Value], record: &Value) -> bool {
    patterns.iter().any(|pattern| matches(pattern, record))
}

/// The patterns as values.
///
/// # Panics
///
/// When a pattern is no JSON.
#[must_use]
pub fn read(patterns: &[String]) -> Vec<Value> {
    patterns.iter().map(|text| serde_json::from_str(text).expect("a pattern is JSON")).collect()
}

fn matches(pattern: &Value, value: &Value) -> bool {
    match pattern {
        // All members of an object must match, and a missing member matches nothing.
        Value::Object(members) => members.iter().all(|(name, of)| value.get(name).is_some_and(|it| matches(of, it))),
        Value::Array(alternatives) => alternatives.iter().any(|one| is_one(one, value)),
        other => panic!("no pattern has this: {other}"),
    }
}

fn is_one(alternative: &Value, value: &Value) -> bool {
    match (alternative, alternative.get("prefix").and_then(Value::as_str)) {
        (Value::String(_), _) => alternative == value,
        (_, Some(prefix)) => value.as_str().is_some_and(|text| text.starts_with(prefix)),
        _ => panic!("no pattern has this: {alternative}"),
    }
}

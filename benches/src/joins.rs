//! Users that join groups, and the count of a group's members.

use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
    schema::Schema,
};
use serde_json::{Value, json};

/// The name of the count.
pub const MEMBER_COUNT: &str = "member-count";

/// The sort key of a group's counter. The count has one shard.
pub const COUNTER_SK: &str = "METADATA#COUNT#member-count#00";

/// The partition key of a group.
#[must_use]
pub fn group(number: usize) -> String {
    format!("GROUP#g{number}")
}

/// A catalogue that only counts the members of a group.
///
/// # Panics
///
/// When the schema is not that of the shipped table.
#[must_use]
pub fn member_count(schema: &Schema) -> Catalogue {
    let count = Count {
        source: "Membership".to_owned(),
        condition: Condition::Always,
        target: "Group".to_owned(),
        link: Link::of(&[("GroupId", "GroupId")]),
        sum: None,
        history: false,
        expired_stays: false,
        each: None,
    };
    Catalogue::new(schema, vec![Derivation::new("D-14", MEMBER_COUNT, count)]).expect("a catalogue")
}

/// The record of the user with this number, who joins a group at this time in milliseconds.
/// Records are in the order of their numbers in one stream shard.
#[must_use]
pub fn join(number: usize, into: usize, at_ms: u64) -> Value {
    let keys = json!({"PK": {"S": format!("USER#u{number}")}, "SK": {"S": group(into)}});
    let mut image = keys.clone();
    image["EntityType"] = json!({"S": "Membership"});
    image["JoinedAt"] = json!({"S": "2024-01-15T10:30:00.000Z"});
    json!({
        "eventID": format!("{number:032x}"),
        "eventName": "INSERT",
        "dynamodb": {
            "ApproximateCreationDateTime": at_ms / 1_000,
            "Keys": keys,
            "NewImage": image,
            "SequenceNumber": format!("{}", 1_000_000 + number),
        },
    })
}

/// The event of these records, in a tumbling window of their shard.
#[must_use]
pub fn event(records: &[Value]) -> String {
    json!({
        "Records": records,
        "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"},
        "state": {},
        "shardId": "shardId-00000001573689847180-864758bb",
    })
    .to_string()
}

/// Halves of a read unit that a read of so many bytes costs.
#[must_use]
pub fn read_halves(bytes: usize, is_strong: bool) -> u64 {
    let units = u64::try_from(bytes.div_ceil(4_096).max(1)).unwrap_or(u64::MAX);
    if is_strong { 2 * units } else { units }
}

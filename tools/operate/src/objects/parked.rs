//! What is parked, as `ripple parked` prints it and the console shows it.

use engine::{
    park::{lists::ToRecount, redrive::ParkedChange},
    record::{decode, event::Lane},
};
use keys::{key::Key, layout::Layout};
use serde_json::{Value, json};

use super::{key, word};
use crate::words::time;

/// All that is parked, and the counts that need a recount.
#[must_use]
pub fn parked_list(parked: &[ParkedChange], recount: &[ToRecount], n_unreadable: usize, layout: &Layout) -> Value {
    json!({
        "parked": parked.iter().map(|change| change_object(change, layout)).collect::<Vec<_>>(),
        "recount": recount.iter().map(recount_object).collect::<Vec<_>>(),
        "unreadable": n_unreadable,
    })
}

/// A parked change with its record.
#[must_use]
pub fn whole_change(change: &ParkedChange, layout: &Layout) -> Value {
    let mut whole = change_object(change, layout);
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("record".to_owned(), record(change));
    }
    whole
}

/// The record as JSON, or as a string if it is not JSON.
#[must_use]
pub fn record(change: &ParkedChange) -> Value {
    match change.record() {
        Ok(record) => serde_json::from_str(&record).unwrap_or(Value::String(record)),
        Err(error) => Value::String(format!("it cannot be unpacked: {error}")),
    }
}

/// The item of a parked change, unless the change cannot be read.
#[must_use]
pub fn item(change: &ParkedChange, layout: &Layout) -> Option<Key> {
    decode(layout, &change.record().ok()?).ok().map(|change| change.key)
}

/// A parked change as an object.
fn change_object(change: &ParkedChange, layout: &Layout) -> Value {
    let Lane { stream_arn, shard } = &change.lane;
    let sequence_number = Some(&change.sequence_number).filter(|number| !number.is_empty());
    json!({
        "id": change.id,
        "family": word(&change.family.to_string()),
        "parked_at": time(change.parked_at_ms),
        "stream": stream_arn,
        "shard": shard,
        "sequence_number": sequence_number,
        "item": item(change, layout).as_ref().map(key),
        "cause": change.cause,
    })
}

/// A count that needs a recount, as an object.
fn recount_object(listed: &ToRecount) -> Value {
    let target = listed.target.as_ref();
    json!({
        "derivation": target.map(|target| &target.derivation),
        "pk": target.map(|target| &target.item.pk),
        "sk": target.map(|target| &target.item.sk),
        "event": listed.event_id,
        "why": listed.why,
        "listed_at": time(listed.listed_at_ms),
    })
}

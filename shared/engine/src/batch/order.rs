//! The order of a shard's batches, as far as the state of a tumbling window shows it.
//!
//! A watermark passes every earlier record of its shard, so under watermarks a record that arrives for the first time
//! behind a later one is taken for a counted one. AWS delivers records in order the first time; only records that are
//! processed more than once may be out of order. Source: DynamoDB developer guide, "DynamoDB Streams and Lambda
//! triggers".
//!
//! *Keeps true*: the window's state has the sequence numbers of the batch that was handled last. A batch that begins
//! before that one is reported: nothing shows whether its records were handled before. A redelivery of the last batch
//! begins within it, and is harmless.
//!
//! *Not visible*: each window begins with an empty state, so nothing is compared across windows.

use serde_json::{Map, Value, json};

use crate::{account::Account, input::Batch, ledger::watermarks::Sequence};

/// Member of the state: the first and the last sequence number of the batch that was handled last, as texts. Lambda
/// keeps the state during a deployment, so it is stable.
const HANDLED: &str = "handled";

/// Counts and logs records that arrived behind later ones: a watermark may have passed them.
///
/// There is no mark of a possible loss: most such records were counted before, and nothing shows which were not.
pub(crate) fn report(state: Option<&str>, batch: &Batch<'_>, account: &mut Account) {
    let behind = out_of_order(state, batch);
    account.n_out_of_order = behind.len();
    if let Some(first) = behind.first() {
        tracing::warn!(
            n_records = behind.len(),
            sequence_number = first,
            shard = batch.lane.shard,
            "records may be lost: they arrived after later records of their shard"
        );
    }
}

/// The sequence numbers that arrive behind later ones: within the batch, or behind the batch that was handled last.
fn out_of_order<'a>(state: Option<&str>, batch: &'a Batch<'_>) -> Vec<&'a str> {
    let numbers: Vec<(&str, Sequence)> = numbers(batch).collect();
    let handled = state.and_then(|state| handled(&parsed(state)));
    let is_before = |first: Sequence| numbers.first().is_some_and(|(_, number)| *number < first);
    let mut latest = handled.filter(|[first, _]| is_before(*first)).map(|[_, last]| last);
    let mut behind = Vec::new();
    for (text, number) in numbers {
        if latest.is_some_and(|latest| number < latest) {
            behind.push(text);
        } else {
            latest = Some(number);
        }
    }
    behind
}

/// The state that the response returns. Records from `failed_from` on are not done.
pub(crate) fn next_state(state: &str, failed_from: Option<&str>, batch: &Batch<'_>) -> String {
    let end = failed_from.map(Sequence::parse);
    // A failed record without a readable number fails the whole batch.
    let is_done = |number: &Sequence| end.is_none_or(|end| end.is_some_and(|end| *number < end));
    let done: Vec<(&str, Sequence)> = numbers(batch).filter(|(_, number)| is_done(number)).collect();
    let first = done.iter().min_by_key(|(_, number)| *number);
    let last = done.iter().max_by_key(|(_, number)| *number);
    let (Some((first, _)), Some((last, _))) = (first, last) else { return state.to_owned() };
    let mut members = parsed(state);
    members.insert(HANDLED.to_owned(), json!([first, last]));
    Value::Object(members).to_string()
}

/// The members of a state; none if it is no object.
fn parsed(state: &str) -> Map<String, Value> {
    serde_json::from_str(state).unwrap_or_default()
}

fn handled(state: &Map<String, Value>) -> Option<[Sequence; 2]> {
    let numbers = state.get(HANDLED)?.as_array()?;
    let number = |at: usize| numbers.get(at)?.as_str().and_then(Sequence::parse);
    Some([number(0)?, number(1)?])
}

/// The readable sequence numbers of the batch, in the order of its records.
fn numbers<'a>(batch: &'a Batch<'_>) -> impl Iterator<Item = (&'a str, Sequence)> {
    batch.records.iter().filter_map(|record| {
        let text = record.head.sequence_number.as_deref()?;
        Some((text, Sequence::parse(text)?))
    })
}

//! Checkpoint: one item per consumer and shard holds the sequence number up to which changes are in.
//!
//! *Keeps true*: a change is in, or parked, exactly when the shard's checkpoint has passed it. Every transaction moves
//! the checkpoint forward, and carries the effects of exactly the changes that it passes.
//!
//! *Why it is right under repeats*: what the checkpoint has passed is dropped, however it is delivered again. The
//! condition is that the checkpoint still stands where it was read: so a call whose answer was lost is not repeated,
//! and an invocation that timed out and still runs applies nothing beside the one that took over. When the condition
//! fails, the checkpoint is read again, and what it has passed by now is dropped.
//!
//! *What it needs*: the shard's name, which Lambda gives only with tumbling windows; one lane a shard, since a lane
//! that is ahead would pass the changes of one that is behind; unlimited retries, since a change that Lambda gives up
//! would be passed by the next. Changes of a shard come in the order of their sequence numbers the first time.
//! A change in front of the checkpoint may be applied only by the stream: so nothing that is
//! [replayed](crate::batch::replay) ever is.
//!
//! *Example*: the checkpoint stands at 7. A batch of 6, 9, 12 and 15 drops 6 and goes in as one transaction: checkpoint
//! from 7 to 15, `ADD Value 3`. Between 7 and 9 there may be records that ask for nothing; they move no checkpoint.

use derive::{
    coalesce::{Counted, Proof},
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::Reason;

use crate::{
    ledger::{EXPIRES_AT, Ledger, expires_at},
    record::event::Lane,
};

/// Attribute that holds the position: a sequence number, zero-padded, type S. Stored, so it is stable.
pub const POSITION: &str = "Position";

/// Digits of a sequence number. Source: `DynamoDB` Streams API, `SequenceNumber`, 21 to 40 characters. A number of type
/// N holds 38 at most, so a position is text, padded so that the order of the text is that of the numbers.
const DIGITS: usize = 40;

/// What a batch knows of its shard's checkpoint.
pub(crate) struct Checkpoint {
    key: Key,
    position: Option<String>,
}

impl Checkpoint {
    /// The checkpoint of a shard, not read yet.
    pub(crate) fn new(stream_arn: Option<&str>, shard: &str) -> Self {
        Self { key: key(stream_arn, shard), position: None }
    }
}

impl Ledger for Checkpoint {
    fn proof(&self) -> Proof {
        Proof::EachChunk
    }

    fn proofs(&self, changes: &[Counted], now_ms: u64) -> Vec<Write> {
        // A record without a sequence number cannot be passed.
        let Some(last) = changes.iter().filter_map(|change| padded(&change.sequence_number)).max() else {
            return Vec::new();
        };
        let set = [(POSITION, AttributeValue::S(last)), (EXPIRES_AT, expires_at(now_ms))];
        let set = set.map(|(name, value)| (name.to_owned(), value)).into();
        let action = Action::Update(Update::set(set));
        let value = self.position.clone().map(AttributeValue::S);
        let guard = Guard::as_read(Purpose::Checkpoint, [(POSITION, value)]);
        vec![Write { table: Table::Ledger, key: self.key.clone(), action, guard: Some(guard) }]
    }

    fn has(&self, change: &Counted) -> bool {
        padded(&change.sequence_number).is_some_and(|number| Some(number) <= self.position)
    }

    fn passed(&mut self, changes: &[Counted]) {
        let last = changes.iter().filter_map(|change| padded(&change.sequence_number)).max();
        self.position = self.position.take().max(last);
    }

    /// Says nothing: it must be read where it stands.
    fn cancelled(&mut self, _changes: &[Counted], _reasons: &[Reason]) {}

    fn standing(&self) -> Option<&Key> {
        Some(&self.key)
    }

    fn stands(&mut self, item: Option<&Item>) {
        self.position = item.and_then(|item| text(item, POSITION)).map(str::to_owned);
    }
}

/// Key of a shard's checkpoint. A table that is made anew has a new stream, in which old positions mean nothing.
fn key(stream_arn: Option<&str>, shard: &str) -> Key {
    let label = stream_arn.and_then(|arn| arn.split_once("/stream/")).map_or("", |(_, label)| label);
    Key::new(format!("CHECKPOINT#{label}#{shard}"), "CHECKPOINT")
}

/// Key of a lane's checkpoint; `None` when its shard is not known.
#[must_use]
pub fn checkpoint_key(lane: &Lane) -> Option<Key> {
    lane.shard.as_deref().map(|shard| key(lane.stream_arn.as_deref(), shard))
}

/// A sequence number as text that is ordered as numbers are; `None` when it is none.
#[must_use]
pub fn padded(sequence_number: &str) -> Option<String> {
    let is_number = !sequence_number.is_empty() && sequence_number.bytes().all(|byte| byte.is_ascii_digit());
    let digits = sequence_number.trim_start_matches('0');
    (is_number && digits.len() <= DIGITS).then(|| format!("{digits:0>DIGITS$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use derive::position::RecordAt;

    fn change(sequence_number: &str) -> Counted {
        Counted {
            position: RecordAt(0),
            id: String::new(),
            sequence_number: sequence_number.to_owned(),
            amounts: Vec::new(),
        }
    }

    #[test]
    fn sequence_numbers_are_ordered_as_numbers() {
        let numbers = ["20500000000000000910398", "820400000000000001192334", "1683700000000000001135967"];
        let padded: Vec<String> = numbers.iter().filter_map(|number| super::padded(number)).collect();
        assert!(padded.is_sorted() && padded.iter().all(|text| text.len() == 40), "{padded:?}");
        assert_eq!(super::padded("007"), super::padded("7"));
        for none in ["", "-1", "1e3", "seven", &"9".repeat(41)] {
            assert_eq!(super::padded(none), None, "{none}");
        }
    }

    #[test]
    fn what_it_has_passed_is_in_and_the_guard_is_equality_with_what_was_read() {
        let mut checkpoint =
            Checkpoint::new(Some("arn:aws:dynamodb:r:a:table/T/stream/2026-01-01T00:00:00.000"), "s-1");
        assert!(!checkpoint.has(&change("1")));
        let item = Item::from([(POSITION.to_owned(), AttributeValue::S(padded("7").unwrap()))]);
        checkpoint.stands(Some(&item));
        assert!(checkpoint.has(&change("7")) && checkpoint.has(&change("6")) && !checkpoint.has(&change("10")));
        let proofs = checkpoint.proofs(&[change("9"), change("15")], 0);
        assert_eq!(proofs[0].key.pk, "CHECKPOINT#2026-01-01T00:00:00.000#s-1");
        let value = Some(AttributeValue::S(padded("7").unwrap()));
        assert_eq!(proofs[0].guard, Some(Guard::as_read(Purpose::Checkpoint, [(POSITION, value)])));
        checkpoint.passed(&[change("9"), change("15")]);
        assert!(checkpoint.has(&change("15")));
    }
}

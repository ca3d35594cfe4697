//! Watermarks: each counter and each bucket stores the last counted change of each stream shard.
//!
//! *Keeps true*: for each counter and each stream shard, every change up to the counter's watermark of that shard is
//! applied to the counter or parked, and none above it is.
//!
//! The update that adds to a counter also moves its watermark, on the condition that the watermark is below the first
//! change that the update adds. So an update that is repeated, or sent by two invocations at once, fails its condition.
//! The failure returns the item, which shows the changes that are already counted. There is no ledger item, no
//! transaction, and no order between counters.
//!
//! *What it needs*: the shard's name, which Lambda provides only with tumbling windows; one concurrent batch a shard,
//! because a batch that is ahead would pass the changes of one that is behind; unlimited retries and no bisecting,
//! because the next batch would pass a change that Lambda drops.
//!
//! *Example*: a counter has the watermark 7 of a shard. A batch of 6, 9 and 12 is sent as `ADD Value 3`, if the
//! watermark is below 6. That fails. The engine drops 6 and sends `ADD Value 2` with the watermark 12, if the watermark
//! is below 9.

use std::fmt;

use keys::{fnv::hash_64, item::Item};
use serde_dynamo::AttributeValue;

use crate::record::Lane;

/// Age from which a change is never applied, in milliseconds: 26 hours, more than a stream keeps a record (24 hours)
/// and an invocation takes (15 minutes). Source: DynamoDB developer guide and Lambda quotas.
pub const HORIZON_MS: u64 = 26 * 3600 * 1000;

/// How long a watermark is kept after it was written, in milliseconds: the horizon, the life of an invocation that read
/// the clock just before the horizon, and a quarter of an hour for a late call of that invocation.
pub const KEPT_MS: u64 = HORIZON_MS + 2 * 15 * 60 * 1000;

/// Life of a stream shard, in milliseconds: about four hours until a successor follows, as observed on AWS.
const STREAM_SHARD_MS: u64 = 4 * 3600 * 1000;

/// Number of generations of stream shards that have a watermark on a counter at one time.
pub const GENERATIONS: u64 = KEPT_MS.div_ceil(STREAM_SHARD_MS);

/// Bytes of a watermark's name.
const NAME_BYTES: usize = 9;

/// Bytes of a watermark in a counter's item, including its name.
pub const ENTRY_BYTES: usize = NAME_BYTES + MARK_BYTES;

/// Bytes of a sequence number: 40 digits at most. Source: DynamoDB Streams API, `SequenceNumber`.
const SEQUENCE_BYTES: usize = 17;

/// Bytes of a watermark: a sequence number, and the minute in which it was written.
const MARK_BYTES: usize = SEQUENCE_BYTES + size_of::<u32>();

/// A sequence number as bytes, ordered like the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence([u8; SEQUENCE_BYTES]);

impl Sequence {
    /// The sequence number in a text; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0_u8; SEQUENCE_BYTES];
        if text.is_empty() {
            return None;
        }
        for digit in text.chars() {
            let mut carry = digit.to_digit(10)?;
            for byte in bytes.iter_mut().rev() {
                let value = u32::from(*byte) * 10 + carry;
                *byte = u8::try_from(value & 0xff).ok()?;
                carry = value >> 8;
            }
            if carry > 0 {
                return None;
            }
        }
        Some(Self(bytes))
    }

    /// The watermark that a counter gets at this time, in milliseconds since the epoch, with this as its last change.
    ///
    /// It contains the time of the write, not that of the change: the watermark also covers earlier changes, which may
    /// be younger if the database's clock was set back.
    pub(crate) fn mark(self, now_ms: u64) -> AttributeValue {
        self.value(minute(now_ms))
    }

    /// The bound for a counter's watermark: below it, a change with this number is not counted. Only a mutant
    /// passes false.
    pub(crate) fn bound(self, is_strict: bool) -> AttributeValue {
        self.value(if is_strict { 0 } else { u32::MAX })
    }

    fn value(self, minute: u32) -> AttributeValue {
        AttributeValue::B(self.0.into_iter().chain(minute.to_be_bytes()).collect())
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut left, mut digits) = (self.0, Vec::new());
        while left.iter().any(|byte| *byte > 0) {
            let mut rest = 0_u32;
            for byte in &mut left {
                let value = rest << 8 | u32::from(*byte);
                *byte = u8::try_from(value / 10).map_err(|_| fmt::Error)?;
                rest = value % 10;
            }
            digits.extend(char::from_digit(rest, 10));
        }
        let text: String = digits.iter().rev().collect();
        f.write_str(if text.is_empty() { "0" } else { &text })
    }
}

/// The minute of a time since the epoch. The last one is in the year 10136.
fn minute(at_ms: u64) -> u32 {
    u32::try_from(at_ms / 60_000).unwrap_or(u32::MAX)
}

/// Name of the attribute with a counter's watermark of a stream shard; `None` if the shard is unknown.
///
/// It is `w` and 8 characters of a hash of 48 bits over the stream's label and the shard's name: two shards that feed
/// one counter must have different names. Stored, so it is stable.
#[must_use]
pub fn mark_name(lane: &Lane) -> Option<String> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = hash_64(format!("{}#{}", label(lane), lane.shard.as_deref()?).bytes());
    let folded = hash ^ hash >> 48;
    let letter = |at: u32| LETTERS.get(usize::try_from(folded >> (6 * at) & 63).unwrap_or(0)).copied();
    Some(std::iter::once('w').chain((0..8).filter_map(letter).map(char::from)).collect())
}

/// The label of the stream: a recreated table has another.
pub(crate) fn label(lane: &Lane) -> &str {
    lane.stream_arn.as_deref().and_then(|arn| arn.split_once("/stream/")).map_or("", |(_, label)| label)
}

/// The watermarks of a counter, with their names.
pub(crate) fn marks(item: &Item) -> impl Iterator<Item = (&str, &[u8])> {
    item.iter().filter_map(|(name, value)| match value {
        AttributeValue::B(bytes) if is_mark(name) && bytes.len() == MARK_BYTES => Some((name, bytes.as_slice())),
        _ => None,
    })
}

/// A counter's last counted change of a stream shard, for display to an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Name of the attribute, from [`mark_name`].
    pub name: String,
    /// Sequence number of the last change that is counted or parked.
    pub sequence_number: String,
}

/// The watermarks of a counter, for display to an operator.
#[must_use]
pub fn watermarks(counter: &Item) -> Vec<Watermark> {
    let watermark = |(name, mark): (&str, &[u8])| {
        let sequence = Sequence(mark.get(..SEQUENCE_BYTES)?.try_into().ok()?);
        Some(Watermark { name: name.to_owned(), sequence_number: sequence.to_string() })
    };
    marks(counter).filter_map(watermark).collect()
}

/// True if this is the name of a watermark.
#[must_use]
pub fn is_mark(name: &str) -> bool {
    name.len() == NAME_BYTES && name.starts_with('w')
}

/// True if a counter with this watermark has passed a change with this number.
pub(crate) fn has_passed(mark: &[u8], sequence: Sequence) -> bool {
    mark.get(..SEQUENCE_BYTES).is_some_and(|passed| passed >= sequence.0.as_slice())
}

/// A counter's watermark of this name.
pub(crate) fn mark_of<'a>(item: &'a Item, name: &str) -> Option<&'a [u8]> {
    match item.get(name) {
        Some(AttributeValue::B(bytes)) if bytes.len() == MARK_BYTES => Some(bytes),
        _ => None,
    }
}

/// Names of the watermarks that are older than this age, in milliseconds.
pub(crate) fn older_than(item: &Item, age_ms: u64, now_ms: u64) -> Vec<&str> {
    let is_old = |(_, mark): &(&str, &[u8])| {
        let Some(written) = mark.get(SEQUENCE_BYTES..).and_then(|minute| minute.try_into().ok()) else { return false };
        let passed = minute(now_ms).saturating_sub(u32::from_be_bytes(written));
        u64::from(passed) * 60_000 > age_ms
    };
    marks(item).filter(is_old).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: &AttributeValue) -> Vec<u8> {
        match value {
            AttributeValue::B(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sequence_numbers_are_ordered_as_numbers() {
        let largest = "9".repeat(40);
        let numbers = [
            "0",
            "7",
            "20500000000000000910398",
            "820400000000000001192334",
            "1683700000000000001135967",
            largest.as_str(),
        ];
        let parsed: Vec<Sequence> = numbers.iter().filter_map(|number| Sequence::parse(number)).collect();
        assert!(parsed.is_sorted() && parsed.len() == numbers.len());
        assert_eq!(Sequence::parse("007"), Sequence::parse("7"));
        assert_eq!(parsed.iter().map(Sequence::to_string).collect::<Vec<_>>(), numbers);
        for none in ["", "-1", "1e3", "seven", &"9".repeat(42)] {
            assert_eq!(Sequence::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_watermark_passes_its_change_and_those_before_it() {
        let sequence = |text: &str| Sequence::parse(text).unwrap();
        let mark = bytes(&sequence("10").mark(1_705_315_200_000));
        assert_eq!(mark.len(), MARK_BYTES);
        for (number, is_passed) in [("9", true), ("10", true), ("11", false)] {
            assert_eq!(has_passed(&mark, sequence(number)), is_passed, "{number}");
            // The condition agrees: the watermark is below the bound of the first change.
            assert_eq!(mark < bytes(&sequence(number).bound(true)), !is_passed, "{number}");
        }
        assert!(mark < bytes(&sequence("10").bound(false)), "the mutant lets the same number pass");
    }

    #[test]
    fn a_watermark_is_old_by_the_minute_in_which_it_was_written() {
        let (now_ms, hour_ms) = (1_705_315_200_000, 3_600_000);
        let sequence = Sequence::parse("1").unwrap();
        let years_ms = 20 * 366 * 24 * hour_ms;
        let times = [
            (now_ms, false),
            (now_ms - 2 * hour_ms, true),
            (0, true),
            (now_ms + 2 * hour_ms, false),
            (now_ms + years_ms, false),
            (u64::MAX, false),
        ];
        for (written_ms, is_old) in times {
            let item = Item::from([("w00000000".to_owned(), sequence.mark(written_ms))]);
            assert_eq!(older_than(&item, hour_ms, now_ms).len(), usize::from(is_old), "{written_ms}");
        }
    }

    #[test]
    fn each_shard_of_each_stream_has_a_name_of_its_own() {
        let lane = |label: &str, shard: &str| Lane {
            stream_arn: Some(format!("arn:aws:dynamodb:r:a:table/T/stream/{label}")),
            shard: Some(shard.to_owned()),
        };
        let names: std::collections::BTreeSet<String> = (0..2_000)
            .flat_map(|at| [lane("2024", &format!("shardId-{at:020}")), lane("2025", &format!("shardId-{at:020}"))])
            .filter_map(|lane| mark_name(&lane))
            .collect();
        assert_eq!(names.len(), 4_000);
        assert!(names.iter().all(|name| is_mark(name)));
        assert_eq!(mark_name(&Lane::default()), None);
    }
}

//! Which lane of its shard a record takes: that of its item.
//!
//! Pure. All records of an item take one lane, so their order holds; what shares only the partition key may part.
//! Source: reference B3, "in-order processing at the item (partition and sort key) level". Which lane an item takes is
//! not documented, and nothing may rest on it: here it is a hash of the item's key, the same in every run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use keys::number::Decimal;

use crate::value::{Item, Wire};

/// The lane of a record, below `n_lanes`. Records without a key, which no stream has, share the first.
pub(crate) fn lane_of(record: &Record, n_lanes: usize) -> usize {
    let Some(keys) = record.dynamodb().and_then(|change| change.keys()) else { return 0 };
    let n_lanes = u64::try_from(n_lanes).unwrap_or(u64::MAX).max(1);
    usize::try_from(hash(keys) % n_lanes).unwrap_or_default()
}

/// Keys that are one by value have one hash: `2.0` and `2` are one number.
fn hash(keys: &Item) -> u64 {
    let mut parts: Vec<_> = keys.iter().collect();
    parts.sort_by_key(|(name, _)| *name);
    let mut hasher = DefaultHasher::new();
    for (name, value) in parts {
        name.hash(&mut hasher);
        match value {
            AttributeValue::N(text) if let Some(number) = Decimal::parse(text) => number.hash(&mut hasher),
            // Writing a value as JSON cannot fail; were it to, such keys would share a lane.
            value => serde_json::to_string(&Wire(value)).unwrap_or_default().hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, StreamRecord};

    use super::lane_of;

    fn record(keys: &[(&str, AttributeValue)]) -> Record {
        let change =
            keys.iter().fold(StreamRecord::builder(), |change, (name, value)| change.keys(*name, value.clone()));
        Record::builder().dynamodb(change.build()).build()
    }

    fn text(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn number(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn an_item_has_one_lane_however_its_key_is_written() {
        for n in 0..50 {
            let sort = text(&format!("POST#{n}"));
            let one = record(&[("PK", text("USER#ann")), ("SK", sort.clone())]);
            let other = record(&[("SK", sort), ("PK", text("USER#ann"))]);
            assert_eq!(lane_of(&one, 10), lane_of(&other, 10));
            let [whole, point] = [format!("{n}"), format!("{n}.0")].map(|n| record(&[("n", number(&n))]));
            assert_eq!(lane_of(&whole, 10), lane_of(&point, 10));
        }
    }

    /// Source: U2.
    #[test]
    fn the_items_of_a_partition_spread_over_all_lanes() {
        let keys = (0..200).map(|n| record(&[("PK", text("POST#p")), ("SK", text(&format!("LIKE#{n}")))]));
        let lanes: BTreeSet<usize> = keys.map(|record| lane_of(&record, 10)).collect();
        assert_eq!(lanes, (0..10).collect());
    }

    #[test]
    fn one_lane_takes_everything_and_a_record_without_a_key_the_first() {
        assert_eq!(lane_of(&record(&[("PK", text("USER#ann"))]), 1), 0);
        assert_eq!(lane_of(&Record::builder().build(), 10), 0);
    }
}

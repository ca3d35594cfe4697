//! Buckets: the total of the values of a time span, and how values are added to it.
//!
//! A write adds to count and sum. It cannot add to the least and greatest value, so the bucket is read first. The write
//! sets a bound if a value exceeds it, on the condition that both bounds are unchanged since the read. If they changed,
//! the bucket is read and written again.
//!
//! *Example*: a bucket has the values 2 and 5. The values 1 and 4 are written as `ADD Count 2, Sum 5`, `SET Min 1`, on
//! the condition that Min is 2 and Max is 5.

use std::collections::BTreeMap;

use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use crate::{
    effect::BucketForm,
    guard::{Ask, Guard, Purpose},
    schema::Schema,
    tally::{Sum, Tally},
    write::{Action, Table, Update, Write},
};

/// Buckets as they were read; missing ones are empty.
pub type StoredBuckets = BTreeMap<Key, Item>;

/// The total of the values of a bucket; at least one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Their number and their sum.
    pub tally: Tally,
    /// The least of them.
    pub min: Sum,
    /// The greatest of them.
    pub max: Sum,
}

impl Bucket {
    /// A bucket of one value.
    #[must_use]
    pub fn of(value: &Sum) -> Self {
        Self { tally: Tally { count: 1, sum: value.clone() }, min: value.clone(), max: value.clone() }
    }

    /// Adds the values of another bucket.
    pub fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.min = self.min.clone().min(other.min.clone());
        self.max = self.max.clone().max(other.max.clone());
    }

    /// The bucket as attributes.
    #[must_use]
    pub fn attributes(&self, form: &BucketForm) -> Item {
        let count = AttributeValue::N(self.tally.count.to_string());
        Item::from([
            (form.count.clone(), count),
            (form.sum.clone(), self.tally.sum.to_value()),
            (form.min.clone(), self.min.to_value()),
            (form.max.clone(), self.max.to_value()),
        ])
    }

    /// The write that adds these values to the bucket that was read.
    #[must_use]
    pub fn write(&self, schema: &Schema, key: &Key, form: &BucketForm, stored: Option<&Item>) -> Write {
        let value = |name: &str| stored.and_then(|item| item.get(name));
        let number = |name: &str| value(name).and_then(Sum::of);
        let mut set: Item = schema.mark_of(&form.entity).into_iter().collect();
        if number(&form.min).is_none_or(|min| self.min < min) {
            set.insert(form.min.clone(), self.min.to_value());
        }
        if number(&form.max).is_none_or(|max| self.max > max) {
            set.insert(form.max.clone(), self.max.to_value());
        }
        let count = AttributeValue::N(self.tally.count.to_string());
        let add = Item::from([(form.count.clone(), count), (form.sum.clone(), self.tally.sum.to_value())]);
        let as_read = |name: &String| (name.clone(), value(name).cloned());
        let mut guard = Guard::as_read(Purpose::Bucket, [as_read(&form.min), as_read(&form.max)]);
        guard.asks.extend(schema.mark_of(&form.entity).map(|(name, value)| Ask::LacksOrEqual(name, value)));
        Write {
            table: Table::Main,
            key: key.clone(),
            action: Action::Update(Update { set, add, ..Update::default() }),
            guard: Some(guard),
        }
    }
}

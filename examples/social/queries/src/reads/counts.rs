//! AP-040: exact counts of a target.
//!
//! Counters are the authority; the attributes on the target only display them. A count is the sum of its shards,
//! however many exist. A count without a counter is 0.

use std::collections::BTreeMap;

use derive::{query::Query, write::Table};
use entities::{
    counter::Counter,
    people::{User, UserKey},
};
use keys::{counter, entity::Entity, item::Item, key::Key, layout::Layout, number::Decimal};
use store::Store;

use crate::{
    Queries,
    page::InvalidItem,
    pattern::{AccessPattern, sample},
    read_error::ReadError,
};

/// Exact counts of a target, up to what the stream has delivered.
#[derive(Debug, Default)]
#[must_use]
pub struct ExactCounts {
    counts: BTreeMap<String, ExactCount>,
    /// Counters that do not fit their declaration. They count as 0 until somebody corrects them.
    pub unreadable: Vec<InvalidItem>,
}

/// One derivation's count of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactCount {
    /// The count; `None` if it is outside the range of the type.
    pub value: Option<i64>,
    /// The sum, if the derivation also sums; `None` if it has too many digits.
    pub sum: Option<Decimal>,
}

impl ExactCounts {
    /// The count of a derivation, by its name; 0 without a counter.
    #[must_use]
    pub fn of(&self, derivation: &str) -> ExactCount {
        let none = ExactCount { value: Some(0), sum: None };
        self.counts.get(derivation).cloned().unwrap_or(none)
    }

    /// All counts with a counter, by the names of their derivations.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ExactCount)> {
        self.counts.iter().map(|(derivation, count)| (derivation.as_str(), count))
    }

    /// Adds an item. An item that is no counter of the target is skipped.
    pub(super) fn add(&mut self, layout: &Layout, target: &Key, item: &Item) {
        let shard = match Counter::from_item(layout, item) {
            Ok(Some(shard)) if shard.key.target == *target => shard,
            Ok(_) => return,
            Err(error) => {
                let key = layout.key(item).unwrap_or_else(|| target.clone());
                self.unreadable.push(InvalidItem { key, error });
                return;
            }
        };
        let count = self.counts.entry(shard.key.derivation).or_insert(ExactCount { value: Some(0), sum: None });
        count.value = count.value.and_then(|value| value.checked_add(shard.value.unwrap_or_default()));
        if let Some(sum) = shard.sum {
            count.sum = count.sum.take().unwrap_or_default().plus(&sum);
        }
    }
}

impl<S: Store> Queries<S> {
    /// AP-040: exact counts of a target, which need not exist, up to what the stream has delivered: one consistent
    /// query of its counters, shards added up.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn counts_of<E: Entity>(&self, target: &E::Key) -> Result<ExactCounts, ReadError> {
        let target = E::primary_key(target)?;
        let query = Query::prefix(None, &target.pk, counter::prefix(&target));
        let mut counts = ExactCounts::default();
        for item in self.whole(&query).await? {
            counts.add(&self.layout, &target, &item);
        }
        Ok(counts)
    }

    /// All items of a query with few results: a target and its counters.
    pub(super) async fn whole(&self, query: &Query) -> Result<Vec<Item>, ReadError> {
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.query(Table::Main, query, after).await?;
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(items);
            }
        }
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![AccessPattern {
        id: "AP-040",
        title: "exact counts of a target, up to what the stream has delivered: shards added up",
        input: "the target's key",
        result: "ExactCounts: count and sum by derivation",
        order: "",
        sample: sample!(|queries| {
            let _counts = queries.counts_of::<User>(&UserKey { user_id: "{UserId}".into() }).await?;
        }),
    }]
}

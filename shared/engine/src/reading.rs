//! Reading items, counters and sources.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    derived::Items,
    query::Query,
    sources::{FirstOf, Source, Sources},
    write::Table,
};
use futures::{StreamExt, stream};
use keys::{
    counter::{self, CounterKey},
    item::Item,
    key::Key,
};
use store::{Store, StoreError};

use crate::{
    backoff::{GaveUp, Patience},
    context::Context,
    counters::Target,
};

/// Calls under way at once. Source: measured against the embedded database, where more gain nothing.
pub const CALLS_AT_ONCE: usize = 16;

/// Items of other entities that are read together on the way to the first item of a query.
const PASSED_AT_ONCE: u32 = 25;

/// Items as they are held; `None` for one that does not exist.
pub type HeldItems = BTreeMap<Key, Option<Item>>;

/// What DynamoDB refuses to read, whenever it is asked, with its answer. Everything else was read.
pub type RefusedReads<T> = BTreeMap<T, StoreError>;

/// Reads the tables.
pub(crate) struct ItemReader<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> ItemReader<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> ItemReader<'_, S> {
    /// All pages of a query of the main table.
    pub(crate) async fn pages(&self, query: &Query, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
        self.pages_of(Table::Main, query, patience).await
    }

    /// All pages of a query of a table.
    pub(crate) async fn pages_of(
        &self,
        table: Table,
        query: &Query,
        patience: Patience<'_>,
    ) -> Result<Vec<Item>, GaveUp> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = patience.call(|| self.context.store.query(table, query, after.clone())).await?;
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(items);
            }
        }
    }

    /// These items, as they are held.
    pub(crate) async fn held(&self, keys: Vec<Key>, patience: Patience<'_>) -> Result<HeldItems, GaveUp> {
        let (held, refused) = self.held_each(keys, patience).await?;
        none_of(refused).map(|()| held)
    }

    /// These items, as they are held. A call that is refused is halved until the item is alone for which it is, so that no
    /// other stays unread.
    pub(crate) async fn held_each(
        &self,
        keys: Vec<Key>,
        patience: Patience<'_>,
    ) -> Result<(HeldItems, RefusedReads<Key>), GaveUp> {
        let (mut held, mut refused, mut parts) = (HeldItems::new(), RefusedReads::new(), vec![keys]);
        while let Some(mut keys) = parts.pop() {
            match patience.call(|| self.context.store.get(Table::Main, &keys)).await {
                Ok(items) => {
                    held.extend(keys.into_iter().map(|key| (key, None)));
                    held.extend(items.into_iter().map(|(key, item)| (key, Some(item))));
                }
                Err(GaveUp::Refused(error)) if keys.len() < 2 => {
                    refused.extend(keys.pop().map(|key| (key, error)));
                }
                Err(GaveUp::Refused(_)) => {
                    let back = keys.split_off(keys.len() / 2);
                    parts.extend([back, keys]);
                }
                Err(error @ (GaveUp::OutOfTime { .. } | GaveUp::Standing(_))) => return Err(error),
            }
        }
        Ok((held, refused))
    }

    /// Reads these sources, to the others.
    pub(crate) async fn read(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(), GaveUp> {
        none_of(self.read_each(wanted, sources, patience).await?)
    }

    /// Reads these sources, to the others, each by itself if one of them is refused.
    pub(crate) async fn read_each(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<RefusedReads<Source>, GaveUp> {
        let (mut keys, mut targets, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for source in wanted {
            match source {
                Source::Item(key) => keys.push(key),
                Source::Counters(target) => targets.push(target),
                Source::First(of) => firsts.push(of),
            }
        }
        let mut refused = RefusedReads::new();
        if !keys.is_empty() {
            let (held, unread) = self.held_each(keys, patience).await?;
            for (key, item) in held {
                sources.add_item(key, item);
            }
            refused.extend(unread.into_iter().map(|(key, error)| (Source::Item(key), error)));
        }
        let queries = targets.into_iter().map(|target| async move {
            let query = Query::prefix(None, &target.pk, counter::prefix(&target));
            let items = self.pages(&query, patience).await;
            (target, items)
        });
        let counted: Vec<_> = stream::iter(queries).buffer_unordered(CALLS_AT_ONCE).collect().await;
        for (target, items) in counted {
            match items {
                Ok(items) => sources.add_counters(&self.context.schema, target, &items),
                Err(GaveUp::Refused(error)) => drop(refused.insert(Source::Counters(target), error)),
                Err(error) => return Err(error),
            }
        }
        let queries = firsts.into_iter().map(|of| async move {
            let items = self.first(&of, patience).await;
            (of, items)
        });
        let found: Vec<_> = stream::iter(queries).buffer_unordered(CALLS_AT_ONCE).collect().await;
        for (of, items) in found {
            match items {
                Ok(items) => sources.add_first(of, items),
                Err(GaveUp::Refused(error)) => drop(refused.insert(Source::First(of), error)),
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }

    /// The first items of a query. Items of other entities may stand among them, so there may be several pages.
    async fn first(&self, of: &FirstOf, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
        let FirstOf { query, entity } = of;
        let (mut query, mut after, mut first) = (query.clone(), None, Vec::new());
        let is_found = |item: &Item| {
            let key = self.context.schema.layout.key(item);
            key.is_some_and(|key| self.context.schema.image(&key, item).is_some_and(|image| image.is(entity)))
        };
        loop {
            let page = patience.call(|| self.context.store.query(Table::Main, &query, after.clone())).await?;
            first.extend(page.items.into_iter().filter(is_found).take(of.length() - first.len()));
            if first.len() == of.length() || page.next.is_none() {
                return Ok(first);
            }
            (query.limit, after) = (Some(PASSED_AT_ONCE), page.next);
        }
    }

    /// The counters of a target: all shards that there are.
    pub(crate) async fn counters_of(&self, target: &Target, patience: Patience<'_>) -> Result<Items, GaveUp> {
        let Target { derivation, item } = target;
        let of_item = |counter: &CounterKey| counter.target == *item && counter.derivation == *derivation;
        self.counters_from(item, counter::derivation_prefix(item, derivation), of_item, patience).await
    }

    /// The counters of a target, of all derivations and in all shards.
    pub(crate) async fn all_counters_of(&self, target: &Key, patience: Patience<'_>) -> Result<Items, GaveUp> {
        self.counters_from(target, counter::prefix(target), |counter| counter.target == *target, patience).await
    }

    async fn counters_from(
        &self,
        target: &Key,
        prefix: String,
        is_asked: impl Fn(&CounterKey) -> bool,
        patience: Patience<'_>,
    ) -> Result<Items, GaveUp> {
        let shards = self.pages(&Query::prefix(None, &target.pk, prefix), patience).await?;
        let of = |shard: Item| {
            let key = self.context.schema.layout.key(&shard)?;
            CounterKey::parse(&key).filter(&is_asked).map(|_| (key, shard))
        };
        Ok(shards.into_iter().filter_map(of).collect())
    }
}

/// Refused, if one of these reads is.
fn none_of<T>(refused: RefusedReads<T>) -> Result<(), GaveUp> {
    refused.into_values().next().map_or(Ok(()), |error| Err(GaveUp::Refused(error)))
}

//! Reads items, counters and sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
};

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
    account::Target,
    backoff::{GaveUp, Patience},
    context::Context,
};

/// Calls in progress at once. Source: measured against the embedded database, where more gain nothing.
pub const CALLS_AT_ONCE: usize = 16;

/// Items of other entities that are read together before the first matching item of a query.
const PASSED_AT_ONCE: u32 = 25;

/// Current items; `None` for one that does not exist.
pub type StoredItems = BTreeMap<Key, Option<Item>>;

/// Reads that DynamoDB always refuses, with the error. Everything else was read.
pub type RefusedReads<T> = BTreeMap<T, StoreError>;

/// All pages of a query of the main table.
pub(crate) async fn pages<S: Store>(
    context: &Context<S>,
    query: &Query,
    patience: Patience<'_>,
) -> Result<Vec<Item>, GaveUp> {
    pages_of(context, Table::Main, query, patience).await
}

/// All pages of a query of a table.
async fn pages_of<S: Store>(
    context: &Context<S>,
    table: Table,
    query: &Query,
    patience: Patience<'_>,
) -> Result<Vec<Item>, GaveUp> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = patience.call(|| context.store.query(table, query, after.clone())).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}

/// The current items under these keys.
pub(crate) async fn stored<S: Store>(
    context: &Context<S>,
    keys: Vec<Key>,
    patience: Patience<'_>,
) -> Result<StoredItems, GaveUp> {
    let (stored, refused) = stored_each(context, keys, patience).await?;
    none_of(refused).map(|()| stored)
}

/// The current items under these keys. A refused call is halved until the refused item is alone, so that all others are
/// read.
pub(crate) async fn stored_each<S: Store>(
    context: &Context<S>,
    keys: Vec<Key>,
    patience: Patience<'_>,
) -> Result<(StoredItems, RefusedReads<Key>), GaveUp> {
    let (mut stored, mut refused, mut parts) = (StoredItems::new(), RefusedReads::new(), vec![keys]);
    while let Some(mut keys) = parts.pop() {
        match patience.call(|| context.store.get(Table::Main, &keys)).await {
            Ok(items) => {
                stored.extend(keys.into_iter().map(|key| (key, None)));
                stored.extend(items.into_iter().map(|(key, item)| (key, Some(item))));
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
    Ok((stored, refused))
}

/// Reads these sources, and adds them to `sources`.
pub(crate) async fn read<S: Store>(
    context: &Context<S>,
    wanted: BTreeSet<Source>,
    sources: &mut Sources,
    patience: Patience<'_>,
) -> Result<(), GaveUp> {
    none_of(read_each(context, wanted, sources, patience).await?)
}

/// Reads these sources, and adds them to `sources`; if one is refused, each is read alone.
pub(crate) async fn read_each<S: Store>(
    context: &Context<S>,
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
        let (stored, unread) = stored_each(context, keys, patience).await?;
        for (key, item) in stored {
            sources.add_item(key, item);
        }
        sources.hour_or(context.hour.load(Ordering::Relaxed));
        refused.extend(unread.into_iter().map(|(key, error)| (Source::Item(key), error)));
    }
    let queries = targets.into_iter().map(|target| async move {
        let query = Query::prefix(None, &target.pk, counter::prefix(&target));
        let items = pages(context, &query, patience).await;
        (target, items)
    });
    let counted: Vec<_> = stream::iter(queries).buffer_unordered(CALLS_AT_ONCE).collect().await;
    for (target, items) in counted {
        match items {
            Ok(items) => sources.add_counters(&context.schema, target, &items),
            Err(GaveUp::Refused(error)) => drop(refused.insert(Source::Counters(target), error)),
            Err(error) => return Err(error),
        }
    }
    let queries = firsts.into_iter().map(|of| async move {
        let items = first(context, &of, patience).await;
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

/// The first items of a query. Items of other entities may be among them, so this may read several pages.
async fn first<S: Store>(context: &Context<S>, of: &FirstOf, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
    let (FirstOf { query, entity, is_counted }, layout) = (of, &context.schema.layout);
    let (mut query, mut after, mut first) = (query.clone(), None, Vec::new());
    let is_found = |item: &Item| {
        let key = layout.key(item);
        key.is_some_and(|key| context.schema.image(&key, item).is_some_and(|image| image.is(entity)))
    };
    let kept = |mut item: Item| {
        let is_kept = |name: &str| !is_counted || name == layout.pk || name == layout.sk || name == layout.type_name();
        item.retain(|name, _| is_kept(name));
        item
    };
    loop {
        let page = patience.call(|| context.store.query(Table::Main, &query, after.clone())).await?;
        first.extend(page.items.into_iter().filter(is_found).map(kept).take(of.length() - first.len()));
        if first.len() == of.length() || page.next.is_none() {
            return Ok(first);
        }
        (query.limit, after) = (Some(PASSED_AT_ONCE), page.next);
    }
}

/// The counters of a target, in all existing shards.
pub(crate) async fn counters_of<S: Store>(
    context: &Context<S>,
    target: &Target,
    patience: Patience<'_>,
) -> Result<Items, GaveUp> {
    let Target { derivation, item } = target;
    let of_item = |counter: &CounterKey| counter.target == *item && counter.derivation == *derivation;
    counters_from(context, item, counter::derivation_prefix(item, derivation), of_item, patience).await
}

/// The counters of a target, for all derivations and in all shards.
pub(crate) async fn all_counters_of<S: Store>(
    context: &Context<S>,
    target: &Key,
    patience: Patience<'_>,
) -> Result<Items, GaveUp> {
    counters_from(context, target, counter::prefix(target), |counter| counter.target == *target, patience).await
}

async fn counters_from<S: Store>(
    context: &Context<S>,
    target: &Key,
    prefix: String,
    is_asked: impl Fn(&CounterKey) -> bool,
    patience: Patience<'_>,
) -> Result<Items, GaveUp> {
    let shards = pages(context, &Query::prefix(None, &target.pk, prefix), patience).await?;
    let of = |shard: Item| {
        let key = context.schema.layout.key(&shard)?;
        CounterKey::parse(&key).filter(&is_asked).map(|_| (key, shard))
    };
    Ok(shards.into_iter().filter_map(of).collect())
}

/// An error if one of these reads was refused.
fn none_of<T>(refused: RefusedReads<T>) -> Result<(), GaveUp> {
    refused.into_values().next().map_or(Ok(()), |error| Err(GaveUp::Refused(error)))
}

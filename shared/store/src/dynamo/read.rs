//! Reads: items by key, pages of a query, pages of a table.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use aws_sdk_dynamodb::types::{AttributeValue as SdkValue, KeysAndAttributes};
use derive::{
    query::{Consistency, Order, Query, SortKeys},
    write::Table,
};
use futures::{StreamExt, TryStreamExt, stream};
use keys::{
    item::Item,
    key::{Key, for_log},
};
use serde_dynamo::AttributeValue;

use super::{
    DynamoStore,
    failure::failed,
    value::{from_sdk, to_sdk},
};
use crate::{Busy, Cursor, Page, Segment, StoreError, check};

/// Most keys of one call. Source: DynamoDB service quotas.
const GET_KEYS_MAX: usize = 100;

/// Calls of one read that are under way at once: a batch of 10,000 records is read in 25 round trips, and a partition's
/// 3,000 read units a second still serve others.
const GET_CALLS_MAX: usize = 4;

/// First pause after a call that read nothing, in milliseconds; it doubles.
const PAUSE_MS_FIRST: u64 = 25;

/// Calls in a row that may read nothing: the pauses add up to 1.6 s, and a throttled partition recovers within 1 s.
const IDLE_CALLS_MAX: u32 = 6;

pub(super) async fn get(
    store: &DynamoStore,
    table: Table,
    keys: &[Key],
    consistency: Consistency,
) -> Result<Vec<(Key, Item)>, StoreError> {
    if let [only] = keys {
        return Ok(get_one(store, table, only, consistency)
            .await?
            .map(|item| (only.clone(), item))
            .into_iter()
            .collect());
    }
    let keys: Vec<Key> = keys.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    for key in &keys {
        check::key(&store.layout, key).map_err(|refusal| refusal.of("BatchGetItem", &key.for_log()))?;
    }
    let slices: Vec<Vec<Key>> = keys.chunks(GET_KEYS_MAX).map(<[Key]>::to_vec).collect();
    let mut items: Vec<(Key, Item)> = stream::iter(slices)
        .map(|slice| get_slice(store, table, slice, consistency))
        .buffer_unordered(GET_CALLS_MAX)
        .try_concat()
        .await?;
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(items)
}

async fn get_one(
    store: &DynamoStore,
    table: Table,
    key: &Key,
    consistency: Consistency,
) -> Result<Option<Item>, StoreError> {
    const OPERATION: &str = "GetItem";
    check::key(&store.layout, key).map_err(|refusal| refusal.of(OPERATION, &key.for_log()))?;
    let call = store.client.get_item().table_name(store.names.of(table));
    let call = call.set_key(Some(to_sdk(&store.layout.key_item(key))));
    let answer = call.consistent_read(consistency == Consistency::Strong).send().await;
    let answer = answer.map_err(|error| failed(OPERATION, key.for_log(), &error))?;
    Ok(answer.item.map(from_sdk))
}

async fn get_slice(
    store: &DynamoStore,
    table: Table,
    keys: Vec<Key>,
    consistency: Consistency,
) -> Result<Vec<(Key, Item)>, StoreError> {
    let name = store.names.of(table);
    let mut asked: Vec<_> = keys.iter().map(|key| to_sdk(&store.layout.key_item(key))).collect();
    let mut items = Vec::new();
    let mut n_idle = 0;
    while !asked.is_empty() {
        let (found, unread) = get_once(store, name, asked, consistency).await?;
        // A call that read something goes on at once: its answer was full, or one partition of several is throttled.
        n_idle = if found.is_empty() { n_idle + 1 } else { 0 };
        items.extend(found.into_iter().filter_map(|item| {
            let item = from_sdk(item);
            Some((store.layout.key(&item)?, item))
        }));
        asked = unread;
        if !asked.is_empty() && n_idle > 0 {
            if n_idle > IDLE_CALLS_MAX {
                let source = "throttled: nothing was read in several calls".into();
                let (operation, item, busy) = ("BatchGetItem", name.to_owned(), Some(Busy::Throttled));
                return Err(StoreError::Retry {
                    operation,
                    item,
                    busy,
                    is_standing: false,
                    is_unreachable: false,
                    source,
                });
            }
            tokio::time::sleep(Duration::from_millis(PAUSE_MS_FIRST << (n_idle - 1))).await;
        }
    }
    Ok(items)
}

type SdkItem = HashMap<String, SdkValue>;

/// Asks for items once: those found, and the keys that were not looked at.
async fn get_once(
    store: &DynamoStore,
    name: &str,
    keys: Vec<SdkItem>,
    consistency: Consistency,
) -> Result<(Vec<SdkItem>, Vec<SdkItem>), StoreError> {
    let request = KeysAndAttributes::builder().consistent_read(consistency == Consistency::Strong).set_keys(Some(keys));
    let request = request.build();
    let request = request.map_err(|error| StoreError::Reject {
        operation: "BatchGetItem",
        item: name.to_owned(),
        source: Box::new(error),
    })?;
    let answer = store.client.batch_get_item().request_items(name, request).send().await;
    let answer = answer.map_err(|error| failed("BatchGetItem", name.to_owned(), &error))?;
    let found = answer.responses.into_iter().flatten().flat_map(|(_, items)| items).collect();
    let unread = answer.unprocessed_keys.into_iter().flatten().flat_map(|(_, keys)| keys.keys).collect();
    Ok((found, unread))
}

pub(super) async fn query(
    store: &DynamoStore,
    table: Table,
    query: &Query,
    after: Option<Cursor>,
) -> Result<Page, StoreError> {
    if query.is_too_long() {
        return Ok(Page { items: Vec::new(), next: None });
    }
    check::query(&store.layout, table, query).map_err(|refusal| refusal.of("Query", &for_log(&query.pk)))?;
    let index = query.index.as_deref().and_then(|name| store.layout.index(name));
    let (pk, sk) = index.map_or((&store.layout.pk, &store.layout.sk), |index| (&index.pk, &index.sk));
    let text = |text: &str| SdkValue::from(AttributeValue::S(text.to_owned()));
    let mut call = store
        .client
        .query()
        .table_name(store.names.of(table))
        .set_index_name(query.index.clone())
        .consistent_read(query.consistency == Consistency::Strong)
        .scan_index_forward(query.order == Order::Ascending)
        .set_limit(query.limit.and_then(|limit| i32::try_from(limit).ok()))
        .expression_attribute_names("#pk", pk)
        .expression_attribute_values(":pk", text(&query.pk))
        .set_exclusive_start_key(after.map(|Cursor(item)| to_sdk(&item)));
    call = match &query.sk {
        SortKeys::All => call.key_condition_expression("#pk = :pk"),
        SortKeys::Prefix(prefix) => call
            .key_condition_expression("#pk = :pk AND begins_with(#sk, :sk)")
            .expression_attribute_names("#sk", sk)
            .expression_attribute_values(":sk", text(prefix)),
        SortKeys::Between(first, last) => call
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :first AND :last")
            .expression_attribute_names("#sk", sk)
            .expression_attribute_values(":first", text(first))
            .expression_attribute_values(":last", text(last)),
    };
    let answer = call.send().await.map_err(|error| failed("Query", for_log(&query.pk), &error))?;
    Ok(page(answer.items, answer.last_evaluated_key))
}

pub(super) async fn scan(
    store: &DynamoStore,
    table: Table,
    segment: Segment,
    after: Option<Cursor>,
) -> Result<Page, StoreError> {
    let name = store.names.of(table);
    let [number, of] = [segment.number, segment.of].map(|number| i32::try_from(number).ok());
    let call = store
        .client
        .scan()
        .table_name(name)
        .consistent_read(true)
        .set_segment(number.filter(|_| segment != Segment::WHOLE))
        .set_total_segments(of.filter(|_| segment != Segment::WHOLE))
        .set_exclusive_start_key(after.map(|Cursor(item)| to_sdk(&item)));
    let answer = call.send().await.map_err(|error| failed("Scan", name.to_owned(), &error))?;
    Ok(page(answer.items, answer.last_evaluated_key))
}

fn page(items: Option<Vec<SdkItem>>, last: Option<SdkItem>) -> Page {
    // Some emulators end with an empty key, where DynamoDB gives none.
    let next = last.filter(|key| !key.is_empty()).map(|key| Cursor(from_sdk(key)));
    Page { items: items.unwrap_or_default().into_iter().map(from_sdk).collect(), next }
}

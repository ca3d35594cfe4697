//! Reads: items by key, pages of a query, pages of a table.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use aws_sdk_dynamodb::types::{AttributeValue as SdkValue, KeysAndAttributes};
use derive::{
    query::{Consistency, Order, Query},
    write::Table,
};
use futures::{StreamExt, TryStreamExt, stream};
use keys::{
    item::{Item, text},
    key::{Key, for_log},
    tables::IndexForm,
};

use super::{DynamoStore, stored::Stands};
use crate::dynamo::failed;
use crate::dynamo::{from_sdk, to_sdk};
use crate::{Busy, Cursor, Page, Segment, StoreError, check};

/// Most keys of one call. Source: DynamoDB service quotas.
const GET_KEYS_MAX: usize = 100;

/// Parallel calls of one read: a batch of 10,000 records is read in 25 round trips, and a partition's 3,000 read units
/// a second still serve other readers.
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
    let keys: BTreeSet<&Key> = keys.iter().filter(|key| check::key(&store.layout, table, key).is_ok()).collect();
    let mut by_table: BTreeMap<&str, Vec<Key>> = BTreeMap::new();
    for key in keys {
        by_table.entry(store.stands(table, key).table).or_default().push(key.clone());
    }
    let slices: Vec<Vec<Key>> = by_table
        .into_values()
        .flat_map(|keys| keys.chunks(GET_KEYS_MAX).map(<[Key]>::to_vec).collect::<Vec<_>>())
        .collect();
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
    if check::key(&store.layout, table, key).is_err() {
        return Ok(None);
    }
    let stands = store.stands(table, key);
    let Some(stored) = store.key_item(stands, key) else { return Ok(None) };
    let call = store.client.get_item().table_name(stands.table);
    let call = call.set_key(Some(to_sdk(&stored)));
    let answer = call.consistent_read(consistency == Consistency::Strong).send().await;
    let answer = answer.map_err(|error| failed(OPERATION, key.for_log(), &error))?;
    Ok(answer.item.and_then(|item| stands.inward(from_sdk(item))))
}

/// Reads items of one table.
async fn get_slice(
    store: &DynamoStore,
    table: Table,
    keys: Vec<Key>,
    consistency: Consistency,
) -> Result<Vec<(Key, Item)>, StoreError> {
    let Some(stands) = keys.first().map(|key| store.stands(table, key)) else { return Ok(Vec::new()) };
    let name = stands.table;
    let mut asked: Vec<_> = keys.iter().filter_map(|key| store.key_item(stands, key)).map(|key| to_sdk(&key)).collect();
    let mut items = Vec::new();
    let mut n_idle = 0;
    while !asked.is_empty() {
        let (found, unread) = get_once(store, name, asked, consistency).await?;
        // After a call that read something, continue at once: its response was full, or one of several partitions is
        // throttled.
        n_idle = if found.is_empty() { n_idle + 1 } else { 0 };
        items.extend(found.into_iter().filter_map(|item| {
            let item = stands.inward(from_sdk(item))?;
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

/// Requests items once: returns those found, and the unprocessed keys.
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
    let ranges = check::query(&store.layout, table, query).map_err(|it| it.of("Query", &for_log(&query.pk)))?;
    let Some((pk, sk)) = ranges else { return Ok(Page { items: Vec::new(), next: None }) };
    let (stands, index) = store.queried(table, query);
    let mut call = store
        .client
        .query()
        .table_name(stands.table)
        .set_index_name(index.map(|index| index.name.clone()).or_else(|| query.index.clone()))
        .consistent_read(query.consistency == Consistency::Strong)
        .scan_index_forward(query.order == Order::Ascending)
        .set_limit(query.limit.and_then(|limit| i32::try_from(limit).ok()))
        .set_exclusive_start_key(after.and_then(|cursor| outward(stands, index, cursor)));
    let mut conditions = Vec::new();
    for (at, (name, value)) in pk.equal.into_iter().chain(sk.equal).enumerate() {
        call = call.expression_attribute_names(format!("#k{at}"), name);
        call = call.expression_attribute_values(format!(":k{at}"), SdkValue::from(value));
        conditions.push(format!("#k{at} = :k{at}"));
    }
    if let Some((name, value)) = sk.begins_with {
        call = call.expression_attribute_names("#sk", name).expression_attribute_values(":sk", SdkValue::from(value));
        conditions.push("begins_with(#sk, :sk)".to_owned());
    } else if let Some((name, [first, last])) = sk.between {
        call = call.expression_attribute_names("#sk", name);
        call = call.expression_attribute_values(":first", SdkValue::from(first));
        call = call.expression_attribute_values(":last", SdkValue::from(last));
        conditions.push("#sk BETWEEN :first AND :last".to_owned());
    } else if let Some((name, value)) = sk.after {
        call = call.expression_attribute_names("#sk", name).expression_attribute_values(":sk", SdkValue::from(value));
        conditions.push("#sk > :sk".to_owned());
    }
    let call = call.key_condition_expression(conditions.join(" AND "));
    let answer = call.send().await.map_err(|error| failed("Query", for_log(&query.pk), &error))?;
    let mut page = page(stands, index, answer.items, answer.last_evaluated_key);
    if stands.form.is_some() {
        let inside = query.index.as_deref().and_then(|name| store.layout.index(name));
        let sk = inside.map_or(&store.layout.sk, |index| &index.sk);
        page.items.retain(|item| text(item, sk).is_some_and(|sk| query.sk.holds(sk)));
    }
    Ok(page)
}

/// The stored form of the cursor.
fn outward(stands: Stands<'_>, index: Option<&IndexForm>, Cursor(after): Cursor) -> Option<SdkItem> {
    match stands.form {
        Some(form) => form.cursor_outward(index, &after).as_ref().map(to_sdk),
        None => Some(to_sdk(&after)),
    }
}

/// Reads a page of the tables, one table after another; a segment is a part of each of them.
pub(super) async fn scan(
    store: &DynamoStore,
    table: Table,
    segment: Segment,
    after: Option<Cursor>,
) -> Result<Page, StoreError> {
    let (stands, after, following) = store.scanned(table, after);
    let [number, of] = [segment.number, segment.of].map(|number| i32::try_from(number).ok());
    let call = store
        .client
        .scan()
        .table_name(stands.table)
        .consistent_read(true)
        .set_segment(number.filter(|_| segment != Segment::WHOLE))
        .set_total_segments(of.filter(|_| segment != Segment::WHOLE))
        .set_exclusive_start_key(after.and_then(|cursor| outward(stands, None, cursor)));
    let answer = call.send().await.map_err(|error| failed("Scan", stands.table.to_owned(), &error))?;
    let page = page(stands, None, answer.items, answer.last_evaluated_key);
    Ok(Page { next: page.next.or(following), ..page })
}

fn page(stands: Stands<'_>, index: Option<&IndexForm>, items: Option<Vec<SdkItem>>, last: Option<SdkItem>) -> Page {
    // Some emulators end with an empty key, where DynamoDB returns none.
    let last = last.filter(|key| !key.is_empty()).map(from_sdk);
    let next = last.and_then(|key| match stands.form {
        Some(form) => form.cursor_inward(index, &key),
        None => Some(key),
    });
    let items = items.unwrap_or_default().into_iter().filter_map(|item| stands.inward(from_sdk(item)));
    Page { items: items.collect(), next: next.map(Cursor) }
}

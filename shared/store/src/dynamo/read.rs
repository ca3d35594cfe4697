//! Reads: items by key, pages of a query, pages of a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

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
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::{
    Busy, Cursor, Page, Segment, StoreError, check,
    dynamo::{DynamoStore, Stands, failed},
};

/// Most keys of one call. Source: DynamoDB service quotas.
const GET_KEYS_MAX: usize = 100;

/// Parallel calls of one read: a batch of 10,000 records is read in 25 round trips, and a partition's 3,000 read units
/// a second still serve other readers.
const GET_CALLS_MAX: usize = 4;

/// First pause after a call that read nothing, in milliseconds; it doubles.
const PAUSE_MS_FIRST: u64 = 25;

/// Calls in a row that may read nothing: the pauses add up to 1.6 s, and a throttled partition recovers within 1 s.
const IDLE_CALLS_MAX: u32 = 6;

/// The input of `GetItem`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct GetInput<'a> {
    table_name: &'a str,
    key: &'a Item,
    consistent_read: bool,
}

#[derive(Debug, Deserialize)]
struct GetOutput {
    #[serde(rename = "Item")]
    item: Option<Item>,
}

/// The input of `BatchGetItem`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct BatchInput<'a> {
    request_items: BTreeMap<&'a str, KeysOfTable>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeysOfTable {
    keys: Vec<Item>,
    #[serde(default)]
    consistent_read: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BatchOutput {
    responses: Option<BTreeMap<String, Vec<Item>>>,
    unprocessed_keys: Option<BTreeMap<String, KeysOfTable>>,
}

/// The input of `Query` and `Scan`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct PageInput<'a> {
    table_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_name: Option<&'a str>,
    consistent_read: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scan_index_forward: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive_start_key: Option<Item>,
    #[serde(skip_serializing_if = "String::is_empty")]
    key_condition_expression: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expression_attribute_names: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Item::is_empty")]
    expression_attribute_values: Item,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_segments: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PageOutput {
    items: Option<Vec<Item>>,
    last_evaluated_key: Option<Item>,
}

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
    let input =
        GetInput { table_name: stands.table, key: &stored, consistent_read: consistency == Consistency::Strong };
    let output = store.calls.send::<GetOutput>(OPERATION, &input).await;
    let output = output.map_err(|failure| failed(OPERATION, key.for_log(), failure))?;
    Ok(output.item.and_then(|item| stands.inward(item)))
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
    let mut asked: Vec<_> = keys.iter().filter_map(|key| store.key_item(stands, key)).collect();
    let mut items = Vec::new();
    let mut n_idle = 0;
    while !asked.is_empty() {
        let (found, unread) = get_once(store, name, asked, consistency).await?;
        // After a call that read something, continue at once: its response was full, or one of several partitions is
        // throttled.
        n_idle = if found.is_empty() { n_idle + 1 } else { 0 };
        items.extend(found.into_iter().filter_map(|item| {
            let item = stands.inward(item)?;
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

/// Requests items once: returns those found, and the unprocessed keys.
async fn get_once(
    store: &DynamoStore,
    name: &str,
    keys: Vec<Item>,
    consistency: Consistency,
) -> Result<(Vec<Item>, Vec<Item>), StoreError> {
    const OPERATION: &str = "BatchGetItem";
    let keys = KeysOfTable { keys, consistent_read: consistency == Consistency::Strong };
    let input = BatchInput { request_items: BTreeMap::from([(name, keys)]) };
    let output = store.calls.send::<BatchOutput>(OPERATION, &input).await;
    let output = output.map_err(|failure| failed(OPERATION, name.to_owned(), failure))?;
    let found = output.responses.into_iter().flatten().flat_map(|(_, items)| items).collect();
    let unread = output.unprocessed_keys.into_iter().flatten().flat_map(|(_, keys)| keys.keys).collect();
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
    let mut input = PageInput {
        table_name: stands.table,
        index_name: index.map(|index| index.name.as_str()).or(query.index.as_deref()),
        consistent_read: query.consistency == Consistency::Strong,
        scan_index_forward: Some(query.order == Order::Ascending),
        limit: query.limit,
        exclusive_start_key: after.and_then(|cursor| outward(stands, index, cursor)),
        ..PageInput::default()
    };
    let mut conditions = Vec::new();
    let mut named = |short: String, name: &str, values: Vec<(&str, AttributeValue)>| {
        input.expression_attribute_names.insert(short, name.to_owned());
        input.expression_attribute_values.extend(values);
    };
    for (at, (name, value)) in pk.equal.into_iter().chain(sk.equal).enumerate() {
        named(format!("#k{at}"), &name, vec![(&format!(":k{at}"), value)]);
        conditions.push(format!("#k{at} = :k{at}"));
    }
    if let Some((name, value)) = sk.begins_with {
        named("#sk".to_owned(), &name, vec![(":sk", value)]);
        conditions.push("begins_with(#sk, :sk)".to_owned());
    } else if let Some((name, [first, last])) = sk.between {
        named("#sk".to_owned(), &name, vec![(":first", first), (":last", last)]);
        conditions.push("#sk BETWEEN :first AND :last".to_owned());
    } else if let Some((name, value)) = sk.after {
        named("#sk".to_owned(), &name, vec![(":sk", value)]);
        conditions.push("#sk > :sk".to_owned());
    }
    input.key_condition_expression = conditions.join(" AND ");
    let output = store.calls.send("Query", &input).await;
    let mut page = page(stands, index, output.map_err(|failure| failed("Query", for_log(&query.pk), failure))?);
    if stands.form.is_some() {
        let inside = query.index.as_deref().and_then(|name| store.layout.index(name));
        let sk = inside.map_or(&store.layout.sk, |index| &index.sk);
        page.items.retain(|item| text(item, sk).is_some_and(|sk| query.sk.holds(sk)));
    }
    Ok(page)
}

/// The stored form of the cursor.
fn outward(stands: Stands<'_>, index: Option<&IndexForm>, Cursor(after): Cursor) -> Option<Item> {
    match stands.form {
        Some(form) => form.cursor_outward(index, &after),
        None => Some(after),
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
    let [segment, total_segments] =
        [segment.number, segment.of].map(|number| Some(number).filter(|_| segment != Segment::WHOLE));
    let input = PageInput {
        table_name: stands.table,
        consistent_read: true,
        exclusive_start_key: after.and_then(|cursor| outward(stands, None, cursor)),
        segment,
        total_segments,
        ..PageInput::default()
    };
    let output = store.calls.send("Scan", &input).await;
    let page = page(stands, None, output.map_err(|failure| failed("Scan", stands.table.to_owned(), failure))?);
    Ok(Page { next: page.next.or(following), ..page })
}

fn page(stands: Stands<'_>, index: Option<&IndexForm>, output: PageOutput) -> Page {
    // Some emulators end with an empty key, where DynamoDB returns none.
    let last = output.last_evaluated_key.filter(|key| !key.is_empty());
    let next = last.and_then(|key| match stands.form {
        Some(form) => form.cursor_inward(index, &key),
        None => Some(key),
    });
    let items = output.items.unwrap_or_default().into_iter().filter_map(|item| stands.inward(item));
    Page { items: items.collect(), next: next.map(Cursor) }
}

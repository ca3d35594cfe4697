//! The page of the items under a partition key, of the table or of an index.

use std::sync::Arc;

use axum::{
    extract::{Query as Asked, State},
    http::StatusCode,
};
use derive::{
    query::{Order, Query, SortKeys},
    write::Table,
};
use keys::key::Key;
use maud::html;
use serde::Deserialize;
use store::Store;

use crate::{
    Console,
    frame::{self, ConsolePage},
    overview::item_row,
};

/// Items of a page.
const ITEMS: u32 = 100;

/// What the address of the page says.
#[derive(Debug, Deserialize)]
pub(crate) struct CollectionAddress {
    pk: String,
    index: Option<String>,
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(CollectionAddress { pk, index }): Asked<CollectionAddress>,
) -> ConsolePage {
    let schema = console.engine.schema();
    if let Some(name) = index.as_ref().filter(|name| schema.layout.index(name).is_none()) {
        return frame::failed(StatusCode::NOT_FOUND, &format!("There is no index {name}."));
    }
    let query = Query::of(index.as_deref(), &pk, SortKeys::All);
    let query = Query { limit: Some(ITEMS), order: Order::Ascending, ..query };
    let read = console.patience().call(|| console.opened.store.query(Table::Main, &query, None)).await;
    let found = match read {
        Ok(found) => found,
        Err(error) => return frame::failed(StatusCode::BAD_GATEWAY, &engine::backoff::describe(&error)),
    };
    let items: Vec<_> =
        found.items.iter().filter_map(|item| Some((schema.layout.key(item)?, item))).collect::<Vec<(Key, _)>>();
    let place = index.map_or_else(|| "Items".to_owned(), |index| format!("Items in {index}"));
    frame::page(
        &format!("{place} under {pk}"),
        &html! {
            @if items.is_empty() { p.empty { "There is no item under this partition key." } } @else {
                div.wide { table {
                    thead { tr { th { "item" } th { "type" } } }
                    tbody { @for (key, item) in &items { (item_row(schema, key, item)) } }
                } }
                @if found.next.is_some() { p { "The first " (items.len()) " items; there are more." } }
            }
        },
    )
}

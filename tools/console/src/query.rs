//! A query of the table or of an index: the items of one partition key, with the consumed read units.

use std::sync::Arc;

use ::design::cost::bed::read_units;
use axum::{
    extract::{Query as Asked, State},
    http::StatusCode,
    response::Response,
};
use derive::{
    query::{Consistency, Order, Query, SortKeys},
    write::Table,
};
use engine::backoff::describe;
use keys::{item::Item, size::item_bytes};
use maud::{Markup, html};
use operate::words::counted;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Page, Store};

use crate::{
    Console,
    frame::{self, ConsolePage},
    item::read_units_text,
    json,
    overview::items_table,
};

/// Default number of items of a page, and its maximum.
const ITEMS: u32 = 100;
const ITEMS_MAX: u32 = 1_000;

/// Conditions on the sort key, each with its label.
const CONDITIONS: [(&str, &str); 4] =
    [("all", "any"), ("equals", "is"), ("begins", "begins with"), ("between", "is between")];

/// The parameters of the page's address.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct QueryAddress {
    pk: String,
    /// The index; the table if empty.
    index: String,
    /// One of the [conditions](CONDITIONS); any sort key if empty.
    sort: String,
    sk: String,
    /// The last sort key of a range.
    to: String,
    /// True if the greatest sort key comes first.
    descending: bool,
    /// True for an eventually consistent read; an index has no other.
    eventual: bool,
    /// Most items.
    limit: Option<u32>,
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(address): Asked<QueryAddress>,
) -> ConsolePage {
    if address.pk.is_empty() {
        let content = html! {
            (form(&console, &address))
            p.empty { "Give a partition key, such as that of an item: a query reads the items under one partition key." }
        };
        return frame::page("Query", &content);
    }
    let QueryFound { items, units, has_more, consistency } = match address.found(&console).await {
        Ok(found) => found,
        Err((status, why)) => return frame::failed(status, &why),
    };
    let place = if address.index.is_empty() { String::new() } else { format!(" in {}", address.index) };
    let content = html! {
        (form(&console, &address))
        @if items.is_empty() { p.empty { "There is no such item under this partition key. The query costs " (read_units_text(units)) " all the same." } }
        @else {
            p {
                (counted(items.len(), "item")) ", " (read_units_text(units)) ": "
                @if consistency == Consistency::Strong { "one for each 4 KB." } @else { "half a unit for each 4 KB, because it is read eventually." }
                @if has_more { " There are more items." }
            }
            (items_table(console.engine.schema(), &items))
        }
        (json::link(&address.object()))
    };
    frame::page(&format!("Query{place} under {}", address.pk), &content)
}

struct QueryFound {
    items: Vec<Item>,
    /// Its read units.
    units: f64,
    has_more: bool,
    consistency: Consistency,
}

/// The content of the page, as JSON.
pub(crate) async fn object<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Asked(address): Asked<QueryAddress>,
) -> Response {
    match address.found(&console).await {
        Ok(QueryFound { items, units, has_more, .. }) => {
            json::object(json!({ "items": items, "read_units": units, "more": has_more }))
        }
        Err((status, why)) => json::failed(status, &why),
    }
}

impl QueryAddress {
    async fn found<S: Store>(&self, console: &Console<S>) -> Result<QueryFound, (StatusCode, String)> {
        let query = self.query(console).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        let read = console.patience().call(|| console.opened.store.query(Table::Main, &query, None)).await;
        let Page { items, next } = read.map_err(|error| (StatusCode::BAD_GATEWAY, describe(&error)))?;
        let units = read_units(items.iter().map(item_bytes).sum(), query.consistency);
        Ok(QueryFound { items, units, has_more: next.is_some(), consistency: query.consistency })
    }

    /// The address of the result as JSON.
    fn object(&self) -> String {
        // Any text can be encoded in an address.
        format!("/collection.json?{}", serde_urlencoded::to_string(self).unwrap_or_default())
    }

    fn query<S: Store>(&self, console: &Console<S>) -> Result<Query, String> {
        let index = Some(self.index.as_str()).filter(|name| !name.is_empty());
        if let Some(name) = index.filter(|name| console.engine.schema().layout.index(name).is_none()) {
            return Err(format!("There is no index {name}."));
        }
        let sk = match self.sort.as_str() {
            "" | "all" => SortKeys::All,
            _ if self.sk.is_empty() => return Err("Give the sort key that this condition is about.".to_owned()),
            "equals" => SortKeys::Between(self.sk.clone(), self.sk.clone()),
            "begins" => SortKeys::Prefix(self.sk.clone()),
            "between" if self.to < self.sk => {
                return Err("The last sort key of a range must not be smaller than the first.".to_owned());
            }
            "between" => SortKeys::Between(self.sk.clone(), self.to.clone()),
            other => return Err(format!("There is no condition {other} on a sort key.")),
        };
        let limit = self.limit.unwrap_or(ITEMS);
        if !(1..=ITEMS_MAX).contains(&limit) {
            return Err(format!("A page has 1 to {ITEMS_MAX} items."));
        }
        let query = Query::of(index, &self.pk, sk);
        let order = if self.descending { Order::Descending } else { Order::Ascending };
        let consistency = if self.eventual { Consistency::Eventual } else { query.consistency };
        Ok(Query { limit: Some(limit), order, consistency, ..query })
    }
}

fn form<S: Store>(console: &Console<S>, address: &QueryAddress) -> Markup {
    let QueryAddress { pk, index, sort, sk, to, descending, eventual, limit } = address;
    let indexes = console.engine.schema().layout.indexes.iter().map(|index| index.name.as_str());
    html! {
        form.query action="/collection" method="get" aria-label="Query" {
            label { "Table or index " select name="index" {
                option value="" { "the table" }
                @for name in indexes { option value=(name) selected[name == index] { (name) } }
            } }
            label { "Partition key " input name="pk" value=(pk) required; }
            label { "Sort key " select name="sort" {
                @for (value, said) in CONDITIONS { option value=(value) selected[value == sort] { (said) } }
            } }
            label { "Sort key value " input name="sk" value=(sk); }
            label { "Up to, if between " input name="to" value=(to); }
            label { input type="checkbox" name="descending" value="true" checked[*descending]; " greatest first" }
            label { input type="checkbox" name="eventual" value="true" checked[*eventual]; " eventually consistent" }
            label { "Items at most " input.small type="number" name="limit" min="1" max=(ITEMS_MAX) value=(limit.unwrap_or(ITEMS)); }
            button { "Query" }
        }
    }
}

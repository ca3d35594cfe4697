//! The page of an item: the application's attributes, and the derived ones with their explanation.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use engine::{backoff::describe, look::listing::ALL_DERIVATIONS};
use keys::{item::Item, key::Key};
use maud::{Markup, html};
use operate::{
    failure::OperateError,
    objects::explanation,
    why::{Explanation, WhyRequest, why},
};
use serde::Deserialize;
use store::Store;

use crate::{
    Console, explained,
    frame::{self, ConsolePage},
    json,
};

/// Number of sources, and of changes, that a page lists.
const LISTED: usize = 20;

/// Limit on the sources of a counter that a page reads.
const SOURCES_MAX: usize = 10_000;

/// The parameters of the page's address.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemAddress {
    pk: String,
    sk: String,
    /// True if the stream is read too.
    #[serde(default)]
    changes: bool,
}

/// The form of the header.
#[derive(Debug, Deserialize)]
pub(crate) struct KeyText {
    key: String,
}

/// Leads to the page of an item, or to the items under a partition key.
pub(crate) async fn find<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(KeyText { key }): Query<KeyText>,
) -> Response {
    let item = |pk: &str, sk: Option<&str>| console.opened.schema.layout.address(pk, sk);
    match key.trim().split(" / ").collect::<Vec<_>>().as_slice() {
        [pk, sk] => {
            let key = item(pk, Some(sk)).unwrap_or_else(|| Key::new(*pk, *sk));
            Redirect::to(&frame::of_item(&key)).into_response()
        }
        [pk] if let Some(key) = item(pk, None) => Redirect::to(&frame::of_item(&key)).into_response(),
        [pk] if !pk.is_empty() => Redirect::to(&frame::of_collection(None, pk)).into_response(),
        _ => {
            let why = "Give a key such as USER#ada / PROFILE, or a partition key alone to list its items.";
            frame::failed(StatusCode::BAD_REQUEST, why).into_response()
        }
    }
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ItemAddress { pk, sk, changes }): Query<ItemAddress>,
) -> ConsolePage {
    let key = Key::new(pk, sk);
    match why(&console.opened, &request(&key, changes)).await {
        Ok(explanation) => frame::page(&key.to_string(), &whole(&console, &explanation, &key)),
        // Nothing is derived for the item, but the page can still display the item itself.
        Err(OperateError::Usage(nothing)) => match console.engine.held(vec![key.clone()], console.patience()).await {
            Ok(held) => frame::page(
                &key.to_string(),
                &html! {
                    p.empty { (nothing) }
                    @if let Some(item) = held.get(&key).and_then(Option::as_ref) {
                        (ground(&console, &key, item))
                        (explained::typed("Show every attribute with its type, as JSON", item))
                    }
                },
            ),
            Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
        },
        Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

/// The content of the page, as `ripple why --json` prints it.
pub(crate) async fn object<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ItemAddress { pk, sk, changes }): Query<ItemAddress>,
) -> Response {
    match why(&console.opened, &request(&Key::new(pk, sk), changes)).await {
        Ok(explained) => json::object(explanation(&explained)),
        Err(OperateError::Usage(nothing)) => json::failed(StatusCode::NOT_FOUND, &nothing),
        Err(error) => json::failed(StatusCode::BAD_GATEWAY, &describe(&error)),
    }
}

fn request(key: &Key, reads_stream: bool) -> WhyRequest {
    WhyRequest { key: key.clone(), attribute: None, n_listed: LISTED, n_read_max: SOURCES_MAX, reads_stream }
}

fn whole<S: Store>(console: &Console<S>, explanation: &Explanation, key: &Key) -> Markup {
    let Explanation { entities, item, unreadable, pending, changes, read_units, .. } = explanation;
    html! {
        p {
            (entities.join(" or "))
            @if item.is_none() { " – the item is not there" }
            " · " a href=(frame::of_collection(None, &key.pk)) { "all items under this partition key" }
        }
        @for (derivation, why) in unreadable {
            p.empty { @if derivation == ALL_DERIVATIONS { "Every derivation" } @else { (derivation) } " skips this item: " (why.to_string()) }
        }
        (explained::values(explanation))
        @if let Some(item) = item { (ground(console, key, item)) }
        (explained::pending(pending))
        h2 { "Changes" }
        @match changes {
            Some(changes) => (explained::changes(changes)),
            None => p { a href=(format!("{}&changes=true", frame::of_item(key))) { "Read the stream" } " for the changes that moved these values." },
        }
        @if let Some(item) = item {
            h2 { "The item as DynamoDB has it" }
            (explained::typed("Show every attribute with its type, as JSON", item))
        }
        p { small { "This page took " (explained::read_units_text(*read_units)) "." } }
        (json::link(&frame::of_item_object(key, changes.is_some())))
    }
}

/// The application's attributes of an item; for an undeclared item, all attributes.
fn ground<S: Store>(console: &Console<S>, key: &Key, item: &Item) -> Markup {
    let schema = console.engine.schema();
    let definition = schema.image(key, item).map(|image| image.definition);
    let layout = &schema.layout;
    let is_key = |name: &str| [&layout.pk, &layout.sk].into_iter().chain(&layout.entity_type).any(|key| key == name);
    let is_ground = |name: &&str| !is_key(name) && definition.is_none_or(|it| !it.derived && !it.derives(name));
    let names: Vec<&str> = item.keys().filter(is_ground).collect();
    let rows = names.iter().filter_map(|name| Some((*name, item.get(name)?)));
    html! {
        h2 { "What the application wrote" }
        @if names.is_empty() { p.empty { "Nothing: Ripple alone writes this item." } } @else {
            div.wide tabindex="0" { table.pairs { tbody {
                @for (name, value) in rows { tr { th scope="row" { (name) } td { code { (explained::text(value)) } } } }
            } } }
        }
    }
}

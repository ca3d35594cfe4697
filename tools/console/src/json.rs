//! The content of the pages as JSON: the address of a page with `.json` at its end.
//!
//! An object that a command prints with `--json` has the same form here, and [`operate::objects`] builds both; a page
//! is built from the same values. The schema is at `/schema.json`.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::Request,
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{Markup, html};
use operate::objects::{schema::json_schema, with_version};
use serde_json::{Value, json};
use store::Store;

use crate::{Console, cost, design, flow, item, jobs, parked, query, verification};

/// Limit on the text of an error.
const WHY_BYTES_MAX: usize = 4_096;

pub(crate) fn addresses<S: Store + 'static>() -> Router<Arc<Console<S>>> {
    Router::new()
        .route("/schema.json", get(async || answered(StatusCode::OK, &json_schema())))
        .route("/item.json", get(item::object::<S>))
        .route("/jobs.json", get(jobs::object::<S>))
        .route("/parked.json", get(parked::object::<S>))
        .route("/verify.json", get(verification::object::<S>))
        .route("/repair.json", get(verification::repair_json::<S>))
        .route("/flow.json", get(flow::object::<S>))
        .route("/cost.json", get(cost::object::<S>))
        .route("/collection.json", get(query::object::<S>))
        .route("/pattern.json", get(design::pattern::object::<S>))
}

/// An object with the version.
pub(crate) fn object(object: Value) -> Response {
    answered(StatusCode::OK, &with_version(object))
}

/// An object with the error.
pub(crate) fn failed(status: StatusCode, why: &str) -> Response {
    answered(status, &with_version(json!({ "error": why })))
}

/// Answers each error of an address that ends with `.json` with an object.
pub(crate) async fn errors(request: Request, next: Next) -> Response {
    let is_of_object = request.uri().path().rsplit_once('.').is_some_and(|(_, kind)| kind == "json");
    let response = next.run(request).await;
    let status = response.status();
    let is_object = response.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == "application/json");
    if !is_of_object || is_object || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let why = to_bytes(response.into_body(), WHY_BYTES_MAX).await.unwrap_or_default();
    let why =
        if status == StatusCode::NOT_FOUND { "there is no such page".into() } else { String::from_utf8_lossy(&why) };
    failed(status, &why)
}

fn answered(status: StatusCode, object: &Value) -> Response {
    text(status, object.to_string())
}

/// A JSON text.
pub(crate) fn text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The link at the end of a page.
pub(crate) fn link(address: &str) -> Markup {
    html! { p { small { a href=(address) { "This page as JSON" } } } }
}

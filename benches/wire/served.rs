//! What the functions speak to, besides the database: a proxy before it, and Lambda's runtime API.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Request, State},
    http::{StatusCode, Uri, header::CONTENT_LENGTH},
    response::Response,
    routing::{get, post},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, value::RawValue};
use tokio::{
    net::TcpListener,
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, sleep_until},
};

use crate::Result;

/// How long after its request an answer comes.
const CALL: Duration = Duration::from_millis(5);

/// How long an invocation may take, in milliseconds.
const INVOCATION_MS: u64 = 600_000;

/// What the calls of a database have cost.
#[derive(Clone, Copy, Default)]
pub(crate) struct Metered {
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    pub(crate) n_calls: u64,
}

/// A proxy in front of a database. From [`Meter::start`] on it counts the calls and delays the answers.
#[derive(Clone)]
pub(crate) struct Meter {
    database: Arc<str>,
    endpoint: Arc<str>,
    client: Client<HttpConnector, Body>,
    /// `None` before the start.
    metered: Arc<Mutex<Option<Metered>>>,
}

impl Meter {
    pub(crate) async fn serve(database: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?).into();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let meter = Self { database: database.into(), endpoint, client, metered: Arc::default() };
        let router = Router::new().fallback(forward).with_state(meter.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(meter)
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn start(&self) {
        *self.metered.lock().expect("no panic") = Some(Metered::default());
    }

    pub(crate) fn metered(&self) -> Metered {
        self.metered.lock().expect("no panic").unwrap_or_default()
    }
}

async fn forward(State(meter): State<Meter>, request: Request) -> Response {
    let until = Instant::now() + CALL;
    let (mut parts, body) = request.into_parts();
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let is_read = ["GetItem", "BatchGetItem", "Query", "Scan"].iter().any(|read| target.ends_with(&format!(".{read}")));
    parts.uri = meter.database.parse::<Uri>().expect("the database's address");
    parts.headers.remove(CONTENT_LENGTH);
    let body = asked(to_bytes(body, usize::MAX).await.expect("a request"));
    let answer = meter.client.request(Request::from_parts(parts, body)).await.expect("the database answers");
    let (parts, body) = answer.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.expect("the database's answer");
    let is_started = {
        let mut metered = meter.metered.lock().expect("no panic");
        if let Some(metered) = metered.as_mut() {
            let units = units(&body);
            metered.n_calls += 1;
            *(if is_read { &mut metered.read_units } else { &mut metered.write_units }) += units;
        }
        metered.is_some()
    };
    if is_started {
        sleep_until(until).await;
    }
    Response::from_parts(parts, Body::from(body))
}

/// The request, which asks for its units too. The embedded database checks no signature.
fn asked(body: Bytes) -> Body {
    if fields(&body).contains_key("ReturnConsumedCapacity") {
        return Body::from(body);
    }
    let mut request: Value = serde_json::from_slice(&body).expect("a request in JSON");
    request["ReturnConsumedCapacity"] = Value::from("TOTAL");
    Body::from(request.to_string())
}

/// The fields of an object, unread.
fn fields(json: &[u8]) -> BTreeMap<&str, &RawValue> {
    serde_json::from_slice(json).unwrap_or_default()
}

/// The units of an answer: of one table, or of each.
fn units(body: &[u8]) -> f64 {
    let consumed = fields(body).get("ConsumedCapacity").and_then(|units| serde_json::from_str(units.get()).ok());
    let one = |consumed: &Value| consumed["CapacityUnits"].as_f64().unwrap_or_default();
    match &consumed.unwrap_or_default() {
        Value::Array(tables) => tables.iter().map(one).sum(),
        consumed => one(consumed),
    }
}

/// An answer of a function, or its error.
pub(crate) type Answer = std::result::Result<Bytes, String>;

/// Lambda's runtime API for one function.
pub(crate) struct RuntimeApi {
    pub(crate) address: String,
    /// What the next poll gets.
    pub(crate) events: Sender<String>,
    pub(crate) answers: Receiver<Answer>,
}

#[derive(Clone)]
struct Ends {
    polled: Arc<tokio::sync::Mutex<Receiver<String>>>,
    answered: Sender<Answer>,
}

impl RuntimeApi {
    pub(crate) async fn serve() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let ((events, polled), (answered, answers)) = (channel(1), channel(1));
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{what}", post(answer))
            .fallback(async || StatusCode::ACCEPTED)
            .with_state(Ends { polled: Arc::new(tokio::sync::Mutex::new(polled)), answered });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, events, answers })
    }
}

async fn next(State(ends): State<Ends>) -> Response {
    let Some(event) = ends.polled.lock().await.recv().await else { std::future::pending().await };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time after 1970");
    let deadline_ms = now.as_millis() + u128::from(INVOCATION_MS);
    Response::builder()
        .header("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        .header("Lambda-Runtime-Deadline-Ms", deadline_ms.to_string())
        .header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f")
        .header("Content-Type", "application/json")
        .body(Body::from(event))
        .expect("a response")
}

async fn answer(State(ends): State<Ends>, Path((_, what)): Path<(String, String)>, body: Bytes) -> StatusCode {
    let answer = if what == "response" { Ok(body) } else { Err(String::from_utf8_lossy(&body).into_owned()) };
    // Nobody waits any more when the bench ends.
    drop(ends.answered.send(answer).await);
    StatusCode::ACCEPTED
}

//! The page of an access pattern that writes: a form for its values, the write, its write units, and a link to its
//! effects.

mod request;

use std::sync::Arc;

use ::design::PatternRequests;
use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use derive::write::{Action, Transaction, Write};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
};
use keys::key::Key;
use maud::{Markup, html};
use operate::words::time;
use serde::Deserialize;
use store::{Outcome, Reason, Store, TransactOutcome, Units, recording::Request};

use self::request::FormFields;
use super::filled::PlaceholderValues;
use crate::{
    Console, ConsoleWrites,
    flow::shown,
    frame::{self, ConsolePage},
};

/// The name of the pattern's position in the address and the form; no field has this name.
const AT: &str = "pattern";

/// The parameters of the address.
#[derive(Debug, Deserialize)]
pub(crate) struct WritingAddress {
    /// Position among the patterns of the design: several patterns may have the same id.
    pattern: usize,
}

/// The address of a pattern's page.
pub(super) fn address(at: usize) -> String {
    format!("/pattern/write?{AT}={at}")
}

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(WritingAddress { pattern: at }): Query<WritingAddress>,
) -> ConsolePage {
    match console.writing(at) {
        Some(pattern) => whole(&console, at, pattern, None),
        None => none(),
    }
}

/// Runs a pattern with the values of the form.
pub(crate) async fn run<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let mut values: PlaceholderValues = match console.ordered(&form) {
        Ok(values) => values,
        Err(refused) => return refused.into_response(),
    };
    let at = values.remove(AT).and_then(|at| at.parse().ok());
    let Some((at, pattern)) = at.and_then(|at| Some((at, console.writing(at)?))) else { return none().into_response() };
    let fields = console.fields(pattern);
    let missing = fields.keys().find(|name| values.get(*name).is_none_or(String::is_empty));
    if let Some(name) = missing {
        return frame::failed(StatusCode::BAD_REQUEST, &format!("Give a value for {name}.")).into_response();
    }
    let schema = console.engine.schema();
    let writing = pattern.requests.iter().filter(|request| !request::writes(request).is_empty());
    let filled: Result<Vec<Request>, String> =
        writing.map(|request| request::filled(schema, request, &values)).collect();
    let filled = match filled {
        Ok(filled) => filled,
        Err(why) => return frame::failed(StatusCode::BAD_REQUEST, &why).into_response(),
    };
    let ran = console.sent(&filled).await;
    whole(&console, at, pattern, Some((&values, &ran))).into_response()
}

fn none() -> ConsolePage {
    frame::failed(StatusCode::NOT_FOUND, "There is no access pattern here that writes: choose one on the page Design.")
}

/// Result of the writes of a pattern.
struct Ran {
    /// The written items, with their total write units.
    written: Vec<Key>,
    units: Units,
    /// Why the rest was not written.
    refused: Option<String>,
}

impl<S: Store + 'static> Console<S> {
    /// A pattern that writes.
    fn writing(&self, at: usize) -> Option<&PatternRequests> {
        self.design.patterns.get(at).filter(|pattern| pattern.is_write())
    }

    fn fields(&self, pattern: &PatternRequests) -> FormFields {
        request::fields(self.engine.schema(), &pattern.requests, &time(SystemClock.now_ms()))
    }

    /// Sends requests in their order, until one is refused.
    async fn sent(&self, requests: &[Request]) -> Ran {
        let mut ran = Ran { written: Vec::new(), units: 0.0, refused: None };
        for request in requests {
            let sent = match request {
                Request::Write(write) => self.write(write).await,
                Request::Transact(transaction) => self.transact(transaction).await,
                _ => continue,
            };
            match sent {
                Ok(units) => {
                    let writes = request::writes(request).iter().filter(|write| write.action != Action::Check);
                    ran.written.extend(writes.map(|write| write.key.clone()));
                    ran.units += units;
                }
                Err(why) => {
                    ran.refused = Some(why);
                    return ran;
                }
            }
        }
        ran
    }

    async fn write(&self, write: &Write) -> Result<Units, String> {
        match self.patience().call(|| self.opened.store.write(write)).await {
            Ok(Outcome::Done { units }) => Ok(units),
            Ok(Outcome::GuardFailed) => Err(unmet(write)),
            Err(error) => Err(describe(&error)),
        }
    }

    async fn transact(&self, transaction: &Transaction) -> Result<Units, String> {
        match self.patience().call(|| self.opened.store.transact(transaction)).await {
            Ok(TransactOutcome::Done { units }) => Ok(units.iter().map(|(_, units)| units).sum()),
            Ok(TransactOutcome::Cancelled { reasons }) => {
                let why = |(write, reason): (&Write, &Reason)| match reason {
                    Reason::None => None,
                    Reason::GuardFailed => Some(unmet(write)),
                    Reason::Busy(_) => Some(format!("{} is written by another just now: run it again.", write.key)),
                    Reason::Rejected(why) => Some(format!("{}: {why}", write.key)),
                };
                let whys: Vec<String> = transaction.writes().iter().zip(&reasons).filter_map(why).collect();
                Err(whys.join(" "))
            }
            Err(error) => Err(describe(&error)),
        }
    }
}

/// The message that an item does not meet a write's condition.
fn unmet(write: &Write) -> String {
    format!("{} is not as this write asks: see the condition on the page Design.", write.key)
}

fn whole<S: Store + 'static>(
    console: &Console<S>,
    at: usize,
    pattern: &PatternRequests,
    ran: Option<(&PlaceholderValues, &Ran)>,
) -> ConsolePage {
    let fields = console.fields(pattern);
    let value = |name: &str, first: &str| {
        let given = ran.and_then(|(values, _)| values.get(name)).map(String::as_str);
        given.unwrap_or(first).to_owned()
    };
    // Fields that a person must fill in come first.
    let (empty, given): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, first)| first.is_empty());
    let form = html! {
        div.fields {
            @for (name, first) in empty.into_iter().chain(given) { label { (name) " " input name=(name) value=(value(name, first)) required; } }
        }
        button { "Write" }
    };
    let position = at.to_string();
    let content = html! {
        p { "It takes " (pattern.input) ", and gives " (pattern.result) "." }
        @if let Some((_, ran)) = ran { (outcome(console, ran)) }
        @match &console.writes {
            ConsoleWrites::Allowed { .. } => (console.form_of("/pattern/write", &[(AT, &position)], &form)),
            ConsoleWrites::Refused { allowed_by } => p.empty { "This console only reads: " (allowed_by) ", and the form appears here." },
        }
        h2 { "What it writes" }
        ul {
            @for write in pattern.requests.iter().flat_map(request::writes) {
                li { (store::operation(&write.action)) " " code { (write.key) } }
            }
        }
        p { a href="/design" { "The table's design" } " has the conditions." }
    };
    frame::page(&format!("{}: {}", pattern.id, pattern.title), &content)
}

fn outcome<S: Store>(console: &Console<S>, ran: &Ran) -> Markup {
    html! {
        section role="status" {
            @if let Some(why) = &ran.refused { p.differs { "Refused: " (why) } }
            @if !ran.written.is_empty() {
                p.right { "Written, with " (shown::units(ran.units)) "." }
                ul {
                    @for key in &ran.written {
                        li {
                            (frame::key(key))
                            @if console.flow.is_some() { " – " a href=(frame::of_item_flow(key)) { "what followed" } }
                        }
                    }
                }
            }
        }
    }
}

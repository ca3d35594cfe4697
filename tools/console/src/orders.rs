//! Commands of the pages: redrive, pause, and verification. Each command is a form with the token of this process,
//! which no other page knows; a read-only console has no such forms.

use std::{fmt::Debug, net::SocketAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse as _, Redirect, Response},
};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
    jobs::{JobOrder, ground::sweep::jobs},
};
use maud::{Markup, html};
use serde::{Deserialize, de::DeserializeOwned};
use store::Store;

use crate::{
    Console, ConsoleWrites, READ_MS_MAX,
    frame::{self, ConsolePage},
    local,
};

/// A command of a form.
#[derive(Debug, Deserialize)]
struct Ordered<T> {
    token: String,
    #[serde(flatten)]
    order: T,
}

/// A command for a job.
#[derive(Debug, Deserialize)]
struct OrderedJob {
    /// Sort key of the job.
    id: String,
    order: String,
}

/// Commands for jobs, each with the name that its button sends.
const JOB_ORDERS: [(&str, JobOrder); 3] =
    [("pause", JobOrder::Pause), ("resume", JobOrder::Resume), ("cancel", JobOrder::Cancel)];

impl<S: Store> Console<S> {
    /// A form of one button, with these hidden fields. Empty if the console is read-only.
    pub(crate) fn button(&self, action: &str, fields: &[(&str, &str)], text: &str) -> Markup {
        self.form(action, fields, &Markup::default(), text)
    }

    /// A form with these hidden fields, its button, and fields for a person to fill in. Empty if the console is
    /// read-only.
    pub(crate) fn form(&self, action: &str, fields: &[(&str, &str)], more: &Markup, text: &str) -> Markup {
        self.form_of(action, fields, &html! { button { (text) } (more) })
    }

    /// A form with these hidden fields, and this content with a button. Empty if the console is read-only.
    pub(crate) fn form_of(&self, action: &str, fields: &[(&str, &str)], content: &Markup) -> Markup {
        html! {
            @if let ConsoleWrites::Allowed { place } = &self.writes {
                form.order action=(action) method="post" {
                    input type="hidden" name="token" value=(self.token);
                    @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                    (content)
                    @if let Some(place) = place { small { " writes in " (place) } }
                }
            }
        }
    }

    /// The buttons of a job.
    pub(crate) fn job_buttons(&self, id: &str, is_paused: bool) -> Markup {
        let is_offered = |order: &JobOrder| match order {
            JobOrder::Pause => !is_paused,
            JobOrder::Resume => is_paused,
            JobOrder::Cancel => true,
        };
        html! {
            @for (name, _) in JOB_ORDERS.iter().filter(|(_, order)| is_offered(order)) {
                (self.button("/jobs/order", &[("id", id), ("order", name)], name))
            }
        }
    }

    /// The command of a form, if it is allowed.
    pub(crate) fn ordered<T: DeserializeOwned>(&self, form: &str) -> Result<T, ConsolePage> {
        let refused = |status, why: &str| Err(frame::failed(status, why));
        if let ConsoleWrites::Refused { allowed_by } = &self.writes {
            let why = format!("This console only reads, so it carries out no order: {allowed_by}.");
            return refused(StatusCode::FORBIDDEN, &why);
        }
        match serde_urlencoded::from_str::<Ordered<T>>(form) {
            Ok(ordered) if ordered.token == self.token => Ok(ordered.order),
            Ok(_) => refused(
                StatusCode::FORBIDDEN,
                "This form is of an earlier start of the console: load the page again, and then order it.",
            ),
            Err(error) => refused(StatusCode::BAD_REQUEST, &format!("The form cannot be read: {error}.")),
        }
    }
}

/// Pauses, resumes or cancels a job.
pub(crate) async fn job<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    let OrderedJob { id, order } = match console.ordered(&form) {
        Ok(ordered) => ordered,
        Err(refused) => return refused.into_response(),
    };
    let Some((_, order)) = JOB_ORDERS.iter().find(|(name, _)| *name == order) else {
        return frame::failed(StatusCode::BAD_REQUEST, "A job is paused, resumed or cancelled.").into_response();
    };
    let jobs = match jobs(&console.opened.store, &console.opened.schema.layout).await {
        Ok(jobs) => jobs,
        Err(error) => return failed(&describe(&error)),
    };
    // A job that has ended is no longer on the page, so no message is needed.
    for job in jobs.iter().filter(|job| job.key.sk == id) {
        if let Err(error) = console.engine.order(job, *order, SystemClock.now_ms().saturating_add(READ_MS_MAX)).await {
            return failed(&describe(&error));
        }
    }
    Redirect::to("/jobs").into_response()
}

fn failed(why: &str) -> Response {
    frame::failed(StatusCode::BAD_GATEWAY, why).into_response()
}

// ---- Which requests are served, and what a browser may do with the response ----

/// Headers of each response: nothing is loaded from elsewhere, only its own script runs, no other page frames it, and
/// nothing is stored.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    // With `no-referrer`, a browser sends the origin of a form as `null`, and the form would be refused.
    ("referrer-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Serves a request if it is allowed, with those headers.
pub(crate) async fn guarded<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if is_local(request.headers(), console.address) {
        next.run(request).await
    } else {
        let why = "The console answers only pages of its own, under localhost or a loopback address.";
        frame::failed(StatusCode::FORBIDDEN, why).into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// True if the request uses a local name of the console, and comes from no other page.
fn is_local(headers: &HeaderMap, address: SocketAddr) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_ours = |at: Authority| local::is_loopback(at.host()) && at.port_u16() == Some(address.port());
    let has_name = text(header::HOST.as_str()).and_then(|host| host.parse().ok()).is_some_and(is_ours);
    let from = text("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site));
    let origin = text(header::ORIGIN.as_str());
    has_name && from && origin.is_none_or(|origin| local::of_origin(origin).is_some_and(is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_local_name_and_a_page_of_its_own_are_answered() {
        let is_answered = |all: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                headers.insert(*name, HeaderValue::from_str(value).unwrap());
            }
            is_local(&headers, SocketAddr::from(([127, 0, 0, 1], 8_001)))
        };
        for host in ["127.0.0.1:8001", "localhost:8001", "[::1]:8001"] {
            assert!(is_answered(&[("host", host)]), "{host}");
            assert!(is_answered(&[("host", host), ("sec-fetch-site", "none")]), "{host}");
            assert!(is_answered(&[("host", host), ("origin", "http://localhost:8001")]), "{host}");
        }
        for wrong in [
            &[][..],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:8000")],
            &[("host", "rebound.example:8001")],
            &[("host", "localhost:8001"), ("origin", "http://localhost:3000")],
            &[("host", "localhost:8001"), ("origin", "null")],
            &[("host", "localhost:8001"), ("sec-fetch-site", "cross-site")],
            &[("host", "localhost:8001"), ("sec-fetch-site", "same-site")],
        ] {
            assert!(!is_answered(wrong), "{wrong:?}");
        }
    }
}

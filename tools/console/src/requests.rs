//! Which requests are served: those that name this machine, and commands with the console's token.
//!
//! # Commands
//!
//! A command, such as a redrive or a verification, is a form with the token of this process, which no other page knows.
//! A read-only console has no such forms.
//!
//! # Hosts and origins
//!
//! A browser sends a request of any page to any address, with two headers that the page cannot change: `Host` has the
//! name in the request's URL, and `Origin` has the site of the page. A server on this machine that asks for no
//! password compares both: a page of another site has another origin, and a page whose own name resolves to this
//! machine (DNS rebinding) has that name as the host.

use std::{
    fmt::Debug,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use maud::{Markup, html};
use serde::{Deserialize, de::DeserializeOwned};
use store::Store;

use crate::{
    Console, ConsoleWrites,
    frame::{self, ConsolePage},
};

/// A command of a form.
#[derive(Debug, Deserialize)]
struct Ordered<T> {
    token: String,
    #[serde(flatten)]
    order: T,
}

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
    let is_ours = |at: Authority| is_loopback(at.host()) && at.port_u16() == Some(address.port());
    let has_name = text(header::HOST.as_str()).and_then(|host| host.parse().ok()).is_some_and(is_ours);
    let from = text("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site));
    let origin = text(header::ORIGIN.as_str());
    has_name && from && origin.is_none_or(|origin| of_origin(origin).is_some_and(is_ours))
}

// ---- Which hosts and origins are of this machine ----

/// True for `localhost`, names below it, and loopback addresses. A DNS server cannot make any of these another machine.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost") || address(&host).is_some_and(|address| address.is_loopback())
}

/// The address that a host is, if it is no name.
#[must_use]
pub fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The host and the port of the header `Origin`; `None` if the origin has none, such as `null`.
#[must_use]
pub fn of_origin(origin: &str) -> Option<Authority> {
    let uri: Uri = origin.parse().ok()?;
    uri.scheme().and(uri.authority()).cloned()
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

    #[test]
    fn only_names_that_are_always_this_machine_are_loopback() {
        for host in ["localhost", "LocalHost", "app.localhost", "127.0.0.1", "127.1.2.3", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "local", "localhost.", "notlocalhost", "localhost.example", "127.0.0.1.example", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn an_origin_has_the_host_of_the_page() {
        let host = |origin| of_origin(origin).map(|authority| authority.host().to_owned());
        assert_eq!(host("http://localhost:3000").as_deref(), Some("localhost"));
        assert_eq!(host("https://localhost@site.example").as_deref(), Some("site.example"));
        assert_eq!(host("http://[::1]:3000").as_deref(), Some("[::1]"));
        for none in ["null", "localhost", "localhost:3000", "", "http://"] {
            assert_eq!(host(none), None, "{none}");
        }
    }
}

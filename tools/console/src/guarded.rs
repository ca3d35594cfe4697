//! Who is answered, and what a browser may do with the answer.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use store::Store;

use crate::{Console, frame};

/// Headers of each answer: nothing is loaded from elsewhere, nothing runs but its own script, nobody frames it, nothing is kept.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    // Under `no-referrer` a browser calls the origin of a form `null`, and the form would be refused.
    ("referrer-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Answers a request that may be answered, with those headers.
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

/// Does the request name the console by a local name, and come from no other page?
fn is_local(headers: &HeaderMap, address: SocketAddr) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let port = address.port();
    let names = ["127.0.0.1", "[::1]", "localhost"].map(|name| format!("{name}:{port}"));
    let has_name = text(header::HOST.as_str()).is_some_and(|host| names.iter().any(|name| name == host));
    let is_ours = |origin: &str| names.iter().any(|name| origin == format!("http://{name}"));
    let from = text("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site));
    has_name && from && text(header::ORIGIN.as_str()).is_none_or(is_ours)
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

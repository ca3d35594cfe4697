//! Which hosts and origins are of this machine.
//!
//! A browser sends a request of any page to any address, with two headers that the page cannot change: `Host` has the
//! name in the request's URL, and `Origin` has the site of the page. A server on this machine that asks for no
//! password compares both: a page of another site has another origin, and a page whose own name resolves to this
//! machine (DNS rebinding) has that name as the host.

use std::net::IpAddr;

use axum::http::{Uri, uri::Authority};

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

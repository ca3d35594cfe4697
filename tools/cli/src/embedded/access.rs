//! Who may use the embedded DynamoDB: clients that call it by a name of this machine, and no web page of another site.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header, uri::Authority};
use console::local;

/// Who may use the database, beside those that always may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// Address that the database listens on.
    pub(crate) bound: Option<IpAddr>,
    /// Names of this machine, without a port.
    pub(crate) hosts: Vec<String>,
    /// Origins of pages.
    pub(crate) origins: Vec<String>,
}

/// Who sent a request that is allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// A program, or a page of this machine: a browser shows it no response.
    Client,
    /// A page of an allowed origin.
    Page(HeaderValue),
}

impl Access {
    /// Decides about a request, or says why it is refused and what to do.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<Granted, String> {
        if headers.get(header::HOST).is_none() {
            return Err(refused_host(""));
        }
        if let Some(host) = texts(headers, &header::HOST).find(|host| !self.is_host(host)) {
            return Err(refused_host(host));
        }
        let is_allowed = |origin: &str| self.origins.iter().any(|allowed| allowed == origin);
        let is_local = |origin: &str| local::of_origin(origin).is_some_and(|at| local::is_loopback(at.host()));
        if let Some(origin) = texts(headers, &header::ORIGIN).find(|origin| !is_allowed(origin) && !is_local(origin)) {
            return Err(refused_origin(origin));
        }
        let origin = headers.get(header::ORIGIN).filter(|origin| origin.to_str().is_ok_and(is_allowed));
        Ok(origin.cloned().map_or(Granted::Client, Granted::Page))
    }

    /// True for the header `Host` of a request to this machine.
    fn is_host(&self, host: &str) -> bool {
        let Ok(at) = host.parse::<Authority>() else { return false };
        let is_allowed = self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(at.host()));
        // An address resolves to nothing else, so it is not a page's name. Someone who listens on all addresses has
        // others than the one that is bound.
        let is_bound = local::address(at.host())
            .is_some_and(|named| self.bound.is_some_and(|bound| bound == named || bound.is_unspecified()));
        local::is_loopback(at.host()) || is_allowed || is_bound
    }
}

/// The values of a header; one that is no text is empty, which nothing allows.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or_default())
}

fn refused_host(host: &str) -> String {
    let remedy = "use localhost or 127.0.0.1, or start `ripple dev` with --allow-host NAME";
    format!("the host {host:?} is not a name of this machine: {remedy}")
}

fn refused_origin(origin: &str) -> String {
    let remedy = "start `ripple dev` with --allow-origin ORIGIN if they may";
    format!("the origin {origin:?} is not of this machine, and its pages may not use this database: {remedy}")
}

/// Accepts a name that clients use for this machine.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !text.is_empty() && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("it must be a name without a port, such as host.docker.internal".to_owned())
    }
}

/// Accepts the origin of a page, as a browser writes it.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let is_whole = |at: Authority| text.split_once("://").is_some_and(|(_, rest)| rest == at.as_str());
    if local::of_origin(text).is_some_and(is_whole) {
        Ok(text.to_owned())
    } else {
        Err("it must be of the form http://HOST:PORT, as a browser shows it".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_host(bound: &str, host: &str) -> bool {
        let access = Access { bound: Some(bound.parse().unwrap()), ..Access::default() };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        access.check(&headers).is_ok()
    }

    #[test]
    fn the_address_of_the_database_is_a_name_of_it_and_no_other_address_is() {
        assert!(is_host("192.168.1.7", "192.168.1.7:8000") && is_host("fe80::1", "[fe80::1]:8000"));
        assert!(!is_host("192.168.1.7", "192.168.1.8:8000") && !is_host("127.0.0.1", "192.168.1.7:8000"));
        // Whoever listens on all addresses has some that nobody named.
        assert!(is_host("0.0.0.0", "192.168.1.7:8000") && !is_host("0.0.0.0", "site.example:8000"));
    }

    #[test]
    fn a_header_that_is_no_text_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(Access::default().check(&headers), Ok(Granted::Client));
        headers.append(header::ORIGIN, HeaderValue::from_bytes(b"http://localhost\xff").unwrap());
        assert_eq!(Access::default().check(&headers), Err(refused_origin("")));
    }
}

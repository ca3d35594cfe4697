//! The forms of values that several options share.

use std::net::IpAddr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use engine::ledger::LedgerKind;
use hyper::{Uri, http::uri::Authority};

/// Longest wait, in seconds: a day.
const TIMEOUT_S_MAX: u64 = 86_400;

/// Accepts the URL of a DynamoDB.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    url(text, &["http", "https"])
}

/// Accepts the base URL of an invoke API. Only plain HTTP, which is what emulators use.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    url(text, &["http"])
}

fn url(text: &str, schemes: &[&str]) -> Result<String, String> {
    let is_url = text.parse::<Uri>().is_ok_and(|uri| {
        let has_scheme = uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme));
        // A port that is no number of 16 bits is none.
        let has_place =
            |at: &Authority| !at.host().is_empty() && (at.port_u16().is_some() || at.as_str().ends_with(at.host()));
        has_scheme && uri.authority().is_some_and(has_place)
    });
    if is_url { Ok(text.to_owned()) } else { Err("it must be of the form http://HOST:PORT".to_owned()) }
}

/// Accepts the name of a table.
pub(super) fn table(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if (3..=255).contains(&text.len()) && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("the name of a table has 3 to 255 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// Accepts a name that is not empty.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Accepts the name of a region.
pub(super) fn region(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
    if !text.is_empty() && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("it must be the name of a region, such as us-east-1".to_owned())
    }
}

/// Accepts a number of seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it must be a whole number of seconds".to_owned())
}

/// Accepts the seconds of a wait that ends.
pub(super) fn timeout(text: &str) -> Result<u64, String> {
    let is_allowed = |seconds: &u64| (1..=TIMEOUT_S_MAX).contains(seconds);
    let what = || format!("it must be a whole number of seconds, 1 to {TIMEOUT_S_MAX}");
    text.parse().ok().filter(is_allowed).ok_or_else(what)
}

/// Accepts an address to listen on.
pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "it must be an IP address, such as 0.0.0.0 for all of this machine's".to_owned())
}

pub(super) fn ledger_kind() -> impl TypedValueParser<Value = LedgerKind> {
    PossibleValuesParser::new(["receipts", "watermarks"]).try_map(|text| text.parse::<LedgerKind>())
}

//! The forms of values that several options share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use engine::ledger::LedgerKind;
use hyper::Uri;

/// Accepts the URL of a DynamoDB.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let is_url = text.parse::<Uri>().is_ok_and(|uri| {
        let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        has_scheme && uri.host().is_some_and(|host| !host.is_empty())
    });
    if is_url { Ok(text.to_owned()) } else { Err("it must be of the form http://HOST:PORT".to_owned()) }
}

/// Accepts the base URL of an invoke API. Only plain HTTP, which is what emulators use.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    match text.strip_prefix("http://") {
        Some(host) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err("it must be of the form http://HOST:PORT".to_owned()),
    }
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

/// Accepts the name of a region.
pub(super) fn region(text: &str) -> Result<String, String> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
    if !text.is_empty() && text.chars().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("it must be the name of a region, such as us-east-1".to_owned())
    }
}

pub(super) fn ledger_kind() -> impl TypedValueParser<Value = LedgerKind> {
    PossibleValuesParser::new(["receipts", "watermarks"]).try_map(|text| text.parse::<LedgerKind>())
}

//! Each write pattern's requests to a store, conditions included, as the table's design shows them.

use std::collections::BTreeSet;

use derive::{
    guard::Ask,
    query::SortKeys,
    write::{Action, Table, Write},
};
use expect_test::expect_file;
use queries::writes::patterns::PATTERNS;
use store::recording::Request;

use crate::writes::bed::runtime;

#[test]
fn every_write_pattern_asks_for_what_its_design_shows() {
    let mut lines = Vec::new();
    runtime().block_on(async {
        for pattern in PATTERNS {
            lines.push(format!("{} {}\n", pattern.id, pattern.title));
            lines.extend(pattern.requests().await.unwrap().iter().map(shown));
        }
    });
    expect_file!["requests.txt"].assert_eq(&lines.concat());
}

#[test]
fn every_write_pattern_has_a_sample_and_none_scans() {
    let ids: BTreeSet<&str> = PATTERNS.iter().map(|pattern| pattern.id).collect();
    let wanted: Vec<String> = (1..=19).map(|number| format!("WP-{number:02}")).collect();
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), wanted);
    runtime().block_on(async {
        for pattern in PATTERNS {
            let requests = pattern.requests().await.unwrap();
            let scans = requests.iter().any(|request| matches!(request, Request::Scan(_)));
            let writes = requests.iter().any(|request| matches!(request, Request::Write(_) | Request::Transact(_)));
            assert!(writes && !scans, "{} {}: {requests:?}", pattern.id, pattern.title);
        }
    });
}

fn shown(request: &Request) -> String {
    match request {
        Request::Read(Table::Main, keys, consistency) => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            format!("  get, {consistency:?}: {}\n", keys.join(", "))
        }
        Request::Query(Table::Main, query, None) => {
            let index = query.index.as_deref().unwrap_or("table");
            let sk = match &query.sk {
                SortKeys::All => "all".to_owned(),
                SortKeys::Prefix(prefix) => format!("{prefix}…"),
                SortKeys::Between(first, last) => format!("{first} to {last}"),
                SortKeys::After(first) => format!("behind {first}"),
            };
            let limit = query.limit.map(|limit| format!(", at most {limit}")).unwrap_or_default();
            format!("  query {index}, {:?}: {} / {sk}{limit}\n", query.consistency, query.pk)
        }
        Request::Write(write) => format!("  {}", write_shown(write)),
        Request::Transact(transaction) => {
            let writes: Vec<String> = transaction.writes().iter().map(write_shown).collect();
            format!("  together\n    {}", writes.join("    "))
        }
        other => panic!("{other:?}"),
    }
}

fn write_shown(write: &Write) -> String {
    let action = match &write.action {
        Action::Put(_) => "put".to_owned(),
        Action::Delete => "delete".to_owned(),
        Action::Check => "check".to_owned(),
        Action::Update(update) => {
            let mut parts = vec!["update".to_owned()];
            let mut part = |verb: &str, names: Vec<&str>| {
                if !names.is_empty() {
                    parts.push(format!("{verb} {}", names.join(" ")));
                }
            };
            part("set", update.set.keys().collect());
            part("remove", update.remove.iter().map(String::as_str).collect());
            part("add", update.add.keys().collect());
            part("delete", update.delete.keys().collect());
            parts.join(", ")
        }
    };
    let asks = write.guard.iter().flat_map(|guard| &guard.asks).map(|ask| match ask {
        Ask::Absent => "absent".to_owned(),
        Ask::Present => "present".to_owned(),
        Ask::Lacks(name) => format!("no {name}"),
        Ask::Equal(name, value) => format!("{name} = {value:?}"),
        Ask::Differs(name, value) => format!("{name} <> {value:?}"),
        Ask::AtLeast(name, value) => format!("{name} >= {value:?}"),
        Ask::LacksOrEqual(name, value) => format!("no {name} or {name} = {value:?}"),
        Ask::BelowOrLacksBoth(name, value, other) => format!("neither {name} nor {other}, or {name} < {value:?}"),
        Ask::LacksOrBelow(name, value) => format!("no {name} or {name} < {value:?}"),
    });
    let asks = asks.collect::<Vec<_>>().join(" and ");
    let condition = if asks.is_empty() { asks } else { format!(" if {asks}") };
    format!("{action} {}{condition}\n", write.key)
}

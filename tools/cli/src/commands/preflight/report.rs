//! The report of a preflight, as text and as JSON. It contains keys, but no values of attributes.

use keys::key::Key;
use operate::objects::key;
use serde_json::{Map, Value, json};

use super::{
    Preflighted,
    links::CheckedLink,
    sample::SampledTable,
    surroundings::{Expiry, TableFacts},
};
use crate::args::manifest::option;
use crate::commands::preflight::Group;
use crate::commands::preflight::WriteEstimate;

impl Preflighted {
    /// What the operator has to do, one line each; nothing if everything fits.
    pub(super) fn to_do(&self) -> Vec<String> {
        let mut lines = self.surroundings.to_do();
        let fittings = || self.sampled.iter().map(|table| &table.fitting);
        let n_items: u64 = fittings().map(|fitting| fitting.n_items).sum();
        let is_unreadable = fittings().any(|fitting| !fitting.unreadable.is_empty());
        if n_items > 0 && fittings().all(|fitting| fitting.n_fitting() == 0) && !is_unreadable {
            let none = format!("none of {n_items} items is of a declared entity");
            lines.push(format!("{none}: declare them with {}, or name another table with --table", option()));
        }
        if is_unreadable {
            lines.push("unreadable items count as absent until somebody corrects them: see unreadable".to_owned());
        }
        lines.extend(self.links.iter().filter_map(CheckedLink::to_do));
        lines
    }

    pub(super) fn text(&self, to_do: &[String]) -> String {
        let mut lines = Vec::new();
        for (facts, sampled) in self.surroundings.tables.iter().zip(&self.sampled) {
            lines.extend(table_lines(facts));
            if self.surroundings.own.is_none() {
                lines.push(self.ledger_line());
            }
            lines.extend(sample_lines(facts, sampled));
        }
        if let Some(own) = &self.surroundings.own {
            let is_there = if own.is_there { "exists" } else { "does not exist yet" };
            lines.push(row("own table", &format!("{}: for Ripple's own items, {is_there}", own.table)));
            lines.push(self.ledger_line());
        }
        lines.extend(self.links.iter().filter_map(CheckedLink::line).map(|line| row("links", &line)));
        lines.extend(self.backfill_lines());
        lines.extend(to_do.iter().map(|line| row("to do", line)));
        lines.push(match to_do.len() {
            0 => "it fits".to_owned(),
            1 => "1 thing to do".to_owned(),
            n => format!("{n} things to do"),
        });
        lines.join("\n")
    }

    fn ledger_line(&self) -> String {
        let ledger = &self.surroundings.ledger;
        row(
            "ledger",
            &match (&ledger.kind, ledger.is_there) {
                (Some(kind), _) => format!("{}: of {kind}", ledger.table),
                (None, true) => format!("{}: not in use yet", ledger.table),
                (None, false) => format!("{}: does not exist yet", ledger.table),
            },
        )
    }

    fn backfill_lines(&self) -> Vec<String> {
        let backfill = &self.backfill;
        let reads = backfill.read_units;
        let mut lines = vec![row("backfill", &format!("read units to read the table once, consistently: {reads}"))];
        match &backfill.parts {
            None => lines.push(row("backfill", "the write units are unknown, because the table's size is unknown")),
            Some(parts) => {
                for part in parts {
                    lines.push(row("backfill", &format!("{}: {}", part.derivation, part.at_most())));
                }
                lines.push(row("backfill", &format!("at most {} write units in all", backfill.write_units)));
            }
        }
        if !backfill.history.is_empty() {
            let names = backfill.history.join(", ");
            lines.push(row("backfill", &format!("not {names}: the table does not contain everything that they count")));
        }
        lines
    }

    /// The names are stable. The facts about a single table are at the top level. With several tables, they are in a
    /// list.
    pub(super) fn json(&self, to_do: &[String]) -> Value {
        let backfill = &self.backfill;
        let parts = backfill.parts.as_ref().map(|parts| {
            let part =
                |part: &WriteEstimate| json!({ "derivation": part.derivation, "items": part.n_items, "write_units": part.units });
            parts.iter().map(part).collect::<Vec<_>>()
        });
        let ledger = &self.surroundings.ledger;
        let rest = json!({
            "ledger": { "name": ledger.table, "exists": ledger.is_there, "kind": ledger.kind },
            "links": self.links.iter().map(CheckedLink::json).collect::<Vec<_>>(),
            "backfill": {
                "read_units": backfill.read_units,
                "write_units": parts.as_ref().map(|_| backfill.write_units),
                "derivations": parts,
                "history": backfill.history,
            },
            "to_do": to_do,
        });
        let tables =
            self.surroundings.tables.iter().zip(&self.sampled).map(|(facts, sampled)| of_table(facts, sampled));
        let mut object = match &self.surroundings.own {
            None => tables.flat_map(members).collect(),
            Some(own) => members(json!({
                "tables": tables.collect::<Vec<_>>(),
                "own_table": { "name": own.table, "exists": own.is_there },
            })),
        };
        object.extend(members(rest));
        Value::Object(object)
    }
}

fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The facts about one table.
fn of_table(facts: &TableFacts, sampled: &SampledTable) -> Value {
    let SampledTable { sample, fitting, .. } = sampled;
    let indexes = facts
        .indexes
        .iter()
        .map(|(name, is_needed)| json!({ "name": name, "needed": is_needed, "fits": facts.of_index(name).is_none() }));
    let unreadable = fitting.unreadable.iter().map(|((derivation, why), group)| {
        json!({ "derivation": derivation, "why": why, "items": group.n_items, "examples": keys(group) })
    });
    let expires_by = match &facts.expiry {
        Expiry::By(attribute) => Some(attribute),
        Expiry::Never | Expiry::Unsaid => None,
    };
    json!({
        "table": {
            "name": facts.table,
            "items": facts.n_items,
            "bytes": facts.bytes,
            "key": facts.key,
            "key_fits": facts.has_key,
        },
        "indexes": indexes.collect::<Vec<_>>(),
        "stream": { "arn": facts.stream_arn, "view_type": facts.view, "open_shards": facts.n_shards_open },
        "expires_by": expires_by,
        "sample": {
            "items": fitting.n_items,
            "segments": sample.segments,
            "whole": sample.is_whole,
            "read_units": sample.units,
        },
        "entities": fitting.entities,
        "ignored": { "untyped": group(&fitting.untyped), "unknown": group(&fitting.unknown) },
        "unreadable": unreadable.collect::<Vec<_>>(),
    })
}

fn table_lines(seen: &TableFacts) -> Vec<String> {
    let counted = format!("{} items, {} bytes, as DynamoDB last counted them", seen.n_items, seen.bytes);
    let fit = |fits: bool| if fits { "fits" } else { "does not fit" };
    let mut lines = vec![
        row("table", &format!("{}: {counted}", seen.table)),
        row("key", &format!("{}: {}", seen.key, fit(seen.has_key))),
    ];
    for (name, is_needed) in &seen.indexes {
        let fits = seen.of_index(name).is_none();
        let needed = if *is_needed || !fits { fit(fits) } else { "no derivation and no declared read needs it" };
        lines.push(row("index", &format!("{name}: {needed}")));
    }
    lines.push(row(
        "stream",
        &match (&seen.view, seen.n_shards_open) {
            (Some(view), Some(1)) => format!("{view}, 1 open shard"),
            (Some(view), Some(n_open)) => format!("{view}, {n_open} open shards"),
            _ => "none".to_owned(),
        },
    ));
    if let Some(arn) = &seen.stream_arn {
        let ask = format!("aws lambda list-event-source-mappings --event-source-arn {arn}");
        lines.push(row("readers", &format!("a shard can have two, and DynamoDB does not list them: {ask}")));
    }
    lines.push(row("expiry", seen.expiry.word()));
    lines
}

fn sample_lines(facts: &TableFacts, sampled: &SampledTable) -> Vec<String> {
    let SampledTable { sample, fitting, .. } = sampled;
    if !facts.has_key {
        return vec![row("sample", "a table with another key is not read")];
    }
    if fitting.n_items == 0 && sample.is_whole {
        let what = if sample.segments == 1 { "the table" } else { "this part of the table" };
        return vec![row("sample", &format!("{what} is empty, so there are no items to check"))];
    }
    let part = if sample.is_whole { "all" } else { "the first" };
    let of = if sample.segments == 1 { "the table".to_owned() } else { format!("1/{} of the table", sample.segments) };
    let read = format!("{} items, {part} of {of}, {:.1} read units", fitting.n_items, sample.units);
    let mut lines = vec![row("sample", &read)];
    lines.extend(fitting.entities.iter().map(|(entity, n)| row("fits", &format!("{n}  {entity}"))));
    for (group, why) in [(&fitting.untyped, UNTYPED), (&fitting.unknown, UNKNOWN)] {
        if group.n_items > 0 {
            lines.push(row("ignored", &format!("{}  {why}, such as {}", group.n_items, examples(group))));
        }
    }
    for ((derivation, why), group) in &fitting.unreadable {
        let derivation = if derivation == "*" { "every derivation" } else { derivation };
        let (n, such) = (group.n_items, examples(group));
        lines.push(row("unreadable", &format!("{n}  by {derivation}: {why}, such as {such}")));
    }
    lines
}

/// The label of items without an entity type.
const UNTYPED: &str = "without an entity type";
const UNKNOWN: &str = "of an undeclared entity";

fn row(word: &str, line: &str) -> String {
    format!("{word:<12}{line}")
}

fn examples(group: &Group) -> String {
    group.examples.iter().map(Key::to_string).collect::<Vec<_>>().join(", ")
}

fn keys(group: &Group) -> Vec<Value> {
    group.examples.iter().map(key).collect()
}

fn group(group: &Group) -> Value {
    json!({ "items": group.n_items, "examples": keys(group) })
}

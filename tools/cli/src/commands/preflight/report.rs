//! The report of a preflight, as text and as JSON. It contains keys, but no value of an attribute.

use keys::{key::Key, layout::Layout};
use operate::objects::key;
use serde_json::{Value, json};

use super::{Preflighted, cost::WriteEstimate, fitting::Group, surroundings::Expiry};

impl Preflighted {
    /// What the operator has to do, one line each; nothing if everything fits.
    pub(super) fn to_do(&self, layout: &Layout) -> Vec<String> {
        let mut lines = self.surroundings.to_do(layout);
        let fitting = &self.fitting;
        if fitting.n_items > 0 && fitting.n_fitting() == 0 && fitting.unreadable.is_empty() {
            let none = format!("none of {} items is of a declared entity", fitting.n_items);
            lines.push(format!("{none}: declare them with --config, or name another table with --table"));
        }
        if !fitting.unreadable.is_empty() {
            lines.push("unreadable items count as absent until somebody corrects them: see unreadable".to_owned());
        }
        lines
    }

    pub(super) fn text(&self, to_do: &[String]) -> String {
        let mut lines = self.table_lines();
        lines.extend(self.sample_lines());
        lines.extend(self.backfill_lines());
        lines.extend(to_do.iter().map(|line| row("to do", line)));
        lines.push(match to_do.len() {
            0 => "it fits".to_owned(),
            1 => "1 thing to do".to_owned(),
            n => format!("{n} things to do"),
        });
        lines.join("\n")
    }

    fn table_lines(&self) -> Vec<String> {
        let seen = &self.surroundings;
        let counted = format!("{} items, {} bytes, as DynamoDB last counted them", seen.n_items, seen.bytes);
        let fit = |fits: bool| if fits { "fits" } else { "does not fit" };
        let mut lines = vec![
            row("table", &format!("{}: {counted}", seen.table)),
            row("key", &format!("{}: {}", seen.key, fit(seen.has_key))),
        ];
        for (name, is_needed) in &seen.indexes {
            let needed = if *is_needed { fit(seen.of_index(name).is_none()) } else { "no derivation needs it" };
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
        let ledger = &seen.ledger;
        lines.push(row(
            "ledger",
            &match (&ledger.kind, ledger.is_there) {
                (Some(kind), _) => format!("{}: of {kind}", ledger.table),
                (None, true) => format!("{}: not in use yet", ledger.table),
                (None, false) => format!("{}: does not exist yet", ledger.table),
            },
        ));
        lines
    }

    fn sample_lines(&self) -> Vec<String> {
        let (sample, fitting) = (&self.sample, &self.fitting);
        if !self.surroundings.has_key {
            return vec![row("sample", "a table with another key is not read")];
        }
        if fitting.n_items == 0 && sample.is_whole {
            let what = if sample.segments == 1 { "the table" } else { "this part of the table" };
            return vec![row("sample", &format!("{what} is empty, so there are no items to check"))];
        }
        let part = if sample.is_whole { "all" } else { "the first" };
        let of =
            if sample.segments == 1 { "the table".to_owned() } else { format!("1/{} of the table", sample.segments) };
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

    /// The names are stable.
    pub(super) fn json(&self, to_do: &[String]) -> Value {
        let (seen, fitting, backfill) = (&self.surroundings, &self.fitting, &self.backfill);
        let indexes = seen.indexes.iter().map(
            |(name, is_needed)| json!({ "name": name, "needed": is_needed, "fits": seen.of_index(name).is_none() }),
        );
        let unreadable = fitting.unreadable.iter().map(|((derivation, why), group)| {
            json!({ "derivation": derivation, "why": why, "items": group.n_items, "examples": keys(group) })
        });
        let parts = backfill.parts.as_ref().map(|parts| {
            let part =
                |part: &WriteEstimate| json!({ "derivation": part.derivation, "items": part.n_items, "write_units": part.units });
            parts.iter().map(part).collect::<Vec<_>>()
        });
        let expires_by = match &seen.expiry {
            Expiry::By(attribute) => Some(attribute),
            Expiry::Never | Expiry::Unsaid => None,
        };
        json!({
            "table": { "name": seen.table, "items": seen.n_items, "bytes": seen.bytes, "key": seen.key, "key_fits": seen.has_key },
            "indexes": indexes.collect::<Vec<_>>(),
            "stream": { "arn": seen.stream_arn, "view_type": seen.view, "open_shards": seen.n_shards_open },
            "expires_by": expires_by,
            "ledger": { "name": seen.ledger.table, "exists": seen.ledger.is_there, "kind": seen.ledger.kind },
            "sample": {
                "items": fitting.n_items,
                "segments": self.sample.segments,
                "whole": self.sample.is_whole,
                "read_units": self.sample.units,
            },
            "entities": fitting.entities,
            "ignored": { "untyped": group(&fitting.untyped), "unknown": group(&fitting.unknown) },
            "unreadable": unreadable.collect::<Vec<_>>(),
            "backfill": {
                "read_units": backfill.read_units,
                "write_units": parts.as_ref().map(|_| backfill.write_units),
                "derivations": parts,
                "history": backfill.history,
            },
            "to_do": to_do,
        })
    }
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

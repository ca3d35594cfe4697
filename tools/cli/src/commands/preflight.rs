//! `ripple preflight`: checks whether the application's tables fit the declarations, before the service is attached.
//!
//! Reads a part of each table and writes nothing. The table itself is checked as a function checks it at its start. The
//! report contains keys, but no values of attributes.

pub(super) mod sample;

use std::collections::BTreeMap;

use anyhow::Context as _;
use aws_sdk_dynamodb::types::{TableDescription, TimeToLiveStatus};
use derive::fit::{Misfit, StoredTable, TablePart, needed_indexes, of_ledger, of_read_index, of_table};
use engine::ledger::{EXPIRES_AT, recorded};
use functions::{declared::described, logging};
use infra::steps::{IndexChange, inside, queried_by};
use keys::{key::Key, tables::TableForm};
use operate::objects::key;
use serde_json::{Map, Value, json};

use crate::{
    args::{Connection, config_option, tables::Preflight},
    bar::progress,
    commands::{
        LOG_FILTER,
        preflight::sample::{BackfillCost, CheckedLink, Group, SampleLimits, SampledTable, WriteEstimate},
        verify::reader_text,
    },
    exit::{Completion, print, print_json},
    opened::{Opened, agrees, open_to_attach},
    tables,
};

/// The results of a preflight.
struct Preflighted {
    surroundings: Surroundings,
    /// The sample of each table.
    sampled: Vec<SampledTable>,
    links: Vec<CheckedLink>,
    backfill: BackfillCost,
}

pub(crate) async fn run(args: &Preflight) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = open_to_attach(&args.connection).await?;
    let surroundings = Surroundings::look(&opened, &args.connection).await?;
    let limits =
        SampleLimits { n_items_max: args.items, segments: args.segment_of, units_per_second: args.units_per_second };
    let bar = progress(args.json);
    let has_key = |table: &str| surroundings.tables.iter().any(|it| it.table == table && it.has_key);
    let sampled = SampledTable::read_all(&opened, limits, has_key, |n_items| bar.set_position(n_items)).await?;
    bar.finish_and_clear();
    let links = CheckedLink::check_all(&opened, &sampled).await?;
    let backfill = BackfillCost::estimate(&opened, &sampled);
    let seen = Preflighted { surroundings, sampled, links, backfill };
    let to_do = seen.to_do();
    if args.json {
        print_json(seen.json(&to_do));
    } else {
        print(&seen.text(&to_do));
    }
    Ok(if to_do.is_empty() { Completion::InStep } else { Completion::Findings })
}

// ---- The tables without their items: keys, indexes, streams, expiry, and the ledger's table ----

/// The state of the tables before the service is attached.
struct Surroundings {
    /// The application's tables.
    tables: Vec<TableFacts>,
    /// The table of Ripple's own items, if the application has several tables.
    own: Option<OwnTable>,
    ledger: LedgerTable,
}

/// The table of Ripple's own items, which a template creates.
struct OwnTable {
    table: String,
    is_there: bool,
    misfits: Vec<Misfit>,
}

/// The description of a table, and its mismatches.
struct TableFacts {
    table: String,
    stream_arn: Option<String>,
    /// Number of items, as DynamoDB counted them some hours ago.
    n_items: u64,
    /// Size of the items, in bytes.
    bytes: u64,
    key: String,
    /// True if the table has the declared key. Its items are read only then.
    has_key: bool,
    /// The declared indexes, and whether a derivation or a read needs each.
    indexes: BTreeMap<String, bool>,
    view: Option<String>,
    n_shards_open: Option<usize>,
    expiry: Expiry,
    /// The declared attribute of its time to live.
    declared_expiry: Option<String>,
    misfits: Vec<Misfit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expiry {
    /// At the time in this attribute.
    By(String),
    Never,
    /// The database does not report it.
    Unsaid,
}

struct LedgerTable {
    table: String,
    is_there: bool,
    /// The kind, if the ledger has stored it.
    kind: Option<String>,
    /// What the operator has to change.
    to_do: Vec<String>,
}

impl Surroundings {
    /// Reads the state of all tables.
    async fn look(opened: &Opened, connection: &Connection) -> anyhow::Result<Self> {
        let mut tables = Vec::new();
        for (description, form) in opened.application_tables() {
            tables.push(TableFacts::look(opened, description, form).await?);
        }
        let own = opened.schema.layout.forms.is_some().then(|| OwnTable::look(opened));
        Ok(Self { tables, own, ledger: LedgerTable::look(opened, connection).await? })
    }

    /// What the operator has to change, one line each.
    fn to_do(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.tables.iter().flat_map(TableFacts::to_do).collect();
        lines.extend(self.own.iter().flat_map(|own| &own.misfits).map(|misfit| misfit.line.clone()));
        lines.extend(self.ledger.to_do.iter().cloned());
        lines
    }
}

impl OwnTable {
    fn look(opened: &Opened) -> Self {
        let is_there = opened.table.table_name.is_some();
        let misfits = || of_table(&opened.schema, &opened.catalogue, &described(&opened.table), tables::options());
        let misfits = if is_there { misfits() } else { Vec::new() };
        Self { table: opened.config.table.clone(), is_there, misfits }
    }
}

impl TableFacts {
    async fn look(opened: &Opened, table: &TableDescription, form: Option<&TableForm>) -> anyhow::Result<Self> {
        let schema = &opened.schema;
        let stored = described(table);
        let mut misfits = of_table(schema, &opened.catalogue, &stored, tables::options());
        let needed = needed_indexes(schema, &opened.catalogue);
        let steps = tables::index_steps((schema, &opened.catalogue), table, form);
        let whole = form.cloned().unwrap_or_else(|| schema.layout.own_table());
        let mut indexes = BTreeMap::new();
        for index in &whole.indexes {
            let name = &index.name;
            let reads = queried_by(schema, &whole, name);
            let is_needed = !reads.is_empty() || needed.contains(&inside(&whole, name));
            indexes.insert(name.clone(), is_needed);
            let part = TablePart::Index(name.clone());
            // What the manifest declares of an index contains what derivations need of it.
            let replaced =
                steps.iter().find(|step| step.index == *name && matches!(step.change, IndexChange::Replace(_)));
            if let Some(step) = replaced {
                misfits.retain(|misfit| misfit.part != part);
                misfits.push(Misfit { part, line: step.to_string() });
            } else if !misfits.iter().any(|misfit| misfit.part == part) {
                misfits.extend(of_read_index(index, &reads, &stored));
            }
        }
        let stream_arn = table.latest_stream_arn.clone().filter(|_| stored.has_stream);
        let n_shards_open = match &stream_arn {
            Some(arn) => Some(n_shards_open(opened, arn).await?),
            None => None,
        };
        let declared_expiry = form.map_or(&schema.layout.time_to_live, |form| &form.time_to_live).clone();
        Ok(Self {
            table: stored.name.clone(),
            stream_arn,
            n_items: tables::counted(table.item_count),
            bytes: tables::counted(table.table_size_bytes),
            key: stored.key.to_string(),
            has_key: !misfits.iter().any(|misfit| misfit.part == TablePart::Key),
            indexes,
            expiry: Expiry::of(opened, &stored.name).await,
            view: stored.view,
            n_shards_open,
            declared_expiry,
            misfits,
        })
    }

    /// The mismatch of an index.
    fn of_index(&self, name: &str) -> Option<&Misfit> {
        self.misfits.iter().find(|misfit| matches!(&misfit.part, TablePart::Index(index) if index == name))
    }

    fn to_do(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.misfits.iter().map(|misfit| misfit.line.clone()).collect();
        if let Expiry::By(stored) = &self.expiry
            && self.declared_expiry.as_ref() != Some(stored)
        {
            let declared = self.declared_expiry.as_deref().unwrap_or("no attribute");
            let line = format!("items of {} expire by {stored}, but {declared} is declared", self.table);
            lines.push(format!("{line}: declare it with {}", tables::options().config));
        }
        lines
    }
}

impl LedgerTable {
    async fn look(opened: &Opened, connection: &Connection) -> anyhow::Result<Self> {
        let table = opened.config.ledger_table.clone();
        let description = tables::describe(&opened.clients.dynamodb, &table, &opened.endpoint).await?;
        let Some(stored) = description.map(|description| described(&description)) else {
            return Ok(Self { table, is_there: false, kind: None, to_do: Vec::new() });
        };
        let misfit = of_ledger(&opened.schema.layout, &stored, tables::options());
        let has_key = misfit.is_none();
        let mut to_do: Vec<String> = misfit.into_iter().map(|misfit| misfit.line).collect();
        to_do.extend(Self::settings_to_do(opened, &table, &stored).await);
        if has_key {
            to_do.extend(agrees(opened, connection).await?.err().map(|usage| usage.to_string()));
        }
        let kind = if has_key { recorded(&opened.store).await?.map(|kind| kind.to_string()) } else { None };
        Ok(Self { table, is_there: true, kind, to_do })
    }

    async fn settings_to_do(opened: &Opened, table: &str, stored: &StoredTable) -> Vec<String> {
        let mut lines = Vec::new();
        if stored.has_stream {
            lines.push(format!("the ledger's table {table} has a stream, which nobody uses: disable it"));
        }
        let is_right = match Expiry::of(opened, table).await {
            Expiry::By(attribute) => attribute == EXPIRES_AT,
            Expiry::Never => false,
            Expiry::Unsaid => true,
        };
        if !is_right {
            let line = format!("items of the ledger's table {table} do not expire by {EXPIRES_AT}");
            lines.push(format!("{line}: enable its time to live, or receipts stay for ever"));
        }
        lines
    }
}

/// The number of open shards: those that no other shard names as its parent. An ending sequence number proves nothing,
/// because an emulator's open shard has one too.
async fn n_shards_open(opened: &Opened, arn: &str) -> anyhow::Result<usize> {
    let (mut shards, mut after) = (Vec::new(), None);
    loop {
        let call = opened.clients.streams.describe_stream().stream_arn(arn);
        let answer = call.set_exclusive_start_shard_id(after).send().await;
        let answer = answer.with_context(|| format!("cannot describe the stream {arn}"))?;
        let Some(description) = answer.stream_description else { break };
        shards.extend(description.shards.unwrap_or_default());
        after = description.last_evaluated_shard_id.filter(|id| !id.is_empty());
        if after.is_none() {
            break;
        }
    }
    let is_parent = |id: Option<&str>| shards.iter().any(|shard| shard.parent_shard_id() == id);
    Ok(shards.iter().filter(|shard| !is_parent(shard.shard_id())).count())
}

impl Expiry {
    async fn of(opened: &Opened, table: &str) -> Self {
        let answer = opened.clients.dynamodb.describe_time_to_live().table_name(table).send().await;
        let Some(description) = answer.ok().and_then(|answer| answer.time_to_live_description) else {
            return Self::Unsaid;
        };
        match (description.attribute_name, description.time_to_live_status) {
            (Some(name), Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) => Self::By(name),
            _ => Self::Never,
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::By(attribute) => attribute,
            Self::Never => "never",
            Self::Unsaid => "unknown: the call is not allowed",
        }
    }
}

// ---- The report, as text and as JSON ----

impl Preflighted {
    /// What the operator has to do, one line each; nothing if everything fits.
    fn to_do(&self) -> Vec<String> {
        let mut lines = self.surroundings.to_do();
        let fittings = || self.sampled.iter().map(|table| &table.fitting);
        let n_items: u64 = fittings().map(|fitting| fitting.n_items).sum();
        let is_unreadable = fittings().any(|fitting| !fitting.unreadable.is_empty());
        if n_items > 0 && fittings().all(|fitting| fitting.n_fitting() == 0) && !is_unreadable {
            let none = format!("none of {n_items} items is of a declared entity");
            lines.push(format!("{none}: declare them with {}, or name another table with --table", config_option()));
        }
        if is_unreadable {
            lines.push("unreadable items count as absent until somebody corrects them: see unreadable".to_owned());
        }
        lines.extend(self.links.iter().filter_map(CheckedLink::to_do));
        lines
    }

    fn text(&self, to_do: &[String]) -> String {
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
    fn json(&self, to_do: &[String]) -> Value {
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
            self.surroundings.tables.iter().zip(&self.sampled).map(|(facts, sampled)| table_json(facts, sampled));
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
fn table_json(facts: &TableFacts, sampled: &SampledTable) -> Value {
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
    for (group, why) in [(&fitting.untyped, "without an entity type"), (&fitting.unknown, "of an undeclared entity")] {
        if group.n_items > 0 {
            lines.push(row("ignored", &format!("{}  {why}, such as {}", group.n_items, examples(group))));
        }
    }
    for ((derivation, why), group) in &fitting.unreadable {
        let (n, derivation, such) = (group.n_items, reader_text(derivation), examples(group));
        lines.push(row("unreadable", &format!("{n}  by {derivation}: {why}, such as {such}")));
    }
    lines
}

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

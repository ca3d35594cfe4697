//! The tables without their items: keys, indexes, streams, expiry, and the ledger's table.

use std::collections::BTreeMap;

use anyhow::Context as _;
use aws_sdk_dynamodb::types::{TableDescription, TimeToLiveStatus};
use derive::fit::{Misfit, StoredTable, TablePart, needed_indexes, of_ledger, of_read_index, of_table};
use engine::ledger::{EXPIRES_AT, settings::recorded};
use functions::declared::described;
use infra::steps::{IndexChange, inside, queried_by};
use keys::tables::TableForm;

use crate::{
    args::Connection,
    opened::{Opened, agrees},
    tables,
};

/// The state of the tables before the service is attached.
pub(super) struct Surroundings {
    /// The application's tables.
    pub(super) tables: Vec<TableFacts>,
    /// The table of Ripple's own items, if the application has several tables.
    pub(super) own: Option<OwnTable>,
    pub(super) ledger: LedgerTable,
}

/// The table of Ripple's own items, which a template creates.
pub(super) struct OwnTable {
    pub(super) table: String,
    pub(super) is_there: bool,
    misfits: Vec<Misfit>,
}

/// The description of a table, and its mismatches.
pub(super) struct TableFacts {
    pub(super) table: String,
    pub(super) stream_arn: Option<String>,
    /// Number of items, as DynamoDB counted them some hours ago.
    pub(super) n_items: u64,
    /// Size of the items, in bytes.
    pub(super) bytes: u64,
    pub(super) key: String,
    /// True if the table has the declared key. Its items are read only then.
    pub(super) has_key: bool,
    /// The declared indexes, and whether a derivation or a read needs each.
    pub(super) indexes: BTreeMap<String, bool>,
    pub(super) view: Option<String>,
    pub(super) n_shards_open: Option<usize>,
    pub(super) expiry: Expiry,
    /// The declared attribute of its time to live.
    declared_expiry: Option<String>,
    misfits: Vec<Misfit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// At the time in this attribute.
    By(String),
    Never,
    /// The database does not report it.
    Unsaid,
}

pub(super) struct LedgerTable {
    pub(super) table: String,
    pub(super) is_there: bool,
    /// The kind, if the ledger has stored it.
    pub(super) kind: Option<String>,
    /// What the operator has to change.
    pub(super) to_do: Vec<String>,
}

impl Surroundings {
    /// Reads the state of all tables.
    pub(super) async fn look(opened: &Opened, connection: &Connection) -> anyhow::Result<Self> {
        let mut tables = Vec::new();
        for (description, form) in opened.application_tables() {
            tables.push(TableFacts::look(opened, description, form).await?);
        }
        let own = opened.schema.layout.forms.is_some().then(|| OwnTable::look(opened));
        Ok(Self { tables, own, ledger: LedgerTable::look(opened, connection).await? })
    }

    /// What the operator has to change, one line each.
    pub(super) fn to_do(&self) -> Vec<String> {
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
    pub(super) fn of_index(&self, name: &str) -> Option<&Misfit> {
        self.misfits.iter().find(|misfit| matches!(&misfit.part, TablePart::Index(index) if index == name))
    }

    fn to_do(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.misfits.iter().map(|misfit| misfit.line.clone()).collect();
        if let Expiry::By(held) = &self.expiry
            && self.declared_expiry.as_ref() != Some(held)
        {
            let declared = self.declared_expiry.as_deref().unwrap_or("no attribute");
            let line = format!("items of {} expire by {held}, but {declared} is declared", self.table);
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
        let mut to_do = Self::to_do(opened, &table, &stored).await;
        let has_key = of_ledger(&opened.schema.layout, &stored, tables::options()).is_none();
        if has_key {
            to_do.extend(agrees(opened, connection).await?.err().map(|usage| usage.to_string()));
        }
        let kind = if has_key { recorded(&opened.store).await?.map(|kind| kind.to_string()) } else { None };
        Ok(Self { table, is_there: true, kind, to_do })
    }

    async fn to_do(opened: &Opened, table: &str, stored: &StoredTable) -> Vec<String> {
        let misfit = of_ledger(&opened.schema.layout, stored, tables::options());
        let mut lines: Vec<String> = misfit.into_iter().map(|misfit| misfit.line).collect();
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

    pub(super) fn word(&self) -> &str {
        match self {
            Self::By(attribute) => attribute,
            Self::Never => "never",
            Self::Unsaid => "unknown: the call is not allowed",
        }
    }
}

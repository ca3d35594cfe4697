//! The checks at the start of a function: the log shows at once, in one line, why a configuration cannot work.
//!
//! All tables are described at the same time. A failed description, because the call is not allowed or gets no
//! response, does not stop the start: the function logs it once, and continues.
//!
//! # Stream
//!
//! The sweep checks whether the table still has the stream that the functions read.
//!
//! If an operator disables a stream and enables it again, the table has another stream with another ARN. The mappings
//! continue to read the old stream, which gets no new records, and no failure shows it. So `sweep` compares the two
//! ARNs.

use aws_sdk_dynamodb::{Client, operation::describe_table::DescribeTableError, types::TableDescription};
use derive::{
    catalogue::Catalogue,
    fit::{Misfit, Names, StoredTable, of_ledger, of_table},
    schema::Schema,
};
use engine::{backoff::describe as chain, record::table_of};
use futures::future::join_all;

use crate::{
    config::{CONFIG, Config, DISABLED, LEDGER_TABLE_NAME, TABLE_NAME, TABLES},
    declared::described,
};

/// The names of the function's variables, for messages.
pub const VARIABLES: Names =
    Names { table: TABLE_NAME, tables: TABLES, ledger_table: LEDGER_TABLE_NAME, config: CONFIG, disabled: DISABLED };

/// Why a function cannot work on its tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A table does not exist.
    #[error("there is no table {table} in {region}: set {variable} to another, or create it first")]
    Missing {
        /// The table.
        table: String,
        /// The Region of the call.
        region: String,
        /// The variable with the table's name.
        variable: &'static str,
    },
    /// A table does not fit the declarations.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// The description of a table.
enum Described {
    Table {
        stored: Box<StoredTable>,
        n_items: u64,
    },
    Missing,
    /// It could not be read, with the reason.
    Unknown(String),
}

/// The application's tables, as far as they can be described.
#[derive(Debug, Default)]
pub struct CheckedTables {
    /// The number of their items, as DynamoDB counted them within the last six hours.
    pub n_items: u64,
    /// The tables.
    pub stored: Vec<StoredTable>,
}

/// Checks that all tables exist and fit the declarations.
///
/// # Errors
///
/// [`TableError`] with the first thing to change.
pub async fn check_tables(
    client: &Client,
    schema: &Schema,
    catalogue: &Catalogue,
    config: &Config,
) -> Result<CheckedTables, TableError> {
    let is_one = config.ledger_table == config.table;
    let forms = schema.layout.forms.iter().flat_map(|forms| &forms.0).map(|form| (&form.called, TABLES));
    let names: Vec<(&String, &'static str)> = [(&config.table, TABLE_NAME)].into_iter().chain(forms).collect();
    let (mains, ledger) = tokio::join!(join_all(names.iter().map(|(name, _)| describe(client, name))), async {
        if is_one { None } else { Some(describe(client, &config.ledger_table).await) }
    });
    let known = |described: Described, table: &str, variable: &'static str| match described {
        Described::Table { stored, n_items } => Ok(Some((stored, n_items))),
        Described::Missing => {
            let region = client.config().region().map_or("no region", |region| region.as_ref()).to_owned();
            Err(TableError::Missing { table: table.to_owned(), region, variable })
        }
        Described::Unknown(why) => {
            tracing::warn!(
                table,
                why,
                "the table cannot be described, so it is not checked: allow dynamodb:DescribeTable"
            );
            Ok(None)
        }
    };
    let mut checked = CheckedTables::default();
    for (main, (name, variable)) in mains.into_iter().zip(names) {
        let Some((main, n)) = known(main, name, variable)? else { continue };
        if let Some(misfit) = of_table(schema, catalogue, &main, VARIABLES).into_iter().next() {
            return Err(misfit.into());
        }
        checked.n_items += n;
        checked.stored.push(*main);
    }
    let Some(ledger) = ledger else { return Ok(checked) };
    let Some((ledger, _)) = known(ledger, &config.ledger_table, LEDGER_TABLE_NAME)? else { return Ok(checked) };
    if let Some(misfit) = of_ledger(&schema.layout, &ledger, VARIABLES) {
        return Err(misfit.into());
    }
    if ledger.has_stream {
        let table = config.ledger_table.as_str();
        tracing::warn!(table, "the ledger's table has a stream, which nobody uses: disable it");
    }
    Ok(checked)
}

async fn describe(client: &Client, table: &str) -> Described {
    match client.describe_table().table_name(table).send().await {
        Ok(output) => output.table.map_or(Described::Missing, |table| Described::Table {
            stored: Box::new(described(&table)),
            n_items: u64::try_from(table.item_count().unwrap_or_default()).unwrap_or_default(),
        }),
        Err(error) if error.as_service_error().is_some_and(DescribeTableError::is_resource_not_found_exception) => {
            Described::Missing
        }
        Err(error) => Described::Unknown(chain(&error)),
    }
}

// ---- The stream that the functions read ----

/// True if a table's stream is disabled, or differs from the deployed one. `None` if no ARN is configured, or if a table
/// cannot be described and no other has changed.
pub async fn stream_changed(client: &Client, config: &Config) -> Option<bool> {
    let mut changed = Vec::new();
    for deployed in config.stream_arn.as_deref()?.split(',') {
        let name = table_of(deployed).unwrap_or(&config.table);
        changed.push(has_changed(client, deployed, name).await);
    }
    any_changed(&changed)
}

/// A changed stream is reported, even if others are unknown.
fn any_changed(changed: &[Option<bool>]) -> Option<bool> {
    match changed {
        _ if changed.contains(&Some(true)) => Some(true),
        _ if changed.contains(&None) => None,
        _ => Some(false),
    }
}

async fn has_changed(client: &Client, deployed: &str, name: &str) -> Option<bool> {
    let table = match client.describe_table().table_name(name).send().await {
        Ok(output) => output.table?,
        Err(error) => {
            // The next sweep tries again.
            tracing::warn!(why = chain(&error), "the table cannot be described, so its stream is not compared");
            return None;
        }
    };
    let current = enabled(&table);
    let has_changed = current != Some(deployed);
    if has_changed {
        tracing::error!(deployed, current, "the table's stream is not the one that the functions read");
    }
    Some(has_changed)
}

/// The ARN of the table's stream; `None` if it has none, or if it is disabled. A table keeps the ARN of a disabled one.
fn enabled(table: &TableDescription) -> Option<&str> {
    let is_enabled = table.stream_specification().is_some_and(|stream| stream.stream_enabled);
    table.latest_stream_arn().filter(|_| is_enabled)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::StreamSpecification;

    use super::*;

    #[test]
    fn a_stream_has_changed_if_one_has_and_it_is_unknown_if_another_is() {
        let cases: [(&[Option<bool>], Option<bool>); 4] = [
            (&[Some(false), Some(false)], Some(false)),
            (&[Some(false), None], None),
            (&[None, Some(true)], Some(true)),
            (&[Some(true), Some(false)], Some(true)),
        ];
        for (each, any) in cases {
            assert_eq!(any_changed(each), any, "{each:?}");
        }
    }

    #[test]
    fn a_stream_that_is_disabled_is_none_although_the_table_keeps_its_arn() {
        let table = |is_enabled: bool| {
            let stream = StreamSpecification::builder().stream_enabled(is_enabled).build().unwrap();
            TableDescription::builder().latest_stream_arn("arn").stream_specification(stream).build()
        };
        assert_eq!((enabled(&table(true)), enabled(&table(false))), (Some("arn"), None));
        assert_eq!(enabled(&TableDescription::builder().latest_stream_arn("arn").build()), None);
    }
}

//! The service's tables: created from the schema, or existing.

use std::{collections::BTreeMap, error::Error as _, iter::successors, slice};

use anyhow::{Context as _, bail};
use aws_sdk_dynamodb::{
    Client,
    error::{DisplayErrorContext, ProvideErrorMetadata as _, SdkError},
    operation::describe_table::DescribeTableError,
    types::{
        AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
        GlobalSecondaryIndexUpdate, KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
        StreamSpecification, StreamViewType, TableDescription, TimeToLiveSpecification,
    },
};
use derive::{
    catalogue::Catalogue,
    fit::{Names, of_stream},
    schema::Schema,
};
use engine::ledger::EXPIRES_AT;
use functions::{config::Config, declared::described};
use infra::steps::{IndexStep, of_table};
use keys::{
    layout::Layout,
    tables::{IndexForm, KeyAttribute, KeyType as AttributeType, TableForm},
};

use crate::{args::config_option, exit::Usage};

/// Stands for the endpoint in messages about the real AWS.
pub(crate) const AWS: &str = "AWS";

/// The options of a command, as messages name them.
pub(crate) fn options() -> Names {
    Names {
        table: "--table",
        tables: "--tables",
        ledger_table: "--ledger-table",
        config: config_option(),
        disabled: "--disable",
    }
}

/// The environment variables that set a client's proxy.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// A table that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no table {table} at {endpoint}: name another with {option}, or {}", created(option))]
pub(crate) struct NoTable {
    table: String,
    endpoint: String,
    option: &'static str,
}

/// How the table that an option names is created.
fn created(option: &str) -> &'static str {
    if option == options().ledger_table {
        "create it first, with `ripple dev` or by deploying the functions"
    } else {
        "create it first"
    }
}

/// The tables with a stream. The table of `--table` is the first, and the layout describes it; each other table has a
/// form.
pub(crate) fn with_records<'a>(layout: &'a Layout, config: &'a Config) -> Vec<(&'a str, Option<&'a TableForm>)> {
    let forms = layout.forms.iter().flat_map(|forms| &forms.0);
    let others = forms.map(|form| (form.called.as_str(), Some(form)));
    [(config.table.as_str(), None)].into_iter().chain(others).collect()
}

/// A number that a description may lack, such as the number of items; 0 if it does.
pub(crate) fn counted(number: Option<i64>) -> u64 {
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

/// The option that names a table.
pub(crate) fn option_of(form: Option<&TableForm>) -> &'static str {
    if form.is_some() { options().tables } else { options().table }
}

/// Creates the missing tables. Returns true if all tables with a stream were missing.
pub(crate) async fn make(client: &Client, layout: &Layout, config: &Config, endpoint: &str) -> anyhow::Result<bool> {
    let mut is_missing = true;
    for (table, form) in with_records(layout, config) {
        if describe(client, table, endpoint).await?.is_some() {
            is_missing = false;
        } else {
            make_main(client, table, &form.cloned().unwrap_or_else(|| layout.own_table())).await?;
        }
    }
    if describe(client, &config.ledger_table, endpoint).await?.is_none() {
        make_ledger(client, layout, &config.ledger_table).await?;
    }
    Ok(is_missing)
}

/// Deletes both tables of a configuration with a single application's table.
pub(crate) async fn delete(client: &Client, config: &Config) -> anyhow::Result<()> {
    for table in [&config.table, &config.ledger_table] {
        client
            .delete_table()
            .table_name(table)
            .send()
            .await
            .with_context(|| format!("cannot delete the table {table}"))?;
    }
    Ok(())
}

/// The tables with a stream, each with its description and the stream's ARN. The stream must contain both images.
pub(crate) async fn with_streams(
    client: &Client,
    layout: &Layout,
    config: &Config,
    endpoint: &str,
) -> anyhow::Result<Vec<(TableDescription, String)>> {
    let mut all = Vec::new();
    for (table, form) in with_records(layout, config) {
        let description = existing(client, table, endpoint, option_of(form)).await?;
        if let Some(misfit) = of_stream(&described(&description)) {
            return Err(Usage(misfit.line).into());
        }
        let arn = description.latest_stream_arn.clone();
        let arn = arn.with_context(|| format!("the table {table} has a stream without an ARN"))?;
        all.push((description, arn));
    }
    Ok(all)
}

/// The description of a table that must exist.
pub(crate) async fn existing(
    client: &Client,
    table: &str,
    endpoint: &str,
    option: &'static str,
) -> anyhow::Result<TableDescription> {
    let missing = || NoTable { table: table.to_owned(), endpoint: endpoint.to_owned(), option };
    Ok(describe(client, table, endpoint).await?.ok_or_else(missing)?)
}

/// The description of a table, if it exists.
pub(crate) async fn describe(client: &Client, table: &str, endpoint: &str) -> anyhow::Result<Option<TableDescription>> {
    match client.describe_table().table_name(table).send().await {
        Ok(output) => Ok(output.table),
        Err(error) if error.as_service_error().is_some_and(DescribeTableError::is_resource_not_found_exception) => {
            Ok(None)
        }
        Err(SdkError::TimeoutError(_)) => bail!("the database at {endpoint} does not respond"),
        Err(error) if matches!(error, SdkError::DispatchFailure(_)) => {
            tracing::debug!(cause = %DisplayErrorContext(&error), "no answer");
            if endpoint == AWS {
                let cause = successors(error.source(), |error| (*error).source()).last();
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                bail!(
                    "AWS cannot be called{cause}; see that there are credentials and a region, and a way to the network"
                )
            }
            let proxy =
                proxy().map(|name| format!(" {name} names a proxy: only the hosts in NO_PROXY are called without it"));
            bail!(
                "nothing responds at {endpoint}: is a DynamoDB running there? For a table on AWS, give --aws.{}",
                proxy.unwrap_or_default()
            )
        }
        Err(error) => {
            tracing::debug!(cause = %DisplayErrorContext(&error), "no description");
            let message = error.message();
            let message = message.map(|message| format!("{endpoint} does not describe the table {table}: {message}"));
            Err(anyhow::Error::msg(message.unwrap_or_else(|| format!("the server at {endpoint} is not a DynamoDB"))))
        }
    }
}

/// The environment variable that sets a proxy, if there is one.
fn proxy() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    PROXIES.into_iter().find(is_set)
}

async fn make_main(client: &Client, table: &str, form: &TableForm) -> anyhow::Result<()> {
    let stream = StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build()?;
    let key = key_of(form);
    let keys = [key].into_iter().chain(form.indexes.iter().map(|index| (index.pk.as_slice(), index.sk.as_slice())));
    let mut request = client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .stream_specification(stream)
        .set_key_schema(Some(key_schema(key)?))
        .set_attribute_definitions(Some(key_attributes(keys)?));
    for index in &form.indexes {
        let secondary = GlobalSecondaryIndex::builder()
            .index_name(&index.name)
            .set_key_schema(Some(key_schema((&index.pk, &index.sk))?))
            .projection(projection_of(index))
            .build()?;
        request = request.global_secondary_indexes(secondary);
    }
    request.send().await.with_context(|| format!("cannot create the table {table}"))?;
    expire(client, table, form.time_to_live.as_deref()).await
}

/// Creates the indexes that a manifest declares and that its existing tables lack.
pub(crate) async fn make_indexes(
    client: &Client,
    layout: &Layout,
    config: &Config,
    endpoint: &str,
) -> anyhow::Result<()> {
    for (table, form) in with_records(layout, config) {
        let Some(description) = describe(client, table, endpoint).await? else { continue };
        let stored = described(&description);
        for index in form.cloned().unwrap_or_else(|| layout.own_table()).indexes {
            if stored.indexes.iter().any(|stored| stored.name == index.name) {
                continue;
            }
            let key = (index.pk.as_slice(), index.sk.as_slice());
            let create = CreateGlobalSecondaryIndexAction::builder()
                .index_name(&index.name)
                .set_key_schema(Some(key_schema(key)?))
                .projection(projection_of(&index))
                .build()?;
            let request = client
                .update_table()
                .table_name(table)
                .set_attribute_definitions(Some(key_attributes([key].into_iter())?))
                .global_secondary_index_updates(GlobalSecondaryIndexUpdate::builder().create(create).build());
            request.send().await.with_context(|| format!("cannot create the index {} of {table}", index.name))?;
        }
    }
    Ok(())
}

/// The steps to the declared indexes of a table.
pub(crate) fn index_steps(
    (schema, catalogue): (&Schema, &Catalogue),
    table: &TableDescription,
    form: Option<&TableForm>,
) -> Vec<IndexStep> {
    let form = form.cloned().unwrap_or_else(|| schema.layout.own_table());
    of_table((schema, catalogue), &form, &described(table))
}

fn projection_of(index: &IndexForm) -> Projection {
    // DynamoDB refuses an empty list; without attributes the index projects only the keys.
    let projection = match index.projection.as_deref() {
        None => Projection::builder().projection_type(ProjectionType::All),
        Some([]) => Projection::builder().projection_type(ProjectionType::KeysOnly),
        Some(names) => {
            Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(names.to_vec()))
        }
    };
    projection.build()
}

/// The attributes of a key: those of the partition key and those of the sort key.
type NewKey<'a> = (&'a [KeyAttribute], &'a [KeyAttribute]);

fn key_of(form: &TableForm) -> NewKey<'_> {
    (slice::from_ref(&form.pk), form.sk.as_slice())
}

async fn make_ledger(client: &Client, layout: &Layout, table: &str) -> anyhow::Result<()> {
    // The ledger's table has the key of the application's table. With several tables, it has the key of Ripple's own
    // items.
    let own = layout.own_table();
    let key = key_of(&own);
    client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(key)?))
        .set_attribute_definitions(Some(key_attributes([key].into_iter())?))
        .send()
        .await
        .with_context(|| format!("cannot create the table {table}"))?;
    expire(client, table, Some(EXPIRES_AT)).await
}

async fn expire(client: &Client, table: &str, attribute: Option<&str>) -> anyhow::Result<()> {
    let Some(attribute) = attribute else { return Ok(()) };
    let specification = TimeToLiveSpecification::builder().enabled(true).attribute_name(attribute).build()?;
    let request = client.update_time_to_live().table_name(table).time_to_live_specification(specification);
    request.send().await.with_context(|| format!("cannot set the time to live of the table {table}"))?;
    Ok(())
}

fn key_schema((pk, sk): NewKey<'_>) -> anyhow::Result<Vec<KeySchemaElement>> {
    let parts = pk.iter().map(|it| (it, KeyType::Hash)).chain(sk.iter().map(|it| (it, KeyType::Range)));
    let element = |(it, part): (&KeyAttribute, KeyType)| {
        Ok(KeySchemaElement::builder().attribute_name(&it.name).key_type(part).build()?)
    };
    parts.map(element).collect()
}

/// The attributes of all keys, each once, because an index may use those of the table in another order.
fn key_attributes<'a>(keys: impl Iterator<Item = NewKey<'a>>) -> anyhow::Result<Vec<AttributeDefinition>> {
    let attributes: BTreeMap<&str, AttributeType> =
        keys.flat_map(|(pk, sk)| pk.iter().chain(sk)).map(|it| (it.name.as_str(), it.of)).collect();
    let definition = |(name, of): (&str, AttributeType)| {
        let of = match of {
            AttributeType::S => ScalarAttributeType::S,
            AttributeType::N => ScalarAttributeType::N,
            AttributeType::B => ScalarAttributeType::B,
        };
        Ok(AttributeDefinition::builder().attribute_name(name).attribute_type(of).build()?)
    };
    attributes.into_iter().map(definition).collect()
}

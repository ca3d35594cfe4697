//! The tables that a command has opened: those of an emulator or, with `--aws`, the real ones.
//!
//! The tables and the functions' registry must fit the manifest. Every command checks that before it reads or writes
//! anything else. Otherwise a forgotten `--config` would appear as an error of the database, and a wrong manifest as a
//! table without findings.

use std::{path::Path, sync::Arc, time::Duration};

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::{
    config::{Credentials, SharedCredentialsProvider},
    types::TableDescription,
};
use derive::{
    catalogue::Catalogue,
    fit::{TablePart, note_undeclared_keys, of_ledger, of_table},
    schema::Schema,
};
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    publishing::read,
    registry::{
        Registry,
        difference::{CatalogueDifference, DerivationState, differences, is_fillable},
    },
};
use functions::{
    config::Config,
    declared::{Choice, declared, described},
    handler::dynamo,
};
use keys::tables::TableForm;
use operate::tables::{Deployment, TableStream};
use store::dynamo::DynamoStore;
use stream::source::Stream;

use crate::{
    args::{ApplicationTables, Connection, Writing, ledger_table},
    exit::{Usage, report},
    tables::{self, options},
};

/// Existing tables, and what the commands use to work on them.
pub(crate) struct Opened {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) store: Arc<DynamoStore>,
    pub(crate) table_arn: String,
    /// The description of the application's table. With several tables: of the one for Ripple's own items.
    pub(crate) table: TableDescription,
    /// The descriptions of the application's tables, if there are several.
    pub(crate) others: Vec<TableDescription>,
    pub(crate) clients: Clients,
    pub(crate) endpoint: String,
    pub(crate) config: Config,
    pub(crate) is_aws: bool,
}

/// Opens the application's table, which must exist and fit the manifest.
pub(crate) async fn open(connection: &Connection) -> anyhow::Result<Opened> {
    open_fitting(connection, IndexCheck::Refuses).await
}

async fn open_fitting(connection: &Connection, indexes: IndexCheck) -> anyhow::Result<Opened> {
    let opened = open_tables(connection, true).await?;
    let fit = |table: &TableDescription| fits(&opened.schema, &opened.catalogue, table, indexes);
    if let Err(misfit) = [&opened.table].into_iter().chain(&opened.others).try_for_each(fit) {
        let Opened { schema, catalogue, clients, config, endpoint, .. } = &opened;
        // If the whole manifest is for other tables, report that instead of each misfit.
        of_this_table((schema, catalogue), (&clients.dynamodb, endpoint), (config, None)).await?;
        return Err(misfit.into());
    }
    Ok(opened)
}

/// Fails if the registry shows that the manifest is for other tables. A ledger's table that is missing or has another
/// key proves nothing.
pub(crate) async fn of_this_table(
    (schema, catalogue): (&Schema, &Catalogue),
    (client, endpoint): (&aws_sdk_dynamodb::Client, &str),
    (config, data): (&Config, Option<&Path>),
) -> anyhow::Result<()> {
    let ledger = tables::describe(client, &config.ledger_table, endpoint).await?;
    if ledger.is_some_and(|ledger| ledger_fits(schema, &ledger).is_ok()) {
        let registry = read(&dynamo(client.clone(), schema, config)).await?;
        let now_ms = SystemClock.now_ms();
        RegistryCheck { schema, catalogue, registry: &registry, now_ms }.is_of_this_table(data)?;
    }
    Ok(())
}

/// Opens the application's tables before the service is attached. With several tables, the one for Ripple's own items
/// need not exist; its description is then empty.
pub(crate) async fn open_to_attach(connection: &Connection) -> anyhow::Result<Opened> {
    open_tables(connection, false).await
}

/// Opens the application's tables alone, for a command that only reads their items. Their keys must fit the manifest.
pub(crate) async fn open_application(application: &ApplicationTables) -> anyhow::Result<Opened> {
    let connection = Connection { application: application.clone(), ledger_table: None };
    let opened = open_tables(&connection, false).await?;
    for (table, _) in opened.application_tables() {
        fits(&opened.schema, &opened.catalogue, table, IndexCheck::KeyAlone)?;
    }
    Ok(opened)
}

async fn open_tables(connection: &Connection, has_own_table: bool) -> anyhow::Result<Opened> {
    let (mut schema, catalogue) = declared(connection.choice())?;
    let (clients, endpoint) =
        Clients::connect(connection.aws, &connection.endpoint, connection.region.as_deref()).await;
    let ledger_table = ledger_table(connection.ledger_table.as_ref(), &connection.table)?;
    let config = Config::of(connection.table.clone(), ledger_table);
    let mut tables = Vec::new();
    for (table, form) in tables::with_records(&schema.layout, &config) {
        let may_be_missing = !has_own_table && form.is_none() && schema.layout.forms.is_some();
        tables.push(if may_be_missing {
            let description = tables::describe(&clients.dynamodb, table, &endpoint).await?;
            description.unwrap_or_else(|| TableDescription::builder().build())
        } else {
            tables::existing(&clients.dynamodb, table, &endpoint, tables::option_of(form)).await?
        });
    }
    for table in &tables {
        note_undeclared_keys(Arc::make_mut(&mut schema), &described(table));
    }
    let table = tables.remove(0);
    let store = Arc::new(dynamo(clients.dynamodb.clone(), &schema, &config));
    let table_arn = table.table_arn.clone().unwrap_or_default();
    let others = tables;
    Ok(Opened { schema, catalogue, store, table_arn, table, others, clients, endpoint, config, is_aws: connection.aws })
}

/// Opens both tables, which must exist and fit the manifest.
pub(crate) async fn open_with_ledger(connection: &Connection) -> anyhow::Result<Opened> {
    with_ledger(open(connection).await?).await
}

/// Opens both tables for a manifest that is not deployed yet: its indexes may be missing.
pub(crate) async fn open_before_deployment(connection: &Connection) -> anyhow::Result<Opened> {
    with_ledger(open_fitting(connection, IndexCheck::Left).await?).await
}

async fn with_ledger(opened: Opened) -> anyhow::Result<Opened> {
    let Opened { clients, config, endpoint, .. } = &opened;
    let ledger = tables::existing(&clients.dynamodb, &config.ledger_table, endpoint, "--ledger-table").await?;
    ledger_fits(&opened.schema, &ledger)?;
    Ok(opened)
}

/// Checks the opened tables for a command that relies on the manifest, which must be the one of the functions.
pub(crate) async fn agreed(opened: Opened, connection: &Connection) -> anyhow::Result<Opened> {
    agrees(&opened, connection).await??;
    Ok(opened)
}

/// Checks that the manifest is the one of the functions. A ledger's table that no function has used agrees with every
/// manifest.
pub(crate) async fn agrees(opened: &Opened, connection: &Connection) -> anyhow::Result<Result<(), Usage>> {
    let registry = read(&opened.store).await?;
    let (_, whole) = declared(Choice { disabled: &[], ..connection.choice() })?;
    let Opened { schema, catalogue, .. } = opened;
    let registered = RegistryCheck { schema, catalogue, registry: &registry, now_ms: SystemClock.now_ms() };
    Ok(registered.agrees(|name| whole.position(name).is_some()))
}

/// Opens both tables for a command that writes. On the real AWS it prints the account and Region, and requires `--yes`.
pub(crate) async fn open_to_write(writing: &Writing) -> anyhow::Result<Opened> {
    let opened = open_with_ledger(&writing.connection).await?;
    opened.may_write(writing)?;
    Ok(opened)
}

impl Opened {
    /// Prints the account and Region of the real AWS, where writes require `--yes`.
    pub(crate) fn may_write(&self, writing: &Writing) -> Result<(), Usage> {
        if !writing.connection.aws {
            return Ok(());
        }
        report(&self.place());
        let what = "this writes to the tables named above, on the real AWS: give --yes to confirm";
        if writing.yes { Ok(()) } else { Err(Usage(what.to_owned())) }
    }

    /// Account, Region and names of the tables.
    pub(crate) fn place(&self) -> String {
        let Config { table, ledger_table, .. } = &self.config;
        let (account, region) = place(&self.table_arn);
        format!("account {account}, region {region}, table {table}, ledger's table {ledger_table}")
    }

    /// An engine that runs all derivations, for an operator's command.
    pub(crate) fn engine(&self) -> Engine<Arc<DynamoStore>> {
        self.tables().engine()
    }

    /// The application's tables. If there are several, each has a form.
    pub(crate) fn application_tables(&self) -> Vec<(&TableDescription, Option<&TableForm>)> {
        match &self.schema.layout.forms {
            None => vec![(&self.table, None)],
            Some(forms) => self.others.iter().zip(forms.0.iter().map(Some)).collect(),
        }
    }

    /// These tables, for verify, repair and backfill.
    pub(crate) fn tables(&self) -> Deployment<DynamoStore> {
        let declared = (&self.schema, &self.catalogue);
        let tables: Vec<&TableDescription> = [&self.table].into_iter().chain(&self.others).collect();
        deployment(declared, &self.store, &self.config, &tables, &self.clients.streams, self.is_aws)
    }
}

/// The tables as a database describes them.
pub(crate) fn deployment(
    (schema, catalogue): (&Arc<Schema>, &Arc<Catalogue>),
    store: &Arc<DynamoStore>,
    config: &Config,
    tables: &[&TableDescription],
    streams: &aws_sdk_dynamodbstreams::Client,
    is_aws: bool,
) -> Deployment<DynamoStore> {
    let stream = |arn: &String| TableStream { arn: arn.clone(), stream: Stream::new(streams.clone(), arn) };
    let sum = |of: fn(&TableDescription) -> Option<i64>| tables.iter().map(|table| tables::counted(of(table))).sum();
    Deployment {
        schema: Arc::clone(schema),
        catalogue: Arc::clone(catalogue),
        store: Arc::clone(store),
        name: config.table.clone(),
        arn: tables.first().and_then(|table| table.table_arn.clone()).unwrap_or_default(),
        streams: tables.iter().filter_map(|table| table.latest_stream_arn.as_ref()).map(stream).collect(),
        n_items: sum(|table| table.item_count),
        bytes: sum(|table| table.table_size_bytes),
        is_aws,
    }
}

/// Account and region in a table's ARN.
fn place(table_arn: &str) -> (&str, &str) {
    let mut parts = table_arn.split(':').skip(3);
    let (region, account) = (parts.next().unwrap_or("unknown"), parts.next().unwrap_or("unknown"));
    (account, region)
}

// ---- Clients of a DynamoDB: an emulator at a URL, or the real AWS ----

/// Access key and secret for an emulator, if the environment has no credentials.
pub(crate) const ANY_CREDENTIALS: &str = "local";

/// Longest wait for one response, in seconds. A busy laptop is slower than AWS, and a person waits for the second
/// attempt too.
const ANSWER_S_MAX: u64 = 15;

/// True if the environment has credentials. Incomplete or empty ones do not count.
pub(crate) fn has_credentials() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("AWS_ACCESS_KEY_ID") && is_set("AWS_SECRET_ACCESS_KEY")
}

/// An endpoint that is none of AWS and that the standard AWS environment names, with its variable.
fn in_place_of_aws() -> Option<(&'static str, String)> {
    let set = |name: &'static str| Some((name, std::env::var(name).ok().filter(|url| !url.is_empty())?));
    let (name, url) = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"].into_iter().find_map(set)?;
    let is_of_aws = [".amazonaws.com", ".api.aws"].iter().any(|of| url.contains(of));
    (!is_of_aws).then_some((name, url))
}

#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
}

impl Clients {
    /// Clients of the real AWS or of an emulator, with the name of the place for messages.
    pub(crate) async fn connect(is_aws: bool, endpoint: &str, region: Option<&str>) -> (Self, String) {
        if !is_aws {
            return (Self::at(endpoint, region.unwrap_or("us-east-1")).await, endpoint.to_owned());
        }
        let place = in_place_of_aws().map_or_else(
            || tables::AWS.to_owned(),
            |(name, url)| {
                report(&format!("{name} is set, so the calls go to {url} in place of AWS"));
                url
            },
        );
        (Self::aws(region).await, place)
    }

    /// Clients of the DynamoDB at a URL.
    ///
    /// Emulators accept any credentials. Those of the environment are used if there are some, because DynamoDB Local
    /// keeps a database per access key and region.
    pub(crate) async fn at(endpoint: &str, region: &str) -> Self {
        let mut loader = loader()
            .endpoint_url(endpoint)
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::standard().with_max_attempts(2));
        if !has_credentials() {
            let credentials = Credentials::new(ANY_CREDENTIALS, ANY_CREDENTIALS, None, None, "an emulator takes any");
            loader = loader.credentials_provider(SharedCredentialsProvider::new(credentials));
        }
        Self::of(&Box::pin(loader.load()).await)
    }

    /// Clients of the real AWS, with the standard AWS environment.
    pub(crate) async fn aws(region: Option<&str>) -> Self {
        let mut loader = loader();
        if let Some(region) = region {
            loader = loader.region(Region::new(region.to_owned()));
        }
        Self::of(&Box::pin(loader.load()).await)
    }

    fn of(config: &SdkConfig) -> Self {
        Self { dynamodb: aws_sdk_dynamodb::Client::new(config), streams: aws_sdk_dynamodbstreams::Client::new(config) }
    }
}

/// The standard AWS environment, with a limit on the wait for a response.
fn loader() -> ConfigLoader {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(ANSWER_S_MAX)).build();
    aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts)
}

// ---- The check of the tables and the registry ----

/// What an index that does not fit the manifest means for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexCheck {
    /// The command refuses to work.
    Refuses,
    /// The command reports it itself.
    Left,
    /// The command reads items alone, so only the table's key matters.
    KeyAlone,
}

/// The key and the indexes of the application's table must be those that the manifest declares, and a stream must have
/// both images.
pub(crate) fn fits(
    schema: &Schema,
    catalogue: &Catalogue,
    table: &TableDescription,
    indexes: IndexCheck,
) -> Result<(), Usage> {
    let stored = described(table);
    let misfits = of_table(schema, catalogue, &stored, options());
    // If the key differs, the other misfits mean nothing. A command that needs a stream reports a missing one itself.
    let has_key = !misfits.iter().any(|misfit| misfit.part == TablePart::Key);
    let is_told = |part: &TablePart| match part {
        TablePart::Key => true,
        _ if indexes == IndexCheck::KeyAlone => false,
        TablePart::Replicas => true,
        TablePart::Index(_) => has_key && indexes == IndexCheck::Refuses,
        TablePart::Stream => has_key && stored.view.is_some(),
    };
    let lines = misfits.into_iter().filter(|misfit| is_told(&misfit.part)).map(|misfit| misfit.line);
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(Usage(lines.join("\n        "))) }
}

/// The key of the ledger's table must be that of the application's.
pub(crate) fn ledger_fits(schema: &Schema, table: &TableDescription) -> Result<(), Usage> {
    of_ledger(&schema.layout, &described(table), options()).map_or(Ok(()), |misfit| Err(Usage(misfit.line)))
}

/// Compares the registry of the functions with a manifest.
pub(crate) struct RegistryCheck<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) registry: &'a Registry,
    pub(crate) now_ms: u64,
}

impl RegistryCheck<'_> {
    /// The manifest must declare what the functions have. Derivations that the operator switched off may be missing. An
    /// empty registry agrees with every manifest.
    pub(crate) fn agrees(&self, is_off: impl Fn(&str) -> bool) -> Result<(), Usage> {
        if self.registry.is_empty() {
            return Ok(());
        }
        let ManifestDifference { added, changed, missing } = self.manifest_difference(is_off);
        let index_keys = self.registry.index_keys_beside(self.schema);
        let index_keys: Vec<&str> = index_keys.iter().map(String::as_str).collect();
        let index_keys = (!index_keys.is_empty()).then(|| named(&index_keys, NAMED_MAX));
        let lines = [
            added.map(|names| format!("declares {names}, which no function has")),
            changed.map(|names| format!("declares {names}, which the functions declare differently")),
            missing.map(|names| format!("lacks {names}, which the functions have")),
            index_keys.map(|names| format!("has other index keys of {names} than the functions")),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Usage(format!(
            "the manifest is not that of the functions: it {}; give theirs with {}, or deploy this one first (`ripple \
             catalogue diff` shows each difference)",
            lines.join("; it "),
            options().config
        )))
    }

    /// The manifest must keep the derivations of the folder's last manifest. It may add others.
    pub(crate) fn keeps(&self, data: &Path, is_off: impl Fn(&str) -> bool) -> Result<(), Usage> {
        let ManifestDifference { changed, missing, .. } = self.manifest_difference(is_off);
        let lines = [
            missing.map(|names| format!("lacks {names}")),
            changed.map(|names| format!("declares {names} differently")),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Usage(format!(
            "the data in {} was created with another manifest: this one {}; give that one with {}, another folder with \
             --data, or --redeploy to make this one its new version",
            data.display(),
            lines.join(" and "),
            options().config
        )))
    }

    /// How the manifest differs from the registry, in words.
    pub(crate) fn difference(&self) -> String {
        let ManifestDifference { added, changed, missing } = self.manifest_difference(|_| false);
        let parts = [("adds", added), ("changes", changed), ("drops", missing)];
        let parts: Vec<String> =
            parts.into_iter().filter_map(|(verb, names)| Some(format!("{verb} {}", names?))).collect();
        if parts.is_empty() {
            return "changes no derivation; after a change of keys or of the type, run `ripple repair`".to_owned();
        }
        parts.join(", ")
    }

    /// The differences between the manifest and the registry. Derivations that are switched off are not missing.
    fn manifest_difference(&self, is_off: impl Fn(&str) -> bool) -> ManifestDifference {
        let differences = self.differences();
        let names = |is_so: &dyn Fn(&CatalogueDifference) -> bool| {
            let all: Vec<&str> = differences.iter().filter(|it| is_so(it)).map(|it| it.name.as_str()).collect();
            (!all.is_empty()).then(|| named(&all, NAMED_MAX))
        };
        ManifestDifference {
            added: names(&|it| matches!(it.state, DerivationState::Added { .. })),
            changed: names(&|it| matches!(it.state, DerivationState::Changed { .. })),
            missing: names(&|it| matches!(it.state, DerivationState::Undeclared) && !is_off(&it.name)),
        }
    }

    /// The manifest must share a derivation with the registry. Otherwise it is for another table, and the functions
    /// would mark all registered derivations as dropped.
    fn is_of_this_table(&self, data: Option<&Path>) -> Result<(), Usage> {
        use DerivationState::{Added, Dropped, Undeclared};
        let differences = self.differences();
        let is_shared = |it: &CatalogueDifference| !matches!(it.state, Added { .. } | Undeclared | Dropped { .. });
        if self.registry.is_empty() || differences.iter().any(is_shared) {
            return Ok(());
        }
        let of_others = differences.iter().filter(|it| matches!(it.state, Undeclared | Dropped { .. }));
        let names: Vec<&str> = of_others.map(|it| it.name.as_str()).collect();
        let (tables, others) = match data {
            Some(folder) => (format!("the data in {} was", folder.display()), "give another folder with --data"),
            None => ("these tables were".to_owned(), "use other tables"),
        };
        Err(Usage(format!(
            "{tables} made for another manifest, with {}: give that one with {}, or {others}",
            named(&names, NAMED_MAX),
            options().config
        )))
    }

    /// Names of the derivations that may not cover items written before now, so that they need a backfill.
    pub(crate) fn to_fill(&self) -> Vec<String> {
        use DerivationState::{Added, Changed, Unfilled, Young};
        let is_to_fill =
            |state: &DerivationState| matches!(state, Added { .. } | Changed { .. } | Young { .. } | Unfilled { .. });
        let to_fill = self.differences().into_iter().filter(|it| is_to_fill(&it.state));
        let fillable = to_fill.filter(|it| {
            let derivation = self.catalogue.called(&it.name).and_then(|at| self.catalogue.derivation(at));
            derivation.is_some_and(is_fillable)
        });
        fillable.map(|it| it.name).collect()
    }

    fn differences(&self) -> Vec<CatalogueDifference> {
        differences(self.schema, self.catalogue, self.registry, self.now_ms)
    }
}

/// Names of the derivations that the manifest adds, changes or lacks, compared with the registry.
struct ManifestDifference {
    added: Option<String>,
    changed: Option<String>,
    missing: Option<String>,
}

/// Maximum number of names in a sentence about a difference.
const NAMED_MAX: usize = 3;

/// The first of these names, and how many more there are.
pub(crate) fn named(names: &[&str], n_max: usize) -> String {
    let first = names.iter().take(n_max).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(n_max) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

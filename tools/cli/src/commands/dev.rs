//! `ripple dev`: runs the service on a laptop, for any AWS client, until the user stops it.

mod command;

use std::{future::pending, io, net::SocketAddr, path::Path, sync::Arc};

use aws_sdk_dynamodb::{Client, types::TableDescription};
use derive::{
    catalogue::Catalogue,
    fit::{note_undeclared_keys, of_stream},
    schema::Schema,
};
use design::Design;
use engine::{
    clock::{Clock as _, SystemClock},
    ledger::claim,
    publishing::{begin, read},
};
use functions::{
    config::{Config, Mode, Moded},
    declared::{Choice, declared, described},
    handler::dynamo,
    logging,
};
use infra::steps::IndexChange;
use operate::words;
use serde_json::{Map, Value, json};
use store::dynamo::DynamoStore;
use stream::progress::EventCount;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{
    args::{DEFAULT_ENDPOINT, DEFAULT_TABLE, Dev, ENDPOINT, MANIFEST_HERE, SHIPPED, ledger_table},
    commands::{
        console::Pages,
        dev::command::{ClientCommand, WatchedManifest},
        wait,
    },
    embedded::{Access, Embedded},
    exit::{Audience, Completion, Usage, report, results_on_stderr},
    lines::Lines,
    opened::{Clients, IndexCheck, RegistryCheck, fits, ledger_fits, named, of_this_table},
    service::{
        Plan, Service, Witness,
        function::{MappingRequest, mappings},
        laptop_limits,
    },
    tables,
};

/// Log level if `RUST_LOG` is not set. It leaves out the problems that `dev` prints itself.
const LOG_FILTER: &str =
    "warn,dynoxide=error,aws_config=error,engine::look::listing=off,engine::count=off,engine::park=off";

/// Runs the service until a signal stops it.
pub(crate) async fn run(args: &Dev) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    if args.json || !args.command.is_empty() {
        // Standard output is for the objects, or the command's.
        results_on_stderr();
    }
    let mut manifest = WatchedManifest::of(args);
    let mut declared = declared(args.choice())?;
    let (stop, stopped) = watch::channel(false);
    let embedded = match args.endpoint {
        None => {
            let (hosts, origins) = (args.allow_host.clone(), args.allow_origin.clone());
            let access = Access { hosts, origins, ..Access::default() };
            Some(Embedded::start((args.host, args.port()).into(), access, args.data.as_deref(), stopped).await?)
        }
        Some(_) => None,
    };
    let endpoint = embedded.as_ref().map(|embedded| embedded.endpoint.clone()).or_else(|| args.endpoint.clone());
    let endpoint = endpoint.unwrap_or_default();
    if !args.host.is_loopback() {
        report(&format!(
            "warning: whoever reaches {} can read and write this database: it asks for no password",
            args.host
        ));
    }
    let mut start = Start::First;
    let ended = loop {
        match Box::pin(serve(args, declared, &endpoint, start, &mut manifest)).await {
            Ok(Ended::Changed(changed)) => (declared, start) = (changed, Start::Changed),
            Ok(Ended::Completed(completion)) => break Ok(completion),
            Err(error) => break Err(error),
        }
    };
    let _nobody_listens = stop.send(true).is_err();
    if let Some(embedded) = embedded {
        embedded.stopped().await;
    }
    ended
}

/// A schema and a catalogue that fit each other.
type Declared = (Arc<Schema>, Arc<Catalogue>);

/// How the functions start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With the command.
    First,
    /// As a new version, because the manifest has changed.
    Changed,
}

impl Start {
    /// True if the manifest may differ from the last one of these tables.
    fn redeploys(self, args: &Dev) -> bool {
        args.redeploy || self == Self::Changed
    }
}

/// Why the functions end.
enum Ended {
    Completed(Completion),
    /// The manifest has changed.
    Changed(Declared),
}

/// The tables, ready for the functions.
struct Prepared {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    clients: Clients,
    config: Config,
    tables: Vec<TableDescription>,
    streams: Vec<String>,
    store: Arc<DynamoStore>,
    /// Names of the derivations that may not cover items written before now.
    to_fill: Vec<String>,
    /// How the manifest differs from the last one.
    difference: String,
}

impl Prepared {
    /// Checks the existing tables, and creates what is missing.
    async fn of(args: &Dev, (mut schema, catalogue): Declared, endpoint: &str, start: Start) -> anyhow::Result<Self> {
        let clients = Clients::at(endpoint, &args.region).await;
        let table = args.table.clone().unwrap_or_else(|| DEFAULT_TABLE.to_owned());
        let ledger_table = ledger_table(args.ledger_table.as_ref(), &table)?;
        let mode = if args.observe { Mode::Observe } else { Mode::Apply };
        let config = Config { ledger: args.ledger, mode, ..Config::of(table, ledger_table) };
        // A table that the operator named must exist, because a typing error must not create a table.
        if args.endpoint.is_some() && args.table.is_some() {
            tables::existing(&clients.dynamodb, &config.table, endpoint, "--table").await?;
        }
        if args.observe {
            tables::with_streams(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
        }
        existing_fit(args, start, (&clients.dynamodb, endpoint), (&schema, &catalogue), &config).await?;
        let is_new = tables::make(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
        let with_streams = tables::with_streams(&clients.dynamodb, &schema.layout, &config, endpoint).await?;
        let (tables, streams): (Vec<TableDescription>, Vec<String>) = with_streams.into_iter().unzip();
        for (table, (_, form)) in tables.iter().zip(tables::with_records(&schema.layout, &config)) {
            let steps = tables::index_steps((&schema, &catalogue), table, form).into_iter();
            for step in steps.filter(|step| matches!(step.change, IndexChange::Replace(_))) {
                Audience::of(args.json).problem(&step.to_string());
            }
        }
        for table in &tables {
            note_undeclared_keys(Arc::make_mut(&mut schema), &described(table));
        }
        let store = Arc::new(dynamo(clients.dynamodb.clone(), &schema, &config));
        claim(&Moded::new(mode, Arc::clone(&store), &schema.layout), &schema.layout, config.ledger).await?;
        if is_new {
            begin(&store, &schema, &catalogue, SystemClock.now_ms()).await?;
        }
        let (mut to_fill, difference) = registered(args, start, (&schema, &catalogue), &store).await?;
        if args.observe {
            to_fill.clear();
        }
        Ok(Self { schema, catalogue, clients, config, tables, streams, store, to_fill, difference })
    }
}

async fn serve(
    args: &Dev,
    declared: Declared,
    endpoint: &str,
    start: Start,
    manifest: &mut WatchedManifest,
) -> anyhow::Result<Ended> {
    let limits = laptop_limits()?;
    let prepared = Prepared::of(args, declared, endpoint, start).await?;
    let Prepared { schema, catalogue, clients, config, tables, streams, store, to_fill, difference } = prepared;
    let wanted = MappingRequest {
        readers: args.readers,
        ledger: args.ledger,
        streams: &streams,
        schema: &schema,
        catalogue: &catalogue,
    };
    let mappings = mappings(&wanted)?;
    let failures = args.data.as_deref().map_or_else(std::env::temp_dir, Path::to_path_buf).join("ripple-failures");
    let plan = Plan {
        schema,
        catalogue,
        store,
        streams: clients.streams.clone(),
        mappings,
        ledger: args.ledger,
        mode: config.mode,
        limits,
        functions: args.functions.as_deref(),
        faults: None,
        failures: &failures,
    };
    let design = Design::declared((*plan.schema).clone(), (*plan.catalogue).clone());
    let (reported, layout) = (Arc::clone(&plan.store), plan.schema.layout.clone());
    let audience = Audience::of(args.json);
    let declared = (&plan.schema, &plan.catalogue);
    let lines = Lines::new(declared, audience, args.verbose, args.functions.is_some(), config.mode, endpoint);
    let (reporter, pages) = Pages::open(args, &plan, design, &config, &tables, lines).await?;
    let witness = Arc::new(reporter) as Arc<dyn Witness>;
    let mut service = Service::start(&plan, &witness).await?;
    // Registered before `ready` is printed, because a signal without a handler ends the process at once.
    let stopped = stop_signal()?;
    let variables = command::variables(endpoint, &args.region);
    let pages_at = pages.address;
    let greeting =
        Greeting { args, config: &config, tables: &tables, endpoint, pages: pages_at, variables: &variables };
    greeting.print(audience, start, &to_fill, &difference);
    let (progress, gate) = (Arc::clone(&service.progress), Arc::clone(&service.gate));
    let reporting = async {
        match config.mode {
            Mode::Apply => wait::report(reported, config.table.clone(), layout, progress, witness).await,
            Mode::Observe => pending().await,
        }
    };
    let filling = command::fill(args, (endpoint, &config), &tables, start, &to_fill);
    let mut command = ClientCommand::start(args, &variables)?;
    let fits = |declared: Declared| async {
        let (schema, catalogue) = &declared;
        existing_fit(args, Start::Changed, (&clients.dynamodb, endpoint), (schema, catalogue), &config).await?;
        anyhow::Ok(declared)
    };
    let code = tokio::select! {
        code = command::ended(&mut command) => code?,
        changed = manifest.changed(args, fits) => {
            service.stop().await?;
            return Ok(Ended::Changed(changed));
        }
        never = filling => match never {},
        error = caught_up(&mut service, audience) => return Err(error),
        fault = reporting => return Err(fault.into()),
        ended = pages.serve(gate) => return Err(ended),
        () = stopped => return stop(service, audience).await.map(Ended::Completed),
    };
    let tables = (&*config.table, &*config.ledger_table);
    command::verified(args, endpoint, tables, service, code).await.map(Ended::Completed)
}

/// Stops after the batches in progress, and reports what each mapping delivered.
async fn stop(service: Service, audience: Audience) -> anyhow::Result<Completion> {
    if audience == Audience::People {
        report("stopping after the batches in progress");
    }
    let counts = service.stop().await?;
    match audience {
        Audience::People => counts.iter().for_each(|(mapping, counts)| report(&counts_line(mapping, counts))),
        Audience::Program => {
            let mappings: Map<String, Value> =
                counts.iter().map(|(mapping, counts)| (mapping.clone(), counts_object(counts))).collect();
            audience.print(String::new, "stopped", || json!({ "mappings": mappings }));
        }
    }
    Ok(Completion::InStep)
}

/// Maximum number of derivations that a line names.
const NAMED_MAX: usize = 5;

/// Names the derivations that may not cover items written before now, and what to do. `options` are those by which another
/// command finds the tables.
fn unfilled(names: &[String], options: &str) -> String {
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let command = if let [name] = names { name } else { "--all" };
    format!("items from before may be missing in {}: run `ripple backfill {command}{options}`", named(&all, NAMED_MAX))
}

/// The options by which another command finds the tables of this one, if those are not the defaults.
fn options(args: &Dev, endpoint: &str) -> String {
    let is_given = |it: &&(&str, Option<String>)| it.1.is_some();
    let config = args.manifest.config.as_deref().filter(|file| *file != Path::new(MANIFEST_HERE));
    let default = std::env::var(ENDPOINT).unwrap_or_else(|_| DEFAULT_ENDPOINT.to_owned());
    let all = [
        ("--endpoint", Some(endpoint.to_owned()).filter(|it| *it != default)),
        ("--table", args.table.clone().filter(|it| it != DEFAULT_TABLE)),
        ("--tables", Some(args.tables.join(",")).filter(|it| !it.is_empty())),
        ("--ledger-table", args.ledger_table.clone()),
        ("--config", config.map(|file| file.display().to_string())),
    ];
    let given = all.iter().filter(is_given);
    given.map(|(option, value)| [" ", option, " ", value.as_deref().unwrap_or_default()].concat()).collect()
}

/// Unless it may differ, the manifest must keep the derivations of the folder's last manifest. Returns the names of the
/// derivations that may not cover items written before now, and how the manifest differs from the last one.
async fn registered(
    args: &Dev,
    start: Start,
    (schema, catalogue): (&Schema, &Catalogue),
    store: &DynamoStore,
) -> anyhow::Result<(Vec<String>, String)> {
    let registry = read(store).await?;
    let registered = RegistryCheck { schema, catalogue, registry: &registry, now_ms: SystemClock.now_ms() };
    if let Some(data) = args.data.as_deref().filter(|_| !start.redeploys(args)) {
        let (_, whole) = declared(Choice { disabled: &[], ..args.choice() })?;
        registered.keeps(data, |name| whole.position(name).is_some())?;
    }
    Ok((registered.to_fill(), registered.difference()))
}

/// Existing tables must fit the manifest before other tables are created. If the manifest may differ, missing indexes
/// are created first.
async fn existing_fit(
    args: &Dev,
    start: Start,
    (client, endpoint): (&Client, &str),
    (schema, catalogue): (&Schema, &Catalogue),
    config: &Config,
) -> anyhow::Result<()> {
    of_this_table((schema, catalogue), (client, endpoint), (config, args.data.as_deref())).await?;
    if start.redeploys(args) && !args.observe {
        tables::make_indexes(client, &schema.layout, config, endpoint).await?;
    }
    for (table, _) in tables::with_records(&schema.layout, config) {
        let Some(table) = tables::describe(client, table, endpoint).await? else { continue };
        fits(schema, catalogue, &table, IndexCheck::Refuses)?;
        if let Some(misfit) = of_stream(&described(&table)) {
            return Err(Usage(misfit.line).into());
        }
    }
    if let Some(ledger) = tables::describe(client, &config.ledger_table, endpoint).await? {
        ledger_fits(schema, &ledger)?;
    }
    Ok(())
}

/// Prints a line each time everything is handled. Returns when a mapping ends, which happens only if it cannot
/// continue.
async fn caught_up(service: &mut Service, audience: Audience) -> anyhow::Error {
    let mut since = None;
    loop {
        let next = async {
            if since.is_some() {
                service.active(since).await?;
            }
            service.quiet().await
        };
        match next.await {
            Ok(moment) => {
                let ms = SystemClock
                    .now_ms()
                    .saturating_sub(u64::try_from(moment.elapsed().as_millis()).unwrap_or(u64::MAX));
                // At the start there may be nothing to handle.
                if service.has_found() {
                    let until = words::time(ms);
                    let line = || format!("caught up with everything written before {until}");
                    audience.print(line, "caught_up", || json!({ "until": until }));
                }
                since = Some(moment);
            }
            Err(error) => return error,
        }
    }
}

/// The counts of a mapping, named like the metrics of `CloudWatch`.
fn counts_line(mapping: &str, counts: &EventCount) -> String {
    let EventCount { polled, filtered_out, invoked, failed_invoke, on_failure_delivered, dropped, iterator_age_max } =
        counts;
    let counts = [
        (filtered_out, "filtered out"),
        (invoked, "invoked"),
        (failed_invoke, "failed"),
        (on_failure_delivered, "on failure delivered"),
        (dropped, "dropped"),
    ];
    let counts = counts.iter().filter(|(n, _)| **n > 0).map(|(n, what)| format!(", {what} {n}"));
    format!(
        "{mapping}  polled {polled}{}, iterator age {} ms",
        counts.collect::<String>(),
        iterator_age_max.as_millis()
    )
}

/// The same counts as an object.
fn counts_object(counts: &EventCount) -> Value {
    let EventCount { polled, filtered_out, invoked, failed_invoke, on_failure_delivered, dropped, .. } = counts;
    json!({
        "polled": polled, "filtered_out": filtered_out, "invoked": invoked, "failed": failed_invoke,
        "on_failure_delivered": on_failure_delivered, "dropped": dropped,
    })
}

/// Listens for Ctrl-C and SIGTERM from this call on.
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _interrupted = interrupted.recv() => {}
            _terminated = terminated.recv() => {}
        }
    })
}

// ---- The greeting: addresses, the place of the data, and what to paste into another terminal ----

struct Greeting<'a> {
    args: &'a Dev,
    config: &'a Config,
    tables: &'a [TableDescription],
    endpoint: &'a str,
    pages: SocketAddr,
    variables: &'a [(&'static str, String)],
}

impl Greeting<'_> {
    /// Says that the service is ready, after what may be missing, or how its manifest has changed.
    fn print(&self, audience: Audience, start: Start, to_fill: &[String], difference: &str) {
        if start == Start::Changed {
            let line = || format!("a new version of the functions runs: it {difference}");
            return audience.print(line, "changed", || json!({ "difference": difference }));
        }
        if !to_fill.is_empty() {
            audience.problem(&unfilled(to_fill, &options(self.args, self.endpoint)));
        }
        audience.print(|| self.lines(), "ready", || self.names());
    }

    fn tables(&self) -> Vec<&str> {
        self.tables.iter().filter_map(TableDescription::table_name).collect()
    }

    /// The names of the object `ready`.
    fn names(&self) -> Value {
        let set = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone().into());
        let variables: Map<String, Value> = self.variables.iter().map(set).collect();
        json!({
            "endpoint": self.endpoint, "console": format!("http://{}", self.pages), "tables": self.tables(),
            "ledger": self.config.ledger_table, "data": self.args.data, "variables": variables,
        })
    }

    fn lines(&self) -> String {
        let tables = self.tables();
        let mut lines = vec![
            format!("endpoint  {}", self.endpoint),
            format!("console   http://{}", self.pages),
            format!("table     {}", tables.join(", ")),
            format!("ledger    {}", self.config.ledger_table),
        ];
        lines.extend(self.args.manifest.config.is_none().then(|| format!("manifest  {SHIPPED}")));
        match (&self.args.endpoint, &self.args.data) {
            (Some(_), _) => {}
            (None, Some(folder)) => lines.push(format!("data      in the folder {}", folder.display())),
            (None, None) => lines.push("data      in memory, gone when this ends: --data DIR keeps it".to_owned()),
        }
        if self.args.observe {
            lines.push("observing: nothing is written, and each line below is what would be".to_owned());
        }
        lines.push("for clients in another terminal:".to_owned());
        let set = |(name, value): &(&str, String)| format!("{name}={value}");
        // One line for each address, one for each pair that goes together.
        let (addresses, pairs) = self.variables.split_at(2);
        for together in addresses.chunks(1).chain(pairs.chunks(2)) {
            lines.push(format!("  export {}", together.iter().map(set).collect::<Vec<_>>().join(" ")));
        }
        lines.push("then, for example:".to_owned());
        let table = tables.first().copied().unwrap_or(&self.config.table);
        lines.push(format!("  AWS CLI     aws dynamodb scan --table-name {table}"));
        lines.push(format!("  Python      boto3.resource(\"dynamodb\").Table(\"{table}\").scan()"));
        lines.push(format!("  JavaScript  await new DynamoDB().scan({{ TableName: \"{table}\" }})"));
        lines.push("ready".to_owned());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_derivations_to_fill_is_one_line() {
        let names: Vec<String> = (1..=22).map(|n| format!("d{n}")).collect();
        let says = |n: usize| unfilled(&names[..n], "");
        assert_eq!(says(1), "items from before may be missing in d1: run `ripple backfill d1`");
        assert_eq!(says(2), "items from before may be missing in d1, d2: run `ripple backfill --all`");
        let many = "items from before may be missing in d1, d2, d3, d4, d5 and 17 more: run `ripple backfill --all`";
        assert_eq!(says(22), many);
    }
}

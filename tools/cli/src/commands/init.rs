//! `ripple init`: drafts a manifest from an existing table or from a file that describes tables. It changes no table.

use std::{collections::HashMap, ffi::OsStr, path::Path, pin::pin, time::Duration};

use anyhow::Context as _;
use aws_sdk_dynamodb::{
    Client,
    error::ProvideErrorMetadata as _,
    types::{
        AttributeDefinition, AttributeValue, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType, TableDescription, TimeToLiveStatus,
    },
};
use draft::{
    Draft, draft,
    files::tables_of,
    shape::{Extent, IndexShape, Sample, SampledTable, TableShape},
};
use functions::logging;
use futures::future::join_all;
use keys::tables::{KeyAttribute, KeyType as AttributeType};
use operate::words::counted;
use tokio::time::{Instant, sleep_until};

use crate::{
    args::{DEFAULT_ENDPOINT, ENDPOINT, MANIFEST_HERE, tables::Init},
    bar::progress,
    commands::{
        LOG_FILTER,
        dev::stop_signal,
        preflight::sample::{PAGE_ITEMS, Page, page},
    },
    exit::{Completion, Usage, file_text, is_manifest, is_new, print, report, write_new},
    opened::Clients,
    tables,
};

pub(crate) async fn run(args: &Init) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let is_printed = args.out == Path::new("-");
    if !is_printed {
        is_new(&args.out, "--out")?;
    }
    let (origin, tables) = match (&args.file, &args.table) {
        (Some(file), _) => {
            let text = file_text(file)?;
            refuse_other(file, &text)?;
            let found = tables_of(&text);
            let found = found.map_err(|error| Usage(format!("{}: {error}", file.display())))?;
            (format!("{}, a {}", file.display(), found.kind), found.tables)
        }
        (None, Some(table)) => (format!("the table {table}"), vec![read(args, table).await?]),
        (None, None) => return Err(Usage("give a FILE or --table".to_owned()).into()),
    };
    let mut draft = draft(&origin, &tables);
    // The folder of the file is that in which its reader is.
    let out = args.out.file_name().filter(|_| !is_printed).unwrap_or(OsStr::new(MANIFEST_HERE)).display();
    for option in ["ripple check", "--config"] {
        draft.text = draft.text.replace(&format!("{option} {MANIFEST_HERE}"), &format!("{option} {out}"));
    }
    if is_printed {
        print(draft.text.trim_end());
    } else {
        write_new(&args.out, "--out", &draft.text)?;
        print(&summary(args, &draft));
    }
    let ended = tables.iter().find_map(|table| match &table.sample.extent {
        Extent::Ended(why) => Some((table, why)),
        _ => None,
    });
    let Some((table, why)) = ended else { return Ok(Completion::InStep) };
    report(&format!("ripple: the draft is of {} only: {why}", counted(table.sample.items.len(), "item")));
    Ok(Completion::Unfinished)
}

/// Refuses files that describe no tables as data, by what they are.
fn refuse_other(file: &Path, text: &str) -> Result<(), Usage> {
    let name = file.display();
    let is_code = |end: &OsStr| ["py", "ts", "js", "mjs", "rs", "java", "go", "cs"].iter().any(|it| end == *it);
    if is_manifest(text) {
        return Err(Usage(format!("{name} is a manifest already: `ripple check {name}` checks it")));
    }
    if file.extension().is_some_and(is_code) {
        let instead = "give the template that it makes (cdk.out/*.template.json), or read its table with --table";
        return Err(Usage(format!("{name} is a program, and init reads no code: {instead}")));
    }
    Ok(())
}

/// What the draft contains, and what to do next.
fn summary(args: &Init, draft: &Draft) -> String {
    let out = args.out.display();
    let listed = |what: &str, names: &[String]| {
        format!("{what:<12} {:>3}  {}", names.len(), names.join(", ")).trim_end().to_owned()
    };
    let next = match &args.table {
        _ if draft.entities.is_empty() => format!("declare an entity in it, then: ripple check {out}"),
        Some(table) if !draft.proposals.is_empty() => {
            let database = match args.endpoint.as_str() {
                _ if args.aws => "--aws ",
                DEFAULT_ENDPOINT => "",
                // The next command takes it from there too.
                endpoint if std::env::var(ENDPOINT).is_ok_and(|it| it == endpoint) => "",
                endpoint => &format!("--endpoint {endpoint} "),
            };
            format!("next: uncomment its proposals, then: ripple audit {database}--table {table} --config {out}")
        }
        _ => format!("next: ripple check {out}"),
    };
    [listed("entities", &draft.entities), listed("proposals", &draft.proposals), format!("wrote {out}; {next}")]
        .join("\n")
}

// ---- An existing table ----

/// Reads a table's description and some of its items.
async fn read(args: &Init, table: &str) -> anyhow::Result<SampledTable> {
    let (clients, endpoint) = Clients::connect(args.aws, &args.endpoint, args.region.as_deref()).await;
    let client = &clients.dynamodb;
    let description = tables::existing(client, table, &endpoint, "--table").await?;
    let mut shape = shape(&description)?;
    // A caller who may not ask for the time to live still gets a draft.
    if let Ok(answer) = client.describe_time_to_live().table_name(table).send().await {
        let set = answer.time_to_live_description.filter(|it| {
            matches!(it.time_to_live_status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling))
        });
        shape.time_to_live = set.and_then(|it| it.attribute_name);
    }
    let sample = read_items(client, &shape, args).await?;
    Ok(SampledTable::with_items(shape, sample))
}

/// The parts of a table's description that a draft needs.
fn shape(table: &TableDescription) -> anyhow::Result<TableShape> {
    let definitions = table.attribute_definitions();
    let (mut pk, sk) = key(table.key_schema(), definitions);
    anyhow::ensure!(!pk.is_empty(), "the description of the table names no partition key");
    let index = |it: &aws_sdk_dynamodb::types::GlobalSecondaryIndexDescription| {
        let (pk, sk) = key(it.key_schema(), definitions);
        IndexShape {
            name: it.index_name().unwrap_or_default().to_owned(),
            pk,
            sk,
            projection: projected(it.projection()),
        }
    };
    let local = table.local_secondary_indexes().iter().filter_map(|it| it.index_name()).map(str::to_owned);
    Ok(TableShape {
        name: table.table_name().unwrap_or_default().to_owned(),
        pk: pk.swap_remove(0),
        sk: sk.into_iter().next(),
        indexes: table.global_secondary_indexes().iter().map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: None,
        n_items: Some(tables::counted(table.item_count)),
    })
}

/// The attributes of a partition key and of a sort key.
fn key(schema: &[KeySchemaElement], definitions: &[AttributeDefinition]) -> (Vec<KeyAttribute>, Vec<KeyAttribute>) {
    let of = |part: KeyType| {
        let elements = schema.iter().filter(move |element| *element.key_type() == part);
        elements.map(|element| {
            let name = element.attribute_name();
            let definition = definitions.iter().find(|definition| definition.attribute_name() == name);
            let of = match definition.map(AttributeDefinition::attribute_type) {
                Some(ScalarAttributeType::N) => AttributeType::N,
                Some(ScalarAttributeType::B) => AttributeType::B,
                _ => AttributeType::S,
            };
            KeyAttribute { name: name.to_owned(), of, is_plain: true }
        })
    };
    (of(KeyType::Hash).collect(), of(KeyType::Range).collect())
}

fn projected(projection: Option<&Projection>) -> Option<Vec<String>> {
    let projection = projection.filter(|it| it.projection_type() != Some(&ProjectionType::All))?;
    Some(projection.non_key_attributes().to_vec())
}

/// Segments that are read in turn. One partition with very many items fills at most one of them.
const SEGMENTS: u32 = 8;

/// Where the next page of a segment starts; `None` before the first.
type Cursor = Option<HashMap<String, AttributeValue>>;

/// Reads the sample. It ends early on Ctrl-C, and if the caller may not scan.
async fn read_items(client: &Client, shape: &TableShape, args: &Init) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    let mut open: Vec<(u32, Cursor)> = (0..SEGMENTS).map(|segment| (segment, None)).collect();
    let (mut n_read, mut units, started) = (0_u32, 0.0, Instant::now());
    let bar = progress(false);
    bar.set_length(shape.n_items.filter(|n| *n > 0).unwrap_or(u64::MAX).min(u64::from(args.items)));
    let mut stopped = pin!(stop_signal()?);
    while !open.is_empty() && n_read < args.items {
        let n_open = u32::try_from(open.len())?;
        let limit = (args.items - n_read).div_ceil(n_open).min(PAGE_ITEMS);
        let calls =
            open.iter().map(|(segment, after)| page(client, &shape.name, (*segment, SEGMENTS), limit, after.clone()));
        let answers = tokio::select! {
            answers = join_all(calls) => answers,
            () = &mut stopped => return Ok(ended(sample, "you stopped it")),
        };
        let mut next = Vec::new();
        for ((segment, _), answer) in open.into_iter().zip(answers) {
            let Page { items, units: consumed, after } = match answer {
                Ok(page) => page,
                Err(error) if error.code() == Some("AccessDeniedException") => {
                    return Ok(ended(sample, "AWS does not allow these credentials dynamodb:Scan on the table"));
                }
                Err(error) => return Err(error).with_context(|| format!("cannot read the table {}", shape.name)),
            };
            n_read = n_read.saturating_add(u32::try_from(items.len())?);
            units += consumed;
            for item in items {
                sample.add(shape, item);
            }
            next.extend(after.map(|after| (segment, Some(after))));
        }
        open = next;
        bar.set_position(u64::from(n_read));
        bar.set_message(format!("read {n_read} items"));
        tokio::select! {
            () = sleep_until(started + Duration::from_secs_f64(units / f64::from(args.units_per_second))) => {}
            () = &mut stopped => return Ok(ended(sample, "you stopped it")),
        }
    }
    bar.finish_and_clear();
    sample.extent = if open.is_empty() { Extent::Whole } else { Extent::Part };
    for (_, after) in open {
        // The rest of this partition is not in the sample.
        if let Some(AttributeValue::S(text) | AttributeValue::N(text)) =
            after.and_then(|mut it| it.remove(&shape.pk.name))
        {
            sample.cut.insert(text);
        }
    }
    Ok(sample)
}

fn ended(sample: Sample, why: &str) -> Sample {
    Sample { extent: Extent::Ended(why.to_owned()), ..sample }
}

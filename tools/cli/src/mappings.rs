//! The event source mappings of the running functions, from the template that deploys them.
//!
//! With `--template` they have exactly that template's settings, and Lambda's pace. Without, they have those of the
//! repository's template when this was built, except for settings that would make a person at a laptop wait:
//!
//! | here | instead of | because |
//! |---|---|---|
//! | [`BATCHING_WINDOW_MS`] | `MaximumBatchingWindowInSeconds` | its second would be most of the lag |
//! | [`IDLE_POLL_MS`] | four reads a second | the same |
//! | [`LANES`] for several lanes | `ParallelizationFactor` | all functions share one process |
//!
//! The parameters `Readers`, `Ledger` and, with `--config`, the one that names a manifest are set; all others have
//! their defaults. A mapping is refused if the ledger of watermarks or the mapping's own filters would lose a change.

use std::path::Path;

use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use design::{
    filters::{self, Needed, StreamTable, needed},
    infra,
};
use engine::{ledger::LedgerKind, record::table_of};
use functions::handler::Function;
use operate::checkpoints::OF;
use stream::{
    filter::Filters,
    mapping::Mapping,
    template::{Local, Parameters, SamTemplate, SamTemplateError},
};

use crate::{
    args::Readers,
    exit::{Usage, file_text},
};

/// The repository's template.
const SHIPPED: &str = include_str!("../../../infra/template.yaml");

/// How long to gather a batch without a template, in milliseconds: long enough to coalesce, but short compared with the
/// second of lag of a chain of three records (a follow, its counter, its display).
const BATCHING_WINDOW_MS: u64 = 50;

/// Lanes of each shard for the function that counts nothing, without a template: more than the template's, because a
/// person waits for the result, and fewer than Lambda's most, because all lanes share one process. Measured with `ripple demo --scenario famous --others 20`: with ten lanes, whose batches
/// are smaller, a rename reaches a third fewer items a second, and others wait longer.
const LANES: usize = 4;

/// Wait after an empty read without a template, in milliseconds: short, because a person is watching.
const IDLE_POLL_MS: u64 = 20;

/// Wait after an empty read with a template, in milliseconds: Lambda reads a shard four times a second.
const LAMBDA_POLL_MS: u64 = 250;

/// Names of the template's parameters that select the mappings. Stable.
const READERS: &str = "Readers";
const LEDGER: &str = "Ledger";

/// The parameter that names a manifest, with a possible value. Stable.
const MANIFEST: (&str, &str) = ("ConfigUri", "s3://manifests/ripple.zip");

/// The choice of mappings.
pub(crate) struct MappingRequest<'a> {
    pub(crate) template: Option<&'a Path>,
    pub(crate) readers: Readers,
    pub(crate) ledger: LedgerKind,
    /// The ARNs of the streams: of that of `--table` first.
    pub(crate) streams: &'a [String],
    pub(crate) schema: &'a Schema,
    pub(crate) catalogue: &'a Catalogue,
    /// Does a manifest declare the table?
    pub(crate) has_manifest: bool,
}

/// The functions that read the streams, with the mapping of each and each stream.
pub(crate) fn mappings(wanted: &MappingRequest<'_>) -> anyhow::Result<Vec<(Function, Mapping)>> {
    let given = wanted.template.map(file_text).transpose()?;
    let template = SamTemplate::parse(given.as_deref().unwrap_or(SHIPPED)).map_err(|error| refused(&error, wanted))?;
    let functions = match wanted.readers {
        Readers::One => vec![Function::Combined],
        Readers::Two => vec![Function::Aggregate, Function::Propagate],
    };
    let tables = infra::stream_events(wanted.schema);
    let streams = || tables.iter().zip(wanted.streams);
    let each = functions.into_iter().flat_map(|function| streams().map(move |read| (function, read)));
    let mut mappings = Vec::new();
    for (function, ((table, event), stream)) in each {
        let events = template.stream_events(logical_id(function));
        let is_needed = needed(*table, wanted.catalogue, &function.families()) != Needed::Nothing;
        // A template of several tables has no event for a table whose records the function does not need. The function reads
        // that stream too here, without any record passing the filter, because `verify` expects a position in every stream.
        let event = if is_needed { event } else { events.first().copied().unwrap_or(event) };
        let read = Read { function, table: *table, event, stream, is_needed, has_own_event: events.len() > 1 };
        mappings.push((function, mapping(&template, &read, wanted)?));
    }
    Ok(mappings)
}

/// A function, and a stream that it reads.
struct Read<'a> {
    function: Function,
    table: StreamTable<'a>,
    /// The id of the stream's event in a template of several tables.
    event: &'a str,
    stream: &'a str,
    /// Does the function need any record of it?
    is_needed: bool,
    /// Has the template an event for each table?
    has_own_event: bool,
}

fn mapping(template: &SamTemplate, read: &Read<'_>, wanted: &MappingRequest<'_>) -> anyhow::Result<Mapping> {
    let (function, stream_arn) = (read.function, read.stream);
    let readers = match wanted.readers {
        Readers::One => "one",
        Readers::Two => "two",
    };
    let mut parameters =
        Parameters::from([(READERS.to_owned(), readers.to_owned()), (LEDGER.to_owned(), wanted.ledger.to_string())]);
    let (name, value) = MANIFEST;
    if wanted.has_manifest && template.has_parameter(name) {
        parameters.insert(name.to_owned(), value.to_owned());
    }
    let is_given = wanted.template.is_some();
    let idle_poll_ms = if is_given { LAMBDA_POLL_MS } else { IDLE_POLL_MS };
    let name = function.to_string();
    let local = Local { name: &name, stream_arn, event: read.event, idle_poll_ms };
    let mut mapping =
        template.mapping(logical_id(function), &parameters, &local).map_err(|error| refused(&error, wanted))?;
    if !is_given {
        mapping.batching_window_ms = BATCHING_WINDOW_MS;
        if mapping.parallelization_factor > 1 {
            mapping.parallelization_factor = LANES;
        }
    }
    if let Some(table) = table_of(stream_arn).filter(|_| wanted.streams.len() > 1) {
        // A mapping's name holds fewer characters than a table's, so a number keeps two of them apart.
        let of_name = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let number = wanted.streams.iter().take_while(|other| *other != stream_arn).count();
        mapping.name = format!("{function}{OF}{number}-{}", table.chars().map(of_name).collect::<String>());
        if !read.has_own_event {
            // The filters are those of one table.
            mapping.filters = Filters::default();
        } else if !read.is_needed {
            mapping.filters = Filters::new([infra::NOTHING])?;
        }
    }
    lets_through(read, &mapping, wanted)?;
    if function.families().contains(&Family::Additive) && wanted.ledger == LedgerKind::Watermarks {
        suits_watermarks(function, &mapping)?;
    }
    Ok(mapping)
}

fn logical_id(function: Function) -> &'static str {
    match function {
        Function::Aggregate => "Aggregate",
        Function::Propagate => "Propagate",
        Function::Combined => "Combined",
        Function::Sweep => "Sweep",
    }
}

/// Refuses a mapping under which the ledger of watermarks would lose changes, or cannot work at all.
fn suits_watermarks(function: Function, mapping: &Mapping) -> Result<(), Usage> {
    let function = logical_id(function);
    let why = if mapping.tumbling_window_seconds == 0 {
        "only events of a tumbling window name their shard: set TumblingWindowInSeconds, for example to 60"
    } else if mapping.parallelization_factor > 1 {
        "a faster lane would hide the changes of a slower one: set ParallelizationFactor to 1"
    } else if mapping.retry_attempts_max.is_some() {
        "a change that Lambda gives up is passed by the next batch, and lost: set MaximumRetryAttempts to -1"
    } else if mapping.record_age_ms_max.is_some() {
        "a change that Lambda gives up is passed by the next batch, and lost: set MaximumRecordAgeInSeconds to -1"
    } else {
        return Ok(());
    };
    Err(Usage(format!(
        "the template's {function} cannot keep the ledger of watermarks: {why}, or use --ledger receipts"
    )))
}

/// Refuses filters that drop a record that a derivation of the function needs.
fn lets_through(read: &Read<'_>, mapping: &Mapping, wanted: &MappingRequest<'_>) -> Result<(), Usage> {
    let function = read.function;
    let samples = filters::samples(read.table, wanted.catalogue, &function.families());
    let Some(dropped) = samples.iter().find(|sample| !mapping.filters.matches(&sample.record)) else { return Ok(()) };
    let function_id = logical_id(function);
    Err(Usage(format!(
        "the filters of the template's {function_id} drop what {function} needs: {}; put those in their place that \
         `ripple design --filters` prints{}, or none",
        dropped.what,
        if wanted.has_manifest { " with --config" } else { "" }
    )))
}

/// A mistake in a template has the form of one in a manifest: the file, the line, the reason.
fn refused(error: &SamTemplateError, wanted: &MappingRequest<'_>) -> Usage {
    let file = wanted.template.unwrap_or(Path::new("infra/template.yaml"));
    Usage(format!("{}:{}: {error}", file.display(), error.line))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::PathBuf,
        sync::{Arc, LazyLock},
    };

    use functions::declared::{Choice, declared};
    use stream::mapping::OnFailure;

    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1_000;

    const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

    fn wanted(readers: Readers, ledger: LedgerKind) -> MappingRequest<'static> {
        static SHIPPED: LazyLock<(Arc<Schema>, Arc<Catalogue>)> =
            LazyLock::new(|| declared(Choice::default()).unwrap());
        static STREAMS: LazyLock<[String; 1]> = LazyLock::new(|| [ARN.to_owned()]);
        let (schema, catalogue) = &*SHIPPED;
        MappingRequest { template: None, readers, ledger, streams: &*STREAMS, schema, catalogue, has_manifest: false }
    }

    /// Writes the shipped template to a file, with every occurrence of a line replaced.
    fn changed(from: &str, to: &str) -> (tempfile::TempDir, PathBuf) {
        assert!(SHIPPED.contains(from), "the template has no {from}");
        written(&SHIPPED.replace(from, to))
    }

    fn written(template: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("template.yaml");
        fs::write(&file, template).unwrap();
        (folder, file)
    }

    #[test]
    fn the_repository_s_template_has_a_mapping_for_every_function_and_ledger() {
        for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
            let [(_, aggregate), (_, propagate)] = mappings(&wanted(Readers::Two, ledger)).unwrap().try_into().unwrap();
            let [(_, combined)] = mappings(&wanted(Readers::One, ledger)).unwrap().try_into().unwrap();
            assert_eq!([&*aggregate.name, &propagate.name, &combined.name], ["aggregate", "propagate", "combined"]);
            for counting in [&aggregate, &combined] {
                assert_eq!(counting.tumbling_window_seconds > 0, ledger == LedgerKind::Watermarks);
                assert_eq!(counting.parallelization_factor, 1);
                let gives_up = counting.record_age_ms_max.is_some();
                assert_eq!(gives_up, ledger == LedgerKind::Receipts, "under watermarks nothing is given up");
            }
            assert_eq!((propagate.parallelization_factor, propagate.record_age_ms_max), (LANES, Some(23 * HOUR_MS)));
            for mapping in [aggregate, propagate, combined] {
                assert!(mapping.report_batch_item_failures && mapping.retry_attempts_max.is_none());
                assert!(!mapping.filters.is_empty());
                assert_eq!(mapping.on_failure, Some(OnFailure::S3));
            }
        }
    }

    #[test]
    fn a_template_that_is_given_is_taken_at_its_word_and_the_repository_s_at_a_laptop_s_pace() {
        let shipped = mappings(&wanted(Readers::Two, LedgerKind::Receipts)).unwrap().remove(0).1;
        assert_eq!((shipped.batching_window_ms, shipped.idle_poll_ms), (BATCHING_WINDOW_MS, IDLE_POLL_MS));
        let (_folder, file) = changed("Transform: AWS", "Transform: AWS");
        let wanted = MappingRequest { template: Some(&file), ..wanted(Readers::Two, LedgerKind::Receipts) };
        let given = mappings(&wanted).unwrap().remove(0).1;
        assert_eq!(given.idle_poll_ms, LAMBDA_POLL_MS);
        assert!(given.batching_window_ms.is_multiple_of(1_000), "{} ms", given.batching_window_ms);
        assert_eq!(given, Mapping { idle_poll_ms: 250, batching_window_ms: given.batching_window_ms, ..shipped });
        let lanes = |wanted: &MappingRequest<'_>| mappings(wanted).unwrap().remove(1).1.parallelization_factor;
        assert_eq!(lanes(&wanted), 2);
        assert_eq!(lanes(&MappingRequest { template: None, ..wanted }), LANES);
    }

    #[test]
    fn a_mapping_under_which_watermarks_would_lose_changes_is_refused() {
        let said = |from: &str, to: &str| {
            let (_folder, file) = changed(from, to);
            let wanted = MappingRequest { template: Some(&file), ..wanted(Readers::Two, LedgerKind::Watermarks) };
            mappings(&wanted).unwrap_err().to_string()
        };
        assert!(said("TumblingWindowInSeconds: !If", "TumblingWindowInSeconds: 0 # ").contains("set TumblingWindowIn"));
        assert!(said("MaximumRetryAttempts: -1", "MaximumRetryAttempts: 5").contains("set MaximumRetryAttempts to -1"));
        let said = said("MaximumRecordAgeInSeconds: !If [Watermarks, -1, 82800]", "MaximumRecordAgeInSeconds: 3600");
        assert_eq!(
            said,
            "the template's Aggregate cannot keep the ledger of watermarks: a change that Lambda gives up is passed \
             by the next batch, and lost: set MaximumRecordAgeInSeconds to -1, or use --ledger receipts"
        );
    }

    #[test]
    fn the_template_for_a_table_that_exists_already_has_the_mappings_of_the_repository_s() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/attach.yaml");
        let (_folder, shipped) = changed("Transform: AWS", "Transform: AWS");
        for (readers, ledger) in [(Readers::Two, LedgerKind::Receipts), (Readers::One, LedgerKind::Watermarks)] {
            for has_manifest in [false, true] {
                let of =
                    |template| mappings(&MappingRequest { template, has_manifest, ..wanted(readers, ledger) }).unwrap();
                assert_eq!(of(Some(&file)), of(Some(&shipped)));
                assert_eq!(of(Some(&file))[0].1.filters.is_empty(), has_manifest, "they are the shipped table's");
            }
        }
    }

    #[test]
    fn filters_that_drop_what_a_derivation_needs_are_refused_with_what_they_drop() {
        let said = |from: &str, to: &str| {
            // The filters by type attribute are for items under a wrong key; the filters by key are enough here.
            let (_folder, file) = written(&SHIPPED.replace("EntityType", "Kind").replace(from, to));
            let wanted = MappingRequest { template: Some(&file), ..wanted(Readers::Two, LedgerKind::Receipts) };
            mappings(&wanted).map(|all| all.len()).map_err(|refused| refused.to_string())
        };
        assert_eq!(said("", ""), Ok(2));
        assert_eq!(
            said(r#"{"prefix":"LIKE#POST#"},"#, "").unwrap_err(),
            "the filters of the template's Aggregate drop what aggregate needs: a new Like, USER#1 / LIKE#POST#1; put \
             those in their place that `ripple design --filters` prints, or none"
        );
        let only_new = said(r#"{"dynamodb":{"#, r#"{"eventName":["INSERT"],"dynamodb":{"#).unwrap_err();
        assert!(only_new.contains("a change of"), "{only_new}");
    }

    #[test]
    fn a_template_with_a_setting_that_is_unknown_is_refused_by_its_name() {
        let (_folder, file) = changed("StartingPosition: TRIM_HORIZON", "StartAt: TRIM_HORIZON");
        let wanted = MappingRequest { template: Some(&file), ..wanted(Readers::Two, LedgerKind::Receipts) };
        let error = mappings(&wanted).unwrap_err();
        assert!(error.is::<Usage>());
        let line = SHIPPED.lines().position(|line| line.trim() == "Aggregate:").unwrap() + 1;
        let what = "the template's Aggregate: StartingPosition is missing: give TRIM_HORIZON or LATEST";
        assert_eq!(error.to_string(), format!("{}:{line}: {what}", file.display()));
    }

    /// A template of several tables has an event for each table that a function needs, and dev reads the others too.
    #[test]
    fn each_of_several_tables_has_the_filters_of_its_own_event() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/chat/ripple.toml");
        let (schema, catalogue) = declared(Choice { manifest: Some(&file), ..Choice::default() }).unwrap();
        let stack = infra::Stack {
            schema: &schema,
            catalogue: &catalogue,
            attaches: true,
            shipped: false,
            zipped: false,
            command: "",
        };
        let streams: Vec<String> =
            ["own", "Workspaces", "Rooms", "Messages", "Users"].map(|table| ARN.replace("app", table)).into();
        let read = |text: &str| {
            let (_folder, file) = written(text);
            let wanted = MappingRequest {
                template: Some(&file),
                streams: &streams,
                schema: &schema,
                catalogue: &catalogue,
                has_manifest: true,
                ..wanted(Readers::Two, LedgerKind::Watermarks)
            };
            mappings(&wanted).map_err(|error| error.to_string())
        };
        let template = infra::template(&stack);
        let all = read(&template).unwrap();
        let names: Vec<(&str, usize)> = all.iter().map(|(_, it)| (it.name.as_str(), it.filters.len())).collect();
        let wanted = [
            ("aggregate--0-own", 1),
            ("aggregate--1-Workspaces", 1),
            ("aggregate--2-Rooms", 3),
            ("aggregate--3-Messages", 0),
            ("aggregate--4-Users", 1),
            ("propagate--0-own", 4),
            ("propagate--1-Workspaces", 0),
            ("propagate--2-Rooms", 3),
            ("propagate--3-Messages", 0),
            ("propagate--4-Users", 0),
        ];
        assert_eq!(names, wanted);
        let record = r#"{"eventName":"INSERT","dynamodb":{"Keys":{"userId":{"S":"ann"}}}}"#;
        assert!(!all[4].1.filters.matches(record), "aggregate counts nothing of users");

        let error = read(&template.replace("RoomsStream:", "ChannelsStream:")).unwrap_err();
        assert!(error.contains("Aggregate: none of its 2 events of type DynamoDB is called RoomsStream"), "{error}");
        let template = template.replace(r#""type":"#, r#""kind":"#);
        let error = read(&template.replace(r#"{"prefix":"CHANNEL#"},"#, "")).unwrap_err();
        assert!(error.contains("drop what aggregate needs: a new Author, CHANNEL#1 / AUTHOR#1"), "{error}");
    }
}

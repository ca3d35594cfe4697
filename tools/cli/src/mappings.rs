//! The event source mappings of the running functions: those of the template, except for settings that are too slow for
//! a person at a laptop.
//!
//! | here | instead of | because |
//! |---|---|---|
//! | [`BATCHING_WINDOW_MS`] | `MaximumBatchingWindowInSeconds` | its seconds would be most of the lag |
//! | [`IDLE_POLL_MS`] | four reads a second | the same |
//! | [`LANES`] concurrent batches | `ParallelizationFactor` | all functions share one process |
//!
//! Their filters are those that `ripple infra` prints for the manifest.

use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{ledger::LedgerKind, record::table_of};
use functions::handler::Function;
use infra::{
    filters::{StreamTable, needed},
    mapping::{filters, mapping},
};
use operate::checkpoints::OF;
use stream::mapping::Mapping;

use crate::args::Readers;

/// Batching window, in milliseconds: long enough to coalesce records, but short compared with the lag of a second of a
/// chain of three records (a follow, its counter, its display).
const BATCHING_WINDOW_MS: u64 = 50;

/// Concurrent batches of each shard for the function that counts nothing. There are more than in the template, because
/// a person waits for the result, and fewer than Lambda's maximum, because all share one process. Measured with
/// `ripple demo --scenario famous --others 20`: with ten, the batches are smaller, a rename reaches a third fewer items
/// a second, and the lag of other users grows.
const LANES: usize = 4;

/// Pause after an empty read, in milliseconds: short, because a person is watching.
const IDLE_POLL_MS: u64 = 20;

/// The parameters of the mappings.
pub(crate) struct MappingRequest<'a> {
    pub(crate) readers: Readers,
    pub(crate) ledger: LedgerKind,
    /// The ARNs of the streams. The stream of `--table` comes first.
    pub(crate) streams: &'a [String],
    pub(crate) schema: &'a Schema,
    pub(crate) catalogue: &'a Catalogue,
}

/// The functions that read the streams, with one mapping for each function and stream. A function also reads a stream
/// without records for it, because `verify` expects a position in every stream.
pub(crate) fn mappings(wanted: &MappingRequest<'_>) -> anyhow::Result<Vec<(Function, Mapping)>> {
    let functions = match wanted.readers {
        Readers::One => vec![Function::Combined],
        Readers::Two => vec![Function::Aggregate, Function::Propagate],
    };
    let mut mappings = Vec::new();
    for function in functions {
        for (number, (table, stream_arn)) in StreamTable::all(wanted.schema).zip(wanted.streams).enumerate() {
            let families = function.families();
            let filters = filters(&needed(table, wanted.catalogue, &families))?;
            let name = name(function, number, stream_arn, wanted.streams.len());
            let deployed = mapping(&name, stream_arn, &families, wanted.ledger, filters);
            let parallelization_factor = if families.contains(&Family::Additive) { 1 } else { LANES };
            let batching_window_ms = BATCHING_WINDOW_MS;
            let mapping =
                Mapping { batching_window_ms, parallelization_factor, idle_poll_ms: IDLE_POLL_MS, ..deployed };
            mappings.push((function, mapping));
        }
    }
    Ok(mappings)
}

/// The name of a mapping. It allows fewer characters than a table's name, so a number distinguishes several tables.
fn name(function: Function, number: usize, stream_arn: &str, n_streams: usize) -> String {
    let of_name = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    match table_of(stream_arn).filter(|_| n_streams > 1) {
        Some(table) => format!("{function}{OF}{number}-{}", table.chars().map(of_name).collect::<String>()),
        None => function.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use functions::declared::{Choice, declared};
    use stream::mapping::OnFailure;

    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1_000;

    const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

    #[test]
    fn every_function_has_a_mapping_under_each_ledger() {
        let (schema, catalogue) = declared(Choice::default()).unwrap();
        for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
            let streams = [ARN.to_owned()];
            let of = |readers| {
                let (schema, catalogue) = (&*schema, &*catalogue);
                let wanted = MappingRequest { readers, ledger, streams: &streams, schema, catalogue };
                mappings(&wanted).unwrap()
            };
            let [(_, aggregate), (_, propagate)] = of(Readers::Two).try_into().unwrap();
            let [(_, combined)] = of(Readers::One).try_into().unwrap();
            assert_eq!([&*aggregate.name, &propagate.name, &combined.name], ["aggregate", "propagate", "combined"]);
            for counting in [&aggregate, &combined] {
                assert_eq!(counting.tumbling_window_seconds > 0, ledger == LedgerKind::Watermarks);
                assert_eq!(counting.parallelization_factor, 1);
                let gives_up = counting.record_age_ms_max.is_some();
                assert_eq!(gives_up, ledger == LedgerKind::Receipts, "under watermarks nothing is given up");
            }
            assert_eq!((propagate.parallelization_factor, propagate.record_age_ms_max), (LANES, Some(23 * HOUR_MS)));
            for mapping in [aggregate, propagate, combined] {
                assert_eq!(mapping.check(), Ok(()));
                assert!(mapping.report_batch_item_failures && mapping.retry_attempts_max.is_none());
                assert!(!mapping.filters.is_empty());
                assert_eq!(mapping.on_failure, Some(OnFailure::S3));
            }
        }
    }

    #[test]
    fn each_of_several_tables_has_a_mapping_of_its_own_with_its_own_filters() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/chat/ripple.toml");
        let (schema, catalogue) = declared(Choice { manifest: Some(&file), ..Choice::default() }).unwrap();
        let streams: Vec<String> =
            ["own", "Workspaces", "Rooms", "Messages", "Users"].map(|table| ARN.replace("app", table)).into();
        let wanted = MappingRequest {
            readers: Readers::Two,
            ledger: LedgerKind::Watermarks,
            streams: &streams,
            schema: &schema,
            catalogue: &catalogue,
        };
        let all = mappings(&wanted).unwrap();
        let names: Vec<&str> = all.iter().map(|(_, it)| it.name.as_str()).collect();
        let first = ["own", "Workspaces", "Rooms", "Messages", "Users"].into_iter().enumerate();
        let first: Vec<String> = first.map(|(number, table)| format!("--{number}-{table}")).collect();
        let wanted = ["aggregate", "propagate"].map(|function| first.iter().map(move |it| format!("{function}{it}")));
        assert_eq!(names, wanted.into_iter().flatten().collect::<Vec<_>>());
        assert!(all.iter().all(|(_, mapping)| mapping.check().is_ok()));
        let unfiltered: Vec<&str> =
            all.iter().filter(|(_, it)| it.filters.is_empty()).map(|(_, it)| it.name.as_str()).collect();
        // The keys of these tables are values as they are, which no text separates.
        let plain = ["aggregate--3-Messages", "propagate--1-Workspaces", "propagate--3-Messages", "propagate--4-Users"];
        assert_eq!(unfiltered, plain);
    }
}

//! The platform between the table and the functions: the stream and its shards, corrupt records, event source mappings
//! and their filters, events, and what a response means.
//!
//! A corrupt record must end parked for each family of each function that received it, and nothing else may. At the end
//! of a run the operator puts the true records into the parked items, as if the decoder had been mended, and redrives
//! them. Then everything must match the definition.
//!
//! # Lost
//!
//! What was lost: changes whose records a function never got, and what these changes concern.
//!
//! Only what a lost change concerns may differ from its definition, until an operator repairs it, and what a redrive left out
//! and listed for a recount. What a change concerns is what its plan asks for; of values that are derived from other derived
//! values, whatever these may reach.

pub(crate) mod mapping;
pub(crate) mod stream;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    sync::LazyLock,
};

use derive::{
    change::{Change, Images},
    effect::Effect,
    family::Family,
    part::PartOf,
    plan::plan,
    position::DerivationAt,
    write::Table,
};
use engine::{clock::Clock as _, sweep::Drift};
use flate2::{Compression, write::GzEncoder};
use keys::{counter::CounterKey, key::Key};
use operate::verify::Finding;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::memory::MemoryStore;
use support::record::{self, Window, passes, read};

use crate::{
    actors::repairing::target,
    deployed::to_recount,
    platform::stream::{Stream, TableChange},
    scene::Scene,
};

// ---- What a response means to the platform, as AWS documents it and as it was recorded ----

/// What the platform concludes for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchVerdict {
    /// All of it is done.
    Done,
    /// The record at this position and all after it come again.
    From(usize),
    /// All of it comes again.
    Whole,
}

/// Reads a response to a batch with these sequence numbers. An invocation in a tumbling window must give a state.
pub(crate) fn verdict(response: &Value, sequence_numbers: &[&str], in_window: bool) -> BatchVerdict {
    if in_window && response.get("state").is_none() {
        return BatchVerdict::Whole;
    }
    let failures = match response.get("batchItemFailures") {
        None | Some(Value::Null) => return BatchVerdict::Done,
        Some(Value::Array(failures)) => failures,
        Some(_) => return BatchVerdict::Whole,
    };
    let mut lowest: Option<(u128, usize)> = None;
    for failure in failures {
        let named = failure.get("itemIdentifier").and_then(Value::as_str);
        // An identifier that is empty, missing, or of no record of the batch fails all of it.
        let Some(at) = named.and_then(|named| sequence_numbers.iter().position(|number| *number == named)) else {
            return BatchVerdict::Whole;
        };
        let number = sequence_numbers[at].parse().unwrap();
        lowest = Some(lowest.map_or((number, at), |lowest| lowest.min((number, at))));
    }
    lowest.map_or(BatchVerdict::Done, |(_, at)| BatchVerdict::From(at))
}

#[test]
fn a_response_is_read_as_the_platform_reads_it() {
    use serde_json::json;
    let numbers = ["9", "10", "11"];
    let of = |failures: Value| verdict(&json!({ "batchItemFailures": failures }), &numbers, false);
    assert_eq!(of(json!([])), BatchVerdict::Done);
    assert_eq!(of(Value::Null), BatchVerdict::Done);
    assert_eq!(verdict(&Value::Null, &numbers, false), BatchVerdict::Done);
    assert_eq!(of(json!([{"itemIdentifier": "10"}, {"itemIdentifier": "9"}])), BatchVerdict::From(0), "as numbers");
    assert_eq!(of(json!([{"itemIdentifier": "11"}])), BatchVerdict::From(2));
    for wrong in [json!([{"itemIdentifier": ""}]), json!([{"itemIdentifier": null}]), json!([{"id": "9"}])] {
        assert_eq!(of(wrong), BatchVerdict::Whole);
    }
    assert_eq!(of(json!([{"itemIdentifier": "123"}])), BatchVerdict::Whole, "no record of the batch");
    assert_eq!(verdict(&json!({}), &numbers, true), BatchVerdict::Whole, "a window wants its state");
    assert_eq!(verdict(&json!({"state": {}}), &numbers, true), BatchVerdict::Done);
}

// ---- filters ----

const TEMPLATE: &str = include_str!("../../infra/template.yaml");

/// The patterns of each function, by its name in lower case.
static FILTERS: LazyLock<BTreeMap<String, Vec<Value>>> = LazyLock::new(|| {
    let (mut filters, mut resource) = (BTreeMap::<String, Vec<String>>::new(), String::new());
    for line in TEMPLATE.lines() {
        if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':'))
            && !name.starts_with(' ')
        {
            resource = name.to_lowercase();
        }
        if let Some(pattern) = line.trim_start().strip_prefix("- Pattern: '").and_then(|line| line.strip_suffix('\'')) {
            filters.entry(resource.clone()).or_default().push(pattern.to_owned());
        }
    }
    filters.into_iter().map(|(function, patterns)| (function, read(&patterns))).collect()
});

/// Does a function get this record?
pub(crate) fn is_delivered(function: &str, json: &str) -> bool {
    passes(&FILTERS[function], &serde_json::from_str(json).unwrap())
}

#[test]
fn the_template_has_filters_for_each_function() {
    let functions: Vec<&String> = FILTERS.keys().collect();
    assert_eq!(functions, ["aggregate", "combined", "propagate"]);
    assert!(FILTERS.values().all(|patterns| patterns.len() == 4));
}

// ---- What was lost: changes whose records a function never got, and what these changes concern ----

#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// By their positions in the order of the writes, with the families that never got them.
    changes: BTreeMap<usize, Vec<Family>>,
    /// Ids of their records.
    ids: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Concerned {
    /// Counts, and buckets of roll-ups: the derivation, and the item that the count is about.
    pub(crate) counts: BTreeSet<(String, Key)>,
    /// Those of them that nobody can count again from what is left.
    histories: BTreeSet<String>,
    /// Level-triggered derivations.
    derivations: BTreeSet<String>,
    /// Those that show, or build on, a history that nobody can count again.
    of_histories: BTreeSet<String>,
}

impl Lost {
    /// The functions of these families never get the record of this change.
    pub(crate) fn add(&mut self, made: usize, id: &str, families: &[Family]) {
        self.changes.entry(made).or_default().extend(families);
        self.ids.insert(id.to_owned());
    }

    /// Was the change at this position lost for this family?
    pub(crate) fn has(&self, made: usize, family: Family) -> bool {
        self.changes.get(&made).is_some_and(|families| families.contains(&family))
    }

    /// Was the record with this id lost for any function?
    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Keys of the items that were changed.
    pub(crate) fn keys<'a>(&self, made: &'a [TableChange]) -> BTreeSet<&'a Key> {
        self.changes.keys().map(|at| &made[*at].key).collect()
    }

    /// What the lost changes concern, and what a redrive left out and listed for a recount.
    pub(crate) fn concerned(&self, scene: &Scene, made: &[TableChange]) -> Concerned {
        let lost = self.changes.iter().map(|(at, families)| (&made[*at], families.as_slice()));
        let mut concerned = Concerned::by(scene, lost);
        let listed = to_recount(scene);
        let is_history = |name: &&String| {
            let position = scene.catalogue.position(name).and_then(|at| scene.catalogue.derivation(at));
            position.is_some_and(|derivation| derivation.kind.is_history())
        };
        concerned.histories.extend(listed.iter().map(|(derivation, _)| derivation).filter(is_history).cloned());
        concerned.counts.extend(listed);
        let shown = concerned.histories.iter().flat_map(|name| scene.catalogue.displays(name)).map(|(at, _)| at);
        let mut positions = shown.collect();
        reach(scene, &mut positions);
        concerned.of_histories = positions.into_iter().map(|at| scene.catalogue.name(at).to_owned()).collect();
        concerned
    }
}

impl Concerned {
    /// What these changes concern, each for the functions of these families.
    pub(crate) fn by<'a>(scene: &Scene, changes: impl Iterator<Item = (&'a TableChange, &'a [Family])>) -> Self {
        let mut concerned = Self::default();
        let mut positions: BTreeSet<DerivationAt> = BTreeSet::new();
        for (made, families) in changes {
            let Some(change) = decoded(made) else { continue };
            for (derivation, effect) in plan(&scene.schema, &scene.catalogue, families, &change).effects {
                let name = scene.catalogue.name(derivation).to_owned();
                if scene.catalogue.derivation(derivation).is_some_and(|it| it.kind.is_history()) {
                    concerned.histories.insert(name.clone());
                }
                match effect {
                    Effect::Add(add) => {
                        // Whoever counts shows the count too.
                        positions.extend(scene.catalogue.displays(&name).map(|(at, _)| at));
                        concerned.counts.insert((name, add.target));
                    }
                    Effect::Measure(measure) => drop(concerned.counts.insert((name, measure.bucket))),
                    _ => drop(positions.insert(derivation)),
                }
            }
        }
        reach(scene, &mut positions);
        concerned.derivations = positions.into_iter().map(|at| scene.catalogue.name(at).to_owned()).collect();
        concerned
    }

    /// Can they be why a sweep says that this has drifted?
    pub(crate) fn explains_drift(&self, drift: &Drift) -> bool {
        let of_count = CounterKey::parse(&drift.item).map(|counter| (counter.derivation, counter.target));
        of_count.is_some_and(|count| self.counts.contains(&count))
            || drift.derivations.iter().any(|name| self.derivations.contains(name))
    }

    /// Can the loss be why this was found?
    pub(crate) fn explains(&self, finding: &Finding) -> bool {
        match target(finding) {
            Some(count) => self.counts.contains(&(count.derivation, count.item)),
            None => self.has_bucket(finding) || self.derivations.contains(&finding.derivation),
        }
    }

    /// Does it differ from its definition, though it is right by what is stored, since it builds on a history that nobody can
    /// count again?
    pub(crate) fn builds_on_history(&self, finding: &Finding) -> bool {
        self.of_histories.contains(&finding.derivation)
    }

    /// Is it a bucket or a history whose values nobody knows any more?
    pub(crate) fn has_bucket(&self, finding: &Finding) -> bool {
        let history = target(finding).filter(|count| self.histories.contains(&count.derivation));
        history.is_some_and(|count| self.counts.contains(&(count.derivation, count.item)))
            || self.counts.contains(&(finding.derivation.clone(), Key::new(&finding.pk, &finding.sk)))
    }
}

fn decoded(made: &TableChange) -> Option<Change> {
    let images = match (made.old.clone(), made.new.clone()) {
        (None, Some(new)) => Images::Inserted(new),
        (Some(old), Some(new)) => Images::Modified { old, new },
        (Some(old), None) => Images::Removed(old),
        (None, None) => return None,
    };
    let (id, sequence_number) = (String::new(), String::new());
    Some(Change { id, sequence_number, created_ms: Some(made.at_ms), key: made.key.clone(), images })
}

/// Adds the derivations that read what these write, or find items through the items that these make, and so on.
fn reach(scene: &Scene, positions: &mut BTreeSet<DerivationAt>) {
    loop {
        let writes: Vec<_> = positions.iter().flat_map(|at| scene.catalogue.writes(*at)).collect();
        let made = writes.iter().filter(|written| written.of == PartOf::Existence);
        let made: BTreeSet<&str> = made.map(|written| written.entity.as_str()).collect();
        let reads_any = |(_, derivation): &(DerivationAt, &derive::derivation::Derivation)| {
            let reach = derivation.kind.reach(&scene.schema).unwrap_or_default();
            reach.reads.iter().any(|read| writes.iter().any(|written| written.meets(read)))
                || derivation.kind.entities().iter().any(|entity| made.contains(entity))
        };
        let more: BTreeSet<DerivationAt> = scene
            .catalogue
            .positioned()
            .filter(|(at, _)| !positions.contains(at))
            .filter(reads_any)
            .map(|(at, _)| at)
            .collect();
        if more.is_empty() {
            return;
        }
        positions.extend(more);
    }
}

// ---- The text of an event that Lambda receives ----

/// Length of a tumbling window, in milliseconds.
const WINDOW_MS: u64 = 30_000;

/// An event of these records of the stream, as a version reads them, within a tumbling window if there is one.
pub(crate) fn event(
    stream: &Stream,
    records: impl Iterator<Item = usize>,
    window: Option<&Window>,
    is_old: bool,
) -> String {
    let records: Vec<&str> = records.map(|at| stream.as_read(&stream.records[at], is_old).as_ref()).collect();
    let event = record::event(&records);
    window.map_or_else(|| event.clone(), |window| window.around(&event))
}

/// The start and the end of the current window.
pub(crate) fn bounds(scene: &Scene) -> [String; 2] {
    let start_ms = scene.clock.now_ms() / WINDOW_MS * WINDOW_MS;
    [start_ms, start_ms + WINDOW_MS].map(time)
}

/// A time as the platform writes it. The day is always the same: nobody reads it.
fn time(at_ms: u64) -> String {
    let seconds = at_ms / 1000 % 86_400;
    format!("2024-01-15T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

// ---- Records that are corrupt in the stream: they do not decode, though their id and sequence number can be read ----

/// Of a thousand records, how many are corrupt, and how many when the functions brake, which takes many, or when one version
/// reads them.
const PER_MILLE: usize = 8;
const PER_MILLE_OFTEN: usize = 80;

/// The corrupt form of a record, which never decodes; `None` when the record is not to be corrupt.
pub(crate) fn corrupted(scene: &Scene, json: &str) -> Option<String> {
    let is_often = scene.is_braked || scene.rollout.reads_differ();
    let per_mille = if is_often { PER_MILLE_OFTEN } else { PER_MILLE };
    if scene.is_healed() || scene.rollout.is_calm() || scene.chance.below(1_000) < 1_000 - per_mille {
        return None;
    }
    let mut record: Value = serde_json::from_str(json).unwrap();
    let dynamodb = record["dynamodb"].as_object_mut().unwrap();
    let image = if dynamodb.contains_key("NewImage") { "NewImage" } else { "OldImage" };
    match scene.chance.below(4) {
        0 => drop(dynamodb.remove(image)),
        1 => dynamodb[image]["PK"] = json!({"Q": "no such type"}),
        2 => drop(dynamodb.remove("Keys")),
        _ => dynamodb["Keys"] = json!({"PK": {"N": "1"}, "SK": {"N": "2"}}),
    }
    scene.count("corrupt");
    Some(record.to_string())
}

/// Replaces the corrupt record in a parked item by the true one.
pub(crate) fn put_true(memory: &MemoryStore, key: &Key, json: &str) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json.as_bytes()).unwrap();
    let compressed = encoder.finish().unwrap();
    let mut item = memory.view(Table::Ledger, |items| items[key].clone());
    // The true record of a small item fits one part, as the corrupt one did.
    assert_eq!(item.get("Parts"), Some(&AttributeValue::N("1".to_owned())));
    item.insert("Record".to_owned(), AttributeValue::B(compressed));
    memory.put_raw(Table::Ledger, item).unwrap();
}

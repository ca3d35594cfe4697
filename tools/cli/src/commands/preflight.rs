//! `ripple preflight`: checks whether the application's tables fit the declarations, before the service is attached.
//!
//! Reads a part of each table and writes nothing. [`plan`] receives each item as an insert, and determines its entity
//! and the derivations that cannot read it. The table itself is checked as a function checks it at its start. The
//! report contains keys, but no values of attributes.
//!
//! # Cost
//!
//! Estimates the cost of a backfill from a sample.
//!
//! This is an upper estimate: it assumes that each item derived from the sample is written once, at the size of the
//! table's own items. Some may already be correct, and some are derived from several items of the sample. A history
//! count cannot be filled, because the table does not contain everything that it counts.

mod links;
mod report;
pub(super) mod sample;
mod surroundings;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    change::{Change, Images},
    clock,
    effect::Effect,
    family::Family,
    plan::{RecordKind, plan},
    position::DerivationAt,
    schema::Schema,
};
use design::{Design, price::price, samples::Samples};
use engine::{input::caught, look::listing::ALL_DERIVATIONS};
use functions::logging;
use keys::{counter::CounterKey, item::Item, key::Key};

use super::LOG_FILTER;
use crate::{
    args::Preflight,
    bar::progress,
    commands::preflight::{
        links::CheckedLink,
        sample::{SampleLimits, SampledTable},
        surroundings::Surroundings,
    },
    exit::{Completion, print},
    opened::{Opened, open_to_attach},
    words::print_json,
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

// ---- Estimates the cost of a backfill from a sample ----

/// Bytes of a consistent read unit. Source: `DynamoDB`, "Read and write operations".
const READ_UNIT_BYTES: u64 = 4_096;

/// Write units of one addition to a count: the counter, the receipt and the right to repair, in one transaction.
const REPAIR_UNITS: f64 = 6.0;

/// The estimated writes for a derivation.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct WriteEstimate {
    pub(in crate::commands) derivation: String,
    /// Number of items in the whole table.
    pub(in crate::commands) n_items: f64,
    /// Write units in the whole table.
    pub(in crate::commands) units: f64,
}

impl WriteEstimate {
    /// The upper limit, in words.
    pub(in crate::commands) fn at_most(&self) -> String {
        let of = |n: f64, noun: &str| format!("{n:.0} {noun}{}", if n > 0.5 && n < 1.5 { "" } else { "s" });
        format!("at most {}, {}", of(self.n_items, "item"), of(self.units, "write unit"))
    }
}

/// The estimated cost of a backfill.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct BackfillCost {
    /// Read units of one consistent read of the whole table. An eventually consistent one takes half.
    pub(in crate::commands) read_units: u64,
    /// By derivation; `None` if the sampled share of the table is unknown.
    pub(in crate::commands) parts: Option<Vec<WriteEstimate>>,
    /// Write units of all derivations. An item that several derivations write counts once.
    pub(in crate::commands) write_units: f64,
    /// Derivations that cannot be filled.
    pub(in crate::commands) history: Vec<String>,
}

impl BackfillCost {
    /// Makes an estimate from samples of the application's tables.
    pub(in crate::commands) fn estimate(opened: &Opened, tables: &[SampledTable]) -> Self {
        let (schema, catalogue) = ((*opened.schema).clone(), (*opened.catalogue).clone());
        let samples = tables.iter().flat_map(|table| table.fitting.samples.values().cloned()).collect();
        let samples = Samples::of(&schema, samples);
        let design = Design { samples, ..Design::declared(schema, catalogue) };
        let read_units = tables.iter().map(|table| table.bytes.div_ceil(READ_UNIT_BYTES)).sum();
        let is_sampled =
            |at| tables.iter().any(|table| table.fitting.derived.get(&at).is_some_and(|it| !it.is_empty()));
        let history = design.catalogue.positioned().filter(|(at, it)| it.kind.is_history() && is_sampled(*at));
        let history = history.map(|(_, derivation)| derivation.label().to_owned()).collect();
        let mut estimated = Self { read_units, history, ..Self::default() };
        let (mut all, mut is_known) = (BTreeMap::<DerivationAt, WriteEstimate>::new(), true);
        for table in tables {
            let Some(share) = table.share.filter(|share| *share > 0.0) else {
                is_known = false;
                continue;
            };
            let (parts, units) = of_table(&design, &table.fitting, share);
            estimated.write_units += units;
            for (at, part) in parts {
                let none = || WriteEstimate { n_items: 0.0, units: 0.0, ..part.clone() };
                let sum = all.entry(at).or_insert_with(none);
                (sum.n_items, sum.units) = (sum.n_items + part.n_items, sum.units + part.units);
            }
        }
        estimated.parts = is_known.then(|| all.into_values().collect());
        estimated
    }
}

/// The writes for one table, by derivation, and the write units of all of them. `share` is the part of the table that
/// was read. An item that several derivations write counts once in the sum.
fn of_table(design: &Design, fitting: &Fitting, share: f64) -> (Vec<(DerivationAt, WriteEstimate)>, f64) {
    let whole = |of_share: f64| (of_share / share).ceil();
    let (mut parts, mut looked, mut counted) = (Vec::new(), BTreeMap::<&Key, f64>::new(), 0.0);
    for (at, derivation) in design.catalogue.positioned().filter(|(_, derivation)| !derivation.kind.is_history()) {
        let Some(items) = fitting.derived.get(&at).filter(|items| !items.is_empty()) else { continue };
        let is_counted = derivation.kind.family() == Family::Additive;
        let units = if is_counted { REPAIR_UNITS } else { price(design, derivation).map_or(0.0, |it| it.total()) };
        let n_items = items.iter().fold(0.0, |sum, _| sum + 1.0);
        let derivation = derivation.label().to_owned();
        parts.push((at, WriteEstimate { derivation, n_items: whole(n_items), units: whole(n_items * units) }));
        if is_counted {
            counted += n_items * units;
            continue;
        }
        for item in items {
            let held = looked.entry(item).or_default();
            *held = held.max(units);
        }
    }
    (parts, whole(counted + looked.values().sum::<f64>()))
}

// ---- The items that fit, those that do not, and those that the derivations would write ----

/// Number of keys to keep as examples of a group.
const EXAMPLES: usize = 3;

/// Items with the same result.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Group {
    pub(in crate::commands) n_items: u64,
    /// Keys of some of the items.
    pub(in crate::commands) examples: Vec<Key>,
}

impl Group {
    fn add(&mut self, key: &Key) {
        self.n_items += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(key.clone());
        }
    }
}

/// The results for the items of a sample.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Fitting {
    pub(in crate::commands) n_items: u64,
    /// Items by entity.
    pub(in crate::commands) entities: BTreeMap<String, u64>,
    /// Items without an entity type.
    pub(in crate::commands) untyped: Group,
    /// Items with an undeclared entity, or with a key of an undeclared form.
    pub(in crate::commands) unknown: Group,
    /// Items that a derivation cannot read, by derivation and reason.
    pub(in crate::commands) unreadable: BTreeMap<(String, String), Group>,
    /// Items that derivations would write, by derivation: those that inserts of the sampled items would refresh or add
    /// to.
    pub(in crate::commands) derived: BTreeMap<DerivationAt, BTreeSet<Key>>,
    /// One item of each entity.
    pub(in crate::commands) samples: BTreeMap<String, Item>,
}

impl Fitting {
    /// Adds an item of the sample; `None` if its key does not have the declared form.
    pub(in crate::commands) fn add(&mut self, schema: &Schema, catalogue: &Catalogue, item: Option<Item>) {
        self.n_items += 1;
        let addressed = item.and_then(|item| Some((schema.layout.key(&item)?, item)));
        let Some((key, item)) = addressed else { return self.untyped.add(&Key::new("", "")) };
        let (id, sequence_number) = (String::new(), String::new());
        let change = Change { id, sequence_number, created_ms: None, key, images: Images::Inserted(item) };
        let families = [Family::Additive, Family::LevelTriggered];
        let planned = match caught("planning it", || plan(schema, catalogue, &families, &change)) {
            Ok(planned) => planned,
            Err(why) => return self.unreadable(ALL_DERIVATIONS, why, &change.key),
        };
        if let Some(why) = planned.misfit {
            self.unreadable(ALL_DERIVATIONS, why.to_string(), &change.key);
            if change.new_image().and_then(|item| schema.image(&change.key, item)).is_none() {
                return;
            }
        }
        match planned.record {
            RecordKind::Untyped | RecordKind::Unknown if change.key == clock::key() => return,
            RecordKind::Untyped => return self.untyped.add(&change.key),
            RecordKind::Unknown => return self.unknown.add(&change.key),
            RecordKind::Change | RecordKind::Echo => {}
        }
        for (at, effect) in planned.effects {
            if let Effect::List { unreadable: Some(why) } = &effect {
                self.unreadable(catalogue.label(at), why.to_string(), &change.key);
            }
            self.derived.entry(at).or_default().extend(written(catalogue.name(at), effect));
        }
        let Images::Inserted(item) = change.images else { return };
        if let Some(image) = schema.image(&change.key, &item) {
            let entity = image.definition.name.clone();
            *self.entities.entry(entity.clone()).or_default() += 1;
            self.samples.entry(entity).or_insert(item);
        }
    }

    fn unreadable(&mut self, derivation: &str, why: String, key: &Key) {
        self.unreadable.entry((derivation.to_owned(), why)).or_default().add(key);
    }

    /// Number of items of a declared entity.
    pub(in crate::commands) fn n_fitting(&self) -> u64 {
        self.entities.values().sum()
    }
}

/// The item that an effect would write. Items that a search would find are skipped, because their own inserts cover
/// them.
fn written(derivation: &str, effect: Effect) -> Option<Key> {
    match effect {
        // The shard differs from batch to batch; a backfill uses one.
        Effect::Add(add) => CounterKey::home(add.target, derivation).key().ok(),
        Effect::Measure(measure) => Some(measure.bucket),
        Effect::Look(request) | Effect::Vacated(request) => Some(request.item),
        Effect::Ground(_) | Effect::Find(_) | Effect::Late | Effect::Later(..) | Effect::List { .. } => None,
    }
}

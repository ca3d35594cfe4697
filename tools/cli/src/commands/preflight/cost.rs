//! Estimates the cost of a backfill from a sample.
//!
//! An upper estimate: it assumes that each item that follows from the sample is written once, at the size of the
//! table's own items. Some may be in step already, and some follow from several items of the sample. A history count
//! cannot be filled, because the table does not contain everything that it counts.

use std::collections::BTreeMap;

use derive::{family::Family, position::DerivationAt};
use design::{Design, price::price, samples::Samples};
use keys::key::Key;

use super::{fitting::Fitting, sample::SampledTable};
use crate::opened::Opened;

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
    /// How much it is at most, in words.
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

/// The writes for one table, by derivation, and the write units of all of them. `share` is the part of the table that was
/// read. An item that several derivations write counts once in the sum.
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

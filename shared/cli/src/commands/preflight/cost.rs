//! What a backfill would cost, from the part that was read.
//!
//! An estimate from above: each item that follows from those that were read is written once, at the price of the
//! table's own items, though some may be in step by now and some are followed by others that were read too. What is
//! history cannot be filled in, since the table does not hold it.

use std::collections::BTreeMap;

use derive::derivation::Family;
use design::{Design, price::price, samples::Samples};
use keys::key::Key;

use super::fitting::Fitting;
use crate::opened::Opened;

/// Bytes of a consistent read unit. Source: `DynamoDB`, "Read and write operations".
const READ_UNIT_BYTES: u64 = 4_096;

/// What a derivation would write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) derivation: String,
    /// Items, of the whole table.
    pub(super) n_items: f64,
    /// Write units, of the whole table.
    pub(super) units: f64,
}

/// What a backfill would cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Backfill {
    /// Read units of all of the table once, read consistently; half of them otherwise.
    pub(super) read_units: u64,
    /// By derivation; `None` where nobody knows which share of the table was read.
    pub(super) parts: Option<Vec<Part>>,
    /// Write units of all of them: an item that several write is written once.
    pub(super) write_units: f64,
    /// Derivations that cannot be filled in.
    pub(super) history: Vec<String>,
}

impl Backfill {
    /// Estimates from what was read, which is this share of the table.
    pub(super) fn estimate(opened: &Opened, fitting: &Fitting, share: Option<f64>, bytes: u64) -> Self {
        let (schema, catalogue) = ((*opened.schema).clone(), (*opened.catalogue).clone());
        let samples = Samples::of(&schema, fitting.samples.values().cloned().collect());
        let design = Design { samples, ..Design::declared(schema, catalogue) };
        let mut estimated = Self { read_units: bytes.div_ceil(READ_UNIT_BYTES), ..Self::default() };
        let (mut parts, mut looked, mut counted) = (Vec::new(), BTreeMap::<&Key, f64>::new(), 0.0);
        for (at, derivation) in design.catalogue.derivations().enumerate() {
            let Some(items) = fitting.derived.get(&at).filter(|items| !items.is_empty()) else { continue };
            if derivation.kind.is_history() {
                estimated.history.push(derivation.name.clone());
                continue;
            }
            let units = price(&design, derivation).map_or(0.0, |price| price.total());
            let n_items = items.iter().fold(0.0, |sum, _| sum + 1.0);
            parts.push(Part { derivation: derivation.name.clone(), n_items, units: n_items * units });
            if derivation.kind.family() == Family::Additive {
                counted += n_items * units;
                continue;
            }
            for item in items {
                let held = looked.entry(item).or_default();
                *held = held.max(units);
            }
        }
        let Some(share) = share.filter(|share| *share > 0.0) else { return estimated };
        let whole = |of_share: f64| (of_share / share).ceil();
        for part in &mut parts {
            (part.n_items, part.units) = (whole(part.n_items), whole(part.units));
        }
        estimated.write_units = whole(counted + looked.values().sum::<f64>());
        estimated.parts = Some(parts);
        estimated
    }
}

//! What a backfill would cost, from the part that was read.
//!
//! An estimate from above: each item that follows from those that were read is written once, at the price of the
//! table's own items, though some may be in step by now and some are followed by others that were read too. What is
//! history cannot be filled in, since the table does not hold it.

use std::collections::BTreeMap;

use derive::family::Family;
use design::{Design, price::price, samples::Samples};
use keys::key::Key;

use super::fitting::Fitting;
use crate::opened::Opened;

/// Bytes of a consistent read unit. Source: `DynamoDB`, "Read and write operations".
const READ_UNIT_BYTES: u64 = 4_096;

/// Write units of adding to a count once: the counter, the receipt and the right to repair, in one transaction.
const REPAIR_UNITS: f64 = 6.0;

/// What a derivation would write.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct WriteEstimate {
    pub(in crate::commands) derivation: String,
    /// Items, of the whole table.
    pub(in crate::commands) n_items: f64,
    /// Write units, of the whole table.
    pub(in crate::commands) units: f64,
}

/// What a backfill would cost.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Backfill {
    /// Read units of all of the table once, read consistently; half of them otherwise.
    pub(in crate::commands) read_units: u64,
    /// By derivation; `None` where nobody knows which share of the table was read.
    pub(in crate::commands) parts: Option<Vec<WriteEstimate>>,
    /// Write units of all of them: an item that several write is written once.
    pub(in crate::commands) write_units: f64,
    /// Derivations that cannot be filled in.
    pub(in crate::commands) history: Vec<String>,
}

impl Backfill {
    /// Estimates from what was read, which is this share of the table.
    pub(in crate::commands) fn estimate(opened: &Opened, fitting: &Fitting, share: Option<f64>, bytes: u64) -> Self {
        let (schema, catalogue) = ((*opened.schema).clone(), (*opened.catalogue).clone());
        let samples = Samples::of(&schema, fitting.samples.values().cloned().collect());
        let design = Design { samples, ..Design::declared(schema, catalogue) };
        let mut estimated = Self { read_units: bytes.div_ceil(READ_UNIT_BYTES), ..Self::default() };
        let (mut parts, mut looked, mut counted) = (Vec::new(), BTreeMap::<&Key, f64>::new(), 0.0);
        for (at, derivation) in design.catalogue.positioned() {
            let Some(items) = fitting.derived.get(&at).filter(|items| !items.is_empty()) else { continue };
            if derivation.kind.is_history() {
                estimated.history.push(derivation.name.clone());
                continue;
            }
            let is_counted = derivation.kind.family() == Family::Additive;
            let units = if is_counted { REPAIR_UNITS } else { price(&design, derivation).map_or(0.0, |it| it.total()) };
            let n_items = items.iter().fold(0.0, |sum, _| sum + 1.0);
            parts.push(WriteEstimate { derivation: derivation.name.clone(), n_items, units: n_items * units });
            if is_counted {
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

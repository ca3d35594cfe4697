//! What it costs to correct what an audit found, by the prices of [preflight](crate::commands::preflight): the price of
//! a derivation's write to an item of the table's own size.
//!
//! *Example*: 3 comments have an old name and each takes 2 write units, so `comment-author` takes 3 items and 6 units.
//! A comment that two derivations correct is written once, for the higher of both prices.

use std::collections::BTreeMap;

use derive::{catalogue::Catalogue, schema::Schema};
use design::{Design, price::price, samples::Samples};
use operate::{audit::Audited, objects::audit::MendCost};

/// The cost by derivation and of all of them.
pub(super) struct Mending {
    /// By the derivation's label.
    pub(super) by_derivation: BTreeMap<String, MendCost>,
    /// An item that several derivations correct counts once.
    pub(super) total: MendCost,
}

impl Mending {
    pub(super) fn of(schema: &Schema, catalogue: &Catalogue, audited: &Audited) -> Self {
        let samples = Samples::of(schema, audited.samples.clone());
        let design = Design { samples, ..Design::declared(schema.clone(), catalogue.clone()) };
        let mut mending = Self { by_derivation: BTreeMap::new(), total: MendCost::default() };
        for (names, n_items) in &audited.totals.to_mend {
            // No table has as many items as a float cannot count.
            let n = f64::from(u32::try_from(*n_items).unwrap_or(u32::MAX));
            let mut highest = 0.0_f64;
            for name in names {
                let derivation = catalogue.position(name).and_then(|at| catalogue.derivation(at));
                let units = derivation.and_then(|it| price(&design, it)).map_or(0.0, |it| it.total());
                let cost = mending.by_derivation.entry(catalogue.label_of(name).to_owned()).or_default();
                cost.items += n_items;
                cost.write_units += n * units;
                highest = highest.max(units);
            }
            mending.total.items += n_items;
            mending.total.write_units += n * highest;
        }
        mending
    }
}

//! A second oracle: the shipped table recounted by hand-written loops.
//!
//! It shares no code with the product, not even keys and numbers, so a fault in a kind, a link, a predicate or a sum
//! cannot hide in it. The names of entities, attributes and derivations are those of the shipped table, row by row. It
//! reads the items at the end, and for what is history every change. Each file is one family of derivations: a loop over
//! the sources, what they derive, and the comparison with what is stored.
//!
//! What the product's pages say of values that cannot be read holds here too: an item in which the deciding value has
//! another type is absent, and a missing amount adds 0. Both are counted in [`Recount`] and printed.

pub(crate) mod best_sellers;
pub(crate) mod cascades;
pub(crate) mod copies;
pub(crate) mod counts;
pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod mirrors;
pub(crate) mod paths;
pub(crate) mod table;

mod tests;

use std::fmt;

use table::{Address, PlainItem, PlainTable};

/// A write to the table.
pub(crate) struct PlainChange {
    pub(crate) at: Address,
    pub(crate) old: Option<PlainItem>,
    pub(crate) new: Option<PlainItem>,
    /// Did the service write it?
    pub(crate) is_ours: bool,
    /// Did the functions that look never get its record?
    pub(crate) is_lost: bool,
}

/// A derived value that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) derivation: &'static str,
    pub(crate) at: Address,
    pub(crate) stored: String,
    pub(crate) derived: String,
}

/// What the oracle found and what it left out.
#[derive(Debug, Default)]
pub(crate) struct Recount {
    pub(crate) differences: Vec<Difference>,
    /// Values that were compared.
    pub(crate) n_compared: usize,
    /// Items that do not count, because a value that decides cannot be read.
    pub(crate) n_unreadable: usize,
    /// Readings whose value changed or went after it had counted.
    pub(crate) n_late: usize,
    /// Items that may outlive their owner: a cascade could not know that they belong to it.
    pub(crate) n_not_found: usize,
}

impl Recount {
    #[expect(clippy::needless_pass_by_value, reason = "the loops make both values for this call")]
    fn compare<T: fmt::Debug + PartialEq>(&mut self, derivation: &'static str, at: &Address, stored: T, derived: T) {
        self.n_compared += 1;
        if stored != derived {
            let (stored, derived) = (format!("{stored:?}"), format!("{derived:?}"));
            self.differences.push(Difference { derivation, at: at.clone(), stored, derived });
        }
    }
}

/// Recounts the whole table.
pub(crate) fn recount(table: &PlainTable, changes: &[PlainChange]) -> Recount {
    let mut recount = Recount::default();
    let counted = counts::counted(table, &mut recount);
    counts::compare(table, &counted, &mut recount);
    best_sellers::compare(table, &counted, &mut recount);
    mirrors::compare(table, &mut recount);
    copies::compare(table, &mut recount);
    latest::compare(table, &mut recount);
    paths::compare(table, &mut recount);
    history::compare(table, changes, &mut recount);
    cascades::compare(table, changes, &mut recount);
    recount
}

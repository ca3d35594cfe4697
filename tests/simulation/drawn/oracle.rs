//! The second oracle of drawn manifests: loops over the description and the items as they are stored.
//!
//! It shares no code with the product: not kinds, links, conditions, sums, templates or numbers. It derives each value from
//! the stored sources, and it compares each source itself. It treats unreadable values as the documentation says: an item
//! whose deciding value is of another type does not count, and a missing amount adds 0.

mod carried;
mod conditions;
mod counts;
mod histories;
mod mirrors;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    description::{Description, What},
    values::{Place, Row, place, row},
};
use crate::oracle::table::PlainItem;

/// A change of an item, in the order of the writes.
pub(crate) struct DrawnChange {
    pub(crate) old: Option<Row>,
    pub(crate) new: Option<Row>,
}

/// A derived value that is not what it should be.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) rule: String,
    pub(crate) at: Place,
    pub(crate) stored: String,
    pub(crate) derived: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, stored, derived } = self;
        write!(f, "{rule} at {at:?}: stored {stored}, derived {derived}")
    }
}

/// All items of drawn entities.
pub(crate) struct Rows {
    by_entity: Vec<Vec<Row>>,
    by_place: BTreeMap<Place, (usize, usize)>,
    /// Where there is an item, of any entity or of none.
    taken: BTreeSet<Place>,
}

impl Rows {
    pub(crate) fn new(of: &Description, items: impl Iterator<Item = (usize, PlainItem)>) -> Self {
        let by_entity = vec![Vec::new(); of.entities.len()];
        let mut rows = Self { by_entity, by_place: BTreeMap::new(), taken: BTreeSet::new() };
        for (table, item) in items {
            rows.taken.extend(place(of, table, &item));
            let Some(row) = row(of, table, &item) else { continue };
            let at = (row.entity, rows.by_entity[row.entity].len());
            rows.by_place.insert(row.place.clone(), at);
            rows.by_entity[row.entity].push(row);
        }
        rows
    }

    /// The items of an entity.
    pub(crate) fn each(&self, entity: usize) -> &[Row] {
        &self.by_entity[entity]
    }

    /// The item at this place, if it is of this entity.
    pub(crate) fn get(&self, entity: usize, place: &Place) -> Option<&Row> {
        let (of, at) = *self.by_place.get(place)?;
        (of == entity).then(|| &self.by_entity[of][at])
    }
}

impl Rows {
    /// Does something else have the key of an item of this entity? Then a derived item waits.
    pub(crate) fn is_taken(&self, entity: usize, place: &Place) -> bool {
        self.taken.contains(place) && self.get(entity, place).is_none()
    }
}

/// What the oracle found.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) differences: Vec<Difference>,
    /// Values that were compared, by kind; and those of them that were there.
    pub(crate) n: BTreeMap<&'static str, (usize, usize)>,
}

impl Compared {
    fn compare<T: fmt::Debug + PartialEq>(
        &mut self,
        kind: &'static str,
        rule: &str,
        at: &Place,
        stored: &T,
        derived: &T,
    ) {
        self.compare_as(kind, rule, at, stored == derived, stored, derived);
    }

    fn compare_as<T: fmt::Debug>(
        &mut self,
        kind: &'static str,
        rule: &str,
        at: &Place,
        is_right: bool,
        stored: &T,
        derived: &T,
    ) {
        let (stored, derived) = (format!("{stored:?}"), format!("{derived:?}"));
        let (n, n_there) = self.n.entry(kind).or_default();
        *n += 1;
        *n_there += usize::from(derived != "None");
        if !is_right {
            self.differences.push(Difference { rule: rule.to_owned(), at: at.clone(), stored, derived });
        }
    }
}

/// Recounts what every derivation derives, but for the histories of those that `is_left_out`.
pub(crate) fn recount(
    of: &Description,
    rows: &Rows,
    changes: &[DrawnChange],
    is_left_out: impl Fn(&str) -> bool,
) -> Compared {
    let mut compared = Compared::default();
    for rule in &of.rules {
        let name = rule.name.as_str();
        match &rule.what {
            What::Count(count) if count.is_history && is_left_out(name) => {}
            What::Count(count) => counts::compare(of, rows, changes, name, count, &mut compared),
            What::Copy(copy) => carried::copies(of, rows, name, copy, &mut compared),
            What::Latest(latest) => carried::latest(of, rows, name, latest, &mut compared),
            What::Extreme { from, to, link, field, into, is_max } => {
                carried::extreme(of, rows, name, (*from, *to), link, (field, into), *is_max, &mut compared);
            }
            What::Mirror(mirror) => mirrors::compare(of, rows, name, mirror, &mut compared),
            What::Path { of: tree, link, name: part, into, depth, .. } => {
                carried::paths(of, rows, name, *tree, link, (part, into), *depth, &mut compared);
            }
            What::IndexKey { of: ranked, index_key, number } => {
                carried::index_keys(of, rows, name, *ranked, *index_key, number, &mut compared);
            }
            What::RollUp(_) if is_left_out(name) => {}
            What::RollUp(roll_up) => histories::roll_ups(of, rows, changes, name, roll_up, &mut compared),
            // What a cascade deletes, and what it must not delete, is judged by the changes: see `check`.
            What::Cascade { .. } => {}
        }
    }
    compared
}

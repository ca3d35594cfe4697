//! Lag: from the answer to a write of the application to the commit of the last write that follows from it.
//!
//! What follows from what is told by the functions: each of their writes names the records that it follows from, and
//! makes a record of its own, from which more may follow. Which record a write made is found at the end: an item's
//! records come in the order of its writes, and those of the service are the ones that leave `UpdatedAt` as it is,
//! which every edit of the demonstration's application changes, and the removals and new keys that it did not ask for.
//!
//! A cascade is no lag: it waits until what was written before has been seen, and what follows from its deletions is
//! not traced back to the removal that began it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use keys::key::Key;

use crate::workload::metered::{Stamp, Written};

/// A record of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Id of the event.
    pub(crate) id: String,
    /// The item, and what identifies an application's write of it.
    pub(crate) stamp: Stamp,
    /// Does it show by itself that the service wrote it?
    pub(crate) ours: bool,
    /// Is it of an item that was declared?
    pub(crate) is_known: bool,
    /// Is it of a ground item, with a difference that a derivation reads?
    pub(crate) is_change: bool,
}

/// A write of the service.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// The item.
    pub(crate) key: Key,
    /// When it was answered, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Ids of the records that it follows from.
    pub(crate) causes: Vec<String>,
}

/// The lag of every change from which a write followed, in milliseconds, in ascending order. `records` in the order in
/// which they were delivered.
pub(crate) fn lags_ms(records: &[Seen], mut writes: Vec<Done>, written: &Written) -> Vec<u64> {
    writes.sort_by_key(|write| write.at_ms);
    let made_by = made_by(records, &writes, written);
    let changes = records.iter().filter(|record| record.is_change && !is_ours(record, written));
    let changes: HashMap<&str, &Stamp> = changes.map(|record| (record.id.as_str(), &record.stamp)).collect();
    // Changes that each write follows from. A write's causes were made by earlier writes.
    let mut follows: Vec<BTreeSet<&str>> = Vec::new();
    let mut last_ms: BTreeMap<&str, u64> = BTreeMap::new();
    for write in &writes {
        let mut origins = BTreeSet::new();
        for cause in &write.causes {
            if changes.contains_key(cause.as_str()) {
                origins.insert(cause.as_str());
            } else if let Some(earlier) = made_by.get(cause.as_str()).and_then(|at| follows.get(*at)) {
                origins.extend(earlier.iter().copied());
            }
        }
        for origin in &origins {
            last_ms.insert(*origin, write.at_ms);
        }
        follows.push(origins);
    }
    let lag = |(change, last_ms): (&str, u64)| {
        let answered_ms = written.answered_ms.get(*changes.get(change)?)?;
        Some(last_ms.saturating_sub(*answered_ms))
    };
    let mut lags: Vec<u64> = last_ms.into_iter().filter_map(lag).collect();
    lags.sort_unstable();
    lags
}

/// Did the service write it? Then the application was not answered for it.
fn is_ours(record: &Seen, written: &Written) -> bool {
    record.ours || (record.is_known && !written.answered_ms.contains_key(&record.stamp))
}

/// Positions of the writes that made the service's records: the first of an item's made its first, and so on.
fn made_by<'a>(records: &'a [Seen], writes: &[Done], written: &Written) -> HashMap<&'a str, usize> {
    let mut of_item: HashMap<&Key, std::collections::VecDeque<usize>> = HashMap::new();
    for (at, write) in writes.iter().enumerate() {
        of_item.entry(&write.key).or_default().push_back(at);
    }
    let ours = records.iter().filter(|record| is_ours(record, written));
    ours.filter_map(|record| Some((record.id.as_str(), of_item.get_mut(&record.stamp.key)?.pop_front()?))).collect()
}

/// The value below which so many percent of the values are.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(sk: &str) -> Stamp {
        Stamp { key: Key::new("P", sk), updated_at: "t".to_owned(), removed: false }
    }

    fn seen(id: &str, sk: &str, is_change: bool) -> Seen {
        Seen { id: id.to_owned(), stamp: stamp(sk), ours: !is_change, is_known: true, is_change }
    }

    fn done(sk: &str, at_ms: u64, causes: &[&str]) -> Done {
        Done { key: Key::new("P", sk), at_ms, causes: causes.iter().map(|&cause| cause.to_owned()).collect() }
    }

    #[test]
    fn the_last_write_of_a_chain_ends_the_lag_of_its_first_change() {
        let records = [seen("follow", "F", true), seen("counter", "C", false), seen("display", "D", false)];
        let writes = vec![done("D", 130, &["counter"]), done("C", 120, &["follow"])];
        let written = Written { answered_ms: HashMap::from([(stamp("F"), 100)]), ..Written::default() };
        assert_eq!(lags_ms(&records, writes, &written), [30]);
    }

    #[test]
    fn a_later_write_on_the_same_item_is_not_taken_for_an_earlier_one() {
        let records = [seen("one", "F", true), seen("c1", "C", false), seen("two", "G", true), seen("c2", "C", false)];
        let writes = vec![
            done("C", 110, &["one"]),
            done("D", 120, &["c1"]),
            done("C", 1_010, &["two"]),
            done("D", 1_020, &["c2"]),
        ];
        let answered_ms = HashMap::from([(stamp("F"), 100), (stamp("G"), 1_000)]);
        assert_eq!(lags_ms(&records, writes, &Written { answered_ms, ..Written::default() }), [20, 20]);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 99), percentile(&[], 99)), (100, 198, 0));
    }
}

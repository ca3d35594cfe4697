//! Lag: the time from the response to an application's write until the commit of the last write derived from it.
//!
//! The lag is computed from the functions' reports. Each derived write names the records that caused it, and creates a
//! record of its own, which may cause further writes. Records are matched to writes at the end, in order: an item's
//! records have the order of its writes. A record belongs to the service if it leaves `UpdatedAt` unchanged, because
//! each edit by the demo's application changes it. A record of a removal or a new key belongs to the service if the
//! application did not write it.
//!
//! A cascade has no lag: it waits until everything written before it has been handled. The writes derived from its
//! deletions are not traced back to the removal that started it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use keys::key::Key;

use crate::metered::{Answered, Stamp};

/// A record of the stream.
#[derive(Clone, Debug)]
pub(crate) struct SeenRecord {
    pub(crate) id: String,
    /// The item, and the stamp that identifies an application's write to it.
    pub(crate) stamp: Stamp,
    /// True if the record alone shows that the service wrote it.
    pub(crate) ours: bool,
    /// True if the entity of the item is declared.
    pub(crate) is_known: bool,
    /// True if the record has a difference in an application item that a derivation reads.
    pub(crate) is_change: bool,
}

/// A write of the service.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) key: Key,
    /// Time of the response, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Ids of the records that caused the write.
    pub(crate) causes: Vec<String>,
}

/// The lag of a change that caused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLag {
    /// Time of the response to the application, in milliseconds since the epoch.
    pub(crate) answered_ms: u64,
    /// Time from the response until the last write, in milliseconds.
    pub(crate) lag_ms: u64,
}

/// The records and writes from which the lag is computed.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Every record once, in the order of delivery.
    pub(crate) records: Vec<SeenRecord>,
    /// The service's writes, in any order.
    pub(crate) writes: Vec<Done>,
}

impl Trace {
    /// The lags of all changes that caused a write.
    pub(crate) fn followed(&mut self, answered_ms: &Answered) -> Vec<ChangeLag> {
        self.writes.sort_by_key(|write| write.at_ms);
        let made_by = self.made_by(answered_ms);
        let changes = self.records.iter().filter(|record| record.is_change && !is_ours(record, answered_ms));
        let changes: HashMap<&str, &Stamp> = changes.map(|record| (record.id.as_str(), &record.stamp)).collect();
        // For each write, the changes at the origin of its causes. A cause that is not a change belongs to an earlier
        // write.
        let mut follows: Vec<BTreeSet<&str>> = Vec::new();
        let mut last_ms: BTreeMap<&str, u64> = BTreeMap::new();
        for write in &self.writes {
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
        let followed = |(change, last_ms): (&str, u64)| {
            let answered_ms = *answered_ms.get(*changes.get(change)?)?;
            Some(ChangeLag { answered_ms, lag_ms: last_ms.saturating_sub(answered_ms) })
        };
        last_ms.into_iter().filter_map(followed).collect()
    }

    /// Forgets the changes before a time, which can cause no further writes, and returns the lags of those that caused
    /// one. The lags of later changes stay the same, because each item loses as many records as writes.
    pub(crate) fn settle(&mut self, answered_ms: &mut Answered, before_ms: u64) -> Vec<ChangeLag> {
        let mut followed = self.followed(answered_ms);
        followed.retain(|change| change.answered_ms < before_ms);
        let is_past = |at: &usize| self.writes.get(*at).is_some_and(|write| write.at_ms < before_ms);
        let made: Vec<(&str, usize)> = self.made_by(answered_ms).into_iter().filter(|(_, at)| is_past(at)).collect();
        let past_writes: HashSet<usize> = made.iter().map(|(_, at)| *at).collect();
        let past_records: HashSet<String> = made.into_iter().map(|(id, _)| id.to_owned()).collect();
        let is_answered = |stamp: &Stamp| answered_ms.get(stamp).is_some_and(|answered_ms| *answered_ms < before_ms);
        self.records.retain(|record| !past_records.contains(&record.id) && !is_answered(&record.stamp));
        let mut at = 0..;
        self.writes.retain(|_| at.next().is_none_or(|at| !past_writes.contains(&at)));
        answered_ms.retain(|_, answered_ms| *answered_ms >= before_ms);
        followed
    }

    /// For each record of the service, the position of its write: an item's first write belongs to its first record,
    /// and so on.
    fn made_by(&self, answered_ms: &Answered) -> HashMap<&str, usize> {
        let mut of_item: HashMap<&Key, VecDeque<usize>> = HashMap::new();
        for (at, write) in self.writes.iter().enumerate() {
            of_item.entry(&write.key).or_default().push_back(at);
        }
        let ours = self.records.iter().filter(|record| is_ours(record, answered_ms));
        ours.filter_map(|record| Some((record.id.as_str(), of_item.get_mut(&record.stamp.key)?.pop_front()?))).collect()
    }
}

/// True if the service made this record: no response to the application belongs to it.
fn is_ours(record: &SeenRecord, answered_ms: &Answered) -> bool {
    record.ours || (record.is_known && !answered_ms.contains_key(&record.stamp))
}

/// A histogram of lags in whole milliseconds. Its size is bounded by the longest lag, however many lags there are.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    n_by_ms: BTreeMap<u64, usize>,
}

impl Lags {
    /// The lag at this percentile; 0 if there are no lags.
    pub(crate) fn percentile_ms(&self, percent: usize) -> u64 {
        let wanted = (self.len() * percent).div_ceil(100);
        let mut n_so_far = 0;
        for (ms, n) in &self.n_by_ms {
            n_so_far += n;
            if n_so_far >= wanted {
                return *ms;
            }
        }
        0
    }

    /// The longest lag; 0 if there are none.
    pub(crate) fn max_ms(&self) -> u64 {
        self.n_by_ms.last_key_value().map_or(0, |(ms, _)| *ms)
    }

    pub(crate) fn len(&self) -> usize {
        self.n_by_ms.values().sum()
    }
}

impl FromIterator<ChangeLag> for Lags {
    fn from_iter<T: IntoIterator<Item = ChangeLag>>(followed: T) -> Self {
        let mut lags = Self::default();
        for change in followed {
            *lags.n_by_ms.entry(change.lag_ms).or_default() += 1;
        }
        lags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(sk: &str) -> Stamp {
        Stamp { key: Key::new("P", sk), updated_at: "t".to_owned(), removed: false }
    }

    fn seen(id: &str, sk: &str, is_change: bool) -> SeenRecord {
        SeenRecord { id: id.to_owned(), stamp: stamp(sk), ours: !is_change, is_known: true, is_change }
    }

    fn done(sk: &str, at_ms: u64, causes: &[&str]) -> Done {
        Done { key: Key::new("P", sk), at_ms, causes: causes.iter().map(|&cause| cause.to_owned()).collect() }
    }

    fn lags_ms(records: &[SeenRecord], writes: Vec<Done>, answered_ms: &Answered) -> Vec<u64> {
        let mut trace = Trace { records: records.to_vec(), writes };
        let mut followed = trace.followed(answered_ms);
        followed.sort_by_key(|change| change.answered_ms);
        followed.into_iter().map(|change| change.lag_ms).collect()
    }

    #[test]
    fn the_last_write_of_a_chain_ends_the_lag_of_its_first_change() {
        let records = [seen("follow", "F", true), seen("counter", "C", false), seen("display", "D", false)];
        let writes = vec![done("D", 130, &["counter"]), done("C", 120, &["follow"])];
        assert_eq!(lags_ms(&records, writes, &HashMap::from([(stamp("F"), 100)])), [30]);
    }

    /// Two follows. Each causes a write of the counter and one of the display.
    fn two_follows() -> ([SeenRecord; 4], Vec<Done>, Answered) {
        let records = [seen("one", "F", true), seen("c1", "C", false), seen("two", "G", true), seen("c2", "C", false)];
        let writes = vec![
            done("C", 110, &["one"]),
            done("D", 120, &["c1"]),
            done("C", 1_010, &["two"]),
            done("D", 1_025, &["c2"]),
        ];
        (records, writes, HashMap::from([(stamp("F"), 100), (stamp("G"), 1_000)]))
    }

    #[test]
    fn a_later_write_on_the_same_item_is_not_taken_for_an_earlier_one() {
        let (records, writes, answered_ms) = two_follows();
        assert_eq!(lags_ms(&records, writes, &answered_ms), [20, 25]);
    }

    #[test]
    fn settled_changes_are_forgotten_and_the_lags_of_the_rest_stay_the_same() {
        let (records, writes, mut answered_ms) = two_follows();
        let mut trace = Trace { records: records.to_vec(), writes };
        trace.records.push(seen("d1", "D", false));
        assert_eq!(trace.settle(&mut answered_ms, 50), []);
        assert_eq!((trace.records.len(), trace.writes.len(), answered_ms.len()), (5, 4, 2));

        assert_eq!(trace.settle(&mut answered_ms, 500), [ChangeLag { answered_ms: 100, lag_ms: 20 }]);
        let left: Vec<&str> = trace.records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!((left, trace.writes.len(), answered_ms.len()), (vec!["two", "c2"], 2, 1));
        assert_eq!(trace.followed(&answered_ms), [ChangeLag { answered_ms: 1_000, lag_ms: 25 }]);
    }

    #[test]
    fn a_write_whose_record_is_not_there_yet_is_kept() {
        let (records, writes, mut answered_ms) = two_follows();
        let mut trace = Trace { records: records.to_vec(), writes };
        trace.settle(&mut answered_ms, 2_000);
        let left: Vec<u64> = trace.writes.iter().map(|write| write.at_ms).collect();
        assert_eq!(left, [120, 1_025]);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let lags = Lags::default();
        assert_eq!((lags.percentile_ms(99), lags.max_ms(), lags.len()), (0, 0, 0));
        let of = |lag_ms| ChangeLag { answered_ms: 0, lag_ms };
        let lags: Lags = (1..=200).rev().map(of).collect();
        assert_eq!((lags.percentile_ms(50), lags.percentile_ms(99), lags.max_ms(), lags.len()), (100, 198, 200, 200));
        let lags: Lags = (1..=200).map(of).chain([of(7); 800]).collect();
        assert_eq!((lags.percentile_ms(50), lags.percentile_ms(99), lags.max_ms()), (7, 190, 200));
    }
}

//! What a running table shows of itself: its [record of heat](engine::heat), held against what is declared.
//!
//! Two things can become of a counter that is hot, and they want opposite answers.
//!
//! *Its writers meet.* Two transactions on one counter at once, and one of them is cancelled. Sendings that come at
//! random, `r` a second in all, each holding a counter for `t` seconds, meet another with probability
//! `p = 1 - exp(-r × t / shards)`. Only the shards are ours to choose, so `-ln(1 - p)` goes down as they go up:
//!
//! ```text
//! shards wanted = shards × ln(1 - p) / ln(1 - p wanted)
//! ```
//!
//! `p` is taken from the record, as conflicts of all sendings in the minute with the most of them.
//!
//! *Its partition is full.* All shards are in their target's collection, whose partition takes 1,000 write units a
//! second whatever they are, so more of them do not help there. A transaction's write costs 2, and what it makes the
//! display cost is 1 at most, since a batch brings a display in step once:
//!
//! ```text
//! write units a second = transactions a second × (2 + 1)
//! ```
//!
//! Buckets of a roll-up have no shards, so nothing is asked of theirs.
//!
//! Both are a lower bound: what was below the record's threshold is not in it, and a peak of seconds is spread over its
//! minute. So they find what is certain.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use derive::kinds::count::SHARDS_MAX;
use engine::heat::{Heated, Hot, MINUTE_MS, Measured};

use crate::{
    Design,
    document::notes::{PARTITION_WRITE_UNITS, TRANSACT_UNITS},
    review::finding::{Check, Finding},
};

/// Conflicts of a target in a minute below which nothing is said: one in two seconds costs next to nothing.
const CONFLICTS_MIN: u64 = 30;

/// Part of the sendings that may meet another. It is small, since a lane that met another waits, longer each time: of
/// eight lanes on one counter that do nothing else, 6 to 8 % meet, and a sixth to an eighth of what they could do is
/// done. Source: two runs of `cargo bench -p benches --bench conflicts`.
const MEET_MAX: f64 = 0.02;

/// Part of the sendings that should meet another, to which the wanted number of shards leads: half of what may, so that
/// the target can grow.
const MEET_WANTED: f64 = 0.01;

/// Throttles of a partition in a minute below which nothing is said: a table that just grows throttles now and then.
const THROTTLES_MIN: u64 = 5;

/// Part of a partition's write units from which on it is called full: the record knows a minute, not its seconds.
const FULL: f64 = 0.75;

/// Write units of the display for each transaction, at most.
const DISPLAY_UNITS: u32 = 1;

/// What the record says.
#[must_use]
pub fn findings(design: &Design, record: &[Heated]) -> Vec<Finding> {
    let mut found = shards(design, record);
    found.extend(partitions(record));
    found
}

/// The hottest minute of each target, hottest first: by whom it met, then by what went in.
#[must_use]
pub fn peaks(record: &[Heated]) -> Vec<&Heated> {
    let mut peaks = peaks_by(record, heat);
    peaks.sort_by_key(|heated| (Reverse(heat(&heated.measured)), &heated.hot));
    peaks
}

fn heat(measured: &Measured) -> (u64, u64) {
    (measured.n_conflicts + measured.n_throttles, measured.n_effects)
}

/// How many a second, of so many in a minute.
#[must_use]
pub fn a_second(n_in_minute: u64) -> f64 {
    float(n_in_minute) / Duration::from_millis(MINUTE_MS).as_secs_f64()
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Of each target, the minute that has the most of this.
fn peaks_by<T: Ord>(record: &[Heated], most: impl Fn(&Measured) -> T) -> Vec<&Heated> {
    let mut peaks = BTreeMap::<&Hot, &Heated>::new();
    for heated in record {
        let peak = peaks.entry(&heated.hot).or_insert(heated);
        if most(&heated.measured) > most(&peak.measured) {
            *peak = heated;
        }
    }
    peaks.into_values().collect()
}

/// Counters whose writers meet too often.
fn shards(design: &Design, record: &[Heated]) -> Vec<Finding> {
    let declared = |name: &str| {
        let mut derivations = design.catalogue.derivations();
        let derivation = derivations.find(|derivation| derivation.name == name)?;
        derivation.kind.outline(&design.schema).counts.map(|(_, n_shards)| n_shards)
    };
    let finding = |peak: &Heated| {
        let (Hot { derivation, target }, measured) = (&peak.hot, &peak.measured);
        let meeting = meeting(measured);
        if measured.n_conflicts < CONFLICTS_MIN || meeting <= MEET_MAX {
            return None;
        }
        let n_shards = declared(derivation)?;
        let (n_seen, n_wanted) = (measured.shards.len(), shards_wanted(n_shards, meeting));
        let (wanted, advice) = match n_wanted {
            Some(n_wanted) => (
                format!("{n_wanted} shards would bring that to {:.0} %", MEET_WANTED * 100.0),
                "declare that many shards, which can be done while the service runs",
            ),
            None => (
                format!("{SHARDS_MAX} shards, the most that a counter has, are too few for so many writers"),
                "make batches larger by a longer batching window, then have fewer lanes",
            ),
        };
        Some(Finding {
            check: Check::MoreShards,
            subject: format!("{derivation} of {target}"),
            what: format!(
                "{:.1} conflicts a second in its worst minute, {:.0} % of what was sent, over {n_seen} of {n_shards} \
                 shards; {wanted}",
                a_second(measured.n_conflicts),
                meeting * 100.0
            ),
            why: "a transaction that meets another is cancelled as a whole, charged, and sent again; the changes of its \
                  batch wait",
            advice,
        })
    };
    peaks_by(record, |measured| measured.n_conflicts).into_iter().filter_map(finding).collect()
}

/// Part of the sendings that met another.
fn meeting(measured: &Measured) -> f64 {
    let n_sent = measured.n_conflicts + measured.n_transactions;
    if n_sent == 0 { 0.0 } else { float(measured.n_conflicts) / float(n_sent) }
}

/// How many shards bring the part that meets another to what is wanted, from this part at this number; `None` where that
/// is more than there can be.
fn shards_wanted(n_shards: u32, meeting: f64) -> Option<u32> {
    let times = (1.0 - meeting).ln() / (1.0 - MEET_WANTED).ln();
    (n_shards..=SHARDS_MAX).find(|n_wanted| f64::from(*n_wanted) >= f64::from(n_shards) * times)
}

/// Partitions that take more than they can for long.
fn partitions(record: &[Heated]) -> Vec<Finding> {
    let mut minutes = BTreeMap::<(&str, u64), Measured>::new();
    for heated in record {
        minutes.entry((&heated.hot.target.pk, heated.minute_ms)).or_default().add(&heated.measured);
    }
    let mut worst = BTreeMap::<&str, &Measured>::new();
    for ((pk, _), measured) in &minutes {
        let peak = worst.entry(pk).or_insert(measured);
        if (measured.n_throttles, measured.n_transactions) > (peak.n_throttles, peak.n_transactions) {
            *peak = measured;
        }
    }
    let finding = |(pk, measured): (&str, &Measured)| {
        let units = a_second(measured.n_transactions) * f64::from(TRANSACT_UNITS + DISPLAY_UNITS);
        if measured.n_throttles < THROTTLES_MIN && units < f64::from(PARTITION_WRITE_UNITS) * FULL {
            return None;
        }
        Some(Finding {
            check: Check::OutgrownPartition,
            subject: pk.to_owned(),
            what: format!(
                "{units:.0} of {PARTITION_WRITE_UNITS} write units a second by counting alone, and {:.1} throttles a \
                 second, in its worst minute",
                a_second(measured.n_throttles)
            ),
            why: "a partition takes no more, and everything about the target is in it: its readers and writers are \
                  throttled too",
            advice: "more shards do not help, since they share the target's partition; make batches larger by a longer \
                     batching window, then have fewer lanes",
        })
    };
    worst.into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::{Expect, expect};
    use keys::key::Key;

    use super::*;

    /// Notes of a topic, counted in 4 shards.
    const TABLE: &str = r#"
        [table]
        partition-key = "pk"
        sort-key = "sk"
        type = "type"
        [entity.Topic]
        partition-key = "TOPIC#{topic}"
        sort-key = "TOPIC"
        [entity.Note]
        partition-key = "TOPIC#{topic}"
        sort-key = "NOTE#{id}"
        [derivation.note-count]
        kind = "count"
        from = "Note"
        into = "Topic"
        shards = 4
    "#;

    /// A minute of a target: its number, the transactions, conflicts and throttles.
    fn minute(
        derivation: &str,
        pk: &str,
        minute: u64,
        (transactions, conflicts, throttles): (u64, u64, u64),
    ) -> Heated {
        let measured = Measured {
            n_effects: 50 * transactions,
            n_transactions: transactions,
            n_conflicts: conflicts,
            n_throttles: throttles,
            shards: BTreeSet::from([0, 2]),
        };
        let hot = Hot { derivation: derivation.to_owned(), target: Key::new(pk, "TOPIC") };
        Heated { hot, minute_ms: minute * MINUTE_MS, measured }
    }

    fn check(record: &[Heated], wanted: &Expect) {
        let (schema, catalogue) = manifest::load(TABLE).unwrap();
        let found = findings(&Design::declared(schema, catalogue), record);
        let lines: Vec<String> = found.iter().map(|finding| format!("{finding}\n{}", finding.advice)).collect();
        wanted.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_counter_whose_writers_meet_wants_more_shards_by_its_worst_minute() {
        let quiet = minute("note-count", "TOPIC#a", 1, (500, 29, 0));
        let worst = minute("note-count", "TOPIC#a", 2, (300, 30, 0));
        let seldom = minute("note-count", "TOPIC#b", 2, (5_000, 100, 0));
        check(
            &[quiet, worst, seldom],
            &expect![[r#"
                more-shards note-count of TOPIC#a / TOPIC: 0.5 conflicts a second in its worst minute, 9 % of what was sent, over 2 of 4 shards; 38 shards would bring that to 1 %
                declare that many shards, which can be done while the service runs"#]],
        );
    }

    #[test]
    fn where_no_number_of_shards_is_enough_larger_batches_are() {
        check(
            &[minute("note-count", "TOPIC#a", 1, (20, 180, 0))],
            &expect![[r#"
            more-shards note-count of TOPIC#a / TOPIC: 3.0 conflicts a second in its worst minute, 90 % of what was sent, over 2 of 4 shards; 100 shards, the most that a counter has, are too few for so many writers
            make batches larger by a longer batching window, then have fewer lanes"#]],
        );
    }

    #[test]
    fn what_has_no_shards_wants_no_more_of_them() {
        check(&[minute("gone", "TOPIC#a", 1, (20, 180, 0))], &expect![[""]]);
    }

    #[test]
    fn a_partition_is_outgrown_by_throttles_or_by_what_all_its_counters_write_together() {
        let half = |pk: &str, derivation: &str, at| minute(derivation, pk, at, (8_000, 0, 0));
        let throttled = minute("note-count", "TOPIC#t", 1, (10, 0, 5));
        check(
            &[half("TOPIC#full", "note-count", 1), half("TOPIC#full", "other", 1), throttled],
            &expect![[r#"
            outgrown-partition TOPIC#full: 800 of 1000 write units a second by counting alone, and 0.0 throttles a second, in its worst minute
            more shards do not help, since they share the target's partition; make batches larger by a longer batching window, then have fewer lanes
            outgrown-partition TOPIC#t: 0 of 1000 write units a second by counting alone, and 0.1 throttles a second, in its worst minute
            more shards do not help, since they share the target's partition; make batches larger by a longer batching window, then have fewer lanes"#]],
        );
        check(&[half("TOPIC#a", "note-count", 1), half("TOPIC#a", "other", 2)], &expect![[""]]);
        check(&[minute("note-count", "TOPIC#a", 1, (10, 0, 4))], &expect![[""]]);
    }

    #[test]
    fn the_wanted_number_of_shards_brings_the_part_that_meets_to_a_hundredth() {
        // A part of sendings that meet, as the model makes it of a number of shards.
        let meeting = |load: f64, n_shards: u32| 1.0 - (-load / f64::from(n_shards)).exp();
        for load in [0.02, 0.05, 0.2, 0.5, 0.9] {
            for n_shards in [1, 2, 4, 8] {
                let now = meeting(load, n_shards);
                let wanted = shards_wanted(n_shards, now).unwrap();
                assert!(meeting(load, wanted) <= MEET_WANTED + 1e-9, "{load} {n_shards} {wanted}");
                assert!(wanted > n_shards || now <= MEET_WANTED, "{load} {n_shards} {wanted}");
                assert!(wanted == n_shards || meeting(load, wanted - 1) > MEET_WANTED, "{load} {n_shards} {wanted}");
            }
        }
        assert_eq!(shards_wanted(50, meeting(20.0, 50)), None);
        assert_eq!(shards_wanted(1, 1.0), None, "nothing went in");
    }

    #[test]
    fn the_hottest_minute_of_each_target_comes_first_that_met_most() {
        let record = [
            minute("note-count", "TOPIC#a", 1, (10, 0, 0)),
            minute("note-count", "TOPIC#a", 2, (30, 0, 0)),
            minute("note-count", "TOPIC#b", 1, (1, 3, 0)),
        ];
        let told: Vec<(&str, u64)> =
            peaks(&record).iter().map(|peak| (peak.hot.target.pk.as_str(), peak.minute_ms / MINUTE_MS)).collect();
        assert_eq!(told, [("TOPIC#b", 1), ("TOPIC#a", 2)]);
    }
}

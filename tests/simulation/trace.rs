//! What happened in a run: line by line for a person, how it failed, and how often each fault occurred.
//!
//! The lines are kept only on request: a failing seed runs again for them.

use std::{collections::BTreeMap, fmt, sync::Mutex};

use engine::ledger::LedgerKind;
use store::faulty::Side;

use crate::seeds::Config;

/// The lines so far, if they are kept.
#[derive(Debug)]
pub(crate) struct Trace(Mutex<Option<Vec<String>>>);

impl Trace {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self(Mutex::new(is_kept.then(Vec::new)))
    }

    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = self.0.lock().unwrap().as_mut() {
            let number = lines.len() + 1;
            lines.push(format!("{number:>5} {}", line()));
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone().unwrap_or_default()
    }
}

// ---- How a run fails ----

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One word. When a run is made smaller, a failure of the same category counts as the same failure.
    pub(crate) category: &'static str,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(category: &'static str, text: impl Into<String>) -> Self {
        Self { category, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.text)
    }
}

// ---- How often each fault occurred: a run proves nothing about faults that did not happen in it ----

/// Faults of a call, before or after it is done.
const OF_A_CALL: [&str; 5] = ["unanswered", "conflict", "throttle", "killed", "late"];

/// What else happens.
const OTHERS: [&str; 35] = [
    "two at once",
    "in one process",
    "zombie",
    "redelivered",
    "set back",
    "doubled",
    "stray",
    "failed whole",
    "failed in part",
    "bisected",
    "split",
    "interleaved",
    "put back",
    "expired",
    "replayed",
    "aged",
    "corrupt",
    "filtered out",
    "redriven",
    "given up",
    "braked",
    "deadly",
    "died at",
    "flaws",
    "index lag",
    "slices",
    "suspects",
    "clocks off",
    "clocks off by years",
    "torn reads",
    "torn pages",
    "app transactions",
    "over a mirror",
    "foreign item gone",
    "copied over",
];

/// What happened to the application's own items, each at least once in a hundred seeds. The table's history is checked
/// twice in a run, and what is counted there is counted twice.
const GROUND: [&str; 18] = [
    "jobs begun",
    "owners back",
    "posts came back",
    "users came back",
    "jobs held",
    "jobs paused",
    "jobs resumed",
    "deleted",
    "counters deleted",
    "archived",
    "left the chart",
    "zeros collected",
    "searched again",
    "found again",
    "near 400 KB",
    "too large",
    "listed unreadable",
    "occupied keys",
];

/// What operators did, what was deployed, and how often all was seen to follow without a sweep, each at least once in a hundred seeds.
const OPERATED: [&str; 19] = [
    "verified",
    "proven by the ledger",
    "undecided",
    "waiting",
    "faults by hand",
    "repaired",
    "repaired carelessly",
    "progress guessed",
    "wrong manifests",
    "overtaken",
    "rolled out",
    "rolled back",
    "waited until ready",
    "parked, then read",
    "read, then corrupt",
    "filled",
    "drifts told",
    "converged",
    "converging jobs",
];

/// What the second oracle compared and what it left out, each at least once in a hundred seeds. It runs twice in a run.
const RECOUNTED: [&str; 3] = ["recounted", "unreadable", "late readings"];

/// Items that may outlive their owners, as the second oracle sees it, and drifts that a change made anew while they were told.
/// They are rare, and there need not be any.
const EXCUSED: [&str; 2] = ["not found by it", "drifts overtaken"];

/// What the platform lost, and the repairs of that, each at least as often as there are hundreds of seeds.
const LOST: [&str; 6] =
    ["lanes given up", "mappings off", "streams anew", "records lost", "losses repaired", "times ahead"];

/// What drawn manifests have, how many of their values were compared by kind, and what their cascades deleted. Each occurs at
/// least as often as there are hundreds of seeds.
const OF_MANIFESTS: [&str; 56] = [
    "[table]",
    "[table] untyped",
    "[tables] of one",
    "[tables] of several",
    "tables of forms",
    "tables of values",
    "no sort key",
    "shared tables",
    "key S",
    "key N",
    "key B",
    "indexes of forms",
    "indexes of values",
    "indexes of several",
    "counts of mirrors",
    "counts into mirrors",
    "counts of members",
    "sums of counts",
    "copies of counts",
    "copies of copies",
    "copies of some",
    "counts of values",
    "latest of mirrors",
    "latest by a value",
    "latest of some",
    "mirrors of mirrors",
    "mirrors of some",
    "mirrors of members",
    "roll-ups of some",
    "cascades of tables",
    "claims",
    "found by partition",
    "found by index",
    "found through",
    "where",
    "zero absent",
    "zero always",
    "average",
    "exists",
    "count",
    "count: history",
    "copy",
    "latest",
    "latest list",
    "counted item",
    "extreme",
    "unread",
    "mirror",
    "path",
    "index-key",
    "roll-up",
    "window",
    "calculated",
    "drawn cascades",
    "keys that meet",
    "keys near limits",
];

/// Cascades that began by the pulses of the sweep.
pub(crate) const BY_PULSE: &str = "begun by pulse";

/// What only watermarks have: pages after the first one of a shard's exceptions, counters that have spread, and their
/// satellites.
const OF_WATERMARKS: [&str; 3] = [EXCEPTION_PAGES, "spread", "satellites"];
pub(crate) const EXCEPTION_PAGES: &str = "exception pages";

/// Those of them that take several derivations in a row: each occurs at least as often as there are so many seeds.
const SELDOM: [&str; 9] = [
    "counts into mirrors",
    "sums of counts",
    "latest of mirrors",
    "mirrors of mirrors",
    "found through",
    "indexes of several",
    "shared tables",
    "counts of values",
    "roll-ups of some",
];
const SELDOM_SEEDS: usize = 600;

/// What happens many times in a few of the runs with drawn manifests, and never in the others: a braked batch is delivered
/// again until the brake releases it. Each occurs at least as often as there are hundreds of seeds.
const IN_BURSTS: [&str; 1] = ["braked"];

/// What runs with drawn manifests do not have.
const NOT_DRAWN: [&str; 1] = ["filtered out"];

/// How much happens at all.
const SIZES: [&str; 5] = ["steps", "writes", "records", "invocations", "delivered"];

/// In this many seeds each fault must occur [`OCCURRENCES`] times. Below [`SEEDS_MIN`] seeds nothing is checked.
const SEEDS: usize = 2_000;
const OCCURRENCES: usize = 500;
const SEEDS_MIN: usize = 100;

/// The counts of a run, or of many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occurrences(BTreeMap<(&'static str, Option<Side>), usize>);

impl Occurrences {
    pub(crate) fn call(&mut self, fault: &'static str, side: Side) {
        *self.0.entry((fault, Some(side))).or_default() += 1;
    }

    /// Counts something else, so many times.
    pub(crate) fn other(&mut self, what: &'static str, n: usize) {
        *self.0.entry((what, None)).or_default() += n;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, n) in &other.0 {
            *self.0.entry(*what).or_default() += n;
        }
    }

    /// Faults that occurred less often than so many seeds should show.
    pub(crate) fn rare(&self, config: Config, n_seeds: usize) -> Vec<&'static str> {
        let least = if n_seeds < SEEDS_MIN { 0 } else { (OCCURRENCES * n_seeds / SEEDS).min(OCCURRENCES) };
        let (once, hundreds) = (least.min(1), n_seeds / SEEDS_MIN);
        let sides = [Some(Side::Before), Some(Side::After)];
        let of_calls = OF_A_CALL.iter().flat_map(|fault| sides.map(|side| (*fault, side)));
        let of_calls = of_calls.filter(|what| self.count(*what) < least).map(|(fault, _)| fault);
        let below = |names: &[&'static str], least: usize| -> Vec<&'static str> {
            names.iter().copied().filter(|what| self.count((what, None)) < least).collect()
        };
        let others = below(&OTHERS, least);
        let rest = if config.is_drawn {
            let is_other = |what: &&'static str| !NOT_DRAWN.contains(what) && !IN_BURSTS.contains(what);
            let least_of = |what: &'static str| n_seeds / if SELDOM.contains(&what) { SELDOM_SEEDS } else { SEEDS_MIN };
            let of_manifests = OF_MANIFESTS.into_iter().filter(|what| self.count((*what, None)) < least_of(what));
            [
                others.into_iter().filter(is_other).collect(),
                below(&IN_BURSTS, hundreds),
                of_manifests.collect(),
                below(&["near 400 KB", "too large"], once),
            ]
            .concat()
        } else {
            let of_watermarks = if config.ledger == LedgerKind::Watermarks { least } else { 0 };
            [
                others,
                below(&GROUND, once),
                below(&OPERATED, once),
                below(&RECOUNTED, once),
                below(&LOST, hundreds),
                below(&[BY_PULSE], if config.by_pulse { least } else { 0 }),
                below(&OF_WATERMARKS, of_watermarks),
            ]
            .concat()
        };
        of_calls.chain(rest).collect()
    }

    fn count(&self, what: (&'static str, Option<Side>)) -> usize {
        self.0.get(&what).copied().unwrap_or(0)
    }
}

impl fmt::Display for Occurrences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16}{:>10}{:>10}", "fault", "before", "after")?;
        for fault in OF_A_CALL {
            let [before, after] = [Side::Before, Side::After].map(|side| self.count((fault, Some(side))));
            writeln!(f, "{fault:<16}{before:>10}{after:>10}")?;
        }
        for what in OTHERS
            .into_iter()
            .chain(GROUND)
            .chain(OPERATED)
            .chain(LOST)
            .chain(RECOUNTED)
            .chain(EXCUSED)
            .chain(OF_MANIFESTS)
            .chain([BY_PULSE])
            .chain(OF_WATERMARKS)
            .chain(SIZES)
        {
            writeln!(f, "{what:<20}{:>6}", self.count((what, None)))?;
        }
        Ok(())
    }
}

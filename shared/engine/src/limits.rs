//! Limits of an engine's work, and of its circuit breaker. The process that creates the engine sets them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use keys::key::Key;

/// Limits of a fan-out's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOutLimits {
    /// Maximum number of items that are refreshed with the batch that requests it.
    pub direct_max: u32,
    /// Items that are read and refreshed together.
    pub page_items: u32,
    /// How long a page may take, in milliseconds, if only jobs ran for the same time before.
    pub page_ms: u64,
    /// How long a page may take, in milliseconds, if other work ran, because other changes may wait behind it.
    pub page_beside_ms: u64,
    /// Write units a second that a job may consume; no limit by default.
    pub units_per_second: Option<u32>,
    /// How long an index may lag, in milliseconds: searches of it are repeated after that. 0 if an index is part of its
    /// table, as in an emulator: searches are then not repeated, which would only run a job once more.
    pub index_lag_ms: u64,
}

impl Default for FanOutLimits {
    fn default() -> Self {
        Self {
            direct_max: 100,
            page_items: 500,
            page_ms: 1_000,
            page_beside_ms: 100,
            units_per_second: None,
            // An index follows within a second, but without a bound: if it is throttled, it falls behind. The sweep
            // runs every 15 minutes.
            index_lag_ms: 15 * 60 * 1_000,
        }
    }
}

// ---- When a counter spreads ----

/// When a counter spreads over several items, and over how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadLimits {
    /// Number of watermarks from which a counter's home spreads: as many stream shards count there.
    pub marks_max: usize,
    /// Number of satellites, 1 to 99. A counter that has spread keeps its own number.
    pub n_satellites: u32,
}

impl Default for SpreadLimits {
    fn default() -> Self {
        // With 24 watermarks an item is just below 1 KiB, one write unit.
        Self { marks_max: 24, n_satellites: 64 }
    }
}

// ---- When a counter is hot ----

/// Most counters of which an engine remembers when it counted there last, before it forgets all of them. Bounds memory.
const REMEMBERED_MAX: usize = 10_000;

/// Which counters are hot: those that an engine counted less than an interval ago. The refresh that the record of a hot
/// counter requests writes its displays, once for all of a counter's records in a batch, so displays cost as much as
/// there are batches of the other function. Of what it forgets, an engine writes the display itself.
#[derive(Debug, Default)]
pub(crate) struct HotCounters {
    /// In milliseconds; 0 if no counter is hot.
    pub(crate) interval_ms: u64,
    counted_at_ms: Mutex<BTreeMap<Key, u64>>,
}

impl HotCounters {
    pub(crate) fn within(interval_ms: u64) -> Self {
        Self { interval_ms, counted_at_ms: Mutex::default() }
    }

    /// True if this counter, which is counted now, is hot.
    pub(crate) fn counts(&self, counter: &Key, now_ms: u64) -> bool {
        if self.interval_ms == 0 {
            return false;
        }
        let mut counted = self.counted_at_ms.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= REMEMBERED_MAX {
            counted.retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < self.interval_ms);
        }
        if counted.len() >= REMEMBERED_MAX {
            counted.clear();
        }
        counted.insert(counter.clone(), now_ms).is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < self.interval_ms)
    }
}

// ---- Limits of the [brake](mod@crate::batch::brake), a circuit breaker ----

/// When the circuit breaker stops a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeLimits {
    /// Percentage of a batch's items that may be unreadable. 100 switches the breaker off.
    pub unreadable_percent_max: u32,
    /// How long a batch is stopped, from its first record, and how long a reason stops batches, from the first stop, in
    /// milliseconds.
    pub unreadable_hold_ms: u64,
    /// True if the breaker only warns. That is for a laptop, where the developer sees it at once.
    pub only_warns: bool,
}

impl Default for BrakeLimits {
    fn default() -> Self {
        Self { unreadable_percent_max: 5, unreadable_hold_ms: 4 * 3600 * 1000, only_warns: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_hot_within_the_interval_after_it_was_counted() {
        let (hot, [one, other]) = (HotCounters::within(1_000), ["one", "other"].map(|pk| Key::new(pk, "x")));
        assert!(!hot.counts(&one, 5_000));
        assert!(!hot.counts(&other, 5_999));
        assert!(hot.counts(&one, 5_999));
        assert!(!hot.counts(&one, 6_999));
        assert!(!HotCounters::within(0).counts(&one, 6_999));
    }

    #[test]
    fn an_engine_remembers_no_more_counters_than_the_bound() {
        let hot = HotCounters::within(1_000);
        for at in 0..=REMEMBERED_MAX {
            hot.counts(&Key::new(format!("{at}"), "x"), 5_000);
        }
        assert_eq!(hot.counted_at_ms.lock().unwrap().len(), 1);
    }
}

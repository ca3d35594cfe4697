//! Limits of an engine's work, and of its circuit breaker. The process that creates the engine sets them.

/// Limits of a fan-out's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOutLimits {
    /// Maximum number of items that are refreshed with the batch that requests it.
    pub direct_max: u32,
    /// Items that are read and refreshed together.
    pub page_items: u32,
    /// How long a page may take, in milliseconds, if only jobs ran for the same time before.
    pub page_ms: u64,
    /// How long a page may take, in milliseconds, if only jobs ran for longer than `page_ms`: as long as they did, up to
    /// this. Between two pages nothing is written for some 250 ms, so longer pages are faster; but a change that arrives
    /// meanwhile waits for the page's end.
    pub page_ms_max: u64,
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
            page_items: 1_000,
            page_ms: 1_000,
            page_ms_max: 5_000,
            page_beside_ms: 100,
            units_per_second: None,
            // An index follows within a second, but without a bound: if it is throttled, it falls behind. The sweep
            // runs every 15 minutes.
            index_lag_ms: 15 * 60 * 1_000,
        }
    }
}

impl FanOutLimits {
    /// True if no other work ran for so long that a page may keep others waiting.
    pub(crate) fn is_alone(&self, alone_ms: Option<u64>) -> bool {
        alone_ms.is_some_and(|alone_ms| alone_ms >= self.page_ms)
    }

    /// How long a page may take, in milliseconds, if only jobs ran for so long.
    pub(crate) fn page_limit_ms(&self, alone_ms: Option<u64>) -> u64 {
        let alone_ms = alone_ms.filter(|_| self.is_alone(alone_ms));
        alone_ms.map_or(self.page_beside_ms, |alone_ms| alone_ms.min(self.page_ms_max))
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
    fn a_page_takes_as_long_as_only_jobs_ran_and_little_beside_others() {
        let limits = FanOutLimits::default();
        let taken =
            [None, Some(0), Some(999), Some(1_000), Some(3_000), Some(60_000)].map(|ms| limits.page_limit_ms(ms));
        assert_eq!(taken, [100, 100, 100, 1_000, 3_000, 5_000]);
    }
}

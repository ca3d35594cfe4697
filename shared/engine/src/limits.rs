//! How much an engine does at once, and when it holds back. Whoever starts an engine sets these.

/// How much a fan-out does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOutLimits {
    /// Most items that are refreshed with the batch that asks for it.
    pub direct_max: u32,
    /// Items that are read and refreshed together.
    pub page_items: u32,
    /// How long a page goes on, in milliseconds, when nothing but jobs was done for as long.
    pub page_ms: u64,
    /// The same when something else was, since others may wait behind it.
    pub page_beside_ms: u64,
    /// Write units a second that a job may consume; as many as there are where nothing is said.
    pub units_per_second: Option<u32>,
    /// How long an index may lag, in milliseconds: a search of it is made again after that. 0 where an index is part of
    /// its table, as an emulator's is: then no search is made again, which would send a job around once more.
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
            // An index follows within a second, but it has no bound: throttled, it falls behind. The sweeper comes
            // every 15 minutes.
            index_lag_ms: 15 * 60 * 1_000,
        }
    }
}

// ---- When the [brake](mod@crate::batch::brake) is put on ----

/// When the brake is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeLimits {
    /// How many of a batch's items may be unreadable, in percent. 100 takes the brake off.
    pub unreadable_percent_max: u32,
    /// How long a batch is held, counted from its first record, and how long a reason holds batches, counted from the
    /// first hold, in milliseconds.
    pub unreadable_hold_ms: u64,
    /// Does the brake only say what it would hold? That is for a laptop, where a person sees it at once.
    pub only_warns: bool,
}

impl Default for BrakeLimits {
    fn default() -> Self {
        Self { unreadable_percent_max: 5, unreadable_hold_ms: 4 * 3600 * 1000, only_warns: false }
    }
}

//! When the [brake](mod@crate::batch::brake) is put on.

/// When the brake is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeLimits {
    /// How many of a batch's items may be unreadable, in percent. 100 takes the brake off.
    pub unreadable_percent_max: u32,
    /// How long a batch is held, counted from its first record, and how long a reason holds batches, counted from the first
    /// hold, in milliseconds.
    pub unreadable_hold_ms: u64,
    /// Does the brake only say what it would hold? That is for a laptop, where a person sees it at once.
    pub only_warns: bool,
}

impl Default for BrakeLimits {
    fn default() -> Self {
        Self { unreadable_percent_max: 5, unreadable_hold_ms: 4 * 3600 * 1000, only_warns: false }
    }
}

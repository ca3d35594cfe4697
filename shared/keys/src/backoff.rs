//! Waits between retries.

/// Waits that double with each retry, up to a maximum. With jitter, they are the bounds of the random waits.
///
/// ```
/// use keys::backoff::Backoff;
///
/// let backoff = Backoff { ms_min: 100, ms_max: 5_000 };
/// assert_eq!([0, 1, 5, 6, 99].map(|n_tries| backoff.ms(n_tries)), [100, 200, 3_200, 5_000, 5_000]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The first wait, in milliseconds.
    pub ms_min: u64,
    /// The longest wait, in milliseconds.
    pub ms_max: u64,
}

impl Backoff {
    /// The wait after this many others, in milliseconds.
    #[must_use]
    pub fn ms(&self, n_waits: u32) -> u64 {
        self.ms_min.saturating_mul(1 << n_waits.min(32)).min(self.ms_max)
    }
}

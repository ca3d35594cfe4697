//! How long a write waits before it is sent again.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use keys::backoff::Backoff;

use crate::Queries;

/// Bounds of the waits: the SDKs' own first backoff is of the order of the first; the longest is short against somebody
/// who waits, and long against a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 1_000 };

/// Most tries of a write, its reads included: with these bounds, some seven seconds on average.
pub const TRIES_MAX: u32 = 20;

/// Waits between tries: a random time below a bound that doubles (full jitter), so that writers who met once do not
/// meet again.
#[derive(Clone)]
pub(crate) struct Pause(Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>);

impl Pause {
    /// Waits after so many tries in vain.
    pub(super) async fn after(&self, n_tries: u32) {
        (self.0)(BACKOFF.ms(n_tries.saturating_sub(1))).await;
    }
}

impl Default for Pause {
    /// By the machine's clock and randomness; it needs Tokio's runtime.
    fn default() -> Self {
        Self(Arc::new(|bound_ms| {
            let wait_ms = rand::random_range(0..=bound_ms);
            Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms)))
        }))
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

impl<S> Queries<S> {
    /// The same, waiting otherwise before a write is sent again: `pause` waits a time of its choice below so many
    /// milliseconds.
    #[must_use]
    pub fn pausing(self, pause: impl Fn(u64) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self { pause: Pause(Arc::new(pause)), ..self }
    }
}

//! The waits between the tries of a write.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use keys::backoff::Backoff;

use crate::Queries;

/// Bounds of the waits. The first is about the SDKs' own first backoff; the longest is acceptable for a waiting user,
/// and long compared with a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 1_000 };

/// Most tries of a write, its reads included: about seven seconds with these bounds.
pub const TRIES_MAX: u32 = 20;

/// A random time below a bound that doubles (full jitter), so that writers who conflicted once do not conflict again.
#[derive(Clone)]
pub(crate) struct Pause(Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>);

impl Pause {
    /// Waits after this many failed tries.
    pub(super) async fn after(&self, n_tries: u32) {
        (self.0)(BACKOFF.ms(n_tries.saturating_sub(1))).await;
    }
}

impl Default for Pause {
    /// Uses the machine's clock and randomness, and needs Tokio's runtime.
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
    /// Replaces the wait before a retry: `pause` waits a time of its choice below this many milliseconds.
    #[must_use]
    pub fn pausing(self, pause: impl Fn(u64) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self { pause: Pause(Arc::new(pause)), ..self }
    }
}

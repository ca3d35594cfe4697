//! Redrives a parked change and reports the outcome.

use std::{fmt, sync::Arc};

use engine::{
    backoff::describe,
    batch::Engine,
    clock::{Clock as _, SystemClock},
    park::ParkedChange,
    publishing::RegistryError,
    redrive::Redriven,
};
use store::Store;

/// Time limit for one change, in milliseconds: the rename of a famous user refreshes thousands of items.
const CHANGE_MS_MAX: u64 = 300_000;

/// How a redrive ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveOutcome {
    /// The change is applied.
    Applied,
    /// It was no longer parked.
    Gone,
    /// It cannot be applied yet.
    Still {
        /// Why.
        cause: String,
    },
    /// The database did not respond: the change is applied or parked, and can safely be redriven again.
    Failed {
        /// What the database reported.
        why: String,
    },
    /// An earlier redrive failed.
    NotTried,
}

impl RedriveOutcome {
    /// The outcome's name, which is stable, and the reason.
    #[must_use]
    pub fn describe(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Applied => ("applied", None),
            Self::Gone => ("was not parked any more", None),
            Self::Still { cause } => ("still parked", Some(cause)),
            Self::Failed { why } => ("failed", Some(why)),
            Self::NotTried => ("not tried", None),
        }
    }
}

impl fmt::Display for RedriveOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.describe() {
            (name, Some(why)) => write!(f, "{name}: {why}"),
            (name, None) => f.write_str(name),
        }
    }
}

/// Redrives a change.
///
/// # Errors
///
/// [`RegistryError`] if the engine cannot register its derivations; then nothing is redriven.
pub async fn redrive<S: Store>(
    engine: &Engine<Arc<S>>,
    change: &ParkedChange,
) -> Result<RedriveOutcome, RegistryError> {
    engine.publish(SystemClock.now_ms().saturating_add(CHANGE_MS_MAX)).await?;
    Ok(match engine.redrive(change, SystemClock.now_ms().saturating_add(CHANGE_MS_MAX)).await {
        Ok(Redriven::Applied(_)) => RedriveOutcome::Applied,
        Ok(Redriven::Gone) => RedriveOutcome::Gone,
        Ok(Redriven::Still { cause }) => RedriveOutcome::Still { cause },
        Err(error) => RedriveOutcome::Failed { why: describe(&error) },
    })
}

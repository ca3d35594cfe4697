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

/// What became of a parked change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is no longer parked, but `applied` or `discarded`.
    Done(&'static str),
    /// It was no longer parked.
    Gone,
    /// It stays parked.
    Still {
        /// Why.
        cause: String,
    },
    /// The database did not respond: the change is done or parked, and the command can safely be repeated.
    Failed {
        /// What the database reported.
        why: String,
    },
    /// An earlier change failed.
    NotTried,
}

impl ChangeOutcome {
    /// The outcome's name, which is stable, and the reason.
    #[must_use]
    pub fn describe(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Done(name) => (name, None),
            Self::Gone => ("was not parked any more", None),
            Self::Still { cause } => ("still parked", Some(cause)),
            Self::Failed { why } => ("failed", Some(why)),
            Self::NotTried => ("not tried", None),
        }
    }
}

impl fmt::Display for ChangeOutcome {
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
pub async fn redrive<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<ChangeOutcome, RegistryError> {
    engine.publish(SystemClock.now_ms().saturating_add(CHANGE_MS_MAX)).await?;
    Ok(match engine.redrive(change, SystemClock.now_ms().saturating_add(CHANGE_MS_MAX)).await {
        Ok(Redriven::Applied(_)) => ChangeOutcome::Done("applied"),
        Ok(Redriven::Gone) => ChangeOutcome::Gone,
        Ok(Redriven::Still { cause }) => ChangeOutcome::Still { cause },
        Err(error) => ChangeOutcome::Failed { why: describe(&error) },
    })
}

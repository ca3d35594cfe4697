//! Outcomes of calls with a fault.

use super::{Call, Decider, Fault, Faulty};
use crate::{Reason, StoreError, Units};

impl<D: Decider> Faulty<D> {
    pub(super) fn retry<T>(&self, call: &Call<'_>, how: &'static str) -> Result<T, StoreError> {
        self.retry_of(call, None, how)
    }

    pub(super) fn retry_of<T>(
        &self,
        call: &Call<'_>,
        fault: Option<&Fault>,
        how: &'static str,
    ) -> Result<T, StoreError> {
        self.decider.ended(call, how);
        let (operation, busy) = (call.operation(), fault.and_then(Fault::busy));
        let (item, source) = (call.item(), how.into());
        Err(StoreError::Retry { operation, item, busy, is_standing: false, is_unreachable: false, source })
    }

    pub(super) fn denied<T>(&self, call: &Call<'_>) -> Result<T, StoreError> {
        self.decider.ended(call, "denied");
        let (operation, item, source) = (call.operation(), call.item(), "AccessDeniedException".into());
        Err(StoreError::Retry { operation, item, busy: None, is_standing: true, is_unreachable: false, source })
    }

    pub(super) fn refused<T>(&self, call: &Call<'_>) -> Result<T, StoreError> {
        self.decider.ended(call, "refused");
        let (operation, item, source) = (call.operation(), call.item(), "ValidationException".into());
        Err(StoreError::Reject { operation, item, source })
    }

    /// The outcome of a call that met other writers, or was throttled, before it was done.
    pub(super) fn conflicting<T>(
        &self,
        call: &Call<'_>,
        fault: &Fault,
        cancelled: impl FnOnce(&Fault) -> Option<T>,
        described: impl FnOnce(&T) -> (String, Units),
    ) -> Result<T, StoreError> {
        match cancelled(fault) {
            None => self.retry_of(call, Some(fault), "not done, other writers or throttled"),
            Some(cancelled) => {
                self.decider.ended(call, &described(&cancelled).0);
                Ok(cancelled)
            }
        }
    }
}

/// The reasons other than `None`, each with its position.
pub(super) fn brief(reasons: &[Reason]) -> String {
    let some = reasons.iter().enumerate().filter(|(_, reason)| **reason != Reason::None);
    some.map(|(at, reason)| format!("{at}: {reason:?}")).collect::<Vec<_>>().join(", ")
}

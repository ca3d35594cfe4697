//! Faults of calls.

use std::collections::BTreeSet;

use crate::Busy;

/// A fault of a call. The table of [`faulty`](super) describes each on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It gets no response.
    Unanswered,
    /// Another writer's call is in flight on the item at this position of the transaction.
    Conflict(usize),
    /// The partitions of the items at these positions of the transaction are throttled.
    Throttle(BTreeSet<usize>),
    /// The caller dies.
    Killed,
    /// The call lands much later.
    Late,
    /// It never gets a response, and the caller lives.
    Hung,
    /// The caller lacks a permission.
    Denied,
    /// DynamoDB refuses the call, at any time.
    Refused,
}

impl Fault {
    pub(super) fn positions(&self) -> BTreeSet<usize> {
        match self {
            Self::Conflict(position) => BTreeSet::from([*position]),
            Self::Throttle(positions) => positions.clone(),
            Self::Unanswered | Self::Killed | Self::Late | Self::Hung | Self::Denied | Self::Refused => BTreeSet::new(),
        }
    }

    pub(super) fn busy(&self) -> Option<Busy> {
        match self {
            Self::Conflict(_) => Some(Busy::Conflict),
            Self::Throttle(_) => Some(Busy::Throttled),
            Self::Unanswered | Self::Killed | Self::Late | Self::Hung | Self::Denied | Self::Refused => None,
        }
    }
}

//! What looking is asked, and what came of it, item by item. It knows items, not batches: whoever asked maps an item back
//! to the records that rang for it.

use derive::{position::DerivationAt, refresh::Look, write::Write};
use store::{Busy, StoreError, Units};

use crate::{
    backoff::{Patience, describe},
    look::{bells::Rung, own_image::OwnImages},
};

/// Items to look at, and the time that there is.
pub(crate) struct LookRequest<'a> {
    /// The items.
    pub(crate) items: Vec<Rung>,
    /// What records show of their own items; `None` where no record asks.
    pub(crate) images: Option<&'a OwnImages>,
    /// The time that there is.
    pub(crate) patience: Patience<'a>,
}

/// What came of looking.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// How many items were in step.
    pub(crate) n_in_step: usize,
    /// What was written.
    pub(crate) written: Vec<WrittenItem>,
    /// The derivations of each write whose guard failed, which is sent again.
    pub(crate) sent_again: Vec<Vec<DerivationAt>>,
    /// The conflicts and throttles of the writes, each with the write's first derivation.
    pub(crate) met: Vec<(Option<DerivationAt>, Busy)>,
    /// Derived items whose key has an item that is not Ripple's.
    pub(crate) occupied: Vec<OccupiedKey>,
    /// Items that can never be looked at or written, with the cause.
    pub(crate) refused: Vec<(Rung, String)>,
    /// Items that could not be looked at or written now, with the reason.
    pub(crate) undone: Vec<(Rung, String)>,
}

/// What looking decided of items that are not in step.
#[derive(Debug, Default)]
pub(crate) struct DecidedLooks {
    /// Those that differ, each with the write that brings it in step and on whose behalf.
    pub(crate) differing: Vec<(Rung, (Write, Vec<DerivationAt>))>,
    /// Derived items whose key has an item that is not Ripple's, each with the derivation that would create it.
    pub(crate) occupied: Vec<(Rung, DerivationAt)>,
}

impl DecidedLooks {
    /// All of those items.
    pub(crate) fn looks(self) -> impl Iterator<Item = Look> {
        let differing = self.differing.into_iter().map(|(rung, _)| rung);
        differing.chain(self.occupied.into_iter().map(|(rung, _)| rung)).map(|rung| rung.look)
    }
}

/// A derived item that waits for its key; the item there is listed.
#[derive(Debug)]
pub(crate) struct OccupiedKey {
    /// What asked for it.
    pub(crate) rung: Rung,
    /// Position of the derivation that would create it.
    pub(crate) derivation: DerivationAt,
    /// Write units.
    pub(crate) units: Units,
}

/// An item that was written.
#[derive(Debug)]
pub(crate) struct WrittenItem {
    /// What asked for it.
    pub(crate) rung: Rung,
    /// The write.
    pub(crate) write: Write,
    /// Positions of the derivations on whose behalf.
    pub(crate) derivations: Vec<DerivationAt>,
    /// When the answer came, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Write units.
    pub(crate) units: Units,
}

impl Looked {
    /// None of these items could be looked at, or written, now.
    pub(crate) fn not_now(&mut self, items: Vec<Rung>, why: &str) {
        self.undone.extend(items.into_iter().map(|rung| (rung, why.to_owned())));
    }

    /// These items, each with why what it is decided by cannot be read, without those of which that is known.
    pub(crate) fn without_refused<'e>(
        &mut self,
        items: impl Iterator<Item = (Option<&'e StoreError>, Rung)>,
    ) -> Vec<Rung> {
        let mut readable = Vec::new();
        for (refused, rung) in items {
            match refused {
                Some(error) => self.refused.push((rung, describe(error))),
                None => readable.push(rung),
            }
        }
        readable
    }
}

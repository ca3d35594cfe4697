//! The watermark of a counter for which a change is parked.
//!
//! *Keeps true*: a change that was parked for one counter adds nothing there when its record is delivered again. The
//! counter's watermark is past it, but an operator who mends a counter may delete it whole; so the redrive sets the watermark
//! again.

use derive::{
    bucket::HeldBuckets,
    guard::{Ask, Guard, Purpose},
    write::{Action, Write},
};
use store::Store;

use crate::{
    ledger::watermarks::{Sequence, has_passed, mark_name, mark_of},
    park::redrive::{ParkedChange, Redriver},
    protocol::ProtocolStep,
};

/// The watermark that the parking of a change for one counter set.
pub(super) struct ParkedMark {
    name: String,
    sequence: Sequence,
    now_ms: u64,
}

impl ParkedMark {
    /// The write of the counter, which also sets the watermark if the counter lacks it or has a lower one.
    pub(super) fn set_by(&self, mut write: Write, held: &HeldBuckets) -> Write {
        let held = held.get(&write.key).and_then(|item| mark_of(item, &self.name));
        if let Action::Update(update) = &mut write.action
            && !held.is_some_and(|mark| has_passed(mark, self.sequence))
        {
            update.set.insert(self.name.clone(), self.sequence.mark(self.now_ms));
            let guard = write.guard.get_or_insert_with(|| Guard { purpose: Purpose::Watermark, asks: Vec::new() });
            guard.asks.push(Ask::LacksOrBelow(self.name.clone(), self.sequence.bound(true)));
        }
        write
    }
}

impl<S: Store> Redriver<'_, S> {
    /// The watermark that the parking of a change for one counter set.
    pub(super) fn mark(&self, parked: &ParkedChange) -> Option<ParkedMark> {
        // Only watermarks park a change on behalf of one counter.
        let is_marked = parked.exception.is_none() && parked.counter.is_some();
        let is_marked = is_marked && self.context.takes(ProtocolStep::RedriveMark);
        let sequence = Sequence::parse(&parked.sequence_number).filter(|_| is_marked)?;
        Some(ParkedMark { name: mark_name(&parked.lane)?, sequence, now_ms: self.context.clock.now_ms() })
    }
}

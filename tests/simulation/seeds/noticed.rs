//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Receipts, Watermarks};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 19),
    ("Unguarded(StillParked)", Receipts, 0),
    ("Unguarded(Bucket)", Receipts, 18),
    ("Unguarded(Job)", Receipts, 5),
    ("Unguarded(UnreadTarget)", Receipts, 2),
    ("Unguarded(Watermark)", Watermarks, 0),
    ("Without(OwnBell)", Receipts, 0),
    ("Without(BothImages)", Watermarks, 2),
    ("Without(WayThere)", Receipts, 0),
    ("Without(SearchAgain)", Receipts, 11),
    ("Without(Circle)", Receipts, 5),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 3),
    ("Without(NetZeroProof)", Receipts, 2),
    ("Without(OnceABatch)", Watermarks, 0),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(BelowFirst)", Watermarks, 0),
    ("Without(DropPassed)", Watermarks, 0),
    ("Without(MarkPerShard)", Watermarks, 0),
    ("Without(PinShards)", Watermarks, 1),
    ("Without(Exceptions)", Watermarks, 14),
    ("Without(PruneLate)", Watermarks, 0),
    ("Without(ZeroWithoutMarks)", Watermarks, 0),
    ("Without(ReplayBehind)", Watermarks, 19),
    ("Without(Horizon)", Watermarks, 11),
    ("Without(ProofOfParking)", Receipts, 0),
    ("Without(StartOnce)", Receipts, 1),
    ("Without(Settle)", Receipts, 0),
    ("Without(Pulse)", Watermarks, 798),
    ("Without(PulseGap)", Receipts, 397),
    ("Without(LowestUndone)", Receipts, 4),
    ("Without(HandledFirst)", Watermarks, 1),
    ("Without(UntouchedSince)", Receipts, 20),
    ("Without(RecordWins)", Watermarks, 1),
    ("Without(Underway)", Watermarks, 2),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Watermarks, 135),
    ("Without(BirthMark)", Receipts, 34),
    ("Platform(OneLane)", Watermarks, 3),
    ("Platform(NeverGivenUp)", Watermarks, 0),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

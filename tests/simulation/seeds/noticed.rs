//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Receipts, Watermarks};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 4),
    ("Unguarded(Bucket)", Receipts, 13),
    ("Unguarded(StillParked)", Watermarks, 9),
    ("Unguarded(StillTheirs)", Receipts, 7),
    ("Unguarded(Job)", Receipts, 1),
    ("Unguarded(StillZero)", Receipts, 16),
    ("Unguarded(UnreadTarget)", Watermarks, 39),
    ("Unguarded(RepairRight)", Watermarks, 337),
    ("Without(OwnBell)", Receipts, 0),
    ("Without(BothImages)", Watermarks, 2),
    ("Without(WayThere)", Receipts, 0),
    ("Without(LookupKey)", Receipts, 377),
    ("Without(SearchAgain)", Receipts, 3),
    ("Without(Circle)", Receipts, 39),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 8),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Watermarks, 2),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(Horizon)", Receipts, 6),
    ("Without(ProofOfParking)", Receipts, 4),
    ("Without(StartOnce)", Watermarks, 19),
    ("Without(Settle)", Receipts, 8),
    ("Without(SettleAgain)", Receipts, 6),
    ("Without(LowestUndone)", Receipts, 4),
    ("Without(HandledFirst)", Receipts, 1),
    ("Without(ProvenIn)", Receipts, 85),
    ("Without(UntouchedSince)", Receipts, 30),
    ("Without(RecordWins)", Receipts, 11),
    ("Without(Underway)", Receipts, 5),
    ("Without(RepairOnce)", Receipts, 199),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Receipts, 363),
    ("Without(BirthMark)", Receipts, 11),
    ("Unguarded(Watermark)", Watermarks, 0),
    ("Without(BelowFirst)", Watermarks, 0),
    ("Without(DropPassed)", Watermarks, 0),
    ("Without(MarkPerShard)", Watermarks, 0),
    ("Without(PinShards)", Watermarks, 0),
    ("Without(Exceptions)", Watermarks, 10),
    ("Without(PruneLate)", Watermarks, 3),
    ("Without(ZeroWithoutMarks)", Watermarks, 5),
    ("Without(ReplayBehind)", Watermarks, 2),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

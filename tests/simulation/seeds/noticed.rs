//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 13),
    ("Unguarded(Bucket)", Checkpoint, 26),
    ("Unguarded(StillParked)", Receipts, 0),
    ("Unguarded(OwnerAbsent)", Receipts, 684),
    ("Unguarded(StillTheirs)", Receipts, 0),
    ("Unguarded(Job)", Receipts, 0),
    ("Unguarded(StillZero)", Receipts, 19),
    ("Unguarded(Checkpoint)", Checkpoint, 0),
    ("Unguarded(UnreadTarget)", Receipts, 1),
    ("Unguarded(RepairRight)", Checkpoint, 9),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Receipts, 1),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Checkpoint, 92),
    ("Without(SearchAgain)", Checkpoint, 59),
    ("Without(Circle)", Receipts, 153),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 1),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 1),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 1),
    ("Without(NobodyOvertakes)", Checkpoint, 12),
    ("Without(ReadAgain)", Checkpoint, 18),
    ("Without(DropBeforeSend)", Checkpoint, 15),
    ("Without(Horizon)", Receipts, 6),
    ("Without(ProofOfParking)", Receipts, 12),
    ("Without(StartOnce)", Checkpoint, 19),
    ("Without(Settle)", Receipts, 3),
    ("Without(SettleAgain)", Receipts, 6),
    ("Without(LowestUndone)", Receipts, 2),
    ("Without(HandledFirst)", Checkpoint, 28),
    ("Without(UntouchedSince)", Receipts, 9),
    ("Without(RecordWins)", Receipts, 9),
    ("Without(Underway)", Receipts, 8),
    ("Without(RepairOnce)", Checkpoint, 475),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Checkpoint, 624),
    ("Without(BirthMark)", Receipts, 106),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

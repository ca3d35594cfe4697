//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 4),
    ("Unguarded(Bucket)", Checkpoint, 26),
    ("Unguarded(StillParked)", Receipts, 0),
    ("Unguarded(OwnerAbsent)", Checkpoint, 476),
    ("Unguarded(StillTheirs)", Receipts, 0),
    ("Unguarded(Job)", Receipts, 0),
    ("Unguarded(StillZero)", Checkpoint, 69),
    ("Unguarded(Checkpoint)", Checkpoint, 0),
    ("Unguarded(UnreadTarget)", Receipts, 2),
    ("Unguarded(RepairRight)", Receipts, 221),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Checkpoint, 1),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Receipts, 340),
    ("Without(SearchAgain)", Receipts, 29),
    ("Without(Circle)", Checkpoint, 250),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 1),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 0),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 0),
    ("Without(NobodyOvertakes)", Checkpoint, 0),
    ("Without(ReadAgain)", Checkpoint, 18),
    ("Without(DropBeforeSend)", Checkpoint, 58),
    ("Without(Horizon)", Checkpoint, 35),
    ("Without(ProofOfParking)", Receipts, 3),
    ("Without(StartOnce)", Checkpoint, 19),
    ("Without(Settle)", Receipts, 10),
    ("Without(SettleAgain)", Receipts, 4),
    ("Without(LowestUndone)", Receipts, 0),
    ("Without(HandledFirst)", Checkpoint, 28),
    ("Without(UntouchedSince)", Receipts, 219),
    ("Without(RecordWins)", Checkpoint, 34),
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

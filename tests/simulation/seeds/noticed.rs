//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 3),
    ("Unguarded(Bucket)", Checkpoint, 9),
    ("Unguarded(StillParked)", Checkpoint, 9),
    ("Unguarded(OwnerAbsent)", Receipts, 178),
    ("Unguarded(StillTheirs)", Receipts, 7),
    ("Unguarded(Job)", Receipts, 1),
    ("Unguarded(StillZero)", Receipts, 1),
    ("Unguarded(Checkpoint)", Checkpoint, 0),
    ("Unguarded(UnreadTarget)", Checkpoint, 1),
    ("Unguarded(RepairRight)", Receipts, 33),
    ("Without(OwnBell)", Receipts, 0),
    ("Without(BothImages)", Receipts, 2),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Checkpoint, 21),
    ("Without(SearchAgain)", Checkpoint, 27),
    ("Without(Circle)", Receipts, 39),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 8),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 2),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 1),
    ("Without(NobodyOvertakes)", Checkpoint, 12),
    ("Without(ReadAgain)", Checkpoint, 5),
    ("Without(DropBeforeSend)", Checkpoint, 69),
    ("Without(Horizon)", Checkpoint, 30),
    ("Without(ProofOfParking)", Receipts, 12),
    ("Without(StartOnce)", Checkpoint, 19),
    ("Without(Settle)", Receipts, 12),
    ("Without(SettleAgain)", Checkpoint, 6),
    ("Without(LowestUndone)", Receipts, 0),
    ("Without(HandledFirst)", Checkpoint, 28),
    ("Without(UntouchedSince)", Checkpoint, 26),
    ("Without(RecordWins)", Receipts, 9),
    ("Without(Underway)", Receipts, 9),
    ("Without(RepairOnce)", Checkpoint, 81),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Checkpoint, 93),
    ("Without(BirthMark)", Checkpoint, 11),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

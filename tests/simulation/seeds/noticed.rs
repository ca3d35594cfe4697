//! The seed that showed each mutant in the last full search. It is tried first.
//!
//! The table only saves time. Most changes of the simulation make its seeds useless; the test then searches, which takes
//! long, and the table that it prints replaces this one.

use engine::ledger::LedgerKind::{self, Receipts, Watermarks};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 0),
    ("Unguarded(Bucket)", Watermarks, 11),
    ("Unguarded(StillParked)", Watermarks, 9),
    ("Unguarded(OwnerAbsent)", Receipts, 11),
    ("Unguarded(StillTheirs)", Receipts, 7),
    ("Unguarded(Job)", Receipts, 0),
    ("Unguarded(StillZero)", Receipts, 39),
    ("Unguarded(UnreadTarget)", Watermarks, 39),
    ("Unguarded(RepairRight)", Receipts, 73),
    ("Without(OwnBell)", Receipts, 0),
    ("Without(BothImages)", Watermarks, 2),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Receipts, 73),
    ("Without(SearchAgain)", Receipts, 5),
    ("Without(Circle)", Receipts, 73),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 8),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Watermarks, 2),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(Horizon)", Receipts, 16),
    ("Without(ProofOfParking)", Receipts, 4),
    ("Without(StartOnce)", Watermarks, 19),
    ("Without(Settle)", Receipts, 8),
    ("Without(SettleAgain)", Receipts, 6),
    ("Without(LowestUndone)", Receipts, 4),
    ("Without(HandledFirst)", Receipts, 1),
    ("Without(ProvenIn)", Receipts, 85),
    ("Without(UntouchedSince)", Receipts, 1),
    ("Without(RecordWins)", Receipts, 11),
    ("Without(Underway)", Receipts, 14),
    ("Without(RepairOnce)", Receipts, 73),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Receipts, 73),
    ("Without(BirthMark)", Receipts, 73),
];

/// The ledger and the seed that showed this mutant.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

//! The seed that showed each mutant the last time that all were searched for, so that it is tried first.
//!
//! Nothing rests on it: where such a seed shows nothing any more, as after most changes of the simulation, the mutant is
//! searched for. That takes long, so the table is then written anew, from what the test prints.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    ("Unguarded(Receipt)", Receipts, 0),
    ("Unguarded(Update)", Receipts, 3),
    ("Unguarded(Bucket)", Receipts, 9),
    ("Unguarded(StillParked)", Receipts, 0),
    ("Unguarded(OwnerAbsent)", Receipts, 142),
    ("Unguarded(StillTheirs)", Receipts, 0),
    ("Unguarded(Job)", Receipts, 0),
    ("Unguarded(StillZero)", Receipts, 31),
    ("Unguarded(Checkpoint)", Checkpoint, 0),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Checkpoint, 1),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Receipts, 340),
    ("Without(SearchAgain)", Receipts, 3),
    ("Without(Circle)", Checkpoint, 414),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 4),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 1),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 3),
    ("Without(NobodyOvertakes)", Checkpoint, 2),
    ("Without(ReadAgain)", Checkpoint, 17),
    ("Without(DropBeforeSend)", Checkpoint, 14),
    ("Without(Horizon)", Receipts, 2),
    ("Without(ProofOfParking)", Receipts, 3),
    ("Without(StartOnce)", Checkpoint, 19),
    ("Without(Settle)", Receipts, 5),
    ("Without(SettleAgain)", Receipts, 4),
    ("Without(LowestUndone)", Receipts, 0),
    ("Without(HandledFirst)", Checkpoint, 28),
    ("Without(UntouchedSince)", Checkpoint, 34),
    ("Without(RecordWins)", Checkpoint, 34),
    ("Without(Underway)", Checkpoint, 8),
    ("Without(RepairOnce)", Receipts, 623),
    ("Without(PublishFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Checkpoint, 487),
    ("Without(BirthMark)", Receipts, 41),
];

/// The ledger and the seed that showed it.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

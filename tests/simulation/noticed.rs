//! The seed that showed each mutant the last time that all were searched for, so that it is tried first.
//!
//! Nothing rests on it: where such a seed shows nothing any more, as after most changes of the simulation, the mutant is
//! searched for. That takes long, so the table is then written anew, from what the test prints.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    (r#"Unguarded("Absent")"#, Receipts, 0),
    (r#"Unguarded("Exists")"#, Receipts, 36),
    (r#"Unguarded("BucketAsRead")"#, Receipts, 56),
    (r#"Unguarded("StillParked")"#, Receipts, 0),
    (r#"Unguarded("OwnerAbsent")"#, Checkpoint, 85),
    (r#"Unguarded("StillTheirs")"#, Receipts, 8),
    (r#"Unguarded("SourceAsRead")"#, Checkpoint, 1),
    (r#"Unguarded("StillZero")"#, Checkpoint, 79),
    (r#"Unguarded("Unmoved")"#, Checkpoint, 0),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Checkpoint, 1),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Checkpoint, 410),
    ("Without(SearchAgain)", Receipts, 6),
    ("Without(Circle)", Receipts, 712),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Checkpoint, 2),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 0),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 3),
    ("Without(NobodyOvertakes)", Checkpoint, 3),
    ("Without(ReadAgain)", Checkpoint, 2),
    ("Without(DropBeforeSend)", Checkpoint, 7),
    ("Without(Horizon)", Receipts, 0),
    ("Without(ProofOfParking)", Receipts, 7),
    ("Without(StartOnce)", Checkpoint, 281),
    ("Without(Settle)", Receipts, 5),
    ("Without(SettleAgain)", Receipts, 4),
    ("Without(LowestUndone)", Receipts, 0),
    ("Without(HandledFirst)", Checkpoint, 28),
    ("Without(UntouchedSince)", Receipts, 9),
    ("Without(RecordWins)", Receipts, 9),
    ("Without(ToldApart)", Receipts, 9),
    ("Without(RepairOnce)", Receipts, 135),
    ("Without(RightToRepair)", Receipts, 108),
    ("Without(TellFirst)", Receipts, 28),
    ("Without(ReadyFirst)", Receipts, 192),
    ("Without(BirthMark)", Checkpoint, 41),
];

/// The ledger and the seed that showed it.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

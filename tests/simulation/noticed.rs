//! The seed that showed each mutant the last time that all were searched for, so that it is tried first.
//!
//! Nothing rests on it: where such a seed shows nothing any more, as after most changes of the simulation, the mutant is
//! searched for. That takes long, so the table is then written anew, from what the test prints.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    (r#"Unguarded("Absent")"#, Receipts, 0),
    (r#"Unguarded("Exists")"#, Checkpoint, 8),
    (r#"Unguarded("BucketAsRead")"#, Receipts, 20),
    (r#"Unguarded("StillParked")"#, Receipts, 2),
    (r#"Unguarded("OwnerAbsent")"#, Checkpoint, 5),
    (r#"Unguarded("StillTheirs")"#, Receipts, 3),
    (r#"Unguarded("SourceAsRead")"#, Receipts, 1),
    (r#"Unguarded("PlaceFree")"#, Receipts, 11),
    (r#"Unguarded("StillZero")"#, Receipts, 39),
    (r#"Unguarded("Unmoved")"#, Checkpoint, 0),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Receipts, 9),
    ("Without(WayThere)", Receipts, 0),
    ("Without(LookupKey)", Receipts, 450),
    ("Without(SearchAgain)", Receipts, 9),
    ("Without(Circle)", Checkpoint, 248),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Checkpoint, 0),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 1),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 0),
    ("Without(NobodyOvertakes)", Checkpoint, 7),
    ("Without(ReadAgain)", Checkpoint, 32),
    ("Without(DropBeforeSend)", Checkpoint, 42),
    ("Without(Horizon)", Receipts, 12),
    ("Without(ProofOfParking)", Receipts, 4),
    ("Without(StartOnce)", Checkpoint, 133),
    ("Without(Settle)", Receipts, 3),
    ("Without(LookBelow)", Checkpoint, 36),
    ("Without(Await)", Checkpoint, 1),
    ("Without(MergeAdded)", Receipts, 63),
    ("Without(LowestUndone)", Receipts, 0),
    ("Without(HandledFirst)", Receipts, 3),
    ("Without(UntouchedSince)", Checkpoint, 82),
    ("Without(RecordWins)", Checkpoint, 57),
    ("Without(ToldApart)", Receipts, 7),
    ("Without(RepairOnce)", Receipts, 348),
    ("Without(RightToRepair)", Checkpoint, 61),
];

/// The ledger and the seed that showed it.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

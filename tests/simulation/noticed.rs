//! The seed that showed each mutant the last time that all were searched for, so that it is tried first.
//!
//! Nothing rests on it: where such a seed shows nothing any more, as after most changes of the simulation, the mutant is
//! searched for. That takes long, so the table is then written anew, from what the test prints.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    (r#"Unguarded("Absent")"#, Receipts, 0),
    (r#"Unguarded("Exists")"#, Checkpoint, 1),
    (r#"Unguarded("BucketAsRead")"#, Receipts, 4),
    (r#"Unguarded("StillParked")"#, Receipts, 1),
    (r#"Unguarded("OwnerAbsent")"#, Checkpoint, 97),
    (r#"Unguarded("StillTheirs")"#, Receipts, 5),
    (r#"Unguarded("SourceAsRead")"#, Checkpoint, 1),
    (r#"Unguarded("PlaceFree")"#, Checkpoint, 26),
    (r#"Unguarded("StillZero")"#, Checkpoint, 41),
    (r#"Unguarded("Unmoved")"#, Checkpoint, 0),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Checkpoint, 1),
    ("Without(WayThere)", Receipts, 1),
    ("Without(LookupKey)", Receipts, 156),
    ("Without(SearchAgain)", Checkpoint, 9),
    ("Without(Circle)", Checkpoint, 20),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Receipts, 6),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 0),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 2),
    ("Without(NobodyOvertakes)", Checkpoint, 14),
    ("Without(ReadAgain)", Checkpoint, 7),
    ("Without(DropBeforeSend)", Checkpoint, 75),
    ("Without(Horizon)", Checkpoint, 21),
    ("Without(ProofOfParking)", Receipts, 1),
    ("Without(StartOnce)", Checkpoint, 478),
    ("Without(Settle)", Receipts, 5),
    ("Without(LookBelow)", Receipts, 131),
    ("Without(Await)", Receipts, 9),
    ("Without(MergeAdded)", Checkpoint, 470),
    ("Without(LowestUndone)", Receipts, 1),
    ("Without(HandledFirst)", Checkpoint, 5),
    ("Without(UntouchedSince)", Checkpoint, 327),
    ("Without(RecordWins)", Receipts, 19),
    ("Without(ToldApart)", Receipts, 11),
    ("Without(RepairOnce)", Checkpoint, 41),
    ("Without(RightToRepair)", Checkpoint, 142),
    ("Without(TellFirst)", Receipts, 10),
    ("Without(BirthMark)", Receipts, 11),
];

/// The ledger and the seed that showed it.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

//! The seed that showed each mutant the last time that all were searched for, so that it is tried first.
//!
//! Nothing rests on it: where such a seed shows nothing any more, as after most changes of the simulation, the mutant is
//! searched for. That takes long, so the table is then written anew, from what the test prints.

use engine::ledger::LedgerKind::{self, Checkpoint, Receipts};

use crate::mutant::Mutant;

/// Mutants by their names.
const NOTICED: &[(&str, LedgerKind, u64)] = &[
    (r#"Unguarded("Absent")"#, Receipts, 0),
    (r#"Unguarded("Exists")"#, Receipts, 6),
    (r#"Unguarded("BucketAsRead")"#, Receipts, 17),
    (r#"Unguarded("StillParked")"#, Receipts, 4),
    (r#"Unguarded("OwnerAbsent")"#, Receipts, 216),
    (r#"Unguarded("StillTheirs")"#, Receipts, 3),
    (r#"Unguarded("SourceAsRead")"#, Receipts, 5),
    (r#"Unguarded("PlaceFree")"#, Checkpoint, 26),
    (r#"Unguarded("StillZero")"#, Checkpoint, 158),
    (r#"Unguarded("Unmoved")"#, Checkpoint, 0),
    ("Without(OwnBell)", Receipts, 1),
    ("Without(BothImages)", Receipts, 1),
    ("Without(WayThere)", Receipts, 0),
    ("Without(LookupKey)", Checkpoint, 192),
    ("Without(SearchAgain)", Receipts, 4),
    ("Without(Circle)", Receipts, 210),
    ("Without(ConsistentRead)", Receipts, 1),
    ("Without(ImageOfItsOwn)", Checkpoint, 2),
    ("Without(NetZeroProof)", Receipts, 0),
    ("Without(OnceABatch)", Checkpoint, 1),
    ("Without(ReasonsByPosition)", Receipts, 0),
    ("Without(ContiguousChunks)", Checkpoint, 0),
    ("Without(NobodyOvertakes)", Checkpoint, 7),
    ("Without(ReadAgain)", Checkpoint, 32),
    ("Without(DropBeforeSend)", Checkpoint, 11),
    ("Without(Horizon)", Receipts, 15),
    ("Without(ProofOfParking)", Receipts, 3),
    ("Without(StartOnce)", Receipts, 401),
    ("Without(Settle)", Receipts, 3),
    ("Without(LookBelow)", Receipts, 30),
    ("Without(Await)", Receipts, 7),
    ("Without(MergeAdded)", Receipts, 324),
    ("Without(LowestUndone)", Receipts, 0),
];

/// The ledger and the seed that showed it.
pub(crate) fn last(mutant: Mutant) -> Option<(LedgerKind, u64)> {
    let name = format!("{mutant:?}");
    NOTICED.iter().find(|(of, ..)| *of == name).map(|(_, ledger, seed)| (*ledger, *seed))
}

//! Positions: a derivation's in the catalogue, and a record's in its batch. As types of their own, neither can be taken
//! for the other, or for a number.

/// Position of a derivation in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DerivationAt(pub usize);

/// Position of a record in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordAt(pub usize);

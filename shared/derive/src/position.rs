//! Positions: of a derivation in the catalogue, and of a record in its batch. They are separate types, so that they
//! cannot be confused with each other or with a number.

/// Position of a derivation in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DerivationAt(pub usize);

/// Position of a record in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordAt(pub usize);

//! Shapes: the ways in which a kind is applied.

use crate::{
    declaration::{cascade::Cascade, count::Count, mirror::Mirror, rollup::Rollup},
    kind::refresh::Refresh,
};

/// How a kind is applied, with what only kinds of that shape have.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// It adds to counters.
    Count(&'a Count),
    /// It adds to buckets, and widens their bounds.
    Rollup(&'a Rollup),
    /// It looks at items and makes them whole.
    Mirror(&'a Mirror),
    /// It looks at items and writes some of their attributes.
    Attributes(&'a dyn Refresh),
    /// It deletes or changes the application's items after a removal.
    Cascade(&'a Cascade),
}

//! What derivations are declared with.
//!
//! The declarations of those kinds that have a [shape](crate::kind::shape) of their own stand here, apart from what the
//! kinds do with them: whoever matches on the shape reads them. The other kinds have theirs in their own files.

pub mod cascade;
pub(crate) mod check;
pub mod count;
pub mod found_by;
pub mod link;
pub mod mirror;
pub mod rollup;

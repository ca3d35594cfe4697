//! The kinds of derivations, a file each; [`kind`](crate::kind) says what a new one needs.

pub mod cascade;
pub mod copy;
pub mod count;
pub mod counted_item;
pub mod display;
pub mod index_key;
pub mod latest;
pub mod mirror;
pub mod path;
pub mod rollup;

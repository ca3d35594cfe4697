//! The kinds of derivations, one per file; [`kind`](crate::kind) describes how to add one.

pub mod calculated;
pub mod cascade;
pub mod copy;
pub mod count;
pub mod counted_item;
pub mod display;
pub mod entries;
pub mod index_key;
pub mod latest;
pub mod mirror;
pub mod path;
pub mod rollup;
pub mod unread;
pub mod window;

//! What must be true of every run: of its end, and of everything written in it.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod buckets;
pub(crate) mod converging;
pub(crate) mod history;
pub(crate) mod listed;
pub(crate) mod recounted;
pub(crate) mod strict;
pub(crate) mod unreadable;

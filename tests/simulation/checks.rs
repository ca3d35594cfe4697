//! What must be true of every run: at its end, and of all that was written in it.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod buckets;
pub(crate) mod history;
pub(crate) mod listed;
pub(crate) mod strict;

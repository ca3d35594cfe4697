//! The platform between the table and the functions: the stream and its shards, corrupt records, event source mappings
//! and their filters, events, and what a response means.

pub(crate) mod corruption;
pub(crate) mod event;
pub(crate) mod filters;
pub(crate) mod lost;
pub(crate) mod mapping;
pub(crate) mod stream;
pub(crate) mod verdict;

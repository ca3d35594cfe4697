//! Tests of a mapping with an in-memory stream in virtual time, and parts that other test modules share.
//!
//! `tools/stream/README.md` defines the sources in the comments, such as U2 and LS.

pub(crate) mod loopback;
pub(crate) mod memory_stream;
pub(crate) mod world;

mod batches;
mod delivered;
mod discarding;
mod lanes;
mod positions;
mod responses;
mod retries;
mod shards;
mod windows;

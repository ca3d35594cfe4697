//! A mapping against a stream in memory, in virtual time; and what the tests of other files share.

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

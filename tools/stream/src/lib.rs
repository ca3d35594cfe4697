//! A local Lambda event source mapping over the DynamoDB Streams API.
//!
//! From the stream of a table (an emulator's or the real one) to invocations of a function, the way Lambda does it:
//! parents before children, filters, batches that never mix shards, tumbling windows, partial responses, retries,
//! the on-failure record. `docs/event-source-mapping.md` lists what is known of it, with the test of each
//! fact, and what AWS leaves open. What the emulators get wrong in a record is mended on the way ([`event`]).
//!
//! # What it keeps true
//!
//! - **Nothing is skipped.** A checkpoint moves past a record only after the function answered for it, after its
//!   on-failure record was written, or where no filter matches it. So a restart delivers again at most the batch in
//!   progress, and of several lanes what they did ahead of the slowest.
//! - **Order of an item's records.** One batch of a lane at a time, and all records of an item take one lane of their
//!   shard; the records of a lane behind a failed one wait. With one lane, which is the default of AWS, that is the
//!   order of the whole shard.
//! - **What is held is bounded**: two batches a lane, counted over all lanes of a shard.
//! - **A batch is of one tumbling window**, where the mapping has them, and no record of another window comes before
//!   the final invocation of this one succeeded.
//! - **Parents first.** A child shard starts when its parent is drained or no longer listed.
//! - **Up to when all is delivered** is known, on a stream that is never empty too. See [`progress::Observer::delivered`].
//!
//! Records may be delivered more than once, as on AWS: the function must stand that.
//!
//! # Parts
//!
//! [`mapping`] is what to do, [`poller`] does it, and reads with others over the same [`shared`] stream. [`function`],
//! [`checkpoint`], [`response`] and [`progress`] are the traits that it meets the outside through, with the
//! implementations that need nothing else.

pub mod checkpoint;
pub mod event;
pub mod filter;
pub mod function;
pub mod mapping;
pub mod poller;
pub mod progress;
pub mod shared;

pub mod batch;
pub mod delivered;
mod delivery;
mod failure;
mod frontier;
mod invocation;
mod lanes;
mod lineage;
mod persist;
mod reader;
pub mod response;
mod sdk;
pub mod source;
mod value;
mod window;
mod wiring;

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its literals so")]
mod tests;

//! A local Lambda event source mapping over the DynamoDB Streams API.
//!
//! It reads the stream of a table, on an emulator or on AWS, and invokes a function as Lambda does: parents before
//! children, filters, batches that never mix shards, tumbling windows, partial responses, retries, and the on-failure
//! record. `tools/stream/README.md` lists the known facts about Lambda's mapping with the test of each, and what
//! AWS leaves open. It also defines the sources in these comments, such as U2 and LS. Deviations in the emulators'
//! records are corrected on the way ([`event`]).
//!
//! # What it keeps true
//!
//! - **Nothing is skipped.** The checkpoint moves past a record only if the function processed it, if it was discarded
//!   and its on-failure record was written (with a destination), or if it needs no delivery, because no filter matches
//!   it or it changes nothing. A record that cannot be converted is reported and passed over. So a restart delivers at
//!   most the batch in progress again, and with several lanes also what they delivered beyond the slowest lane.
//! - **Records of an item stay in order.** A lane has one batch at a time, and all records of an item take the same
//!   lane of their shard. Records after a failed one in the lane wait. With one lane, AWS's default, the whole shard is
//!   in order.
//! - **The buffer is bounded**: two batches per lane, counted over all lanes of a shard.
//! - **A batch belongs to one tumbling window**, if the mapping has windows. No record of another window is delivered
//!   before the final invocation of this one succeeded.
//! - **Parents first.** A child shard starts when its parent is drained or no longer listed.
//! - **The time up to which all records are delivered** is known, also on a stream that is never empty. See
//!   [`progress::Observer::delivered`].
//!
//! Records may be delivered more than once, as on AWS. The function must tolerate that.
//!
//! # Parts
//!
//! [`mapping`] has the settings, and [`poller`] runs them. Several mappings can read the same [`source::Stream`].
//! [`function`], [`checkpoint`], [`failure`] and [`progress`] have the traits for the outside world, each with the
//! implementations that need nothing else.

mod batch;
pub mod checkpoint;
mod delivery;
pub mod event;
pub mod failure;
pub mod filter;
pub mod function;
pub mod mapping;
pub mod poller;
pub mod progress;
mod shard;
pub mod source;

#[cfg(test)]
mod tests;

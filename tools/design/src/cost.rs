//! What a table costs a month: from the rate at which the application writes, to units, invocations, bytes of logs and
//! dollars, each with its formula.
//!
//! No write and no read is calculated here. The [sample run](usage) puts items of the declared entities into the store's
//! model, delivers their records to the engine in batches of the size that the rate makes, and counts what the engine
//! does. Only a fan-out is a product: its items, times the [price](crate::price) of one.

pub mod bed;
pub mod cast;
pub mod estimate;
pub mod load;
pub mod prices;
pub mod usage;
mod world;

//! Everybody who acts in a run, one a file. `World::take_step` in `scheduler.rs` is the one call that lets each of them
//! act. How often each acts is in `pace.rs`.

pub(crate) mod application;
pub(crate) mod invocations;
pub(crate) mod losses;
pub(crate) mod operator;
pub(crate) mod repairing;
pub(crate) mod sweeper;

//! What an operator does to a table: verify it, repair what is found, and fill a derivation.
//!
//! The command line parses arguments and prints; what is between is here, and is tested without it.
//!
//! - [`verify`] decides what is a finding, over any [`Store`](store::Store), and [`repair`] mends one finding.
//! - [`verifying`] is a whole verification: what was read and found is in a file, and the stream is followed beside it.
//! - [`repairing`] is a whole repair: the right to it, the verification, each finding mended, and what is marked as filled.
//! - [`loss`] are the marks of a possible loss, which a verification takes away that finds nothing.
//!
//! [`Deployment`](tables::Deployment) is what all work on, and [`OperateError`](failure::OperateError) why one ended early.

pub mod checkpoints;
pub mod failure;
pub mod loss;
pub mod progress;
pub mod repair;
pub mod repairing;
pub mod tables;
pub mod verify;
pub mod verifying;

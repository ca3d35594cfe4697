//! Verify, repair and backfill, as the command line uses them.
//!
//! The command line parses arguments and prints. This crate does the rest, and is tested without the command line.
//!
//! - [`verify`] decides what is a finding, over any [`Store`](store::Store). [`verify::check`] is a whole verification:
//!   it keeps its progress in a file, and follows the stream.
//! - [`repair`] is a whole repair: it takes the right to repair, verifies, corrects each finding, and marks derivations
//!   as filled. [`repair::remedy`] corrects one finding.
//! - [`why`] explains the derived values of one item, and reads only what they need.
//! - [`audit`] compares a table that Ripple does not maintain with its definition.
//! - [`rates`] measures the application's write rates.
//! - [`mod@written`] describes what a write of the functions did.
//! - [`redriving`] redrives a parked change, [`discarding`] discards one, and [`about`] finds those about an item.
//! - [`objects`] builds the JSON objects of `--json`, which the console serves too.
//! - [`loss`] handles the marks of a possible loss, which a verification removes.
//!
//! All work on a [`Deployment`](tables::Deployment), and return an [`OperateError`](failure::OperateError) when they
//! fail.

pub mod about;
pub mod audit;
pub mod checkpoints;
pub mod discarding;
pub mod failure;
pub mod loss;
pub mod objects;
pub mod progress;
pub mod rates;
pub mod redriving;
pub mod repair;
pub mod tables;
pub mod verify;
pub mod why;
pub mod words;
pub mod written;

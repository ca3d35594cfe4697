//! The read patterns AP-001 to AP-044, a file for each part of the table.
//!
//! Reads are eventually consistent unless the pattern needs more or the caller asks for more; a read of an index is
//! always eventually consistent. Items of another entity than the pattern's, such as counters, are skipped.

pub mod carts;
pub mod collection;
pub mod comments;
pub mod counts;
mod days;
pub mod files;
pub mod found;
pub mod groups;
mod listing;
pub mod many;
mod merging;
pub mod orders;
pub mod organizations;
mod position;
pub mod posts;
pub mod products;
mod projection;
mod ranges;
pub mod sensors;
pub mod times;
pub mod users;

use crate::pattern::AccessPattern;

/// All read patterns, in order of their IDs.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    let parts = [
        users::patterns,
        collection::patterns,
        posts::patterns,
        comments::patterns,
        groups::patterns,
        organizations::patterns,
        files::patterns,
        products::patterns,
        orders::patterns,
        sensors::patterns,
        counts::patterns,
        many::patterns,
        carts::patterns,
    ];
    let mut patterns: Vec<AccessPattern> = parts.into_iter().flat_map(|patterns| patterns()).collect();
    patterns.sort_unstable_by_key(|pattern| pattern.id);
    patterns
}

//! The write patterns as data, each with a sample that shows its requests.

mod people;
mod places;
mod posts;
mod shop;

use crate::pattern::{AccessPattern, SampleQueries, SampleRun};

pub(super) fn all() -> Vec<AccessPattern> {
    [people::PATTERNS, posts::PATTERNS, places::PATTERNS, shop::PATTERNS].concat()
}

const fn write(
    id: &'static str,
    title: &'static str,
    input: &'static str,
    result: &'static str,
    sample: SampleRun,
) -> AccessPattern {
    AccessPattern { id, title, input, result, sample }
}

impl SampleQueries {
    /// Forgets the requests so far, which only prepared the sample.
    fn forget(&self) {
        drop(self.store.take());
    }
}

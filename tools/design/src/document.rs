//! The design document: one page of markdown that shows a whole table.
//!
//! Its sections are in reading order: the items, the requests, the derivations, the bookkeeping, and the reasons.

mod bookkeeping;
mod derivations;
mod entities;
mod markdown;
pub(crate) mod notes;
mod reads;
pub mod requests;
mod table;
mod writes;

use crate::{Design, review::Reviewed};

/// Makes the page, with the command that generates it and the findings of the review.
#[must_use]
pub fn page(design: &Design, written_by: &str, reviewed: &Reviewed) -> String {
    let parts = [
        table::section(design, written_by),
        entities::section(design),
        reads::section(design),
        writes::section(design),
        derivations::section(design),
        bookkeeping::section(design),
        notes::section(design, reviewed),
    ];
    let mut page = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    // The mark of a value without escapes is not written in a manifest.
    page = page.replace("!}", "}");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

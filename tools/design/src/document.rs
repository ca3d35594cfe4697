//! The design document: one page of markdown that shows a whole table.
//!
//! A part a section, in the order in which one reads: what the items are, what is asked for, what is derived, what is
//! kept beside all that, and why.

mod bookkeeping;
mod derivations;
mod entities;
mod markdown;
pub(crate) mod notes;
mod reads;
mod table;
mod writes;

use crate::{Design, review::Reviewed};

/// The page, with the command that writes it anew, and with the review's findings.
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
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

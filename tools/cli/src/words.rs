//! Words of sentences: numbers of things, and lists of names.

pub(crate) use operate::words::counted;

/// Names that a sentence lists.
const NAMED_MAX: usize = 3;

/// The first of these names, and how many more there are.
pub(crate) fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

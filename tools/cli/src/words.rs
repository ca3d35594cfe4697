//! Words of sentences: numbers of things, and lists of names.

/// Names that a sentence lists.
const NAMED_MAX: usize = 3;

/// A number of things, in the singular or the plural.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The first of these names, and how many more there are.
pub(crate) fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

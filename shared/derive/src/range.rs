//! Ranges: the items of an entity with some fields of their key in common, where they are consecutive in one partition
//! of the table. One consistent query reads such a range from either end.

use keys::{entity::Definition, template::Template};

/// Why the items with these fields of their key in common are not one range of one partition; `None` if they are.
/// `giver` has the fields, in words.
pub(crate) fn not_one_range(source: &Definition, given: &[&str], giver: &str) -> Option<String> {
    let (partition, sort) = (source.key.pk.field_names(), source.key.sk.field_names());
    let leading: Vec<&str> = sort.into_iter().take_while(|name| given.contains(name)).collect();
    let lacking = partition.iter().find(|name| !given.contains(name));
    let inside = given.iter().find(|name| !partition.contains(name) && !leading.contains(name));
    if source.key.sk.is_open() && !leading.is_empty() {
        return Some(format!("a value in {} may contain the text that ends it", source.key.sk));
    }
    match (lacking, inside) {
        (Some(name), _) => Some(format!("{giver} does not give {name} of their partition key")),
        (None, Some(name)) => Some(format!("{name} is not at the beginning of their key")),
        (None, None) => None,
    }
}

/// The first field of a sort key behind those that are given: a range is in the order of this field.
#[must_use]
pub fn first_behind(sort: &Template, is_given: impl Fn(&str) -> bool) -> Option<&str> {
    sort.field_names().into_iter().find(|name| !is_given(name))
}

/// True if a sort key has the greatest value of this field first.
#[must_use]
pub fn is_descending(sort: &Template, field: &str) -> bool {
    sort.written(field).is_some_and(|written| written.starts_with("{MAX-"))
}

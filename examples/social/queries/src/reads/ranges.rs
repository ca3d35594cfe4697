//! Queries that are made from the entities' own templates, so that no key is written by hand here.

use derive::query::{Consistency, Order, Query, SortKeys};
use keys::{entity::Entity, fields::Fields, template::Template};

use crate::read_error::ReadError;

/// The items of an entity in the collection that the fields name. More fields narrow the range of sort keys.
pub(super) fn collection<E: Entity>(fields: &Fields) -> Result<Query, ReadError> {
    let pk = E::definition().key.pk.build(fields).map_err(|error| error.of(E::NAME))?;
    Ok(eventual(Query::prefix(None, pk, E::sort_key_prefix(fields)?)))
}

/// The entries of an entity in an index, in all partitions that the fields name: one query, or one for each suffix.
pub(super) fn entries<E: Entity>(index: &str, fields: &Fields) -> Result<Vec<Query>, ReadError> {
    let keys = E::definition().indexes.iter().filter(|key| key.index == index);
    let mut queries = Vec::new();
    for key in keys {
        let prefix = key.key.sk.prefix(fields).map_err(|error| error.of(E::NAME))?;
        for pk in key.key.pk.suffixes() {
            let pk = pk.build(fields).map_err(|error| error.of(E::NAME))?;
            queries.push(Query::prefix(Some(index), pk, prefix.clone()));
        }
    }
    Ok(queries)
}

/// The first sort key of an entity.
pub(super) fn first<E: Entity>() -> Result<String, ReadError> {
    Ok(E::sort_key_prefix(&Fields::new())?)
}

/// The last sort key of an entity.
pub(super) fn last<E: Entity>() -> Result<String, ReadError> {
    Ok(end(first::<E>()?))
}

/// The sort keys between two values of the field after the given ones, both included.
pub(super) fn between(
    entity: &str,
    template: &Template,
    fields: &Fields,
    name: &str,
    (from, to): (Option<&str>, Option<&str>),
) -> Result<SortKeys, ReadError> {
    let prefix = |value: Option<&str>| {
        let of = |field: &str| if field == name { value } else { fields.get(field) };
        template.prefix_of(of).map_err(|error| error.of(entity))
    };
    let all = prefix(None)?;
    match (from, to) {
        (None, None) if all.is_empty() => Ok(SortKeys::All),
        (None, None) => Ok(SortKeys::Prefix(all)),
        (from, to) => {
            let (first, last) = (prefix(from)?, end(prefix(to)?));
            if first > last { Err(ReadError::TimesReversed) } else { Ok(SortKeys::Between(first, last)) }
        }
    }
}

/// Sets the order.
pub(super) fn ordered(query: Query, order: Order) -> Query {
    Query { order, ..query }
}

/// Newest or greatest first.
pub(super) fn descending(query: Query) -> Query {
    ordered(query, Order::Descending)
}

/// Eventually consistent.
pub(super) fn eventual(query: Query) -> Query {
    Query { consistency: Consistency::Eventual, ..query }
}

/// The upper bound of a prefix that ends in `#`: the same with the next character. A prefix without `#` at its end is a
/// whole key, and its own bound.
fn end(mut prefix: String) -> String {
    if prefix.ends_with('#') {
        prefix.pop();
        prefix.push('$');
    }
    prefix
}

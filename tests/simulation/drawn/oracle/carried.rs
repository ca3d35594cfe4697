//! Attributes that items carry: copies, the latest and the extreme, paths, and keys in an index.

use super::{Compared, Rows, conditions::is_met};
use crate::{
    drawn::{
        description::{CopyRule, Description, FieldOf, LatestRule, Ref},
        values::{Lead, Row, filling, lead, number_of, written},
    },
    oracle::table::{ONE, Plain, segment},
};

pub(super) fn copies(of: &Description, rows: &Rows, name: &str, rule: &CopyRule, compared: &mut Compared) {
    for row in rows.each(rule.to) {
        let source = match lead(of, row, rule.from, &rule.link.pairs) {
            Lead::To(place) => rows.get(rule.from, &place),
            Lead::Nowhere | Lead::Unreadable => None,
        };
        let source = source.filter(|source| is_met(rule.condition.as_ref(), &source.item));
        for (attribute, into) in &rule.pairs {
            let derived = source.and_then(|source| source.item.get(attribute).cloned());
            compared.compare("copy", name, &row.place, &row.item.get(into).cloned(), &derived);
        }
    }
}

/// The items that lead to one.
fn leading<'a>(of: &Description, rows: &'a Rows, from: usize, link: &Ref, to: &Row) -> Vec<&'a Row> {
    let leads = |row: &&Row| lead(of, row, link.to, &link.pairs) == Lead::To(to.place.clone());
    rows.each(from).iter().filter(leads).collect()
}

pub(super) fn latest(of: &Description, rows: &Rows, name: &str, rule: &LatestRule, compared: &mut Compared) {
    for row in rows.each(rule.to) {
        let mut sources = leading(of, rows, rule.from, &rule.link, row);
        sources.sort_by(|one, other| one.order.cmp(&other.order));
        if !rule.is_first {
            sources.reverse();
        }
        if let Some((into, n)) = &rule.list {
            let entry = |source: &&Row| {
                let pair = |(from, to): &(String, String)| Some((to.clone(), field_or_attribute(of, source, from)?));
                Plain::Map(rule.pairs.iter().filter_map(pair).collect())
            };
            let entries: Vec<Plain> = sources.iter().take(*n).map(entry).collect();
            let derived = (!entries.is_empty()).then_some(Plain::List(entries));
            compared.compare("latest list", name, &row.place, &row.item.get(into).cloned(), &derived);
            continue;
        }
        for (attribute, into) in &rule.pairs {
            let derived = sources.first().and_then(|source| field_or_attribute(of, source, attribute));
            compared.compare("latest", name, &row.place, &row.item.get(into).cloned(), &derived);
        }
    }
}

/// A field of the key as the attribute that it would be, else an attribute.
fn field_or_attribute(of: &Description, row: &Row, name: &str) -> Option<Plain> {
    match (of.entities[row.entity].field(name), row.fields.get(name)) {
        (Some(FieldOf::Padded(_) | FieldOf::Inverted(_)), Some(Plain::Text(text))) => {
            number_of(text).map(Plain::Number)
        }
        (Some(_), Some(field)) => Some(field.clone()),
        _ => row.item.get(name).cloned(),
    }
}

#[expect(clippy::too_many_arguments, reason = "they are what the rule says")]
pub(super) fn extreme(
    of: &Description,
    rows: &Rows,
    name: &str,
    (from, to): (usize, usize),
    link: &Ref,
    (field, into): (&str, &str),
    is_max: bool,
    compared: &mut Compared,
) {
    for row in rows.each(to) {
        let sources = leading(of, rows, from, link, row);
        let values = sources.into_iter().filter_map(|source| field_or_attribute(of, source, field));
        let derived = if is_max { values.max() } else { values.min() };
        compared.compare("extreme", name, &row.place, &row.item.get(into).cloned(), &derived);
    }
}

#[expect(clippy::too_many_arguments, reason = "they are what the rule says")]
pub(super) fn paths(
    of: &Description,
    rows: &Rows,
    name: &str,
    tree: usize,
    link: &Ref,
    (part, into): (&str, &str),
    depth: usize,
    compared: &mut Compared,
) {
    for row in rows.each(tree) {
        let derived = path(of, rows, row, link, part, depth).map(Plain::Text);
        compared.compare("path", name, &row.place, &row.item.get(into).cloned(), &derived);
    }
}

/// The names from the root down, if there are so many at most.
fn path(of: &Description, rows: &Rows, row: &Row, link: &Ref, part: &str, levels: usize) -> Option<String> {
    if levels == 0 {
        return None;
    }
    let name = segment(&filling(row, part, FieldOf::Text).ok()??);
    match lead(of, row, link.to, &link.pairs) {
        Lead::Nowhere => Some(format!("/{name}")),
        Lead::Unreadable => None,
        Lead::To(place) => {
            let above = path(of, rows, rows.get(link.to, &place)?, link, part, levels - 1)?;
            Some(format!("{above}/{name}"))
        }
    }
}

/// The largest number that a key of twelve digits can hold.
const NUMBER_MAX: i128 = 999_999_999_999;

pub(super) fn index_keys(
    of: &Description,
    rows: &Rows,
    name: &str,
    ranked: usize,
    index_key: usize,
    number: &str,
    compared: &mut Compared,
) {
    let entity = &of.entities[ranked];
    let key = &entity.index_keys[index_key];
    let index = &of.tables[entity.table].indexes[key.index];
    for row in rows.each(ranked) {
        let shown = match row.item.get(number) {
            Some(Plain::Number(shown)) if *shown > 0 && shown % ONE == 0 && shown / ONE <= NUMBER_MAX => {
                Some((shown / ONE).to_string())
            }
            _ => None,
        };
        let value = |name: &str| {
            if name == number { shown.clone() } else { filling(row, name, FieldOf::Text).ok().flatten() }
        };
        let derived = [&key.pk, &key.sk].map(|pieces| written(pieces, true, value));
        let derived = if shown.is_some() && derived.iter().all(Option::is_some) { derived } else { [None, None] };
        let stored = [&index.pk[0].name, &index.sk[0].name].map(|name| row.item.get(name).cloned());
        compared.compare("index-key", name, &row.place, &stored, &derived.map(|text| text.map(Plain::Text)));
    }
}

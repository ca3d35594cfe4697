//! Mirrors: items that stand under another key too.

use std::collections::BTreeMap;

use super::{Compared, Rows};
use crate::drawn::oracle::{is_met, led_to};
use crate::{
    drawn::{
        description::{CLAIMS, Description, FieldOf, KeyOf, MirrorRule},
        values::{MARK, Place, Row, filling, refused, row, written},
    },
    oracle::table::{Plain, PlainItem, escaped, millionths},
};

pub(super) fn compare(of: &Description, rows: &Rows, name: &str, rule: &MirrorRule, compared: &mut Compared) {
    let mut sources: BTreeMap<Place, Vec<&Row>> = BTreeMap::new();
    for row in rows.each(rule.from) {
        if !is_met(rule.condition.as_ref(), &row.item) {
            continue;
        }
        for place in led_to(of, row, rule.to, &rule.pairs, rule.each.as_ref()).unwrap_or_default() {
            sources.entry(place).or_default().push(row);
        }
    }
    for (place, sources) in sources.iter().filter(|(place, _)| !rows.is_taken(rule.to, place)) {
        let winner = sources.iter().max_by_key(|row| rank(of, row)).unwrap();
        let derived = mirror(of, winner, rule, place);
        let stored = rows.get(rule.to, place).map(|row| compared_part(of, rule.to, &row.item));
        compared.compare("mirror", name, place, &stored, &Some(derived));
    }
    for left in rows.each(rule.to).iter().filter(|row| !sources.contains_key(&row.place)) {
        compared.compare("mirror", name, &left.place, &Some(compared_part(of, rule.to, &left.item)), &None);
    }
}

/// Of several sources of one mirror the one with the greatest key wins, as Ripple prints keys: a text with its escapes.
fn rank(of: &Description, row: &Row) -> [Plain; 2] {
    let table = &of.tables[row.place.table];
    let printed = |text: &String, of: KeyOf| match of {
        KeyOf::N => Plain::Number(millionths(text)),
        KeyOf::S if !table.has_forms => Plain::Text(escaped(text)),
        _ => Plain::Text(text.clone()),
    };
    let sk = table.sk.as_ref().map_or(Plain::Bool(true), |part| printed(&row.place.sk, part.of));
    [printed(&row.place.pk, table.pk.of), sk]
}

/// The names of keys, types and times to live.
fn own_names(of: &Description, table: usize) -> Vec<&str> {
    let table = &of.tables[table];
    let mut names = vec![table.pk.name.as_str()];
    names.extend(table.sk.as_ref().map(|sk| sk.name.as_str()));
    names.push(table.type_attribute.as_deref().unwrap_or(MARK));
    for index in table.indexes.iter().filter(|index| index.has_forms) {
        names.extend(index.pk.iter().chain(&index.sk).map(|part| part.name.as_str()));
    }
    if of.tables.iter().any(|table| table.expires) {
        names.push("ExpiresAt");
    }
    names
}

/// The attributes that a mirror takes of its source: not those that an index of its table could not.
fn carried(of: &Description, source: &Row, rule: &MirrorRule) -> PlainItem {
    let (from, target) = (&of.entities[source.entity], &of.entities[rule.to]);
    let left_out = own_names(of, from.table);
    let is_kept = |name: &str| {
        !left_out.contains(&name)
            && !rule.except.iter().chain(&rule.each).any(|other| other == name)
            && !from.derives(name)
            && !target.derives(name)
            && !name.ends_with(":rev")
    };
    let kept = source.item.iter().filter(|(name, _)| is_kept(name));
    let mut kept: PlainItem = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    while let Some(name) = refused(&of.tables[target.table], &kept) {
        kept.remove(name);
    }
    kept
}

/// The whole mirror of an item, but for its list of sources.
fn mirror(of: &Description, source: &Row, rule: &MirrorRule, place: &Place) -> PlainItem {
    let (from, target) = (&of.entities[source.entity], &of.entities[rule.to]);
    let mut item = carried(of, source, rule);
    for (name, _) in from.fields() {
        if target.field(name).is_none() {
            item.insert(name.to_owned(), source.fields[name].clone());
        }
    }
    item_of(of, rule.to, place, item)
}

/// A derived item with these attributes: its key, its type and its keys in indexes are added.
pub(super) fn item_of(of: &Description, to: usize, place: &Place, mut item: PlainItem) -> PlainItem {
    let target = &of.entities[to];
    let table = &of.tables[target.table];
    item.insert(table.pk.name.clone(), key_value(&place.pk, table.pk.of));
    if let Some(sk) = &table.sk {
        item.insert(sk.name.clone(), key_value(&place.sk, sk.of));
    }
    let name = table.type_attribute.as_deref().unwrap_or(MARK);
    item.insert(name.to_owned(), Plain::Text(target.name.clone()));
    let Some(made) = row(of, target.table, &item) else { return item };
    for key in target.index_keys.iter().filter(|key| !key.is_derived) {
        let index = &table.indexes[key.index];
        let value = |name: &str| filling(&made, name, FieldOf::Text).ok().flatten();
        if let [Some(pk), Some(sk)] = [&key.pk, &key.sk].map(|pieces| written(pieces, true, value)) {
            item.insert(index.pk[0].name.clone(), Plain::Text(pk));
            item.insert(index.sk[0].name.clone(), Plain::Text(sk));
        }
    }
    item
}

fn key_value(text: &str, of: KeyOf) -> Plain {
    match of {
        KeyOf::S => Plain::Text(text.to_owned()),
        KeyOf::N => Plain::Number(millionths(text)),
        KeyOf::B => {
            let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            Plain::Bytes((0..text.len()).step_by(2).map(digits).collect())
        }
    }
}

/// A derived item without what other derivations write into it, and without its list of sources.
pub(super) fn compared_part(of: &Description, to: usize, item: &PlainItem) -> PlainItem {
    let is_ours = |name: &String| !of.entities[to].derives(name) && !name.ends_with(":rev") && name != CLAIMS;
    item.iter().filter(|(name, _)| is_ours(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

//! Items that are derived as a whole: mirrors, which stand under another key too, and the buckets of roll-ups.

use std::collections::BTreeMap;

use crate::{
    drawn::{
        description::{CLAIMS, Description, FieldOf, KeyOf, MirrorRule, RollUpRule},
        oracle::{Compared, DrawnChange, Rows, is_met, led_to},
        values::{MARK, Place, Row, built, filling, refused, row, written},
    },
    oracle::table::{ONE, Plain, PlainItem, escaped, millionths},
};

pub(super) fn mirrors(of: &Description, rows: &Rows, name: &str, rule: &MirrorRule, compared: &mut Compared) {
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

// ---- Roll-ups: what came, by hour and by day, from all changes ----

/// Count, sum, least and greatest, the last three in millionths.
type Totals = BTreeMap<Place, [i128; 4]>;

pub(super) fn roll_ups(
    of: &Description,
    rows: &Rows,
    changes: &[DrawnChange],
    name: &str,
    rule: &RollUpRule,
    compared: &mut Compared,
) {
    let mut totals = Totals::new();
    for change in changes {
        let of_row = |row: &Option<Row>| measured(of, row.as_ref().filter(|row| row.entity == rule.from)?, rule);
        let (before, now) = (of_row(&change.old), of_row(&change.new));
        let before = before.map(|(buckets, _)| buckets).unwrap_or_default();
        let Some((buckets, value)) = now else { continue };
        for bucket in buckets.into_iter().filter(|bucket| !before.contains(bucket)) {
            let total = totals.entry(bucket).or_insert([0, 0, value, value]);
            *total = [total[0] + 1, total[1] + value, total[2].min(value), total[3].max(value)];
        }
    }
    for row in rows.each(rule.to) {
        let stored = ["n", "sum", "least", "greatest"].map(|name| row.item.get(name).cloned());
        let derived = totals.remove(&row.place).map(|[n, sum, least, greatest]| [n * ONE, sum, least, greatest]);
        let derived = derived.map_or([None, None, None, None], |all| all.map(|number| Some(Plain::Number(number))));
        compared.compare("roll-up", name, &row.place, &stored, &derived);
    }
    for (place, total) in totals {
        compared.compare("roll-up", name, &place, &None, &Some(total));
    }
}

/// The buckets of an item's time, and its value.
fn measured(of: &Description, row: &Row, rule: &RollUpRule) -> Option<(Vec<Place>, i128)> {
    if !is_met(rule.condition.as_ref(), &row.item) {
        return None;
    }
    let Plain::Number(value) = row.item.get(&rule.value)? else { return None };
    let time = filling(row, &rule.time, FieldOf::Text).ok()??;
    // Of the times that the application writes, these are in UTC.
    let is_time = time.len() > 13 && time.as_bytes()[10] == b'T' && !time.contains('+');
    let mut values = BTreeMap::new();
    for (to, from) in &rule.link.pairs {
        values.insert(to.clone(), filling(row, from, FieldOf::Text).ok()??);
    }
    let bucket = |grain: &str, len: usize| {
        let more = [("grain", grain), ("bucket", &time[..len])].map(|(name, text)| (name.to_owned(), text.to_owned()));
        built(of, rule.to, &values.clone().into_iter().chain(more).collect())
    };
    is_time.then(|| Some((vec![bucket("HOUR", 13)?, bucket("DAY", 10)?], *value)))?
}

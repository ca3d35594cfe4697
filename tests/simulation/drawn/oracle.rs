//! The second oracle of drawn manifests: loops over the description and the items as they are stored.
//!
//! It shares no code with the product: not kinds, links, conditions, sums, templates or numbers. It derives each value from
//! the stored sources, and it compares each source itself. It treats unreadable values as the documentation says: an item
//! whose deciding value is of another type does not count, and a missing amount adds 0.

mod items;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    drawn::{
        description::{
            Calculation, CopyRule, CountRule, Description, FieldOf, LatestRule, Piece, Ref, Shown, UnreadRule, What,
            Where, WindowRule,
        },
        oracle::items::{compared_part, item_of},
        values::{Lead, Place, Row, filling, lead, number_of, number_text, place, row, written},
    },
    oracle::table::{ONE, Plain, PlainItem, segment},
};

/// A change of an item, in the order of the writes.
pub(crate) struct DrawnChange {
    pub(crate) old: Option<Row>,
    pub(crate) new: Option<Row>,
}

/// A derived value that is not what it should be.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) rule: String,
    pub(crate) at: Place,
    pub(crate) stored: String,
    pub(crate) derived: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, stored, derived } = self;
        write!(f, "{rule} at {at:?}: stored {stored}, derived {derived}")
    }
}

/// All items of drawn entities.
pub(crate) struct Rows {
    by_entity: Vec<Vec<Row>>,
    by_place: BTreeMap<Place, (usize, usize)>,
    /// Where there is an item, of any entity or of none.
    taken: BTreeSet<Place>,
}

impl Rows {
    pub(crate) fn new(of: &Description, items: impl Iterator<Item = (usize, PlainItem)>) -> Self {
        let by_entity = vec![Vec::new(); of.entities.len()];
        let mut rows = Self { by_entity, by_place: BTreeMap::new(), taken: BTreeSet::new() };
        for (table, item) in items {
            rows.taken.extend(place(of, table, &item));
            let Some(row) = row(of, table, &item) else { continue };
            let at = (row.entity, rows.by_entity[row.entity].len());
            rows.by_place.insert(row.place.clone(), at);
            rows.by_entity[row.entity].push(row);
        }
        rows
    }

    /// The items of an entity.
    pub(crate) fn each(&self, entity: usize) -> &[Row] {
        &self.by_entity[entity]
    }

    /// The item at this place, if it is of this entity.
    pub(crate) fn get(&self, entity: usize, place: &Place) -> Option<&Row> {
        let (of, at) = *self.by_place.get(place)?;
        (of == entity).then(|| &self.by_entity[of][at])
    }

    /// Does something else have the key of an item of this entity? Then a derived item waits.
    pub(crate) fn is_taken(&self, entity: usize, place: &Place) -> bool {
        self.taken.contains(place) && self.get(entity, place).is_none()
    }
}

/// What the oracle found.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) differences: Vec<Difference>,
    /// Values that were compared, by kind; and those of them that were there.
    pub(crate) n: BTreeMap<&'static str, (usize, usize)>,
}

impl Compared {
    fn compare<T: fmt::Debug + PartialEq>(
        &mut self,
        kind: &'static str,
        rule: &str,
        at: &Place,
        stored: &T,
        derived: &T,
    ) {
        self.compare_as(kind, rule, at, stored == derived, stored, derived);
    }

    fn compare_as<T: fmt::Debug>(
        &mut self,
        kind: &'static str,
        rule: &str,
        at: &Place,
        is_right: bool,
        stored: &T,
        derived: &T,
    ) {
        let (stored, derived) = (format!("{stored:?}"), format!("{derived:?}"));
        let (n, n_there) = self.n.entry(kind).or_default();
        *n += 1;
        *n_there += usize::from(derived != "None");
        if !is_right {
            self.differences.push(Difference { rule: rule.to_owned(), at: at.clone(), stored, derived });
        }
    }
}

/// Recounts what every derivation derives, but for the histories of those that `is_left_out`; `hour` is the hour of the
/// windows, since 1970.
pub(crate) fn recount(
    of: &Description,
    rows: &Rows,
    changes: &[DrawnChange],
    hour: Option<u64>,
    is_left_out: impl Fn(&str) -> bool,
) -> Compared {
    let mut compared = Compared::default();
    for rule in &of.rules {
        let name = rule.name.as_str();
        match &rule.what {
            What::Count(count) if count.is_history && is_left_out(name) => {}
            What::Count(count) => compare(of, rows, changes, name, count, &mut compared),
            What::Copy(copy) => copies(of, rows, name, copy, &mut compared),
            What::Latest(latest) => match &latest.by {
                Some(by) => ordered(of, rows, name, latest, by, &mut compared),
                None => latests(of, rows, name, latest, &mut compared),
            },
            What::Extreme { from, to, link, field, into, is_max } => {
                extreme(of, rows, name, (*from, *to), link, (field, into), *is_max, &mut compared);
            }
            What::Unread(unread) => unread_all(of, rows, name, unread, &mut compared),
            What::Mirror(mirror) => items::mirrors(of, rows, name, mirror, &mut compared),
            What::Path { of: tree, link, name: part, into, depth, .. } => {
                paths(of, rows, name, *tree, link, (part, into), *depth, &mut compared);
            }
            What::IndexKey { of: ranked, index_key, number } => {
                index_keys(of, rows, name, *ranked, *index_key, number, &mut compared);
            }
            What::RollUp(_) if is_left_out(name) => {}
            What::RollUp(roll_up) => items::roll_ups(of, rows, changes, name, roll_up, &mut compared),
            What::Window(window) => windows(of, rows, hour, name, window, &mut compared),
            What::Calculated { of: entity, calculation, into } => {
                calculated(rows.each(*entity), name, calculation, into, &mut compared);
            }
            // What a cascade deletes, and what it must not delete, is judged by the changes: see `only_cascades_delete`.
            What::Cascade { .. } => {}
        }
    }
    compared
}

// ---- What a condition says of an item ----

/// Does an item meet a condition, if there is one?
fn is_met(condition: Option<&Where>, item: &PlainItem) -> bool {
    condition.is_none_or(|condition| holds(condition, item))
}

/// Does a condition hold? A value of another type is not equal to a text, and no number is below it.
fn holds(condition: &Where, item: &PlainItem) -> bool {
    let is = |name: &String, text: &String| matches!(item.get(name), Some(Plain::Text(word)) if word == text);
    match condition {
        Where::Is(name, text) => is(name, text),
        Where::IsNot(name, text) => !is(name, text),
        Where::OneOf(name, texts) => texts.iter().any(|text| is(name, text)),
        Where::Above(name, number) => {
            matches!(item.get(name), Some(Plain::Number(value)) if *value > i128::from(*number) * ONE)
        }
        Where::Has(name) => item.contains_key(name),
        Where::Lacks(name) => !item.contains_key(name),
        Where::Both(one, other) => holds(one, item) && holds(other, item),
        Where::Either(one, other) => holds(one, item) || holds(other, item),
        Where::Not(one) => !holds(one, item),
    }
}

// ---- Counts and sums, and what shows them ----

/// How many, and their sum in millionths.
type Totals = BTreeMap<Place, (i128, i128)>;

fn compare(
    of: &Description,
    rows: &Rows,
    changes: &[DrawnChange],
    name: &str,
    count: &CountRule,
    compared: &mut Compared,
) {
    let totals = if count.is_history { arrived(of, changes, count) } else { counted_all(of, rows, count) };
    let kind = if count.is_history { "count: history" } else { "count" };
    if count.creates {
        created(of, rows, &totals, name, count.to, compared);
    }
    for row in rows.each(count.to) {
        let (number, sum) = totals.get(&row.place).copied().unwrap_or_default();
        for (shown, attribute) in &count.shows {
            let stored = row.item.get(attribute).cloned();
            let derived = match shown {
                Shown::Count => Some(Plain::Number(number * ONE)),
                Shown::Sum => Some(Plain::Number(sum)),
                Shown::Average => (number != 0).then(|| Plain::Number(divided(sum, number))),
                Shown::Exists => (number > 0).then_some(Plain::Bool(true)),
            };
            // A zero is written where a counter was, and may be absent otherwise, unless it is always there.
            let is_zero = derived == Some(Plain::Number(0)) && matches!(shown, Shown::Count | Shown::Sum);
            let may_lack = is_zero && count.zero != "always";
            let is_right = stored == derived || may_lack && stored.is_none();
            compared.compare_as(kind, name, &row.place, is_right, &stored, &derived);
        }
    }
}

/// There is an item wherever something is counted, and nowhere else.
fn created(of: &Description, rows: &Rows, totals: &Totals, name: &str, to: usize, compared: &mut Compared) {
    let is_counted = |place: &Place| totals.get(place).is_some_and(|(number, _)| *number > 0);
    for place in totals.keys().filter(|place| is_counted(place) && !rows.is_taken(to, place)) {
        let stored = rows.get(to, place).map(|row| compared_part(of, to, &row.item));
        let derived = item_of(of, to, place, PlainItem::new());
        compared.compare("counted item", name, place, &stored, &Some(derived));
    }
    for left in rows.each(to).iter().filter(|row| !is_counted(&row.place)) {
        compared.compare("counted item", name, &left.place, &Some(&left.item), &None);
    }
}

/// Rounded to millionths, a half to the even one.
fn divided(sum: i128, number: i128) -> i128 {
    let (whole, rest) = (sum.div_euclid(number), sum.rem_euclid(number));
    let is_up = 2 * rest > number || 2 * rest == number && whole % 2 != 0;
    whole + i128::from(is_up)
}

fn counted_all(of: &Description, rows: &Rows, count: &CountRule) -> Totals {
    let mut totals = Totals::new();
    for row in rows.each(count.from) {
        let (places, amount) = counted(of, row, count).unwrap_or_default();
        for place in places {
            let (number, sum) = totals.entry(place).or_default();
            *number += 1;
            *sum += amount;
        }
    }
    totals
}

/// Of a history only what came counts.
fn arrived(of: &Description, changes: &[DrawnChange], count: &CountRule) -> Totals {
    let mut totals = Totals::new();
    for change in changes {
        let of_row = |row: &Option<Row>| counted(of, row.as_ref().filter(|row| row.entity == count.from)?, count);
        let [(before, _), (now, amount)] = [&change.old, &change.new].map(|row| of_row(row).unwrap_or_default());
        for place in now.into_iter().filter(|place| !before.contains(place)) {
            let (number, sum) = totals.entry(place).or_default();
            *number += 1;
            *sum += amount;
        }
    }
    totals
}

/// Where an item counts, and its amount.
fn counted(of: &Description, row: &Row, count: &CountRule) -> Option<(BTreeSet<Place>, i128)> {
    if !is_met(count.condition.as_ref(), &row.item) {
        return None;
    }
    let amount = match count.sum.as_ref().and_then(|name| row.item.get(name)) {
        None => 0,
        Some(Plain::Number(amount)) => *amount,
        Some(_) => return None,
    };
    Some((led_to(of, row, count.to, &count.link.pairs, count.each.as_ref())?, amount))
}

/// Where an item leads, or each of its members; `None` where it leads nowhere, as where one of its members cannot be in a
/// key.
fn led_to(
    of: &Description,
    row: &Row,
    to: usize,
    pairs: &[(String, String)],
    each: Option<&String>,
) -> Option<BTreeSet<Place>> {
    let place = |row: &Row| match lead(of, row, to, pairs) {
        Lead::To(place) => Ok(Some(place)),
        Lead::Nowhere => Ok(None),
        Lead::Unreadable => Err(()),
    };
    let Some(each) = each else { return Some(place(row).ok()?.into_iter().collect()) };
    let (Plain::List(members) | Plain::Set(members)) = row.item.get(each)? else { return None };
    let of_member = |member: &Plain| {
        let mut row = row.clone();
        row.item.insert(each.clone(), member.clone());
        place(&row).transpose()
    };
    members.iter().filter_map(of_member).collect::<Result<_, _>>().ok()
}

// ---- Attributes that items carry: copies, the latest and the extreme, paths, and keys in an index ----

fn copies(of: &Description, rows: &Rows, name: &str, rule: &CopyRule, compared: &mut Compared) {
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

fn latests(of: &Description, rows: &Rows, name: &str, rule: &LatestRule, compared: &mut Compared) {
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

/// The latest by a value: numbers before texts. Of several with one value any may be first.
fn ordered(of: &Description, rows: &Rows, name: &str, rule: &LatestRule, by: &str, compared: &mut Compared) {
    for row in rows.each(rule.to) {
        let mut groups: BTreeMap<(i128, String), Vec<BTreeMap<String, Plain>>> = BTreeMap::new();
        for source in leading(of, rows, rule.from, &rule.link, row) {
            let value = match field_or_attribute(of, source, by) {
                Some(Plain::Number(number)) => (number, String::new()),
                Some(Plain::Text(text)) => (i128::MAX, text),
                _ => continue,
            };
            if is_met(rule.condition.as_ref(), &source.item) {
                let pair = |(from, to): &(String, String)| Some((to.clone(), field_or_attribute(of, source, from)?));
                groups.entry(value).or_default().push(rule.pairs.iter().filter_map(pair).collect());
            }
        }
        let mut groups: Vec<Vec<BTreeMap<String, Plain>>> = groups.into_values().collect();
        if !rule.is_first {
            groups.reverse();
        }
        let n = groups.iter().map(Vec::len).sum::<usize>().min(rule.list.as_ref().map_or(1, |(_, n)| *n));
        let stored: Vec<BTreeMap<String, Plain>> = match &rule.list {
            None => {
                let pair = |(_, to): &(String, String)| Some((to.clone(), row.item.get(to)?.clone()));
                let pairs: BTreeMap<String, Plain> = rule.pairs.iter().filter_map(pair).collect();
                if n == 0 && pairs.is_empty() { Vec::new() } else { vec![pairs] }
            }
            Some((into, _)) => match row.item.get(into) {
                None => Vec::new(),
                Some(Plain::List(entries)) => entries
                    .iter()
                    .map(|entry| match entry {
                        Plain::Map(map) => map.clone(),
                        other => BTreeMap::from([("no map".to_owned(), other.clone())]),
                    })
                    .collect(),
                Some(other) => vec![BTreeMap::from([("no list".to_owned(), other.clone())])],
            },
        };
        let mut is_right = stored.len() == n;
        let mut rest = groups.iter().flat_map(|group| std::iter::repeat_n(group, group.len()));
        let mut taken: Vec<(*const Vec<BTreeMap<String, Plain>>, usize)> = Vec::new();
        for entry in &stored {
            let Some(group) = rest.next() else { break };
            let of_group = std::ptr::from_ref(group);
            let free = (0..group.len()).find(|at| group[*at] == *entry && !taken.contains(&(of_group, *at)));
            is_right &= free.is_some();
            taken.extend(free.map(|at| (of_group, at)));
        }
        let derived = (n > 0).then(|| groups.concat());
        compared.compare_as(
            "latest by a value",
            name,
            &row.place,
            is_right,
            &(!stored.is_empty()).then_some(stored),
            &derived,
        );
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
fn extreme(
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

fn unread_all(of: &Description, rows: &Rows, name: &str, rule: &UnreadRule, compared: &mut Compared) {
    for row in rows.each(rule.to) {
        let number = unread(of, rows, rule, row).filter(|number| *number > 0 || !rule.zero_is_absent);
        let derived = number.map(|number| Plain::Number(number * ONE));
        compared.compare("unread", name, &row.place, &row.item.get(&rule.into).cloned(), &derived);
    }
}

/// How many items lie behind what a target has read, up to the limit; `None` where it says of no partition, or of no value
/// of the field.
fn unread(of: &Description, rows: &Rows, rule: &UnreadRule, row: &Row) -> Option<i128> {
    let counted = &of.entities[rule.from];
    let has_forms = of.tables[counted.table].has_forms;
    let mut values = BTreeMap::new();
    for (field, from) in &rule.pairs {
        values.insert(field.clone(), filling(row, from, counted.field(field)?).ok()??);
    }
    let pk = written(&counted.pk, has_forms, |name| values.get(name).cloned())?;
    let field = counted.field(&rule.field)?;
    let last = match row.item.get(&rule.after) {
        Some(Plain::Number(number)) if matches!(field, FieldOf::Padded(_)) => Some(number_text(*number)),
        _ => filling(row, &rule.after, field).ok()?,
    };
    let all = rows.each(rule.from).iter().filter(|it| it.place.table == counted.table && it.place.pk == pk);
    let Some(last) = last else { return limited(all.count(), rule) };
    if !has_forms && field == FieldOf::Number {
        let last = Plain::Number(number_of(&last)?);
        return limited(all.filter(|it| it.order > last).count(), rule);
    }
    // The key up to the value, and to the text that ends it: keys that begin so have this value.
    let is_it = |piece: &Piece| matches!(piece, Piece::Field(name, _) if *name == rule.field);
    let at = counted.sk.iter().position(is_it)?;
    let begin = &counted.sk[..counted.sk.len().min(at + 2)];
    values.insert(rule.field.clone(), last);
    let begin_text = written(begin, has_forms, |name| values.get(name).cloned())?;
    let is_whole = begin.len() == counted.sk.len();
    let has_value = |sk: &str| if is_whole { sk == begin_text } else { sk.starts_with(&begin_text) };
    limited(all.filter(|it| it.place.sk > begin_text && !has_value(&it.place.sk)).count(), rule)
}

fn calculated(rows: &[Row], name: &str, calculation: &Calculation, into: &str, compared: &mut Compared) {
    for row in rows {
        let (Calculation::Sum(one, other) | Calculation::Percentage(one, other)) = calculation;
        let derived = match (row.item.get(one), row.item.get(other), calculation) {
            (Some(Plain::Number(one)), Some(Plain::Number(other)), Calculation::Sum(..)) => Some(one + other),
            (Some(Plain::Number(one)), Some(Plain::Number(other)), Calculation::Percentage(..)) if *other != 0 => {
                let (hundred, sign) = (one.checked_mul(100 * ONE).unwrap(), other.signum());
                Some(divided(hundred * sign, other * sign))
            }
            _ => None,
        };
        compared.compare("calculated", name, &row.place, &row.item.get(into).cloned(), &derived.map(Plain::Number));
    }
}

fn windows(of: &Description, rows: &Rows, hour: Option<u64>, name: &str, rule: &WindowRule, compared: &mut Compared) {
    let length = u64::try_from(rule.length).unwrap();
    let texts: Vec<String> = match (hour, rule.is_of_days) {
        (None, _) => Vec::new(),
        (Some(hour), true) => (0..length).map(|days| hour_text(hour - 24 * days)[..10].to_owned()).collect(),
        (Some(hour), false) => (0..length).map(|hours| hour_text(hour - hours)).collect(),
    };
    let grain = if rule.is_of_days { "DAY" } else { "HOUR" };
    let text = |row: &Row, field: &str| filling(row, field, FieldOf::Text).ok().flatten().unwrap_or_default();
    for row in rows.each(rule.to) {
        let buckets = leading(of, rows, rule.from, &rule.link, row).into_iter();
        let buckets = buckets.filter(|it| text(it, "grain") == grain && texts.contains(&text(it, "bucket")));
        let sum: i128 = buckets
            .filter_map(|bucket| match bucket.item.get(&rule.sum) {
                Some(Plain::Number(number)) => Some(*number),
                _ => None,
            })
            .sum();
        let derived = hour.filter(|_| sum != 0 || !rule.zero_is_absent).map(|_| Plain::Number(sum));
        compared.compare("window", name, &row.place, &row.item.get(&rule.into).cloned(), &derived);
    }
}

/// The text of an hour since 1970 of the year 2024, in which every run is.
fn hour_text(hour: u64) -> String {
    let hours = hour - 473_352;
    let (mut day, mut month) = (hours / 24, 0);
    let months = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    format!("2024-{:02}-{:02}T{:02}", month + 1, day + 1, hours % 24)
}

fn limited(number: usize, rule: &UnreadRule) -> Option<i128> {
    i128::try_from(number.min(rule.limit)).ok()
}

#[expect(clippy::too_many_arguments, reason = "they are what the rule says")]
fn paths(
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

fn index_keys(
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

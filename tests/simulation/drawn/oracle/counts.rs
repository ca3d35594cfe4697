//! Counts and sums, and what shows them.

use std::collections::BTreeMap;

use super::{
    Compared, DrawnChange, Rows,
    conditions::is_met,
    mirrors::{compared_part, item_of},
};
use crate::{
    drawn::{
        description::{CountRule, Description, Shown},
        values::{Lead, Place, Row, lead},
    },
    oracle::table::{ONE, Plain, PlainItem},
};

/// How many, and their sum in millionths.
type Totals = BTreeMap<Place, (i128, i128)>;

pub(super) fn compare(
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
        if let Some((place, amount)) = counted(of, row, count) {
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
        let (before, now) = (of_row(&change.old), of_row(&change.new));
        let Some((place, amount)) = now else { continue };
        if before.is_none_or(|(before, _)| before != place) {
            let (number, sum) = totals.entry(place).or_default();
            *number += 1;
            *sum += amount;
        }
    }
    totals
}

/// Where an item counts, and its amount.
fn counted(of: &Description, row: &Row, count: &CountRule) -> Option<(Place, i128)> {
    if !is_met(count.condition.as_ref(), &row.item) {
        return None;
    }
    let amount = match count.sum.as_ref().and_then(|name| row.item.get(name)) {
        None => 0,
        Some(Plain::Number(amount)) => *amount,
        Some(_) => return None,
    };
    match lead(of, row, count.to, &count.link.pairs) {
        Lead::To(place) => Some((place, amount)),
        Lead::Nowhere | Lead::Unreadable => None,
    }
}

//! Roll-ups: what came, by hour and by day, from all changes.

use std::collections::BTreeMap;

use super::{Compared, DrawnChange, Rows};
use crate::drawn::oracle::is_met;
use crate::{
    drawn::{
        description::{Description, FieldOf, RollUpRule},
        values::{Place, Row, built, filling},
    },
    oracle::table::{ONE, Plain},
};

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

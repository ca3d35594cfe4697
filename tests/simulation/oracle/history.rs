//! D-08 and D-26: views and readings. The items do not show what has counted, so the changes do.

use std::collections::BTreeMap;

use super::{
    PlainChange, Recount,
    counts::{compare_display, counters, number, standing},
    table::{Address, ONE, Plain, PlainItem, PlainTable, counter_of, escaped, home, row},
};

/// Count, sum, minimum and maximum of a bucket, all in millionths.
type Bucket = [i128; 4];

pub(crate) const COVERED: [&str; 3] = ["view-count", "view-count-display", "readings-rollup"];

pub(crate) fn compare(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
    views(table, changes, recount);
    readings(table, changes, recount);
}

/// Each arrival of a view counts once: no view stood there before. A cascade deletes counters, and those that it deleted
/// counted too.
fn views(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
    let mut totals: BTreeMap<Address, (i128, i128)> = BTreeMap::new();
    for change in changes {
        let [old, new] =
            [&change.old, &change.new].map(|item| item.as_ref().and_then(|item| row("View", &change.at, item)));
        if let (None, Some(view)) = (old, new) {
            totals.entry(home("POST", view.id("PostId"))).or_default().1 += 1;
        }
        // Under watermarks a cascade sets a counter to zero and leaves its watermarks and their revision.
        let is_gone = change.new.as_ref().is_none_or(|new| {
            number(new.get("Value")) == 0 && new.get("Rev") == change.old.as_ref().and_then(|old| old.get("Rev"))
        });
        let deleted = change.old.as_ref().filter(|_| is_gone && change.is_ours);
        if let (Some((target, "view-count")), Some(counter)) = (counter_of(&change.at), deleted) {
            totals.entry(target).or_default().0 += number(counter.get("Value")) / ONE;
        }
    }
    let mut present: BTreeMap<Address, i128> = BTreeMap::new();
    for (at, counter) in counters(table) {
        let Some((target, "view-count")) = counter_of(at) else { continue };
        let value = number(counter.get("Value"));
        *present.entry(target.clone()).or_default() += value;
        totals.entry(target).or_default().0 += value / ONE;
    }
    for (target, (stored, derived)) in totals {
        recount.compare("view-count", &target, stored, derived);
    }
    let standing = standing(table);
    for post in table.each("PostDetail") {
        let shown = present.get(post.at).copied().unwrap_or_default();
        let stands = standing.contains(&(post.at.clone(), "view-count"));
        compare_display("view-count-display", &post, "ViewCount", (shown, stands), recount);
    }
}

/// A value counts when it comes to stand in a reading that had none. What happens to it later counts nowhere.
fn readings(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
    let mut buckets: BTreeMap<Address, Bucket> = BTreeMap::new();
    for change in changes {
        let [old, new] = [&change.old, &change.new].map(|item| item.as_ref().and_then(|item| value(&change.at, item)));
        recount.n_late += usize::from(old.is_some() && old != new);
        let (None, Some((sensor, value))) = (old, new) else { continue };
        let at = &change.at.1;
        for bucket in [format!("HOUR#{}", &at[..13]), format!("DAY#{}", &at[..10])] {
            let key = (format!("SENSOR#{}", escaped(&sensor)), bucket);
            let [count, sum, min, max] = buckets.entry(key).or_insert([0, 0, value, value]);
            *count += ONE;
            *sum += value;
            *min = value.min(*min);
            *max = value.max(*max);
        }
    }
    let mut targets: Vec<Address> = table.each("Rollup").iter().map(|bucket| bucket.at.clone()).collect();
    targets.extend(buckets.keys().cloned());
    targets.sort();
    targets.dedup();
    for target in targets {
        let stored = table
            .get("Rollup", &target)
            .map(|bucket| ["Count", "Sum", "Min", "Max"].map(|name| bucket.item.get(name).cloned()));
        let derived = buckets.get(&target).map(|bucket| bucket.map(|number| Some(Plain::Number(number))));
        recount.compare("readings-rollup", &target, stored, derived);
    }
}

/// The sensor and the value of a reading whose time names an hour. It is written `2024-01-15T10:30:00.000Z`.
fn value(at: &Address, item: &PlainItem) -> Option<(String, i128)> {
    let reading = row("Reading", at, item)?;
    let form = "dddd-dd-ddTdd:";
    let time = at.1.get(..form.len())?;
    let fits = |(form, found): (char, char)| if form == 'd' { found.is_ascii_digit() } else { form == found };
    match item.get("Value") {
        Some(Plain::Number(value)) if form.chars().zip(time.chars()).all(fits) => {
            Some((reading.id("SensorId").to_owned(), *value))
        }
        _ => None,
    }
}

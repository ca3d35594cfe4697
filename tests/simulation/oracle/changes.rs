//! What the changes show: D-08 and D-26, views and readings, whose items do not show what has counted; and D-28 and D-29,
//! nothing hangs on what is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PlainChange, Recount, compare_display, counters, number, standing,
    table::{Address, ONE, Plain, PlainItem, PlainTable, Row, counter_of, escaped, fields, home, row},
};

/// Count, sum, minimum and maximum of a bucket, all in millionths.
type Bucket = [i128; 4];

pub(crate) const HISTORIES: [&str; 3] = ["view-count", "view-count-display", "readings-rollup"];

pub(crate) fn compare_histories(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
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

// ---- Cascades ----
//
// A cascade takes what hung on its owner when the owner went. What was written later stays, and so does everything
// when the owner is there again. An item whose type was something else at some time may have been invisible when the
// cascade looked, so it may be left; so may a follow whose mirror, by which the cascade finds it, was changed by hand.

pub(crate) const CASCADES: [&str; 2] = ["post-cascade", "user-cascade"];

/// What the changes show.
#[derive(Default)]
struct Past<'a> {
    /// The last removal of each user and post, by its home, with the item.
    removed: BTreeMap<Address, (usize, &'a PlainItem)>,
    /// Users and posts whose last removal was of an item without its type, or was lost. That starts no cascade.
    untyped: BTreeSet<Address>,
    /// The last change of each item, by anybody and by others than the service.
    written: BTreeMap<&'a Address, usize>,
    touched: BTreeMap<&'a Address, usize>,
    /// Homes of which an item is there, whatever its type.
    present: BTreeSet<Address>,
    /// Items that had another type, or none, at some time.
    retyped: BTreeSet<&'a Address>,
}

pub(crate) fn compare_cascades(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
    let past = past(table, changes);
    for post in ["Comment", "Like"].iter().flat_map(|entity| table.each(entity)) {
        past.is_over(CASCADES[0], &post, &home("POST", post.id("PostId")), recount);
    }
    for (at, item) in &table.0 {
        let Some((post, "view-count")) = counter_of(at) else { continue };
        // Views may have counted since.
        let is_older = past.gone(&post).is_some_and(|(removed, _)| past.written[at] < removed);
        // What an earlier cascade emptied stays with its watermarks until they are too old.
        let has_watermark = item.keys().any(|name| name.starts_with('w') && name.len() == 9);
        let is_left = is_older && !(has_watermark && item.get("Value") == Some(&Plain::Number(0)));
        recount.compare(CASCADES[0], at, is_left.then_some(item), None);
    }
    let by_user = ["Like", "View", "Membership", "Member", "Subscription", "CartItem"];
    for owned in by_user.iter().flat_map(|entity| table.each(entity)) {
        past.is_over(CASCADES[1], &owned, &home("USER", owned.id("UserId")), recount);
    }
    for follow in table.each("Follow") {
        past.is_over(CASCADES[1], &follow, &home("USER", follow.id("FollowerId")), recount);
        let mirror = [("USER", "FolloweeId"), ("FOLLOWER", "FollowerId")];
        let [pk, sk] = mirror.map(|(prefix, name)| format!("{prefix}#{}", escaped(follow.id(name))));
        let mirror = (pk, sk);
        let followee = home("USER", follow.id("FolloweeId"));
        if past.touched.contains_key(&mirror) && past.gone(&followee).is_some() {
            recount.n_not_found += 1;
        } else {
            past.is_over(CASCADES[1], &follow, &followee, recount);
        }
    }
    for claim in table.each("EmailClaim") {
        let Some(id) = claim.text("UserId") else { continue };
        let Some((removed, user)) = past.gone(&home("USER", id)) else { continue };
        // The address of the user when it went.
        let Some(Plain::Text(email)) = user.get("Email") else { continue };
        if escaped(&email.trim().to_lowercase()) == claim.at.0["EMAIL#".len()..] && past.written[claim.at] < removed {
            past.left(CASCADES[1], &claim, recount);
        }
    }
    for post in table.each("Post") {
        let Some((removed, _)) = past.gone(&home("USER", post.id("AuthorId"))) else { continue };
        if past.written[post.at] < removed && post.item.get("Status") != Some(&Plain::Text("archived".to_owned())) {
            past.left(CASCADES[1], &post, recount);
        }
    }
}

/// The home of the user or post that an item is.
fn owner(at: &Address) -> Option<Address> {
    let of = |entity: &str, name: &str| fields(entity, at).map(|fields| fields[name].clone());
    of("User", "UserId")
        .map(|id| home("USER", &id))
        .or_else(|| of("PostDetail", "PostId").or_else(|| of("Post", "PostId")).map(|id| home("POST", &id)))
}

fn past<'a>(table: &PlainTable, changes: &'a [PlainChange]) -> Past<'a> {
    let mut past = Past { present: table.0.keys().filter_map(owner).collect(), ..Past::default() };
    let mut types: BTreeMap<&Address, BTreeSet<Option<&Plain>>> = BTreeMap::new();
    for (n, change) in changes.iter().enumerate() {
        past.written.insert(&change.at, n);
        if !change.is_ours {
            past.touched.insert(&change.at, n);
        }
        for item in [&change.old, &change.new].into_iter().flatten() {
            types.entry(&change.at).or_default().insert(item.get("EntityType"));
        }
        let (Some(old), None, Some(home)) = (&change.old, &change.new, owner(&change.at)) else { continue };
        past.removed.insert(home.clone(), (n, old));
        let is_typed = ["User", "Post", "PostDetail"].iter().any(|entity| row(entity, &change.at, old).is_some());
        if is_typed && !change.is_lost {
            past.untyped.remove(&home);
        } else {
            past.untyped.insert(home);
        }
    }
    past.retyped = types.into_iter().filter(|(_, types)| types.len() > 1).map(|(at, _)| at).collect();
    past
}

impl Past<'_> {
    /// The last removal of an owner that is gone.
    fn gone(&self, owner: &Address) -> Option<(usize, &PlainItem)> {
        let removed = self.removed.get(owner).copied()?;
        (!self.present.contains(owner) && !self.untyped.contains(owner)).then_some(removed)
    }

    /// Checks that an item does not hang on an owner that is gone.
    fn is_over(&self, derivation: &'static str, row: &Row<'_>, owner: &Address, recount: &mut Recount) {
        match self.gone(owner) {
            Some((removed, _)) if self.touched[row.at] < removed => self.left(derivation, row, recount),
            _ => recount.n_compared += 1,
        }
    }

    /// An item is left that a cascade should have taken.
    fn left(&self, derivation: &'static str, row: &Row<'_>, recount: &mut Recount) {
        if self.retyped.contains(row.at) {
            recount.n_not_found += 1;
        } else {
            recount.compare(derivation, row.at, Some(row.item), None);
        }
    }
}

//! D-28 and D-29: nothing hangs on what is gone.
//!
//! A cascade takes what hung on its owner when the owner went. What was written later stays, and so does everything
//! when the owner is there again. An item whose type was something else at some time may have been invisible when the
//! cascade looked, so it may be left; so may a follow whose mirror, by which the cascade finds it, was changed by hand.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PlainChange, Recount,
    table::{Address, Plain, PlainItem, PlainTable, Row, counter_of, escaped, fields, home, row},
};

pub(crate) const COVERED: [&str; 2] = ["post-cascade", "user-cascade"];

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

pub(crate) fn compare(table: &PlainTable, changes: &[PlainChange], recount: &mut Recount) {
    let past = past(table, changes);
    for post in ["Comment", "Like"].iter().flat_map(|entity| table.each(entity)) {
        past.is_over(COVERED[0], &post, &home("POST", post.id("PostId")), recount);
    }
    for (at, item) in &table.0 {
        let Some((post, "view-count")) = counter_of(at) else { continue };
        // Views may have counted since.
        let is_older = past.gone(&post).is_some_and(|(removed, _)| past.written[at] < removed);
        // What an earlier cascade emptied stays with its watermarks until they are too old.
        let has_watermark = item.keys().any(|name| name.starts_with('w') && name.len() == 9);
        let is_left = is_older && !(has_watermark && item.get("Value") == Some(&Plain::Number(0)));
        recount.compare(COVERED[0], at, is_left.then_some(item), None);
    }
    let by_user = ["Like", "View", "Membership", "Member", "Subscription", "CartItem"];
    for owned in by_user.iter().flat_map(|entity| table.each(entity)) {
        past.is_over(COVERED[1], &owned, &home("USER", owned.id("UserId")), recount);
    }
    for follow in table.each("Follow") {
        past.is_over(COVERED[1], &follow, &home("USER", follow.id("FollowerId")), recount);
        let mirror = [("USER", "FolloweeId"), ("FOLLOWER", "FollowerId")];
        let [pk, sk] = mirror.map(|(prefix, name)| format!("{prefix}#{}", escaped(follow.id(name))));
        let mirror = (pk, sk);
        let followee = home("USER", follow.id("FolloweeId"));
        if past.touched.contains_key(&mirror) && past.gone(&followee).is_some() {
            recount.n_not_found += 1;
        } else {
            past.is_over(COVERED[1], &follow, &followee, recount);
        }
    }
    for claim in table.each("EmailClaim") {
        let Some(id) = claim.text("UserId") else { continue };
        let Some((removed, user)) = past.gone(&home("USER", id)) else { continue };
        // The address of the user when it went.
        let Some(Plain::Text(email)) = user.get("Email") else { continue };
        if escaped(&email.trim().to_lowercase()) == claim.at.0["EMAIL#".len()..] && past.written[claim.at] < removed {
            past.left(COVERED[1], &claim, recount);
        }
    }
    for post in table.each("Post") {
        let Some((removed, _)) = past.gone(&home("USER", post.id("AuthorId"))) else { continue };
        if past.written[post.at] < removed && post.item.get("Status") != Some(&Plain::Text("archived".to_owned())) {
            past.left(COVERED[1], &post, recount);
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

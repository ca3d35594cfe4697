//! D-02, D-03, D-05 to D-07, D-13, D-16, D-19 and D-22 to D-24: counts, sums and their displays.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Recount,
    table::{Address, ONE, Plain, PlainItem, PlainTable, Row, counter_of, home},
};

/// How many, and their sum in millionths, by target and derivation.
pub(crate) type Counted = BTreeMap<(Address, &'static str), (i128, i128)>;

/// Derivation of the counter, entity, attribute that shows it, and whether it shows the sum.
const DISPLAYS: [(&str, &str, &str, &str, bool); 16] = [
    ("follower-count", "follower-count-display", "User", "FollowerCount", false),
    ("following-count", "following-count-display", "User", "FollowingCount", false),
    ("post-count", "post-count-display", "User", "PostCount", false),
    ("comment-count", "comment-count-display", "PostDetail", "CommentCount", false),
    ("like-count", "like-count-display", "PostDetail", "LikeCount", false),
    ("member-count", "member-count-display", "Group", "MemberCount", false),
    ("team-count", "team-count-display", "Organization", "TeamCount", false),
    ("org-member-count", "org-member-count-display", "Organization", "MemberCount", false),
    ("employee-count", "employee-count-display", "Organization", "EmployeeCount", false),
    ("folder-totals", "folder-totals-count-display", "Folder", "FileCount", false),
    ("folder-totals", "folder-totals-sum-display", "Folder", "TotalBytes", true),
    ("product-rating", "product-rating-count-display", "Product", "ReviewCount", false),
    ("product-rating", "product-rating-sum-display", "Product", "RatingSum", true),
    ("order-totals", "order-totals-count-display", "User", "OrderCount", false),
    ("order-totals", "order-totals-sum-display", "User", "LifetimeValue", true),
    ("units-sold", "units-sold-display", "Product", "UnitsSold", true),
];

/// Counts the sources.
pub(crate) fn counted(table: &PlainTable, recount: &mut Recount) -> Counted {
    let mut counted = Counted::new();
    let mut add = |target: Address, derivation: &'static str, amount: i128| {
        let (count, sum) = counted.entry((target, derivation)).or_default();
        *count += 1;
        *sum += amount;
    };
    for follow in table.each("Follow") {
        add(home("USER", follow.id("FolloweeId")), "follower-count", 0);
        add(home("USER", follow.id("FollowerId")), "following-count", 0);
    }
    for post in table.each("Post") {
        if is_text(&post, "Status", "published") {
            add(home("USER", post.id("AuthorId")), "post-count", 0);
        }
    }
    for comment in table.each("Comment") {
        add(home("POST", comment.id("PostId")), "comment-count", 0);
    }
    for like in table.each("Like") {
        add(home("POST", like.id("PostId")), "like-count", 0);
    }
    for membership in table.each("Membership") {
        add(home("GROUP", membership.id("GroupId")), "member-count", 0);
    }
    for team in table.each("Team") {
        add(home("ORG", team.id("OrgId")), "team-count", 0);
    }
    for member in table.each("Member") {
        add(home("ORG", member.id("OrgId")), "org-member-count", 0);
    }
    for employee in table.each("Employee") {
        add(home("ORG", employee.id("OrgId")), "employee-count", 0);
    }
    for file in table.each("File") {
        match amount(&file, "SizeBytes") {
            Some(size) => add(home("FOLDER", file.id("FolderId")), "folder-totals", size),
            None => recount.n_unreadable += 1,
        }
    }
    for review in table.each("Review") {
        match amount(&review, "Rating") {
            Some(rating) => add(home("PRODUCT", review.id("ProductId")), "product-rating", rating),
            None => recount.n_unreadable += 1,
        }
    }
    for order in table.each("Order") {
        match amount(&order, "Total") {
            _ if is_text(&order, "Status", "cancelled") => {}
            Some(total) => add(home("USER", order.id("UserId")), "order-totals", total),
            None => recount.n_unreadable += 1,
        }
    }
    for line in table.each("OrderItem") {
        match (line.item.get("Cancelled"), amount(&line, "Quantity")) {
            (Some(Plain::Bool(true)), _) => {}
            (_, Some(quantity)) => add(home("PRODUCT", line.id("ProductId")), "units-sold", quantity),
            (_, None) => recount.n_unreadable += 1,
        }
    }
    counted
}

fn is_text(row: &Row<'_>, name: &str, text: &str) -> bool {
    matches!(row.item.get(name), Some(Plain::Text(held)) if held == text)
}

/// The amount of an item: 0 when it has none, and `None` when it is no number.
fn amount(row: &Row<'_>, name: &str) -> Option<i128> {
    match row.item.get(name) {
        None => Some(0),
        Some(Plain::Number(number)) => Some(*number),
        Some(_) => None,
    }
}

/// Compares counters and displays with what was counted.
pub(crate) fn compare(table: &PlainTable, counted: &Counted, recount: &mut Recount) {
    let mut stored: BTreeMap<(Address, &str), (i128, i128)> = BTreeMap::new();
    for (at, item) in counters(table) {
        let Some((target, derivation)) = counter_of(at).filter(|(_, name)| *name != "view-count") else { continue };
        let (count, sum) = stored.entry((target, derivation)).or_default();
        *count += number(item.get("Value")) / ONE;
        *sum += number(item.get("Sum"));
    }
    for (target, derivation) in stored.keys().filter(|(_, derivation)| !DISPLAYS.iter().any(|it| it.0 == *derivation)) {
        recount.compare("unknown", target, *derivation, "");
    }
    let derivations: BTreeSet<&'static str> = DISPLAYS.iter().map(|(derivation, ..)| *derivation).collect();
    for derivation in derivations {
        let counters = stored.keys().chain(counted.keys()).filter(|(_, name)| *name == derivation);
        let targets: BTreeSet<&Address> = counters.map(|(target, _)| target).collect();
        for target in targets {
            let at = (target.clone(), derivation);
            let [is, should_be] = [stored.get(&at), counted.get(&at)].map(|it| it.copied().unwrap_or_default());
            recount.compare(derivation, target, is, should_be);
        }
    }
    let standing = standing(table);
    for (derivation, display, entity, attribute, is_sum) in DISPLAYS {
        for row in table.each(entity) {
            let at = (row.at.clone(), derivation);
            let (count, sum) = counted.get(&at).copied().unwrap_or_default();
            let derived = if is_sum { sum } else { count * ONE };
            compare_display(display, &row, attribute, (derived, standing.contains(&at)), recount);
        }
    }
}

/// Compares a display. When nothing counts it is 0, or absent where no counter stands either.
pub(crate) fn compare_display(
    display: &'static str,
    row: &Row<'_>,
    attribute: &str,
    (derived, stands): (i128, bool),
    recount: &mut Recount,
) {
    let stored = row.item.get(attribute).cloned();
    if stored.is_none() && derived == 0 && !stands {
        return;
    }
    recount.compare(display, row.at, stored, Some(Plain::Number(derived)));
}

/// Targets and derivations for which a counter stands that can be read.
pub(crate) fn standing(table: &PlainTable) -> BTreeSet<(Address, &str)> {
    let is_number = |item: &PlainItem, name: &str| matches!(item.get(name), Some(Plain::Number(_)));
    let read = counters(table).filter(|(_, item)| is_number(item, "Value") || is_number(item, "Sum"));
    read.filter_map(|(at, _)| counter_of(at)).collect()
}

/// The items that are counters.
pub(crate) fn counters(table: &PlainTable) -> impl Iterator<Item = (&Address, &PlainItem)> {
    table.0.iter().filter(|(_, item)| item.get("EntityType") == Some(&Plain::Text("Counter".to_owned())))
}

/// The number that a value is, else 0.
pub(crate) fn number(value: Option<&Plain>) -> i128 {
    match value {
        Some(Plain::Number(number)) => *number,
        _ => 0,
    }
}

/// Names of what is compared here.
pub(crate) fn covered() -> Vec<&'static str> {
    DISPLAYS.iter().flat_map(|(derivation, display, ..)| [*derivation, *display]).collect()
}

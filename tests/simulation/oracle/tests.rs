//! The oracle knows every derivation, and finds each one that is wrong.

use std::collections::BTreeSet;

use engine::ledger::LedgerKind;

use super::{
    COPIES, DISPLAYS, MIRRORS, PlainChange,
    changes::{CASCADES, HISTORIES},
    crc32, recount,
    table::{Address, ONE, Plain, PlainItem, PlainTable, counter_of, millionths},
};
use crate::{
    RECEIPTS,
    chance::Chance,
    checks::{plain_changes, plain_table},
    deployed,
    scene::Scene,
    world::World,
};

/// What is compared one by one.
const SINGLE: [&str; 7] =
    ["best-sellers", "last-comment", "first-comment", "team-exists", "folder-path", "file-path", "employee-path"];

/// Runs within which each derivation has something that can be altered.
const SEEDS: u64 = 40;

/// An attribute of each derivation's items. A mirror may hold any.
const ATTRIBUTES: [(&str, &str, &str); 39] = [
    ("follower-mirror", "Follower", "By hand"),
    ("post-detail", "PostDetail", "Title"),
    ("group-member", "GroupMember", "Role"),
    ("file-detail", "FileDetail", "Claims"),
    ("org-chart", "OrgChart", "Name"),
    ("order-detail", "OrderDetail", "Total"),
    ("followee-name", "Follow", "FolloweeName"),
    ("follower-name", "Follower", "FollowerName"),
    ("comment-author", "Comment", "UserAvatar"),
    ("post-author", "PostDetail", "AuthorName"),
    ("group-name", "Membership", "GroupName"),
    ("group-user-name", "GroupMember", "UserName"),
    ("member-user-name", "Member", "UserName"),
    ("member-org-name", "Member", "OrgName"),
    ("review-author", "Review", "UserName"),
    ("folder-path", "Folder", "Path"),
    ("file-path", "FileDetail", "Path"),
    ("employee-path", "Employee", "Path"),
    ("best-sellers", "Product", "GSI2SK"),
    ("follower-count-display", "User", "FollowerCount"),
    ("following-count-display", "User", "FollowingCount"),
    ("post-count-display", "User", "PostCount"),
    ("order-totals-count-display", "User", "OrderCount"),
    ("order-totals-sum-display", "User", "LifetimeValue"),
    ("comment-count-display", "PostDetail", "CommentCount"),
    ("like-count-display", "PostDetail", "LikeCount"),
    ("view-count-display", "PostDetail", "ViewCount"),
    ("member-count-display", "Group", "MemberCount"),
    ("team-count-display", "Organization", "TeamCount"),
    ("org-member-count-display", "Organization", "MemberCount"),
    ("employee-count-display", "Organization", "EmployeeCount"),
    ("folder-totals-count-display", "Folder", "FileCount"),
    ("folder-totals-sum-display", "Folder", "TotalBytes"),
    ("product-rating-count-display", "Product", "ReviewCount"),
    ("product-rating-sum-display", "Product", "RatingSum"),
    ("units-sold-display", "Product", "UnitsSold"),
    ("last-comment", "PostDetail", "LastCommentBy"),
    ("first-comment", "PostDetail", "FirstCommentAt"),
    ("team-exists", "Organization", "HasTeams"),
];

#[test]
fn the_oracle_knows_every_derivation_of_the_catalogue() {
    let shipped: BTreeSet<String> = deployed::derivations().into_iter().map(|derivation| derivation.name).collect();
    let known = covered().into_iter().map(str::to_owned).collect();
    assert_eq!(shipped, known);
}

/// Names of what is compared.
fn covered() -> BTreeSet<&'static str> {
    let counts = DISPLAYS.iter().flat_map(|(derivation, display, ..)| [*derivation, *display]);
    let mirrors = MIRRORS.iter().map(|(derivation, ..)| *derivation);
    let copies = COPIES.iter().map(|(derivation, ..)| *derivation);
    let listed = SINGLE.into_iter().chain(HISTORIES).chain(CASCADES);
    counts.chain(mirrors).chain(copies).chain(listed).collect()
}

/// The oracle could share a fault with the product only by its code.
#[test]
fn the_oracle_uses_nothing_but_the_standard_library() {
    let sources = [include_str!("../oracle.rs"), include_str!("changes.rs"), include_str!("table.rs")];
    let own = ["use super::", "use std::", "use table::"];
    let foreign = |line: &&str| {
        line.trim_start().starts_with("use ") && !own.iter().any(|own| line.trim_start().starts_with(own))
    };
    let foreign: Vec<&str> = sources.iter().flat_map(|source| source.lines()).filter(foreign).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn the_oracle_names_each_derived_value_that_is_altered() {
    let mut left = covered();
    for seed in 0..SEEDS {
        let Some((table, changes)) = finished(seed) else { continue };
        assert_eq!(recount(&table, &changes).differences, [], "seed {seed}");
        for (derivation, altered) in alterations(&table, &changes, &left) {
            if recount(&altered, &changes).differences.iter().any(|found| found.derivation == derivation) {
                left.remove(derivation);
            } else {
                assert!(CASCADES.contains(&derivation), "seed {seed}: {derivation} is altered and not named");
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("nothing of these was altered and named: {left:?}");
}

/// The table and its changes when a run has become quiet; `None` for a run that loses records, which the table lacks.
fn finished(seed: u64) -> Option<(PlainTable, Vec<PlainChange>)> {
    let scene = Scene::new(Chance::of_seed(seed), RECEIPTS, false);
    if scene.is_lossy {
        return None;
    }
    let mut world = World::new(&scene, LedgerKind::Receipts);
    world.run_until_quiet().unwrap();
    Some((plain_table(&scene), plain_changes(&world.stream)))
}

/// Tables with one value altered, each with the derivation of the value.
fn alterations(
    table: &PlainTable,
    changes: &[PlainChange],
    left: &BTreeSet<&'static str>,
) -> Vec<(&'static str, PlainTable)> {
    let mut altered = Vec::new();
    let mut alter = |derivation: &'static str, at: &Address, item: PlainItem| {
        let mut other = table.clone();
        other.0.insert(at.clone(), item);
        altered.push((derivation, other));
    };
    for (derivation, entity, attribute) in ATTRIBUTES.into_iter().filter(|(derivation, ..)| left.contains(derivation)) {
        if let Some(row) = table.each(entity).first() {
            alter(derivation, row.at, with(row.item, attribute, Plain::Text("altered".to_owned())));
        }
    }
    for derivation in left {
        let is_counter = |at: &Address| counter_of(at).is_some_and(|(_, name)| name == *derivation);
        let is_meant = |at: &Address, item: &PlainItem| {
            let is_bucket = item.get("EntityType") == Some(&Plain::Text("Rollup".to_owned()));
            is_counter(at) || (is_bucket && *derivation == "readings-rollup")
        };
        if let Some((at, item)) = table.0.iter().find(|(at, item)| is_meant(at, item)) {
            let name = if is_counter(at) { "Value" } else { "Min" };
            let Some(Plain::Number(value)) = item.get(name) else { panic!("{at:?} has no {name}") };
            alter(derivation, at, with(item, name, Plain::Number(value - ONE)));
        }
    }
    // What a cascade deleted is there again. It may have come and gone later than its owner.
    for derivation in CASCADES.into_iter().filter(|derivation| left.contains(derivation)) {
        for deleted in changes.iter().filter(|change| change.is_ours && change.new.is_none()) {
            alter(derivation, &deleted.at, deleted.old.clone().unwrap());
        }
    }
    altered
}

fn with(item: &PlainItem, name: &str, value: Plain) -> PlainItem {
    let mut item = item.clone();
    item.insert(name.to_owned(), value);
    item
}

#[test]
fn numbers_are_read_in_every_form() {
    for (text, number) in [("7", 7_000_000), ("-0.5", -500_000), ("1.50E1", 15_000_000), ("2e-3", 2_000)] {
        assert_eq!(millionths(text), number, "{text}");
    }
}

#[test]
fn the_checksum_is_the_known_one() {
    assert_eq!(crc32("123456789"), 0xCBF4_3926);
}

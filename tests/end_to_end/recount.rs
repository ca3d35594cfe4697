//! The derived state, computed by hand from a scan, without any of the service's own definitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use tokio::time::{Instant, interval};

use crate::database::{Item, Key, TABLE, id, key, key_item, n, s, scan, segment, spread};

/// How long the service may take.
pub(crate) const RIGHT_WAIT: Duration = Duration::from_mins(1);

/// How often it is looked.
const RIGHT_POLL: Duration = Duration::from_millis(100);

/// Entities that are the service's.
const DERIVED: [&str; 4] = ["Follower", "PostDetail", "GroupMember", "Counter"];

/// Derived attributes of an entity, but for displays.
const COPIED: [(&str, &[&str]); 3] =
    [("Follow", &["FolloweeName"]), ("Comment", &["UserName", "UserAvatar"]), ("Membership", &["GroupName"])];

/// Displays: entity, attribute, the count that it shows.
const DISPLAYS: [(&str, &str, &str); 7] = [
    ("User", "FollowerCount", "follower-count"),
    ("User", "FollowingCount", "following-count"),
    ("User", "PostCount", "post-count"),
    ("PostDetail", "CommentCount", "comment-count"),
    ("PostDetail", "LikeCount", "like-count"),
    ("PostDetail", "ViewCount", "view-count"),
    ("Group", "MemberCount", "member-count"),
];

type Items = BTreeMap<Key, Item>;

/// Recounted by the key of what they are about and their name.
type Recounted = BTreeMap<(Key, &'static str), i64>;

/// Waits until all is right.
pub(crate) async fn right(client: &Client) {
    differing(client, &[]).await;
}

/// What differs from what it should be, as it is now.
pub(crate) async fn differing_now(client: &Client) -> Vec<String> {
    differences(&scan(client, TABLE).await).into_values().collect()
}

/// Waits until these differ from what they should be, and nothing else.
pub(crate) async fn differing(client: &Client, wanted: &[&str]) {
    let deadline = Instant::now() + RIGHT_WAIT;
    let mut again = interval(RIGHT_POLL);
    loop {
        again.tick().await;
        let items = scan(client, TABLE).await;
        let differences = differences(&items);
        // What a job does later changes what is right.
        let is_working = items.keys().any(|(pk, _)| pk.starts_with("JOBS#"));
        if !is_working && differences.keys().eq(wanted) {
            return;
        }
        let texts: Vec<&str> = differences.values().map(String::as_str).collect();
        assert!(Instant::now() < deadline, "these should differ: {wanted:?}; these do:\n{}", texts.join("\n"));
    }
}

/// Entities and attributes that the service should write, and of which there is none in the table.
pub(crate) fn missing_kinds(items: &Items) -> Vec<&'static str> {
    let is_there = |kind: &&str| {
        let of_it = |item: &Item| text(item, "EntityType") == Some(*kind) || item.contains_key(*kind);
        items.values().any(of_it)
    };
    let copied = COPIED.iter().flat_map(|(_, names)| names.iter().copied());
    let all = DERIVED.into_iter().chain(copied).chain(DISPLAYS.into_iter().map(|(_, attribute, _)| attribute));
    all.chain(["FollowerName", "AuthorName", "AuthorAvatar"]).filter(|kind| !is_there(kind)).collect()
}

/// What differs, with both values, by the key of the item or of the counter without its shard.
fn differences(items: &Items) -> BTreeMap<String, String> {
    // Under watermarks a display has the revision of its counter beside it.
    let mut items = items.clone();
    for item in items.values_mut() {
        item.retain(|name, _| !name.ends_with(":rev"));
    }
    let items = &items;
    let counts = counts(items);
    let (stored, wanted) = (stored(items), wanted(items, &counts));
    let keys: BTreeSet<&Key> = stored.keys().chain(wanted.keys()).collect();
    let mut differences = BTreeMap::new();
    for at in keys.into_iter().filter(|at| stored.get(at) != wanted.get(at)) {
        let sorted = |items: &Items| items.get(at).map(|item| item.clone().into_iter().collect::<BTreeMap<_, _>>());
        let text = format!("{at:?}\n  stored  {:?}\n  derived {:?}", sorted(&stored), sorted(&wanted));
        differences.insert(format!("{} / {}", at.0, at.1), text);
    }
    let counters = counters(items);
    let counts: BTreeMap<Key, i64> = counts
        .into_iter()
        .map(|((target, name), count)| (key(target.0, format!("{}#COUNT#{name}", target.1)), count))
        .collect();
    let keys: BTreeSet<&Key> = counters.keys().chain(counts.keys()).collect();
    for at in keys {
        let [stored, derived] = [&counters, &counts].map(|counts| counts.get(at).copied().unwrap_or(0));
        if stored != derived {
            differences
                .insert(format!("{} / {}", at.0, at.1), format!("{at:?}\n  stored  {stored}\n  derived {derived}"));
        }
    }
    differences
}

/// Counters, their shards added up.
fn counters(items: &Items) -> BTreeMap<Key, i64> {
    let mut counters = BTreeMap::new();
    for ((pk, sk), item) in items.iter().filter(|(_, item)| text(item, "EntityType") == Some("Counter")) {
        let (counter, _shard) = sk.rsplit_once('#').unwrap();
        let value: i64 = item["Value"].as_n().unwrap().parse().unwrap();
        *counters.entry(key(pk, counter)).or_default() += value;
    }
    counters
}

/// What there is to count. The number of views is not known any more: cascades remove views, and counters
/// of views. So what is stored stands for it, and its display is held to that.
fn counts(items: &Items) -> Recounted {
    let mut counts = Recounted::new();
    for ((pk, sk), value) in counters(items) {
        if let Some((target, "view-count")) = sk.split_once("#COUNT#") {
            counts.insert((key(pk, target), "view-count"), value);
        }
    }
    for (at, item) in items {
        let user = |user: &str| key(format!("USER#{user}"), "PROFILE");
        let detail = |post: &str| key(format!("POST#{post}"), "METADATA");
        let mut count = |target: Key, name| *counts.entry((target, name)).or_default() += 1;
        match parts(at, item).as_slice() {
            ["Follow", "USER", follower, "FOLLOWS", followee] => {
                count(user(followee), "follower-count");
                count(user(follower), "following-count");
            }
            ["Post", "USER", author, "POST", _, _] if text(item, "Status") == Some("published") => {
                count(user(author), "post-count");
            }
            ["Comment", "POST", post, "COMMENT", _, _] => count(detail(post), "comment-count"),
            ["Like", "USER", _, "LIKE", "POST", post] => count(detail(post), "like-count"),
            ["Membership", "USER", _, "GROUP", group] => {
                count(key(format!("GROUP#{group}"), "METADATA"), "member-count");
            }
            _ => {}
        }
    }
    counts
}

/// All items but counters, a display of zero taken for none.
fn stored(items: &Items) -> Items {
    let kept = items.iter().filter(|(_, item)| text(item, "EntityType") != Some("Counter"));
    let mut stored: Items = kept.map(|(at, item)| (at.clone(), item.clone())).collect();
    for item in stored.values_mut() {
        for (_, attribute, _) in DISPLAYS {
            if item.get(attribute) == Some(&n(0)) {
                item.remove(attribute);
            }
        }
    }
    stored
}

/// All items but counters as they should be: the ground, the mirrors of it, then their copies and displays.
fn wanted(items: &Items, counts: &Recounted) -> Items {
    let ground = ground(items);
    let mut wanted = ground.clone();
    for (at, item) in &ground {
        match parts(at, item).as_slice() {
            ["Follow", "USER", follower, "FOLLOWS", followee] => {
                let mirror = key(format!("USER#{followee}"), format!("FOLLOWER#{follower}"));
                wanted.insert(mirror.clone(), mirrored(item, &mirror, "Follower"));
            }
            ["Membership", "USER", user, "GROUP", group] => {
                let mirror = key(format!("GROUP#{group}"), format!("USER#{user}"));
                wanted.insert(mirror.clone(), mirrored(item, &mirror, "GroupMember"));
            }
            ["Post", "USER", author, "POST", at_time, post] => {
                let mirror = key(format!("POST#{post}"), "METADATA");
                // The greatest of the posts of this id comes last, and wins.
                let mut claims = match wanted.remove(&mirror).and_then(|mut earlier| earlier.remove("Claims")) {
                    Some(AttributeValue::L(claims)) => claims,
                    _ => Vec::new(),
                };
                claims.push(AttributeValue::M(key_item(at)));
                let mut detail = detail(item, &mirror, [author, at_time, post]);
                detail.insert("Claims".to_owned(), AttributeValue::L(claims));
                wanted.insert(mirror, detail);
            }
            _ => {}
        }
    }
    for (at, item) in &mut wanted {
        add_copies(at, item, &ground);
        add_displays(at, item, counts);
    }
    wanted
}

/// The items of the application, without what is derived on them.
fn ground(items: &Items) -> Items {
    let is_derived = |item: &Item| text(item, "EntityType").is_some_and(|entity| DERIVED.contains(&entity));
    let mut ground = items.clone();
    ground.retain(|_, item| !is_derived(item));
    for item in ground.values_mut() {
        let Some(entity) = text(item, "EntityType").map(str::to_owned) else { continue };
        let copied = COPIED.iter().filter(|(of, _)| *of == entity).flat_map(|(_, names)| names.iter().copied());
        let shown = DISPLAYS.iter().filter(|(of, ..)| *of == entity).map(|(_, attribute, _)| *attribute);
        for derived in copied.chain(shown) {
            item.remove(derived);
        }
    }
    ground
}

/// The mirror of an item: the same attributes under another key, without index keys.
fn mirrored(item: &Item, mirror: &Key, entity: &str) -> Item {
    let mut mirrored = item.clone();
    mirrored.retain(|name, _| !name.starts_with("GSI"));
    mirrored.extend(key_item(mirror));
    mirrored.insert("EntityType".to_owned(), s(entity));
    mirrored
}

fn detail(item: &Item, mirror: &Key, [author, at, post]: [&str; 3]) -> Item {
    let mut detail = mirrored(item, mirror, "PostDetail");
    detail.remove("Content");
    detail.insert("AuthorId".to_owned(), s(id(author)));
    detail.insert("CreatedAt".to_owned(), s(at));
    if text(item, "Status") == Some("published") {
        detail.insert("GSI2PK".to_owned(), s(format!("POSTS#{}", spread(&id(post)))));
        detail.insert("GSI2SK".to_owned(), s(format!("{at}#{post}")));
    }
    detail
}

/// The copies that belong on an item, where their source exists.
fn add_copies(at: &Key, item: &mut Item, ground: &Items) {
    let user = |segment: &str| (key(format!("USER#{segment}"), "PROFILE"), "User");
    let by_id = |item: &Item, name: &str| text(item, name).map(|id| user(&segment(id)));
    let (source, pairs): (_, &[(&str, &str)]) = match parts(at, item).as_slice() {
        ["Follow", _, _, _, followee] => (Some(user(followee)), &[("Name", "FolloweeName")]),
        ["Follower", _, _, _, follower] => (Some(user(follower)), &[("Name", "FollowerName")]),
        ["GroupMember", _, _, _, member] => (Some(user(member)), &[("Name", "UserName")]),
        ["Membership", _, _, _, group] => {
            (Some((key(format!("GROUP#{group}"), "METADATA"), "Group")), &[("Name", "GroupName")])
        }
        ["Comment", ..] => (by_id(item, "UserId"), &[("Name", "UserName"), ("Avatar", "UserAvatar")]),
        ["PostDetail", ..] => (by_id(item, "AuthorId"), &[("Name", "AuthorName"), ("Avatar", "AuthorAvatar")]),
        _ => return,
    };
    let Some((source, entity)) = source else { return };
    let Some(source) = ground.get(&source).filter(|source| text(source, "EntityType") == Some(entity)) else { return };
    for (from, to) in pairs {
        item.extend(source.get(*from).map(|value| ((*to).to_owned(), value.clone())));
    }
}

fn add_displays(at: &Key, item: &mut Item, counts: &Recounted) {
    let entity = text(item, "EntityType").map(str::to_owned);
    for (_, attribute, name) in DISPLAYS.into_iter().filter(|(of, ..)| Some(*of) == entity.as_deref()) {
        if let Some(count) = counts.get(&(at.clone(), name)) {
            item.insert(attribute.to_owned(), n(*count));
        }
    }
}

/// Entity and segments of the key of an item that says what it is.
fn parts<'a>((pk, sk): &'a Key, item: &'a Item) -> Vec<&'a str> {
    text(item, "EntityType")
        .into_iter()
        .flat_map(|entity| [entity].into_iter().chain(pk.split('#')).chain(sk.split('#')))
        .collect()
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
}

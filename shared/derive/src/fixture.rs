//! A small table with derivations, and a short text for its items, for the tests of this crate.
//!
//! An item is written `USER#ann / PROFILE User Name=Ann Age=N:7 Tags=SS:a,b`: its key, its type, its attributes.

pub(crate) mod desks;
pub(crate) mod employees;
pub(crate) mod files;
pub(crate) mod products;
pub(crate) mod rooms;
pub(crate) mod table;
pub(crate) mod totals;

use keys::{
    counter,
    entity::{Definition, KeyTemplate},
    index_key::{IndexKey, OnlyIf},
    item::Item,
    key::Key,
    layout::{Index, Layout},
};
use serde_dynamo::AttributeValue;

use crate::{
    catalogue::Catalogue,
    change::{Change, Images},
    condition::Condition,
    declaration::{Cascade, Count, Fate, FoundBy, Hanging, Link, Mirror, Way},
    derivation::Derivation,
    effect::{Effect, Ground},
    family::Family,
    kinds::{
        copy::Copy,
        display::{Display, Shows, Zero},
    },
    plan::plan,
    schema::Schema,
};

pub(crate) fn schema() -> Schema {
    let index = |name: &str| Index {
        name: name.into(),
        pk: format!("{name}PK"),
        sk: format!("{name}SK"),
        projection: Some(vec![]),
    };
    let layout = Layout {
        entity_type: Some("EntityType".into()),
        time_to_live: Some("ExpiresAt".into()),
        indexes: vec![index("GSI1"), index("GSI2")],
        ..Layout::of("PK", "SK")
    };
    let by_user = IndexKey {
        index: "GSI1".into(),
        key: key("USER#{UserId}", "COMMENT#{CommentId}"),
        only_if: None,
        derived: false,
    };
    let published = OnlyIf::Is { attribute: "Status".into(), any_of: vec!["published".into()] };
    let recent = IndexKey {
        index: "GSI2".into(),
        key: key("POSTS", "{CreatedAt}#{PostId}"),
        only_if: Some(published),
        derived: false,
    };
    let mut comment = ground("Comment", ("POST#{PostId}", "COMMENT#{CommentId}"), &["UserId", "Text"], &["UserName"]);
    comment.indexes.push(by_user);
    let mut detail =
        derived("PostDetail", ("POST#{PostId}", "METADATA"), &["AuthorId", "CreatedAt", "Title", "Status"]);
    detail.indexes.push(recent);
    detail.derived_attributes = ["Claims", "AuthorName", "CommentCount", "ViewCount"].map(str::to_owned).to_vec();
    let mut follower = derived("Follower", ("USER#{FolloweeId}", "FOLLOWER#{FollowerId}"), &["CreatedAt"]);
    follower.derived_attributes.push("FollowerName".into());
    let counter = (counter::PARTITION_KEY, counter::SORT_KEY);
    let entities = [
        ground("User", ("USER#{UserId}", "PROFILE"), &["Name", "Avatar", "Email"], &["FollowerCount", "PostCount"]),
        ground("Follow", ("USER#{FollowerId}", "FOLLOWS#{FolloweeId}"), &["CreatedAt"], &["FolloweeName"]),
        follower,
        ground("Post", ("USER#{AuthorId}", "POST#{CreatedAt}#{PostId}"), &["Title", "Content", "Status"], &[]),
        detail,
        comment,
        ground("EmailClaim", ("EMAIL#{Email}", "CLAIM"), &["UserId"], &[]),
        ground("View", ("USER#{UserId}", "VIEW#{PostId}"), &[], &[]),
        derived("Counter", counter, &[]),
    ];
    Schema::new(
        layout,
        entities
            .into_iter()
            .chain(employees::entities())
            .chain(files::entities())
            .chain(products::entities())
            .chain(totals::entities())
            .chain(rooms::entities())
            .chain(desks::entities()),
    )
}

fn key(pk: &str, sk: &str) -> KeyTemplate {
    KeyTemplate::parse(pk, sk).unwrap()
}

/// An entity of application items.
pub(crate) fn ground(name: &str, (pk, sk): (&str, &str), attributes: &[&str], derived: &[&str]) -> Definition {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Definition {
        id: format!("E-{name}"),
        name: name.to_owned(),
        key: key(pk, sk),
        indexes: Vec::new(),
        derived: false,
        attributes: owned(attributes),
        derived_attributes: owned(derived),
    }
}

pub(crate) fn derived(name: &str, keys: (&str, &str), attributes: &[&str]) -> Definition {
    Definition { derived: true, ..ground(name, keys, attributes, &[]) }
}

pub(crate) fn catalogue(schema: &Schema) -> Catalogue {
    Catalogue::new(schema, derivations()).unwrap()
}

pub(crate) fn derivations() -> Vec<Derivation> {
    let both = [("FolloweeId", "FolloweeId"), ("FollowerId", "FollowerId")];
    let published = Condition::is("Status", "published");
    let mut all = vec![
        named("follower-mirror", mirror("Follow", "Follower", &both)),
        named("follower-count", count("Follow", "User", &[("UserId", "FolloweeId")])),
        named("follower-shown", display("follower-count", "User", "FollowerCount")),
        named("post-detail", Mirror { except: vec!["Content".into()], ..mirror("Post", "PostDetail", &[POST]) }),
        named("post-count", Count { condition: published, ..count("Post", "User", &[("UserId", "AuthorId")]) }),
        named("post-shown", Display { zero: Zero::Absent, ..display("post-count", "User", "PostCount") }),
        named("comment-count", count("Comment", "PostDetail", &[POST])),
        named("comment-shown", display("comment-count", "PostDetail", "CommentCount")),
        named("writer-count", count("Comment", "User", &[("UserId", "UserId")])),
        named("view-count", Count { history: true, ..count("View", "PostDetail", &[POST]) }),
        named("comment-author", copy("Comment", ("UserId", "UserName"), Some("GSI1"), ("Comment", "UserId"))),
        named("post-author", copy("PostDetail", ("AuthorId", "AuthorName"), None, ("Post", "AuthorId"))),
        named("followee-name", copy("Follow", ("FolloweeId", "FolloweeName"), None, ("Follower", "FolloweeId"))),
        named("follower-name", copy("Follower", ("FollowerId", "FollowerName"), None, ("Follow", "FollowerId"))),
        named("user-cascade", user_cascade()),
        named("post-cascade", post_cascade()),
    ];
    all.extend(employees::derivations());
    all.extend(files::derivations());
    all.extend(products::derivations());
    all.extend(totals::derivations());
    all.extend(rooms::derivations());
    all.extend(desks::derivations());
    all
}

const POST: (&str, &str) = ("PostId", "PostId");

pub(crate) fn named(name: &str, kind: impl crate::kind::Kind + 'static) -> Derivation {
    Derivation::new("D-00", name, kind)
}

/// An item from its short text.
pub(crate) fn item(text: &str) -> Item {
    let words: Vec<&str> = text.split(' ').collect();
    let [pk, "/", sk, rest @ ..] = words.as_slice() else { panic!("{text}: no key") };
    let mut item = Item::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))]);
    for word in rest {
        match word.split_once('=') {
            Some((name, value)) => item.insert(name.to_owned(), value_of(value)),
            None => item.insert("EntityType".to_owned(), s(word)),
        };
    }
    item
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn value_of(text: &str) -> AttributeValue {
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    match text.split_once(':') {
        Some(("N", number)) => AttributeValue::N(number.to_owned()),
        Some(("BOOL", truth)) => AttributeValue::Bool(truth == "true"),
        Some(("SS", set)) => AttributeValue::Ss(list(set)),
        Some(("NS", set)) => AttributeValue::Ns(list(set)),
        Some(("L", members)) => AttributeValue::L(members.split(',').map(value_of).collect()),
        Some(("CLAIMS", keys)) => AttributeValue::L(keys.split(',').map(claim).collect()),
        _ => s(text),
    }
}

/// The key of a claim is written `PK/SK`.
fn claim(key: &str) -> AttributeValue {
    let (pk, sk) = key.split_once('/').unwrap();
    AttributeValue::M([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))].into())
}

/// A value as it is written in an item's short text.
pub(crate) fn short(value: &AttributeValue) -> String {
    let text = |value: Option<&AttributeValue>| value.map(short).unwrap_or_default();
    match value {
        AttributeValue::S(text) => text.clone(),
        AttributeValue::N(number) => format!("N:{number}"),
        AttributeValue::Ss(set) => format!("SS:{}", set.join(",")),
        AttributeValue::Ns(set) => format!("NS:{}", set.join(",")),
        AttributeValue::L(list) => format!("CLAIMS:{}", list.iter().map(short).collect::<Vec<_>>().join(",")),
        AttributeValue::M(map) => format!("{}/{}", text(map.get("PK")), text(map.get("SK"))),
        other => format!("{other:?}"),
    }
}

pub(crate) fn key_of(item: &Item) -> Key {
    schema().layout.key(item).unwrap()
}

pub(crate) fn inserted(new: &str) -> Change {
    let new = item(new);
    change(key_of(&new), Images::Inserted(new))
}

pub(crate) fn removed(old: &str) -> Change {
    let old = item(old);
    change(key_of(&old), Images::Removed(old))
}

pub(crate) fn expired(old: &str) -> Change {
    let old = item(old);
    change(key_of(&old), Images::Expired(old))
}

pub(crate) fn modified(old: &str, new: &str) -> Change {
    let (old, new) = (item(old), item(new));
    assert_eq!(key_of(&old), key_of(&new), "an item keeps its key");
    change(key_of(&new), Images::Modified { old, new })
}

fn change(key: Key, images: Images) -> Change {
    Change { id: "event-1".into(), sequence_number: "1".into(), created_ms: None, key, images }
}

/// The effects of a change for all derivations of a kind, one per line.
pub(crate) fn effects(kind: &str, change: &Change) -> String {
    let schema = schema();
    effects_in(&schema, &catalogue(&schema), kind, change)
}

/// The effects in another schema and catalogue.
pub(crate) fn effects_in(schema: &Schema, catalogue: &Catalogue, kind: &str, change: &Change) -> String {
    let planned = plan(schema, catalogue, &[Family::Additive, Family::LevelTriggered], change);
    let mut lines = String::new();
    for (at, effect) in planned.effects {
        if catalogue.derivation(at).is_some_and(|derivation| derivation.kind.name().ends_with(kind)) {
            lines.extend([catalogue.name(at), ": ", line(&effect).as_str(), "\n"]);
        }
    }
    if lines.is_empty() { "nothing\n".to_owned() } else { lines }
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Add(add) if add.sum.is_zero() => format!("{:+} {}", add.count, add.target),
        Effect::Add(add) => format!("{:+} and {} {}", add.count, short(&add.sum.to_value()), add.target),
        Effect::Measure(measure) => format!("{} into {}", short(&measure.value.to_value()), measure.bucket),
        Effect::Late => "late".to_owned(),
        Effect::Look(request) | Effect::Vacated(request) => {
            let named: Vec<String> = request.named.iter().map(|key| format!(" named {key}")).collect();
            format!("look {} ({}){}", request.item, request.entity, named.join(","))
        }
        Effect::Later(request, at_ms) => {
            format!("look {} ({}) at hour {}", request.item, request.entity, at_ms / 3_600_000)
        }
        Effect::Find(find) => {
            let place = find.query.index.as_deref().unwrap_or("table");
            let (pk, sk) = (&find.query.pk, find.query.sk.first());
            format!("find {place} {pk} / {sk}… via {} -> {}", find.via, find.target)
        }
        Effect::Ground(ground) => ground_line(ground),
        Effect::List { unreadable: Some(why) } => format!("list {why}"),
        Effect::List { unreadable: None } => "take off the list".to_owned(),
    }
}

// ---- Short declarations ----

pub(crate) fn mirror(source: &str, target: &str, link: &[(&str, &str)]) -> Mirror {
    Mirror {
        source: source.into(),
        target: target.into(),
        link: Link::of(link),
        condition: Condition::Always,
        each: None,
        except: Vec::new(),
    }
}

pub(crate) fn count(source: &str, target: &str, link: &[(&str, &str)]) -> Count {
    Count {
        source: source.into(),
        condition: Condition::Always,
        target: target.into(),
        link: Link::of(link),
        sum: None,
        history: false,
        expired_stays: false,
        each: None,
    }
}

pub(crate) fn display(count: &str, target: &str, attribute: &str) -> Display {
    let (count, target, attribute) = (count.into(), target.into(), attribute.into());
    Display { count, target, shows: Shows::Count, attribute, zero: Zero::Write }
}

/// A copy of a user's name: target entity, (link field, attribute), index, (entity and field of the search).
pub(crate) fn copy(target: &str, (by, to): (&str, &str), index: Option<&str>, via: (&str, &str)) -> Copy {
    Copy {
        source: "User".into(),
        target: target.into(),
        link: Link::of(&[("UserId", by)]),
        condition: Condition::Always,
        attributes: vec![("Name".into(), to.into())],
        found: FoundBy { via: via.0.into(), index: index.map(str::to_owned), by: Link::of(&[(via.1, "UserId")]) },
    }
}

// ---- Declarations that change the application's own items, for the tests of this crate ----

pub(crate) fn user_cascade() -> Cascade {
    let theirs = Fate::DeletedWhere { attribute: "UserId".into(), field: "UserId".into() };
    let claim = Way::Named(Link::of(&[("Email", "Email")]));
    Cascade {
        owner: "User".into(),
        starts: vec![("User".into(), Link::of(&[("UserId", "UserId")]))],
        hanging: vec![Hanging { entity: "EmailClaim".into(), found: claim, fate: theirs }],
    }
}

pub(crate) fn post_cascade() -> Cascade {
    let found = FoundBy { via: "Comment".into(), index: None, by: Link::of(&[POST]) };
    Cascade {
        owner: "PostDetail".into(),
        starts: ["Post", "PostDetail"].map(|name| (name.into(), Link::of(&[POST]))).to_vec(),
        hanging: vec![Hanging { entity: "Comment".into(), found: Way::Found(found), fate: Fate::Deleted }],
    }
}

pub(crate) fn ground_line(ground: &Ground) -> String {
    match ground {
        Ground::Cascade(removal) => {
            let absent: Vec<String> = removal.absent.iter().map(ToString::to_string).collect();
            let named: Vec<String> = removal.named.iter().map(|(at, key)| format!(", named {key} as {at}")).collect();
            format!("start {} while absent {}{}", removal.owner, absent.join(", "), named.concat())
        }
        Ground::Work(key) => format!("work {key}"),
    }
}

//! Stream records of a plausible mix, in the exact form of a Lambda invocation.
//!
//! One round is what a handful of writes by the application leave in the stream: the writes themselves, and the
//! mirrors, counters, copies and displays that this service wrote for them, which come back as records of their own.
//! The same number of records is the same text in every run.
//!
//! `plan` times the steps from the text of a batch to its writes. [`joins`] is what `drain` and `side_by_side` count.

use entities::{
    claim::Claim,
    counter::Counter,
    groups::{Group, GroupKey, GroupMember, GroupMemberKey, Membership, MembershipKey},
    people::{Follow, FollowKey, Follower, FollowerKey, User, UserKey},
    posts::{Comment, CommentKey, Like, LikeKey, Post, PostDetail, PostDetailKey, PostKey, View, ViewKey, status},
    table::layout,
};
use keys::{counter::CounterKey, entity::Entity, item::Item, key::Key};
use serde_dynamo::AttributeValue;

pub mod joins;

/// The engine's decoder: its files alone, since the engine would bring the store, and with it the AWS SDK, into every
/// build of a benchmark that calls neither.
#[path = "../../shared/engine/src/record/mod.rs"]
pub mod record;

/// How many users there are: few enough that some of a batch's changes meet in one counter.
const N_USERS: usize = 200;

/// How many records a round has.
const ROUND: usize = 24;

const AT: &str = "2024-01-15T10:30:00.417Z";
const LATER: &str = "2024-01-16T08:12:44.090Z";

/// The text of an event of so many records.
///
/// # Panics
///
/// When an item cannot be made, which is a mistake in this file.
#[must_use]
pub fn event(n_records: usize) -> String {
    format!(r#"{{"Records":[{}]}}"#, (0..n_records).map(record).collect::<Vec<_>>().join(","))
}

fn record(at: usize) -> String {
    let (old, new) = images(at);
    let name = match (&old, &new) {
        (None, _) => "INSERT",
        (_, None) => "REMOVE",
        _ => "MODIFY",
    };
    let key = layout().key(new.as_ref().or(old.as_ref()).expect("an image")).expect("a key");
    let keys = json(&layout().key_item(&key));
    let image = |name: &str, item: Option<Item>| item.map_or(String::new(), |it| format!(r#""{name}":{},"#, json(&it)));
    let images = image("NewImage", new) + &image("OldImage", old);
    let id = format!("{:032x}", (at as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    let sequence_number = format!("40550000000000632{:08}", at + 1);
    format!(
        r#"{{"eventID":"{id}","eventName":"{name}","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{{"ApproximateCreationDateTime":1705314600.0,"Keys":{keys},{images}"SequenceNumber":"{sequence_number}","SizeBytes":178,"StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/ripple/stream/2024-01-15T09:00:00.000"}}"#
    )
}

/// An item in DynamoDB's JSON, its attributes in no order: DynamoDB promises none.
fn json(item: &Item) -> String {
    let mut attributes: Vec<(&str, &AttributeValue)> = item.iter().collect();
    attributes.sort_by_key(|(name, _)| name.bytes().fold(7_u32, |hash, byte| (hash ^ u32::from(byte)) * 167 % 8_191));
    let attribute = |(name, value)| format!("\"{name}\":{}", serde_json::to_string(value).expect("a value"));
    format!("{{{}}}", attributes.into_iter().map(attribute).collect::<Vec<_>>().join(","))
}

type ImagePair = (Option<Item>, Option<Item>);

/// The images of the record at a position.
fn images(at: usize) -> ImagePair {
    let round = at / ROUND;
    let people = round * 7 + 3;
    match at % ROUND {
        step @ 0..8 => of_people(step, people),
        step @ 8..16 => of_posts(step, people),
        step => of_the_rest(step, people),
    }
}

fn of_people(step: usize, n: usize) -> ImagePair {
    let (user, other) = (user_id(n), user_id(n * 3 + 1));
    let follow = Follow {
        key: FollowKey { follower_id: user.as_str().into(), followee_id: other.as_str().into() },
        created_at: Some(AT.into()),
        ..Follow::default()
    };
    let named = Follow { followee_name: Some(user_name(n)), ..follow.clone() };
    let follower = Follower {
        key: FollowerKey { followee_id: other.as_str().into(), follower_id: user.as_str().into() },
        created_at: Some(AT.into()),
        ..Follower::default()
    };
    match step {
        0 => inserted(&person(n)),
        1 => inserted(&follow),
        2 => inserted(&follower),
        3 => counted(&profile(&other), "follower-count", n % 8),
        4 => counted(&profile(&user), "following-count", 0),
        5 => modified(&person(n), &User { follower_count: Some(12), ..person(n) }),
        6 => modified(&follow, &named),
        _ => removed(&named),
    }
}

fn of_posts(step: usize, n: usize) -> ImagePair {
    let post_id = format!("p-{n:06}");
    let post = Post {
        key: PostKey { author_id: user_id(n).as_str().into(), created_at: AT.into(), post_id: post_id.as_str().into() },
        title: Some("On engines".into()),
        content: Some("Number 2 weighs a ton.".into()),
        status: Some(status::DRAFT.into()),
        updated_at: None,
    };
    let published = Post { status: Some(status::PUBLISHED.into()), ..post.clone() };
    let detail = PostDetail {
        key: PostDetailKey { post_id: post_id.as_str().into() },
        author_id: Some(user_id(n).as_str().into()),
        created_at: Some(AT.into()),
        title: post.title.clone(),
        status: published.status.clone(),
        claims: Some(vec![Claim::from(Post::primary_key(&post.key).expect("a key"))]),
        ..PostDetail::default()
    };
    let comment = Comment {
        key: CommentKey {
            post_id: post_id.as_str().into(),
            created_at: LATER.into(),
            comment_id: format!("c-{n}").as_str().into(),
        },
        user_id: Some(user_id(n + 5).as_str().into()),
        text: Some("Well put. 50% of it".into()),
        ..Comment::default()
    };
    match step {
        8 => inserted(&post),
        9 => modified(&post, &published),
        10 => inserted(&detail),
        11 => modified(&detail, &PostDetail { comment_count: Some(3), ..detail.clone() }),
        12 => inserted(&comment),
        13 => modified(&comment, &Comment { user_name: Some(user_name(n + 5)), ..comment.clone() }),
        14 => counted(&Key::new(format!("POST#{post_id}"), "METADATA"), "comment-count", 0),
        _ => removed(&comment),
    }
}

fn of_the_rest(step: usize, n: usize) -> ImagePair {
    let (user, post, group) = (user_id(n), format!("p-{:06}", n % 50), format!("g-{:03}", n % 20));
    let like = Like {
        key: LikeKey { user_id: user.as_str().into(), post_id: post.as_str().into() },
        created_at: Some(AT.into()),
        ..Like::default()
    };
    let view = View {
        key: ViewKey { user_id: user.as_str().into(), viewed_at: AT.into(), post_id: post.as_str().into() },
        expires_at: Some(1_705_401_000),
        ..View::default()
    };
    let membership = Membership {
        key: MembershipKey { user_id: user.as_str().into(), group_id: group.as_str().into() },
        role: Some("member".into()),
        joined_at: Some(AT.into()),
        ..Membership::default()
    };
    let member = GroupMember {
        key: GroupMemberKey { group_id: group.as_str().into(), user_id: user.as_str().into() },
        role: Some("member".into()),
        joined_at: Some(AT.into()),
        ..GroupMember::default()
    };
    let of_group =
        Group { key: GroupKey { group_id: group.as_str().into() }, name: Some("Engines".into()), ..Group::default() };
    match step {
        16 => inserted(&like),
        17 => removed(&like),
        18 => counted(&Key::new(format!("POST#{post}"), "METADATA"), "like-count", n % 16),
        19 => inserted(&view),
        20 => inserted(&membership),
        21 => inserted(&member),
        22 => modified(&of_group, &Group { updated_at: Some(LATER.into()), ..of_group.clone() }),
        _ => modified(&person(n), &User { name: Some("Augusta Ada".into()), ..person(n) }),
    }
}

fn user_id(n: usize) -> String {
    format!("u-{:05}", n % N_USERS)
}

fn user_name(n: usize) -> String {
    format!("Ada the {}th", n % N_USERS)
}

fn person(n: usize) -> User {
    User {
        key: UserKey { user_id: user_id(n).as_str().into() },
        name: Some(user_name(n)),
        email: Some(format!("{}@example.org", user_id(n))),
        created_at: Some(AT.into()),
        ..User::default()
    }
}

fn profile(user_id: &str) -> Key {
    Key::new(format!("USER#{user_id}"), "PROFILE")
}

/// One more in a counter of ours.
fn counted(target: &Key, derivation: &str, satellite: usize) -> ImagePair {
    let satellite = u32::try_from(satellite).expect("a satellite");
    let counter = |value| Counter {
        key: CounterKey { target: target.clone(), derivation: derivation.to_owned(), satellite },
        value: Some(value),
        ..Counter::default()
    };
    modified(&counter(41), &counter(42))
}

fn inserted<E: Entity>(new: &E) -> ImagePair {
    (None, Some(item(new)))
}

fn modified<E: Entity>(old: &E, new: &E) -> ImagePair {
    (Some(item(old)), Some(item(new)))
}

fn removed<E: Entity>(old: &E) -> ImagePair {
    (Some(item(old)), None)
}

fn item<E: Entity>(entity: &E) -> Item {
    entity.to_item(&layout()).expect("an item")
}

//! Stream records of a plausible mix, in the exact form of a Lambda invocation.
//!
//! One round is what a handful of writes by the application leave in the stream: the writes themselves, and the
//! mirrors, counters, copies and displays that this service wrote for them, which come back as records of their own.
//! The same number of records is the same text in every run.
//!
//! `plan` times the steps from the text of a batch to its writes. [`joins`] is what `drain` and `side_by_side` count.

use std::sync::LazyLock;

use derive::schema::Schema;
use keys::{counter::CounterKey, item::Item, key::Key};
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};

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

static SCHEMA: LazyLock<Schema> = LazyLock::new(catalogue::schema);

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
    let key = SCHEMA.layout.key(new.as_ref().or(old.as_ref()).expect("an image")).expect("a key");
    let keys = json(&SCHEMA.layout.key_item(&key));
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
    let follow = item("Follow", json!({ "FollowerId": user, "FolloweeId": other, "CreatedAt": AT }));
    let named = with(&follow, json!({ "FolloweeName": user_name(n) }));
    match step {
        0 => inserted(&person(n)),
        1 => inserted(&follow),
        2 => inserted(&item("Follower", json!({ "FolloweeId": other, "FollowerId": user, "CreatedAt": AT }))),
        3 => counted(&profile(&other), "follower-count", n % 8),
        4 => counted(&profile(&user), "following-count", 0),
        5 => modified(&person(n), json!({ "FollowerCount": 12 })),
        6 => modified(&follow, json!({ "FolloweeName": user_name(n) })),
        _ => removed(&named),
    }
}

fn of_posts(step: usize, n: usize) -> ImagePair {
    let (author, post_id, title) = (user_id(n), format!("p-{n:06}"), "On engines");
    let post = json!({
        "AuthorId": author, "CreatedAt": AT, "PostId": post_id, "Title": title, "Status": "draft",
        "Content": "Number 2 weighs a ton.",
    });
    let detail = json!({
        "PostId": post_id, "AuthorId": author, "CreatedAt": AT, "Title": title, "Status": "published",
        "Claims": [{ "PK": format!("USER#{author}"), "SK": format!("POST#{AT}#{post_id}") }],
    });
    let comment = json!({
        "PostId": post_id, "CreatedAt": LATER, "CommentId": format!("c-{n}"), "UserId": user_id(n + 5),
        "Text": "Well put. 50% of it",
    });
    let (post, detail, comment) = (item("Post", post), item("PostDetail", detail), item("Comment", comment));
    match step {
        8 => inserted(&post),
        9 => modified(&post, json!({ "Status": "published" })),
        10 => inserted(&detail),
        11 => modified(&detail, json!({ "CommentCount": 3 })),
        12 => inserted(&comment),
        13 => modified(&comment, json!({ "UserName": user_name(n + 5) })),
        14 => counted(&Key::new(format!("POST#{post_id}"), "METADATA"), "comment-count", 0),
        _ => removed(&comment),
    }
}

fn of_the_rest(step: usize, n: usize) -> ImagePair {
    let (user, post, group) = (user_id(n), format!("p-{:06}", n % 50), format!("g-{:03}", n % 20));
    let like = item("Like", json!({ "UserId": user, "PostId": post, "CreatedAt": AT }));
    let view = json!({ "UserId": user, "ViewedAt": AT, "PostId": post, "ExpiresAt": 1_705_401_000 });
    let membership = json!({ "UserId": user, "GroupId": group, "Role": "member", "JoinedAt": AT });
    match step {
        16 => inserted(&like),
        17 => removed(&like),
        18 => counted(&Key::new(format!("POST#{post}"), "METADATA"), "like-count", n % 16),
        19 => inserted(&item("View", view)),
        20 => inserted(&item("Membership", membership)),
        21 => inserted(&item("GroupMember", membership)),
        22 => modified(&item("Group", json!({ "GroupId": group, "Name": "Engines" })), json!({ "UpdatedAt": LATER })),
        _ => modified(&person(n), json!({ "Name": "Augusta Ada" })),
    }
}

fn user_id(n: usize) -> String {
    format!("u-{:05}", n % N_USERS)
}

fn user_name(n: usize) -> String {
    format!("Ada the {}th", n % N_USERS)
}

fn person(n: usize) -> Item {
    let (id, email) = (user_id(n), format!("{}@example.org", user_id(n)));
    item("User", json!({ "UserId": id, "Name": user_name(n), "Email": email, "CreatedAt": AT }))
}

fn profile(user_id: &str) -> Key {
    Key::new(format!("USER#{user_id}"), "PROFILE")
}

/// One more in a counter of ours.
fn counted(target: &Key, derivation: &str, satellite: usize) -> ImagePair {
    let satellite = u32::try_from(satellite).expect("a satellite");
    let key = CounterKey { target: target.clone(), derivation: derivation.to_owned(), satellite }.key().expect("a key");
    let mut counter = SCHEMA.layout.key_item(&key);
    counter.extend(SCHEMA.layout.type_of("Counter"));
    modified(&with(&counter, json!({ "Value": 41 })), json!({ "Value": 42 }))
}

fn inserted(new: &Item) -> ImagePair {
    (None, Some(new.clone()))
}

/// An item, and what it is with these attributes. None of them is in an index key.
fn modified(old: &Item, attributes: Value) -> ImagePair {
    (Some(old.clone()), Some(with(old, attributes)))
}

fn removed(old: &Item) -> ImagePair {
    (Some(old.clone()), None)
}

fn with(item: &Item, attributes: Value) -> Item {
    let mut item = item.clone();
    item.extend(values(attributes));
    item
}

fn item(entity: &str, attributes: Value) -> Item {
    SCHEMA.entity(entity).expect("an entity").item(&SCHEMA.layout, values(attributes)).expect("an item").1
}

fn values(attributes: Value) -> Item {
    let values: serde_dynamo::Item = serde_dynamo::to_item(attributes).expect("values");
    values.into_inner().into_iter().collect()
}

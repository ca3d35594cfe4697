//! Keys of type B, and links by attributes of type B.

use std::collections::BTreeMap;

use derive::{
    change::{Change, Images},
    derived::{Derived, Items},
    family::Family,
    plan::plan,
    whole,
};
use expect_test::expect;
use keys::item::Item;
use serde_dynamo::AttributeValue;

use super::refused_whole;
use crate::load;

/// Users and posts with binary ids, as UUIDs of 16 bytes are, and likes under both.
const BINARY: &str = r#"
[tables.User]
partition-key = { name = "id", type = "B" }

[tables.Post]
partition-key = { name = "id", type = "B" }

[tables.Post.index.byAuthor]
partition-key = { name = "authorId", type = "B" }
sort-key = { name = "createdAt", type = "N" }

[tables.Like]
partition-key = { name = "postId", type = "B" }
sort-key = { name = "userId", type = "B" }

[entity.User]
table = "User"
attributes = ["name"]
derived-attributes = ["postCount"]

[entity.Post]
table = "Post"
attributes = ["authorId", "createdAt"]
derived-attributes = ["authorName", "likeCount"]

[entity.Like]
table = "Like"

[derivation.posts]
kind = "count"
from = "Post"
into = "User.postCount"
link = { id = "authorId" }

[derivation.likes]
kind = "count"
from = "Like"
into = "Post.likeCount"
link = { id = "postId" }

[derivation.author]
kind = "copy"
from = "User"
to = "Post"
link = { id = "authorId" }
attributes = { name = "authorName" }
found = { index = "byAuthor" }
"#;

fn b(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(bytes.to_vec())
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

/// An item of a table in the inner form, from stored attributes.
fn inside(table: &str, stored: &[(&str, AttributeValue)]) -> Item {
    let (schema, _) = load(BINARY).unwrap();
    let stored: Item = stored.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    schema.layout.forms.unwrap().named(table).unwrap().inward(stored).unwrap()
}

fn post(author: AttributeValue) -> Item {
    inside("Post", &[("id", b(&[7])), ("authorId", author), ("createdAt", n("3"))])
}

/// The effects of a change.
fn effects(images: Images) -> String {
    let (schema, catalogue) = load(BINARY).unwrap();
    let item = match &images {
        Images::Inserted(item) | Images::Removed(item) | Images::Expired(item) | Images::Modified { new: item, .. } => {
            item
        }
    };
    let key = schema.layout.key(item).unwrap();
    let change = Change { id: "1".into(), sequence_number: "1".into(), created_ms: None, key, images };
    let planned = plan(&schema, &catalogue, &[Family::Additive, Family::LevelTriggered], &change);
    let lines = planned.effects.iter().map(|(at, effect)| format!("{}: {effect}\n", catalogue.name(*at)));
    lines.collect::<Vec<_>>().concat()
}

#[test]
fn an_attribute_of_type_b_leads_to_a_key_of_type_b() {
    expect![[r#"
        posts: adds -1 to the count of User#00ff / -
        posts: adds +1 to the count of User#10 / -
        author: recomputes the Post Post#07 / -
        author: recomputes the Post Post#07 / -
    "#]]
    .assert_eq(&effects(Images::Modified { old: post(b(&[0, 255])), new: post(b(&[16])) }));
    expect![[r#"
        likes: adds +1 to the count of Post#07 / -
    "#]]
    .assert_eq(&effects(Images::Inserted(inside("Like", &[("postId", b(&[7])), ("userId", b(&[0, 255]))]))));
    // A change of the name searches the index by the bytes.
    let user = |name: &str| inside("User", &[("id", b(&[0, 255])), ("name", s(name))]);
    expect![[r#"
        author: recomputes every Post in Post.byAuthor under 00ff, …
    "#]]
    .assert_eq(&effects(Images::Modified { old: user("Ann"), new: user("Anna") }));
    // Text of the same digits is another value.
    expect![[r#"
        posts: lists the item as unreadable: authorId is S, and B is wanted
        likes-display: recomputes the Post Post#07 / -
        author: recomputes the Post Post#07 / -
        author: lists the item as unreadable: authorId is S, and B is wanted
    "#]]
    .assert_eq(&effects(Images::Inserted(post(s("00ff")))));
}

#[test]
fn what_is_derived_by_bytes_is_what_the_definition_says() {
    let (schema, catalogue) = load(BINARY).unwrap();
    let user = inside("User", &[("id", b(&[0, 255])), ("name", s("Ann"))]);
    let like = inside("Like", &[("postId", b(&[7])), ("userId", b(&[1]))]);
    let all = [user, post(b(&[0, 255])), like].map(|item| (schema.layout.key(&item).unwrap(), item));
    let derived = whole::derive(&schema, &catalogue, &Items::from(all)).by_derivation;
    let mut shown = BTreeMap::new();
    for part in derived.into_iter().flat_map(|(_, parts)| parts) {
        match part {
            Derived::Count { target, tally, .. } => shown.insert(format!("{target} counts"), tally.count.to_string()),
            Derived::Attributes { key, attributes } => {
                let mut values = attributes.into_iter().map(|wanted| format!("{} {:?}", wanted.name, wanted.value));
                shown.insert(format!("{key} {}", values.next().unwrap()), String::new())
            }
            other => panic!("{other:?}"),
        };
    }
    let lines: String = shown.iter().map(|(of, count)| format!("{of} {count}").trim_end().to_owned() + "\n").collect();
    expect![[r#"
        Post#07 / - authorName Some(S("Ann"))
        Post#07 / - counts 1
        Post#07 / - likeCount Some(N("1"))
        User#00ff / - counts 1
        User#00ff / - postCount Some(N("1"))
    "#]]
    .assert_eq(&lines);
}

#[test]
fn a_field_of_a_key_of_another_type_is_refused() {
    let typed = "[tables.Like]\npartition-key = { name = \"postId\", type = \"B\" }";
    assert!(BINARY.contains(typed));
    let of_text = BINARY.replace(typed, "[tables.Like]\npartition-key = \"postId\"");
    refused_whole(
        &of_text,
        &expect![
            "35:13: derivation.likes: postId of the key of Like and id of the key of Post have different types, and one of them is B"
        ],
    );
    let user = "[tables.Post]\npartition-key = { name = \"id\", type = \"B\" }";
    refused_whole(
        &BINARY.replace(user, "[tables.Post]\npartition-key = \"id\""),
        &expect![
            "35:13: derivation.likes: postId of the key of Like and id of the key of Post have different types, and one of them is B"
        ],
    );
}

//! Items that DynamoDB would refuse in a table with an index, since an attribute of the index's key has another type.

use derive::{
    derived::{Derived, Items},
    whole,
};
use expect_test::expect;
use keys::item::Item;
use serde_dynamo::AttributeValue;

use super::refused_whole;
use crate::load;

/// Posts, and the same posts under their tags, with an index over their authors.
const TAGGED: &str = r#"
[tables.Post]
partition-key = "id"

[tables.Tagged]
partition-key = "tag"
sort-key = "id"

[tables.Tagged.index.byAuthor]
partition-key = "authorId"
sort-key = { name = "createdAt", type = "N" }

[entity.Post]
table = "Post"
attributes = ["tag", "authorId", "createdAt", "text"]

[entity.TaggedPost]
table = "Tagged"
derived = true
attributes = ["authorId", "createdAt", "text"]

[derivation.tagged]
kind = "mirror"
from = "Post"
to = "TaggedPost"
link = { id = "id" }
"#;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

#[test]
fn a_mirror_lacks_what_an_index_of_its_table_would_refuse_and_its_source_says_why() {
    let (schema, catalogue) = load(TAGGED).unwrap();
    let table = schema.layout.forms.as_ref().unwrap().named("Post").unwrap();
    let number = |text: &str| AttributeValue::N(text.to_owned());
    let post = |id: &str, attributes: [(&str, AttributeValue); 2]| {
        let mut stored = Item::from([("id".to_owned(), s(id)), ("tag".to_owned(), s("x"))]);
        stored.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
        let item = table.inward(stored).unwrap();
        (schema.layout.key(&item).unwrap(), item)
    };
    let all = [
        post("empty", [("authorId", s("")), ("createdAt", number("1"))]),
        post("late", [("authorId", s("ann")), ("createdAt", s("yesterday"))]),
        // No index depends on its content.
        post("other", [("authorId", s("ann")), ("text", number("1"))]),
        post("right", [("authorId", s("ann")), ("createdAt", number("1"))]),
    ];
    let kind = &catalogue.derivations().next().unwrap().kind;
    let told = all.iter().filter_map(|(key, item)| {
        let why = kind.unreadable(&schema, &schema.image(key, item)?)?;
        Some(format!("{key}: {why}\n"))
    });
    expect![[r#"
        Post#empty / -: authorId is empty, and the index byAuthor of TaggedPost wants S
        Post#late / -: createdAt is S, and the index byAuthor of TaggedPost wants N
    "#]]
    .assert_eq(&told.collect::<String>());
    let derived = whole::derive(&schema, &catalogue, &Items::from(all)).by_derivation;
    let mirrors = derived.into_iter().flat_map(|(_, parts)| parts).map(|part| match part {
        Derived::Item { key, item } => {
            let held = |name: &&str| item.contains_key(name);
            let held: Vec<&str> = ["tag", "authorId", "createdAt", "text"].into_iter().filter(held).collect();
            format!("{key}: {}\n", held.join(", "))
        }
        other => panic!("{other:?}"),
    });
    expect![[r#"
        Tagged#x / empty: createdAt
        Tagged#x / late: authorId
        Tagged#x / other: authorId, text
        Tagged#x / right: authorId, createdAt
    "#]]
    .assert_eq(&mirrors.collect::<String>());
}

#[test]
fn a_mirror_in_the_place_of_its_source_is_refused() {
    let (post, rest) = TAGGED.split_once("[tables.Tagged]").unwrap();
    let (_, entities) = rest.split_once("[entity.Post]").unwrap();
    let one =
        format!("{}type = \"kind\"\n[entity.Post]{}", post.trim_start(), entities.replace("\"Tagged\"", "\"Post\""));
    refused_whole(
        &one,
        &expect![
            "14:13: derivation.tagged: an item of TaggedPost may have the key of one of Post, and Ripple would replace and delete items of Post: give TaggedPost a key of another form, or a table of its own"
        ],
    );
}

#[test]
fn an_index_that_no_mirror_fits_is_refused() {
    let of_time = "[tables.Post]\npartition-key = \"id\"\nsort-key = \"createdAt\"";
    let by_time = TAGGED.replace("[tables.Post]\npartition-key = \"id\"", of_time);
    let listed = by_time.replace("derived = true", "derived = true\nderived-attributes = [\"Claims\"]");
    refused_whole(
        &listed.replace("\"createdAt\", \"text\"]\n\n[entity.TaggedPost]", "\"text\"]\n\n[entity.TaggedPost]"),
        &expect![
            "24:13: derivation.tagged: the index byAuthor of TaggedPost wants createdAt of type N, and in the key of Post it is of type S"
        ],
    );
}

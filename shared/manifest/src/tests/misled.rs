//! Manifests of people who know DynamoDB but not this language.

use expect_test::{Expect, expect};

use super::refused_whole;
use crate::load;

/// A table for each model.
const MODELS: &str = r#"
[tables.Post]
partition-key = "id"
[tables.Comment]
partition-key = "id"
[tables.Comment.index.byPost]
partition-key = "postId"
[tables.Comment.index.byLikes]
partition-key = "postId"
sort-key = { name = "likeCount", type = "N" }
[tables.Like]
partition-key = "id"
[tables.Like.index.byComment]
partition-key = "commentId"

[entity.Post]
table = "Post"
attributes = ["title"]
derived-attributes = ["commentCount", "stars"]
[entity.Comment]
table = "Comment"
attributes = ["postId", "rating"]
derived-attributes = ["likeCount", "isLiked", "postTitle"]
[entity.Like]
table = "Like"
attributes = ["commentId"]

[derivation.likes]
kind = "count"
from = "Like"
into = "Comment"
link = { id = "commentId" }
shows = { count = "likeCount", exists = "isLiked" }

[derivation.comments]
kind = "count"
from = "Comment"
into = "Post"
link = { id = "postId" }
sum = "rating"
shows = { count = "commentCount", sum = "stars" }

[derivation.title]
kind = "copy"
from = "Post"
to = "Comment"
link = { id = "postId" }
attributes = { title = "postTitle" }
found = { index = "byPost" }

[derivation.comments-of-post]
kind = "cascade"
owner = "Post"
hanging = [{ entity = "Comment", index = "byPost", by = { postId = "id" } }]
"#;

#[track_caller]
fn misled(is: &str, instead: &str, mistake: &Expect) {
    assert_eq!(MODELS.matches(is).count(), 1, "{is} stands there once");
    refused_whole(&MODELS.replacen(is, instead, 1), mistake);
}

#[test]
fn what_is_right_is_taken() {
    load(MODELS).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn sides_and_names_that_are_mistaken_are_told_apart() {
    misled(
        "link = { id = \"commentId\" }",
        "link = { commentId = \"id\" }",
        &expect![[
            r#"32:10: derivation.likes.link.commentId: the sides are swapped: id is of the key of Comment and stands on the left, as in { id = "commentId" }"#
        ]],
    );
    misled(
        "found = { index = \"byPost\" }",
        "found = \"byPost\"",
        &expect![[r#"49:1: derivation.title.found: byPost is an index: write found = { index = "byPost" }"#]],
    );
    misled(
        "found = { index = \"byPost\" }",
        "found = { through = \"Like\", index = \"byComment\", by = { commentId = \"id\" } }",
        &expect![
            "49:1: derivation.title.found: the id of Like is its own, and leads to no Comment: with [tables] a field called id is found through a mirror only"
        ],
    );
    misled(
        "into = \"Comment\"\n",
        "into = \"likeCount\"\n",
        &expect![[
            r#"31:1: derivation.likes.into: there is no entity "likeCount": there are Comment, Like, Post; the target and its attribute are written as in "User.followerCount""#
        ]],
    );
    misled(
        "kind = \"copy\"",
        "kind = \"sum\"",
        &expect![[
            r#"44:1: derivation.title.kind: there is no kind "sum": sum is shown by a count, as in shows = { sum = "…" }"#
        ]],
    );
    misled(
        "kind = \"copy\"",
        "kind = \"max\"",
        &expect![[r#"44:1: derivation.title.kind: there is no kind "max": max is an extreme, as in max = "placedAt""#]],
    );
    misled(
        "[\"commentId\"]",
        "[\"commentId\", \"\"]",
        &expect!["26:28: entity.Like.attributes: contains an empty text: leave it out"],
    );
    misled(
        "partition-key = \"commentId\"",
        "partition-key = \"commentId\"\nsort-key = \"commentId\"",
        &expect!["13:20: tables.Like.index.byComment: has commentId in its key twice"],
    );
}

#[test]
fn what_goes_with_an_owner_goes_once() {
    misled(
        "[derivation.comments-of-post]",
        "[derivation.all-of-post]\nkind = \"cascade\"\nowner = \"Post\"\nhanging = [{ entity = \"Comment\", index = \
         \"byPost\", by = { postId = \"id\" } }]\n[derivation.comments-of-post]",
        &expect![
            "55:13: derivation.comments-of-post: all-of-post deletes the Comment items of a Post already: remove one of the two entries"
        ],
    );
}

#[test]
fn numbers_and_truths_are_not_taken_for_texts() {
    for (condition, wanted) in [
        (
            "rating > '0'",
            expect![
                "41:1: derivation.comments.where: Comment.rating is summed by comments (N), and is compared with a value of type S: values of different types are never equal, so compare it with one of type N"
            ],
        ),
        (
            "rating = true",
            expect![
                "41:1: derivation.comments.where: Comment.rating is summed by comments (N), and is compared with a value of type BOOL: values of different types are never equal, so compare it with one of type N"
            ],
        ),
        (
            "isLiked = 'yes'",
            expect![
                "41:1: derivation.comments.where: Comment.isLiked shows what likes counts (BOOL), and is compared with a value of type S: values of different types are never equal, so compare it with one of type BOOL"
            ],
        ),
        (
            "isLiked = 1",
            expect![
                "41:1: derivation.comments.where: Comment.isLiked shows what likes counts (BOOL), and is compared with a value of type N: values of different types are never equal, so compare it with one of type BOOL"
            ],
        ),
    ] {
        misled("sum = \"rating\"", &format!("sum = \"rating\"\nwhere = \"{condition}\""), &wanted);
    }
    misled(
        "sum = \"rating\"",
        "sum = \"rating\"\nwhere = \"id = 7\"",
        &expect![
            "41:1: derivation.comments.where: Comment.id is in the key (S), and is compared with a value of type N: values of different types are never equal, so compare it with one of type S"
        ],
    );
    misled(
        "{ name = \"likeCount\", type = \"N\" }",
        "\"likeCount\"",
        &expect![[
            r#"28:13: derivation.likes: Comment.likeCount shows what likes counts (N), and the index byLikes has it as type S: declare it there as { name = "likeCount", type = "N" }"#
        ]],
    );
    misled(
        "{ name = \"likeCount\", type = \"N\" }",
        "\"isLiked\"",
        &expect![
            "28:13: derivation.likes: Comment.isLiked shows what likes counts (BOOL), and the index byLikes has it as type S: leave it out of that key"
        ],
    );
    misled(
        "into = \"Post\"\n",
        "into = \"Post.commentCount\"\n",
        &expect![[r#"41:1: derivation.comments.shows: shows and into both name an attribute: write into = "Post""#]],
    );
}

#[test]
fn a_sum_that_nothing_shows_is_refused() {
    let shows = "into = \"Post\"\nlink = { id = \"postId\" }\nsum = \"rating\"\nshows = { count = \"commentCount\", sum = \"stars\" }";
    misled(
        shows,
        "into = \"Post.stars\"\nlink = { id = \"postId\" }\nsum = \"rating\"",
        &expect![[
            r#"40:1: derivation.comments.sum: into = "Post.stars" shows the number of items, and nothing shows the sum: write into = "Post" and shows = { sum = "…" }"#
        ]],
    );
}

#[test]
fn a_cascade_that_would_come_back_to_its_beginning_is_refused() {
    let back = "[derivation.post-of-comment]\nkind = \"cascade\"\nowner = \"Comment\"\nhanging = [{ entity = \"Post\", by = { id = \"id\" } }]\n";
    refused_whole(
        &format!("{MODELS}\n{back}"),
        &expect![
            "51:13: derivation.comments-of-post: it and post-of-comment delete in a circle: each deletes the items that start the other; remove one of the two entries"
        ],
    );
    let tree =
        back.replace("\"Post\", by = { id = \"id\" }", "\"Comment\", index = \"byPost\", by = { postId = \"id\" }");
    load(&format!("{MODELS}\n{tree}")).unwrap_or_else(|error| panic!("a comment may take its answers along: {error}"));
    misled(
        "hanging = [",
        "where = \"title = 'x'\"\nhanging = [",
        &expect![
            "54:1: derivation.comments-of-post.where: a cascade takes no condition: an entry of hanging has only-if, for one attribute"
        ],
    );
}

#[test]
fn a_form_of_a_programming_language_is_none_here() {
    let form = |key: &str| {
        MODELS.replacen(
            "[entity.Like]\ntable = \"Like\"\n",
            &format!("[entity.Like]\ntable = \"Like\"\npartition-key = \"{key}\"\n"),
            1,
        )
    };
    refused_whole(
        &form("LIKE#${likeId}"),
        &expect!["26:1: entity.Like.partition-key: a field is written {name}, without $ before it"],
    );
    refused_whole(
        &form("LIKE#{MAX-likeId}"),
        &expect![
            "26:1: entity.Like.partition-key: key template `LIKE#{MAX-likeId}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits"
        ],
    );
}

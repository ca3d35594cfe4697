//! Samples of the writes of posts and of their readers.

use entities::posts::{Comment, CommentKey, Post, PostKey};
use keys::entity::Entity;

use super::write;
use crate::{
    pattern::{AccessPattern, sample},
    writes::{
        draft::Edit,
        posts::{NewPost, PostEdit},
    },
};

/// The patterns of this file.
pub(super) const PATTERNS: &[AccessPattern] = &[
    write(
        "WP-03",
        "create a post",
        "AuthorId, PostId, NewPost",
        "PostKey; refused: one of the same author, time and ID",
        sample!(|queries| {
            let new = NewPost { title: "{Title}".to_owned(), content: None, is_published: false };
            queries.create_post(&"{AuthorId}".into(), &"{PostId}".into(), new).await?;
        }),
    ),
    write(
        "WP-03",
        "publish a post",
        "PostKey",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.given(post().to_item(&queries.layout)?)?;
            queries.publish_post(&post().key).await?;
        }),
    ),
    write(
        "WP-03",
        "edit a post",
        "PostKey, PostEdit",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.given(post().to_item(&queries.layout)?)?;
            let edit = PostEdit { title: Some("{Title}".to_owned()), content: Edit::Keep };
            queries.edit_post(&post().key, edit).await?;
        }),
    ),
    write(
        "WP-03",
        "archive a post",
        "PostKey",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.given(post().to_item(&queries.layout)?)?;
            queries.archive_post(&post().key).await?;
        }),
    ),
    write(
        "WP-03",
        "delete a post; the cascade D-28 does the rest",
        "PostKey",
        "was it there",
        sample!(|queries| {
            queries.delete_post(&post().key).await?;
        }),
    ),
    write(
        "WP-04",
        "comment on a post",
        "UserId, PostId, CommentId, text",
        "CommentKey; refused: one of the same post, time and ID",
        sample!(|queries| {
            queries.comment(&"{UserId}".into(), &"{PostId}".into(), &"{CommentId}".into(), "{Text}").await?;
        }),
    ),
    write(
        "WP-04",
        "edit a comment",
        "CommentKey, text",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.given(comment().to_item(&queries.layout)?)?;
            queries.edit_comment(&comment().key, "{Text}").await?;
        }),
    ),
    write(
        "WP-04",
        "delete a comment",
        "CommentKey",
        "was it there",
        sample!(|queries| {
            queries.delete_comment(&comment().key).await?;
        }),
    ),
    write(
        "WP-05",
        "like a post",
        "UserId, PostId",
        "was it new",
        sample!(|queries| {
            queries.like(&"{UserId}".into(), &"{PostId}".into()).await?;
        }),
    ),
    write(
        "WP-05",
        "unlike a post",
        "UserId, PostId",
        "was it there",
        sample!(|queries| {
            queries.unlike(&"{UserId}".into(), &"{PostId}".into()).await?;
        }),
    ),
    write(
        "WP-17",
        "record a view of a post",
        "UserId, PostId",
        "ViewKey",
        sample!(|queries| {
            queries.record_view(&"{UserId}".into(), &"{PostId}".into()).await?;
        }),
    ),
];

fn post() -> Post {
    let created_at = "{CreatedAt}".to_owned();
    let key = PostKey { author_id: "{AuthorId}".into(), created_at, post_id: "{PostId}".into() };
    Post { key, ..Post::default() }
}

fn comment() -> Comment {
    let created_at = "{CreatedAt}".to_owned();
    let key = CommentKey { post_id: "{PostId}".into(), created_at, comment_id: "{CommentId}".into() };
    Comment { key, user_id: Some("{UserId}".into()), ..Comment::default() }
}

//! Posts, from draft to archive.
//!
//! A post keeps the time of its creation, because its key contains it. D-04 derives its mirror under the id, with the
//! place among the recent posts.

use entities::{
    ids::{PostId, UserId},
    posts::{Post, PostKey, status},
};
use keys::entity::Entity;
use store::Store;

use super::draft::{Draft, Edit, text};
use crate::{Queries, write_error::WriteError};

/// The attributes of a new post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPost {
    /// Its title.
    pub title: String,
    /// The body, or the URL of a large one.
    pub content: Option<String>,
    /// Publishes the post at once; otherwise it is a draft.
    pub is_published: bool,
}

/// Changes of a post; `None` leaves an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostEdit {
    /// Its title.
    pub title: Option<String>,
    /// The body, or the URL of a large one.
    pub content: Edit<String>,
}

impl<S: Store> Queries<S> {
    /// WP-03: creates a post, as a draft or published. Returns its key, which contains the time.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] for a post of the same author, time and id.
    pub async fn create_post(&self, author: &UserId, post_id: &PostId, new: NewPost) -> Result<PostKey, WriteError> {
        let now = self.now()?;
        let status = if new.is_published { status::PUBLISHED } else { status::DRAFT };
        let post = Post {
            key: PostKey { author_id: author.clone(), created_at: now.clone(), post_id: post_id.clone() },
            title: Some(new.title),
            content: new.content,
            status: Some(status.to_owned()),
            updated_at: Some(now),
        };
        self.create(&post).await?;
        Ok(post.key)
    }

    /// WP-03: publishes a post; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn publish_post(&self, post: &PostKey) -> Result<(), WriteError> {
        self.set_post_status(post, status::PUBLISHED).await
    }

    /// WP-03: edits a post.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn edit_post(&self, post: &PostKey, edit: PostEdit) -> Result<(), WriteError> {
        let draft = Draft::of::<Post>(post)?
            .set_some("Title", edit.title.map(text))
            .edit("Content", edit.content.map(text))
            .set("UpdatedAt", text(self.now()?));
        self.amend(draft).await
    }

    /// WP-03: archives a post; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn archive_post(&self, post: &PostKey) -> Result<(), WriteError> {
        self.set_post_status(post, status::ARCHIVED).await
    }

    /// WP-03: deletes a post; returns false if it does not exist. The cascade D-28 deletes what belongs to it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_post(&self, post: &PostKey) -> Result<bool, WriteError> {
        self.delete(Post::primary_key(post)?).await
    }

    async fn set_post_status(&self, post: &PostKey, status: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Post>(post)?.set("Status", text(status));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }
}

//! Posts, from draft to archive.
//!
//! A post keeps the time of its creation, because its key contains it. D-04 derives its mirror under the id, with the
//! place among the recent posts.

use keys::key::Key;
use store::Store;

use super::draft::{Draft, Edit, text, texts};
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
    pub async fn create_post(&self, author_id: &str, post_id: &str, new: NewPost) -> Result<Key, WriteError> {
        let status = if new.is_published { "published" } else { "draft" };
        let values = texts([("AuthorId", author_id), ("PostId", post_id), ("Title", &new.title), ("Status", status)]);
        let content = new.content.map(|content| ("Content", text(content)));
        self.create("Post", &self.now()?, values.chain(content)).await
    }

    /// WP-03: publishes a post; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn publish_post(&self, post: &Key) -> Result<(), WriteError> {
        self.set_post_status(post, "published").await
    }

    /// WP-03: edits a post.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn edit_post(&self, post: &Key, edit: PostEdit) -> Result<(), WriteError> {
        let draft = Draft::of(self.of("Post", post)?, &self.now()?);
        let draft = draft.set_some("Title", edit.title.map(text)).edit("Content", edit.content.map(text));
        self.amend(draft).await
    }

    /// WP-03: archives a post; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn archive_post(&self, post: &Key) -> Result<(), WriteError> {
        self.set_post_status(post, "archived").await
    }

    /// WP-03: deletes a post; returns false if it does not exist. The cascade D-28 deletes what belongs to it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_post(&self, post: &Key) -> Result<bool, WriteError> {
        self.delete(self.of("Post", post)?).await
    }

    async fn set_post_status(&self, post: &Key, status: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.of("Post", post)?, &self.now()?);
        self.amend(draft.set("Status", text(status))).await
    }
}

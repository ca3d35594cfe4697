//! Posts, from draft to archive; and their comments, likes and views.
//!
//! A post keeps the time of its creation, because its key contains it. D-04 derives its mirror under the id, with the
//! place among the recent posts.
//!
//! The transaction of a comment does not check the post: its key contains the author and the time, which the caller need
//! not know, and its mirror under the id alone may be late.

use keys::key::Key;
use store::Store;

use crate::{
    Queries,
    write_error::WriteError,
    writes::{
        draft::{Draft, Edit, number, text, texts},
        time_text,
    },
};

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

impl<S: Store> Queries<S> {
    /// WP-04: comments on a post. Returns the comment's key, which contains the time.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] for a comment of the same post, time and id.
    pub async fn comment(&self, user_id: &str, post_id: &str, comment_id: &str, says: &str) -> Result<Key, WriteError> {
        let values = [("UserId", user_id), ("PostId", post_id), ("CommentId", comment_id), ("Text", says)];
        self.create("Comment", &self.now()?, texts(values)).await
    }

    /// WP-04: edits a comment.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn edit_comment(&self, comment: &Key, says: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.of("Comment", comment)?, &self.now()?);
        self.amend(draft.set("Text", text(says))).await
    }

    /// WP-04: deletes a comment; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_comment(&self, comment: &Key) -> Result<bool, WriteError> {
        self.delete(self.of("Comment", comment)?).await
    }
}

/// Lifetime of a view before DynamoDB may remove it, in seconds: ninety days.
pub const VIEW_SECONDS: u64 = 90 * 86_400;

impl<S: Store> Queries<S> {
    /// WP-05: a user likes a post. A second time changes nothing; returns true if they did not before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn like(&self, user_id: &str, post_id: &str) -> Result<bool, WriteError> {
        let values = texts([("UserId", user_id), ("PostId", post_id)]);
        self.send(self.creation("Like", &self.now()?, values)?).await
    }

    /// WP-05: a user likes a post no more. A second time changes nothing; returns true if they did before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unlike(&self, user_id: &str, post_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Like", [("UserId", user_id), ("PostId", post_id)])?).await
    }

    /// WP-17: a user views a post. Returns the view's key, which contains the time. DynamoDB removes the view
    /// [`VIEW_SECONDS`] later, or somewhat after that.
    ///
    /// Two views of one post in one millisecond are one item, so no condition is necessary.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn record_view(&self, user_id: &str, post_id: &str) -> Result<Key, WriteError> {
        let now_ms = self.now_ms();
        let now = time_text(now_ms)?;
        let expires_at = i64::try_from(now_ms / 1_000 + VIEW_SECONDS).ok().map(|at| ("ExpiresAt", number(at)));
        let values = texts([("UserId", user_id), ("PostId", post_id), ("ViewedAt", &now)]).chain(expires_at);
        let put = self.putting("View", &now, values, Vec::new())?;
        let key = put.key.clone();
        self.send(put).await?;
        Ok(key)
    }
}

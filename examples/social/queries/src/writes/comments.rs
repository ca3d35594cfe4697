//! Comments on posts.
//!
//! The transaction does not check the post: its key contains the author and the time, which the caller need not know,
//! and its mirror under the id alone may be late.

use keys::key::Key;
use store::Store;

use super::draft::{Draft, text, texts};
use crate::{Queries, write_error::WriteError};

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

//! Comments on posts.
//!
//! The transaction does not check the post: its key contains the author and the time, which the caller need not know,
//! and its mirror under the id alone may be late.

use entities::{
    ids::{CommentId, PostId, UserId},
    posts::{Comment, CommentKey},
};
use keys::entity::Entity;
use store::Store;

use super::draft::{Draft, text};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-04: comments on a post. Returns the comment's key, which contains the time.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] for a comment of the same post, time and id.
    pub async fn comment(
        &self,
        user_id: &UserId,
        post_id: &PostId,
        comment_id: &CommentId,
        says: &str,
    ) -> Result<CommentKey, WriteError> {
        let now = self.now()?;
        let comment = Comment {
            key: CommentKey { post_id: post_id.clone(), created_at: now.clone(), comment_id: comment_id.clone() },
            user_id: Some(user_id.clone()),
            text: Some(says.to_owned()),
            updated_at: Some(now),
            ..Comment::default()
        };
        self.create(&comment).await?;
        Ok(comment.key)
    }

    /// WP-04: edits a comment.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn edit_comment(&self, comment: &CommentKey, says: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Comment>(comment)?.set("Text", text(says));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-04: deletes a comment; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_comment(&self, comment: &CommentKey) -> Result<bool, WriteError> {
        self.delete(Comment::primary_key(comment)?).await
    }
}

//! Likes and views: what a reader does with a post.

use keys::key::Key;
use store::Store;

use super::draft::{number, texts};
use crate::{Queries, write_error::WriteError};

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
        let now = super::time::text(now_ms)?;
        let expires_at = i64::try_from(now_ms / 1_000 + VIEW_SECONDS).ok().map(|at| ("ExpiresAt", number(at)));
        let values = texts([("UserId", user_id), ("PostId", post_id), ("ViewedAt", &now)]).chain(expires_at);
        let put = self.putting("View", &now, values, Vec::new())?;
        let key = put.key.clone();
        self.send(put).await?;
        Ok(key)
    }
}

//! Likes and views: what a reader does with a post.

use derive::write::Action;
use entities::{
    ids::{PostId, UserId},
    posts::{Like, LikeKey, View, ViewKey},
};
use keys::entity::Entity;
use store::Store;

use super::draft::write;
use crate::{Queries, write_error::WriteError};

/// Lifetime of a view before DynamoDB may remove it, in seconds: ninety days.
pub const VIEW_SECONDS: u64 = 90 * 86_400;

impl<S: Store> Queries<S> {
    /// WP-05: a user likes a post. A second time changes nothing; returns true if they did not before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn like(&self, user_id: &UserId, post_id: &PostId) -> Result<bool, WriteError> {
        let now = self.now()?;
        let like = Like {
            key: LikeKey { user_id: user_id.clone(), post_id: post_id.clone() },
            created_at: Some(now.clone()),
            updated_at: Some(now),
        };
        self.send(self.creation(&like)?).await
    }

    /// WP-05: a user likes a post no more. A second time changes nothing; returns true if they did before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unlike(&self, user_id: &UserId, post_id: &PostId) -> Result<bool, WriteError> {
        let key = LikeKey { user_id: user_id.clone(), post_id: post_id.clone() };
        self.delete(Like::primary_key(&key)?).await
    }

    /// WP-17: a user views a post. Returns the view's key, which contains the time. DynamoDB removes the view
    /// [`VIEW_SECONDS`] later, or somewhat after that.
    ///
    /// Two views of one post in one millisecond are one item, so no condition is necessary.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn record_view(&self, user_id: &UserId, post_id: &PostId) -> Result<ViewKey, WriteError> {
        let now_ms = self.now_ms();
        let now = super::time::text(now_ms)?;
        let expires_at = i64::try_from(now_ms / 1_000 + VIEW_SECONDS).ok();
        let view = View {
            key: ViewKey { user_id: user_id.clone(), viewed_at: now.clone(), post_id: post_id.clone() },
            expires_at,
            created_at: Some(now.clone()),
            updated_at: Some(now),
        };
        let put = Action::Put(view.to_item(&self.layout)?);
        self.send(write(View::primary_key(&view.key)?, put, Vec::new())).await?;
        Ok(view.key)
    }
}

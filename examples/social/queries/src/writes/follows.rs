//! Follows.

use entities::{
    ids::UserId,
    people::{Follow, FollowKey},
};
use keys::entity::Entity;
use store::Store;

use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-06: a user follows another. A second time changes nothing; returns true if they did not before.
    ///
    /// # Errors
    ///
    /// [`WriteError::SelfFollow`].
    pub async fn follow(&self, follower_id: &UserId, followee_id: &UserId) -> Result<bool, WriteError> {
        if follower_id == followee_id {
            return Err(WriteError::SelfFollow { user_id: follower_id.clone() });
        }
        let now = self.now()?;
        let follow = Follow {
            key: FollowKey { follower_id: follower_id.clone(), followee_id: followee_id.clone() },
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Follow::default()
        };
        self.send(self.creation(&follow)?).await
    }

    /// WP-06: a user follows another no more. A second time changes nothing; returns true if they did before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unfollow(&self, follower_id: &UserId, followee_id: &UserId) -> Result<bool, WriteError> {
        let key = FollowKey { follower_id: follower_id.clone(), followee_id: followee_id.clone() };
        self.delete(Follow::primary_key(&key)?).await
    }
}

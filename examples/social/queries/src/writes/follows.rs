//! Follows.

use store::Store;

use super::draft::texts;
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-06: a user follows another. A second time changes nothing; returns true if they did not before.
    ///
    /// # Errors
    ///
    /// [`WriteError::SelfFollow`].
    pub async fn follow(&self, follower_id: &str, followee_id: &str) -> Result<bool, WriteError> {
        if follower_id == followee_id {
            return Err(WriteError::SelfFollow { user_id: follower_id.to_owned() });
        }
        let values = texts([("FollowerId", follower_id), ("FolloweeId", followee_id)]);
        self.send(self.creation("Follow", &self.now()?, values)?).await
    }

    /// WP-06: a user follows another no more. A second time changes nothing; returns true if they did before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unfollow(&self, follower_id: &str, followee_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Follow", [("FollowerId", follower_id), ("FolloweeId", followee_id)])?).await
    }
}

//! Groups and their members.

use keys::key::Key;
use store::Store;

use super::draft::{Draft, text, texts};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-07: a user joins a group, in a role.
    ///
    /// The group is not checked: without one, the membership has no `GroupName`.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user is a member already.
    pub async fn join_group(&self, user_id: &str, group_id: &str, role: &str) -> Result<(), WriteError> {
        let now = self.now()?;
        let values = [("UserId", user_id), ("GroupId", group_id), ("Role", role), ("JoinedAt", &now)];
        self.create("Membership", &now, texts(values)).await.map(drop)
    }

    /// WP-07: changes the role of a user in a group.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] if the user is no member.
    pub async fn change_role(&self, user_id: &str, group_id: &str, role: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.membership(user_id, group_id)?, &self.now()?);
        self.amend(draft.set("Role", text(role))).await
    }

    /// WP-07: a user leaves a group; returns false if the user was no member.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn leave_group(&self, user_id: &str, group_id: &str) -> Result<bool, WriteError> {
        self.delete(self.membership(user_id, group_id)?).await
    }

    fn membership(&self, user_id: &str, group_id: &str) -> Result<Key, WriteError> {
        self.key("Membership", [("UserId", user_id), ("GroupId", group_id)])
    }

    /// WP-13: creates a group.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn create_group(&self, group_id: &str, name: &str, description: Option<&str>) -> Result<(), WriteError> {
        let values = [("GroupId", group_id), ("Name", name)].into_iter();
        let values = texts(values.chain(description.map(|text| ("Description", text))));
        self.create("Group", &self.now()?, values).await.map(drop)
    }

    /// WP-13: renames a group. D-14 derives the copies of its name.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_group(&self, group_id: &str, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.key("Group", [("GroupId", group_id)])?, &self.now()?);
        self.amend(draft.set("Name", text(name))).await
    }

    /// WP-13: deletes a group; returns false if it does not exist. The memberships stay, without its name.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_group(&self, group_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Group", [("GroupId", group_id)])?).await
    }
}

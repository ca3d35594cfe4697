//! Groups and their members.

use entities::{
    groups::{Group, GroupKey, Membership, MembershipKey},
    ids::{GroupId, UserId},
};
use keys::entity::Entity;
use store::Store;

use super::draft::{Draft, text};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-07: a user joins a group, in a role.
    ///
    /// The group is not checked: without one, the membership has no `GroupName`.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user is a member already.
    pub async fn join_group(&self, user_id: &UserId, group_id: &GroupId, role: &str) -> Result<(), WriteError> {
        let now = self.now()?;
        let membership = Membership {
            key: MembershipKey { user_id: user_id.clone(), group_id: group_id.clone() },
            role: Some(role.to_owned()),
            joined_at: Some(now.clone()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Membership::default()
        };
        self.create(&membership).await
    }

    /// WP-07: changes the role of a user in a group.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] if the user is no member.
    pub async fn change_role(&self, user_id: &UserId, group_id: &GroupId, role: &str) -> Result<(), WriteError> {
        let key = MembershipKey { user_id: user_id.clone(), group_id: group_id.clone() };
        let draft = Draft::of::<Membership>(&key)?.set("Role", text(role));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-07: a user leaves a group; returns false if the user was no member.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn leave_group(&self, user_id: &UserId, group_id: &GroupId) -> Result<bool, WriteError> {
        let key = MembershipKey { user_id: user_id.clone(), group_id: group_id.clone() };
        self.delete(Membership::primary_key(&key)?).await
    }

    /// WP-13: creates a group.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn create_group(
        &self,
        group_id: &GroupId,
        name: &str,
        description: Option<&str>,
    ) -> Result<(), WriteError> {
        let now = self.now()?;
        let group = Group {
            key: GroupKey { group_id: group_id.clone() },
            name: Some(name.to_owned()),
            description: description.map(str::to_owned),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Group::default()
        };
        self.create(&group).await
    }

    /// WP-13: renames a group. D-14 derives the copies of its name.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_group(&self, group_id: &GroupId, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Group>(&GroupKey { group_id: group_id.clone() })?.set("Name", text(name));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-13: deletes a group; returns false if it does not exist. The memberships stay, without its name.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_group(&self, group_id: &GroupId) -> Result<bool, WriteError> {
        self.delete(Group::primary_key(&GroupKey { group_id: group_id.clone() })?).await
    }
}

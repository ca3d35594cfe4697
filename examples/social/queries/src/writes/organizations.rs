//! Organizations with their teams and members.

use keys::key::Key;
use store::Store;

use super::draft::{Draft, text, texts};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-14: creates an organization.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn create_organization(&self, org_id: &str, name: &str) -> Result<(), WriteError> {
        self.create("Organization", &self.now()?, texts([("OrgId", org_id), ("Name", name)])).await.map(drop)
    }

    /// WP-14: renames an organization. D-17 derives the copies of its name.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_organization(&self, org_id: &str, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.key("Organization", [("OrgId", org_id)])?, &self.now()?);
        self.amend(draft.set("Name", text(name))).await
    }

    /// WP-14: adds a team.
    ///
    /// The caller must make a team's id unique over all organizations: only an existing team of the same organization
    /// is refused.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn add_team(&self, org_id: &str, team_id: &str, name: &str) -> Result<(), WriteError> {
        let values = texts([("OrgId", org_id), ("TeamId", team_id), ("Name", name)]);
        self.create("Team", &self.now()?, values).await.map(drop)
    }

    /// WP-14: renames a team.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_team(&self, org_id: &str, team_id: &str, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.team(org_id, team_id)?, &self.now()?);
        self.amend(draft.set("Name", text(name))).await
    }

    /// WP-14: removes a team; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn remove_team(&self, org_id: &str, team_id: &str) -> Result<bool, WriteError> {
        self.delete(self.team(org_id, team_id)?).await
    }

    fn team(&self, org_id: &str, team_id: &str) -> Result<Key, WriteError> {
        self.key("Team", [("OrgId", org_id), ("TeamId", team_id)])
    }

    /// WP-14: adds a member, in a role.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user is a member already.
    pub async fn add_member(&self, org_id: &str, user_id: &str, role: &str) -> Result<(), WriteError> {
        let values = texts([("OrgId", org_id), ("UserId", user_id), ("Role", role)]);
        self.create("Member", &self.now()?, values).await.map(drop)
    }

    /// WP-14: changes a member's role.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] if the user is no member.
    pub async fn change_member(&self, org_id: &str, user_id: &str, role: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.member(org_id, user_id)?, &self.now()?);
        self.amend(draft.set("Role", text(role))).await
    }

    /// WP-14: removes a member; returns false if the user was no member.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn remove_member(&self, org_id: &str, user_id: &str) -> Result<bool, WriteError> {
        self.delete(self.member(org_id, user_id)?).await
    }

    fn member(&self, org_id: &str, user_id: &str) -> Result<Key, WriteError> {
        self.key("Member", [("OrgId", org_id), ("UserId", user_id)])
    }
}

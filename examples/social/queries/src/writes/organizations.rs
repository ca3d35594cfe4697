//! Organizations with their teams and members.

use entities::{
    ids::{OrgId, TeamId, UserId},
    organizations::{Member, MemberKey, Organization, OrganizationKey, Team, TeamKey},
};
use keys::entity::Entity;
use store::Store;

use super::draft::{Draft, text};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-14: creates an organization.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn create_organization(&self, org_id: &OrgId, name: &str) -> Result<(), WriteError> {
        let now = self.now()?;
        let organization = Organization {
            key: OrganizationKey { org_id: org_id.clone() },
            name: Some(name.to_owned()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Organization::default()
        };
        self.create(&organization).await
    }

    /// WP-14: renames an organization. D-17 derives the copies of its name.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_organization(&self, org_id: &OrgId, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Organization>(&OrganizationKey { org_id: org_id.clone() })?.set("Name", text(name));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-14: adds a team.
    ///
    /// The caller must make a team's id unique over all organizations: only an existing team of the same organization
    /// is refused.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`].
    pub async fn add_team(&self, org_id: &OrgId, team_id: &TeamId, name: &str) -> Result<(), WriteError> {
        let now = self.now()?;
        let team = Team {
            key: TeamKey { org_id: org_id.clone(), team_id: team_id.clone() },
            name: Some(name.to_owned()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
        };
        self.create(&team).await
    }

    /// WP-14: renames a team.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_team(&self, org_id: &OrgId, team_id: &TeamId, name: &str) -> Result<(), WriteError> {
        let key = TeamKey { org_id: org_id.clone(), team_id: team_id.clone() };
        let draft = Draft::of::<Team>(&key)?.set("Name", text(name));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-14: removes a team; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn remove_team(&self, org_id: &OrgId, team_id: &TeamId) -> Result<bool, WriteError> {
        self.delete(Team::primary_key(&TeamKey { org_id: org_id.clone(), team_id: team_id.clone() })?).await
    }

    /// WP-14: adds a member, in a role.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user is a member already.
    pub async fn add_member(&self, org_id: &OrgId, user_id: &UserId, role: &str) -> Result<(), WriteError> {
        let now = self.now()?;
        let member = Member {
            key: MemberKey { org_id: org_id.clone(), user_id: user_id.clone() },
            role: Some(role.to_owned()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Member::default()
        };
        self.create(&member).await
    }

    /// WP-14: changes a member's role.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] if the user is no member.
    pub async fn change_member(&self, org_id: &OrgId, user_id: &UserId, role: &str) -> Result<(), WriteError> {
        let key = MemberKey { org_id: org_id.clone(), user_id: user_id.clone() };
        let draft = Draft::of::<Member>(&key)?.set("Role", text(role));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-14: removes a member; returns false if the user was no member.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn remove_member(&self, org_id: &OrgId, user_id: &UserId) -> Result<bool, WriteError> {
        self.delete(Member::primary_key(&MemberKey { org_id: org_id.clone(), user_id: user_id.clone() })?).await
    }
}

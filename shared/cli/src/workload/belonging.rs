//! What the application does with groups and organizations.

use entities::{
    groups::{Group, GroupKey, Membership, MembershipKey},
    ids::{EmployeeId, GroupId, OrgId, TeamId},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, Organization, OrganizationKey, Team, TeamKey,
    },
};
use keys::entity::Entity;
use rand::Rng as _;

use super::{
    Application,
    actions::{Acted, delete, put, text},
};

impl Application {
    pub(super) fn join_group(&mut self) -> Acted {
        let group = self.chance.random_range(0..=self.n_groups);
        let user_id = self.any_user();
        self.memberships.push((user_id.clone(), group));
        let role = if self.chance.random_ratio(1, 5) { "admin" } else { "member" };
        let membership = Membership {
            key: MembershipKey { user_id, group_id: group_id(group) },
            role: Some(role.to_owned()),
            joined_at: Some(self.now()),
            updated_at: Some(self.now()),
            ..Membership::default()
        };
        Ok(vec![put(&membership)?])
    }

    pub(super) fn leave_group(&mut self) -> Acted {
        match self.any(|app| &app.memberships) {
            None => self.join_group(),
            Some((user_id, group)) => {
                Ok(vec![delete::<Membership>(&MembershipKey { user_id, group_id: group_id(group) })?])
            }
        }
    }

    /// Makes a group, or renames one.
    pub(super) fn name_group(&mut self) -> Acted {
        if self.n_groups < 3 || self.chance.random_ratio(1, 3) {
            self.n_groups += 1;
        }
        let group = Group {
            key: GroupKey { group_id: group_id(self.chance.random_range(0..self.n_groups)) },
            name: Some(format!("Group {}", self.n_actions)),
            updated_at: Some(self.now()),
            ..Group::default()
        };
        Ok(vec![put(&group)?])
    }

    pub(super) fn found_organization(&mut self) -> Acted {
        let org_id = OrgId::from(format!("o{}", self.orgs.len()));
        self.orgs.push((org_id.clone(), 0));
        let user_id = self.any_user();
        let (created_at, updated_at) = (Some(self.now()), Some(self.now()));
        let organization = Organization {
            key: OrganizationKey { org_id: org_id.clone() },
            name: Some(format!("Organization {}", self.n_actions)),
            created_at: created_at.clone(),
            updated_at: updated_at.clone(),
            ..Organization::default()
        };
        let team = Team {
            key: TeamKey { org_id: org_id.clone(), team_id: TeamId::from(format!("t{}", self.n_actions)) },
            name: Some("First team".to_owned()),
            created_at: created_at.clone(),
            updated_at: updated_at.clone(),
        };
        let member = Member {
            key: MemberKey { org_id, user_id },
            role: Some("owner".to_owned()),
            created_at,
            updated_at,
            ..Member::default()
        };
        Ok(vec![put(&member)?, put(&team)?, put(&organization)?])
    }

    /// Somebody becomes a member of an organization and works for it.
    pub(super) fn hire(&mut self) -> Acted {
        let Some((org_id, n_hired)) = self.any(|app| &app.orgs) else { return self.found_organization() };
        self.orgs.iter_mut().filter(|(org, _)| *org == org_id).for_each(|(_, n_hired)| *n_hired += 1);
        let id = |n: u32| EmployeeId::from(format!("{}-e{n}", org_id.as_str()));
        let path = if n_hired == 0 { vec![id(0)] } else { vec![id(0), id(n_hired)] };
        let employee = Employee {
            key: EmployeeKey { org_id: org_id.clone(), path: EmployeePath::new(path) },
            name: Some(format!("Employee {n_hired}")),
            manager_id: (n_hired > 0).then(|| id(0)),
            created_at: Some(self.now()),
            updated_at: Some(self.now()),
        };
        let member = Member {
            key: MemberKey { org_id, user_id: self.any_user() },
            role: Some("staff".to_owned()),
            updated_at: Some(self.now()),
            ..Member::default()
        };
        Ok(vec![put(&employee)?, put(&member)?])
    }

    pub(super) fn name_organization(&mut self) -> Acted {
        let Some((org_id, _)) = self.any(|app| &app.orgs) else { return self.found_organization() };
        let key = Organization::primary_key(&OrganizationKey { org_id })?;
        Ok(vec![self.update(key, vec![text("Name", format!("Organization {}", self.n_actions))], Vec::new())])
    }
}

fn group_id(at: u32) -> GroupId {
    GroupId::from(format!("g{at}"))
}

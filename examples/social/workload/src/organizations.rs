//! Organizations, their teams and members, and who reports to whom.

use entities::ids::{EmployeeId, OrgId, TeamId, UserId};
use queries::{Queries, write_error::WriteError};
use rand::Rng as _;
use store::Store;

use super::Application;

/// Actions on organizations.
#[derive(Clone, Debug)]
pub enum Organizations {
    Create(OrgId, String),
    Rename(OrgId, String),
    AddTeam(OrgId, TeamId, String),
    RenameTeam(OrgId, TeamId, String),
    RemoveTeam(OrgId, TeamId),
    AddMember(OrgId, UserId, &'static str),
    ChangeMember(OrgId, UserId, &'static str),
    RemoveMember(OrgId, UserId),
    Hire(OrgId, EmployeeId, String, Option<EmployeeId>),
    Move(OrgId, EmployeeId, Option<EmployeeId>),
    Dismiss(OrgId, EmployeeId),
}

impl Application {
    /// The next action; the numbers are of 90.
    pub(super) fn of_organizations(&mut self) -> (String, Organizations) {
        let Some(org_id) = self.any(|app| &app.orgs) else { return self.found_organization() };
        let subject = org_id.as_str().to_owned();
        match self.chance.random_range(0..90) {
            0..=7 => self.found_organization(),
            8..=15 => {
                let name = format!("Organization {}, renamed", self.n_actions);
                (subject, Organizations::Rename(org_id, name))
            }
            16..=27 => self.of_teams(org_id),
            28..=51 => self.of_members(org_id),
            _ => self.of_employees(org_id),
        }
    }

    fn found_organization(&mut self) -> (String, Organizations) {
        let org_id = OrgId::from(self.new_id("o"));
        self.orgs.push(org_id.clone());
        organizations(Organizations::Create(org_id, format!("Organization {}", self.n_actions)))
    }

    fn of_teams(&mut self, org_id: OrgId) -> (String, Organizations) {
        let name = format!("Team {}", self.n_actions);
        let team = if self.happens(1, 2) { self.any(|app| &app.teams) } else { None };
        organizations(match team {
            None => {
                let team_id = TeamId::from(self.new_id("t"));
                self.teams.push((org_id.clone(), team_id.clone()));
                Organizations::AddTeam(org_id, team_id, name)
            }
            Some((org_id, team_id)) if self.happens(1, 2) => Organizations::RenameTeam(org_id, team_id, name),
            Some((org_id, team_id)) => Organizations::RemoveTeam(org_id, team_id),
        })
    }

    fn of_members(&mut self, org_id: OrgId) -> (String, Organizations) {
        let role = self.role();
        let member = if self.happens(1, 2) { self.any(|app| &app.members) } else { None };
        organizations(match member {
            None => {
                let user_id = self.any_user();
                self.members.push((org_id.clone(), user_id.clone()));
                Organizations::AddMember(org_id, user_id, role)
            }
            Some((org_id, user_id)) if self.happens(1, 2) => Organizations::ChangeMember(org_id, user_id, role),
            Some((org_id, user_id)) => Organizations::RemoveMember(org_id, user_id),
        })
    }

    fn of_employees(&mut self, org_id: OrgId) -> (String, Organizations) {
        let n = self.chance.random_range(0..10);
        let Some((org, employee_id)) = self.any(|app| &app.employees).filter(|_| n >= 5) else {
            return self.hire(org_id);
        };
        if n <= 7 {
            let manager = self.colleague(&org);
            return organizations(Organizations::Move(org, employee_id, manager));
        }
        organizations(Organizations::Dismiss(org, employee_id))
    }

    fn hire(&mut self, org_id: OrgId) -> (String, Organizations) {
        let employee_id = EmployeeId::from(self.new_id("e"));
        let manager = self.colleague(&org_id);
        self.employees.push((org_id.clone(), employee_id.clone()));
        let name = format!("Employee {}", self.n_actions);
        organizations(Organizations::Hire(org_id, employee_id, name, manager))
    }

    /// A random employee as manager; sometimes none.
    fn colleague(&mut self, org_id: &OrgId) -> Option<EmployeeId> {
        let there: Vec<EmployeeId> =
            self.employees.iter().filter(|(org, _)| org == org_id).map(|(_, employee)| employee.clone()).collect();
        if there.is_empty() || self.happens(1, 8) {
            return None;
        }
        let at = self.chance.random_range(0..there.len());
        there.get(at).cloned()
    }
}

/// An organization is one subject, because a manager comes before those who report to them.
fn organizations(act: Organizations) -> (String, Organizations) {
    (act.org_id().as_str().to_owned(), act)
}

impl Organizations {
    fn org_id(&self) -> &OrgId {
        match self {
            Self::Create(org_id, _)
            | Self::Rename(org_id, _)
            | Self::AddTeam(org_id, ..)
            | Self::RenameTeam(org_id, ..)
            | Self::RemoveTeam(org_id, _)
            | Self::AddMember(org_id, ..)
            | Self::ChangeMember(org_id, ..)
            | Self::RemoveMember(org_id, _)
            | Self::Hire(org_id, ..)
            | Self::Move(org_id, ..)
            | Self::Dismiss(org_id, _) => org_id,
        }
    }

    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), WriteError> {
        match self {
            Self::Create(org_id, name) => queries.create_organization(&org_id, &name).await,
            Self::Rename(org_id, name) => queries.rename_organization(&org_id, &name).await,
            Self::AddTeam(org_id, team_id, name) => queries.add_team(&org_id, &team_id, &name).await,
            Self::RenameTeam(org_id, team_id, name) => queries.rename_team(&org_id, &team_id, &name).await,
            Self::RemoveTeam(org_id, team_id) => queries.remove_team(&org_id, &team_id).await.map(drop),
            Self::AddMember(org_id, user_id, role) => queries.add_member(&org_id, &user_id, role).await,
            Self::ChangeMember(org_id, user_id, role) => queries.change_member(&org_id, &user_id, role).await,
            Self::RemoveMember(org_id, user_id) => queries.remove_member(&org_id, &user_id).await.map(drop),
            Self::Hire(org_id, employee_id, name, manager) => {
                queries.hire(&org_id, &employee_id, &name, manager.as_ref()).await.map(drop)
            }
            Self::Move(org_id, employee_id, manager) => {
                queries.move_employee(&org_id, &employee_id, manager.as_ref()).await
            }
            Self::Dismiss(org_id, employee_id) => queries.dismiss(&org_id, &employee_id).await,
        }
    }
}

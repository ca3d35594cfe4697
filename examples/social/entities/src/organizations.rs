//! Organizations with their teams, members and employees.

use keys::{escape, key_template::KeyField, path::Path};

use crate::{
    claim::Claim,
    ids::{EmployeeId, OrgId, TeamId, UserId},
};

keys::entity! {
    /// An organization.
    ground Organization "E-12" {
        key OrganizationKey("ORG#{OrgId}", "METADATA") {
            /// The organization.
            org_id: OrgId = "OrgId",
        }
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// When it was founded, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display: number of teams; absent for 0.
            team_count: Option<i64> = "TeamCount",
            /// Display: number of members; absent for 0.
            member_count: Option<i64> = "MemberCount",
            /// Display: number of employees; absent for 0.
            employee_count: Option<i64> = "EmployeeCount",
        }
    }
}

keys::entity! {
    /// A team of an organization.
    ground Team "E-13" {
        key TeamKey("ORG#{OrgId}", "TEAM#{TeamId}") {
            /// The organization.
            org_id: OrgId = "OrgId",
            /// The team.
            team_id: TeamId = "TeamId",
        }
        index "GSI1" ("TEAM#{TeamId}", "TEAM");
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// When it was formed, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// The membership of a user in an organization.
    ground Member "E-14" {
        key MemberKey("ORG#{OrgId}", "MEMBER#{UserId}") {
            /// The organization.
            org_id: OrgId = "OrgId",
            /// The user.
            user_id: UserId = "UserId",
        }
        index "GSI1" ("USER#{UserId}", "MEMBER#ORG#{OrgId}");
        attributes {
            /// The member's permissions.
            role: Option<String> = "Role",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the user's name; absent while the user does not exist.
            user_name: Option<String> = "UserName",
            /// Copy of the organization's name; absent while the organization does not exist.
            org_name: Option<String> = "OrgName",
        }
    }
}

keys::entity! {
    /// An employee of an organization.
    ground Employee "E-15" {
        key EmployeeKey("ORG#{OrgId}", "EMPLOYEE#{EmployeeId}") {
            /// The organization.
            org_id: OrgId = "OrgId",
            /// The employee.
            employee_id: EmployeeId = "EmployeeId",
        }
        index "GSI1" ("EMP#{EmployeeId}", "EMP");
        index "GSI2" ("MANAGER#{ManagerId}", "EMP#{EmployeeId}") only with "ManagerId";
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// The manager, in the same organization; absent at the top.
            manager_id: Option<EmployeeId> = "ManagerId",
            /// When the employee was hired, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Ids from the top down to this employee, each after a `/`; absent if the line of managers does not reach
            /// the top.
            path: Option<String> = "Path",
        }
    }
}

keys::entity! {
    /// The mirror of an [`Employee`] under their path, so that one query finds everybody below a manager.
    derived OrgChart "E-31" {
        key OrgChartKey("ORG#{OrgId}", "EMP#{Path/}") {
            /// The organization.
            org_id: OrgId = "OrgId",
            /// The employee's path, which ends in their own id.
            path: EmployeePath = "Path",
        }
        attributes {
            /// The employee's id, from the employee's key.
            employee_id: Option<EmployeeId> = "EmployeeId",
            /// From the employee.
            name: Option<String> = "Name",
            /// From the employee.
            manager_id: Option<EmployeeId> = "ManagerId",
            /// From the employee.
            created_at: Option<String> = "CreatedAt",
            /// From the employee.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of all employees with this path; the mirror repeats the greatest that exists.
            claims: Option<Vec<Claim>> = "Claims",
        }
    }
}

/// An employee's path: the ids from the top down to their own, such as `/ceo/vp/engineer` in the key.
///
/// A path without ids, or with an empty id, is nobody's; a key with it is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmployeePath(Vec<EmployeeId>);

impl EmployeePath {
    /// A path of these ids, from the top down; the last is the employee's own.
    #[must_use]
    pub fn new(ids: Vec<EmployeeId>) -> Self {
        Self(ids)
    }

    /// The ids from the top down.
    #[must_use]
    pub fn ids(&self) -> &[EmployeeId] {
        &self.0
    }

    /// The employee with this path.
    #[must_use]
    pub fn employee(&self) -> Option<&EmployeeId> {
        self.0.last()
    }

    /// The manager of that employee; `None` at the top.
    #[must_use]
    pub fn manager(&self) -> Option<&EmployeeId> {
        self.0.iter().rev().nth(1)
    }

    /// Number of ids: 1 at the top.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.len()
    }
}

impl KeyField for EmployeePath {
    fn to_text(&self) -> String {
        self.0.iter().flat_map(|id| ["/".to_owned(), escape::segment(id.as_str())]).collect()
    }

    fn from_text(text: &str) -> Option<Self> {
        let path: Path = text.parse().ok()?;
        Some(Self(path.segments().iter().map(EmployeeId::from).collect()))
    }
}

#[cfg(test)]
mod tests {
    use keys::entity::Entity;

    use super::*;

    fn place(ids: &[&str]) -> EmployeePath {
        EmployeePath::new(ids.iter().copied().map(EmployeeId::from).collect())
    }

    fn refusal(ids: &[&str]) -> String {
        let key = OrgChartKey { org_id: OrgId::from("acme"), path: place(ids) };
        OrgChart::primary_key(&key).unwrap_err().to_string()
    }

    #[test]
    fn path_manager_and_depth_are_read_from_the_key() {
        let path = EmployeePath::from_text("/ceo/vp%2Feast/eng").unwrap();
        assert_eq!(path, place(&["ceo", "vp/east", "eng"]));
        assert_eq!(path.employee(), Some(&EmployeeId::from("eng")));
        assert_eq!(path.manager(), Some(&EmployeeId::from("vp/east")));
        assert_eq!(path.depth(), 3);
        assert_eq!(place(&["ceo"]).manager(), None);
    }

    #[test]
    fn a_place_without_ids_or_with_an_empty_one_is_refused() {
        assert_eq!(refusal(&[]), "OrgChart.Path is empty; a key value must not be");
        assert!(refusal(&["ceo", ""]).starts_with("OrgChart.Path is not a path"));
    }
}

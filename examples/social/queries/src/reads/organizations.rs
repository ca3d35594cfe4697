//! AP-020 to AP-025: organizations with their teams, members and employees.

use derive::query::{Consistency, Query, SortKeys};
use entities::{
    ids::{EmployeeId, OrgId, TeamId, UserId},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, OrgChart, OrgChartKey, Organization, OrganizationKey,
        Team, TeamKey,
    },
};
use keys::{entity::Entity, fields::Fields};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges, users,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`Team`] in GSI1.
    TeamById of Team by TeamKey, "GSI1" {
        /// Name as shown.
        name: String = "Name",
        /// When it was formed.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of [`Member`] in GSI1.
    MemberOfUser of Member by MemberKey, "GSI1" {
        /// The member's permissions.
        role: String = "Role",
        /// When it began.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of an [`Employee`] in GSI1. The manager is in the path.
    EmployeeById of Employee by EmployeeKey, "GSI1" {
        /// Name as shown.
        name: String = "Name",
        /// The path; absent if the line of managers does not reach the top.
        path: String = "Path",
        /// When they were hired.
        created_at: String = "CreatedAt",
    }
}

/// An organization and some of its teams.
#[derive(Debug)]
#[must_use]
pub struct OrganizationWithTeams {
    /// The organization, on the first page; `None` if it does not exist.
    pub organization: Option<Organization>,
    /// Its teams, by their IDs.
    pub teams: Page<Team>,
}

enum OrganizationOrTeam {
    Organization(Organization),
    Team(Team),
}

impl<S: Store> Queries<S> {
    /// AP-020: an organization with its teams by their IDs, in one query. The organization is one of the first page's
    /// items; its counters are between it and the teams, and are skipped.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn organization_with_teams(
        &self,
        org: &OrgId,
        page: &PageRequest,
    ) -> Result<OrganizationWithTeams, ReadError> {
        let key = Organization::primary_key(&OrganizationKey { org_id: org.clone() })?;
        let range = SortKeys::Between(key.sk, ranges::last::<Team>()?);
        let take = |item: &_| {
            if let Some(organization) = Organization::from_item(&self.layout, item)? {
                return Ok(Some(OrganizationOrTeam::Organization(organization)));
            }
            Ok(Team::from_item(&self.layout, item)?.map(OrganizationOrTeam::Team))
        };
        let query = ranges::eventual(Query::of(None, key.pk, range));
        let found = self.list(&ListPlan::of("AP-020", query, Box::new(take)), page).await?;
        let mut organization = None;
        let mut teams = Page { items: Vec::new(), unreadable: found.unreadable, next: found.next };
        for part in found.items {
            match part {
                OrganizationOrTeam::Organization(whole) => organization = Some(whole),
                OrganizationOrTeam::Team(team) => teams.items.push(team),
            }
        }
        Ok(OrganizationWithTeams { organization, teams })
    }

    /// AP-021: the members of an organization, with names, by the user's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn members_of_organization(&self, org: &OrgId, page: &PageRequest) -> Result<Page<Member>, ReadError> {
        let query = ranges::collection::<Member>(&Fields::from([("OrgId", org.as_str())]))?;
        self.list(&ListPlan::all("AP-021", &self.layout, query), page).await
    }

    /// AP-022: the organizations of a user, with names, by the organization's ID.
    ///
    /// GSI1 finds them. It does not project the names, so those are read from the items. A member who left between the
    /// two reads is left out.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn organizations_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Member>, ReadError> {
        let queries = MemberOfUser::entries(&Fields::from([("UserId", user.as_str())]))?;
        let entries = self.list(&MemberOfUser::listing("AP-022", &self.layout, queries), page).await?;
        let keys = entries.items.into_iter().map(|entry| entry.key).collect();
        let found = self.many::<Member>(keys, Consistency::Eventual).await?;
        let mut unreadable = entries.unreadable;
        unreadable.extend(found.unreadable);
        Ok(Page { items: found.items, unreadable, next: entries.next })
    }

    /// AP-023: a team by ID, by GSI1, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn team(&self, team: &TeamId) -> Result<Option<TeamById>, ReadError> {
        let queries = TeamById::entries(&Fields::from([("TeamId", team.as_str())]))?;
        let listing = TeamById::listing("AP-023", &self.layout, queries);
        users::first_of(self.list(&listing, &PageRequest::first(1)).await?)
    }

    /// AP-024: all direct and indirect reports of a manager, in the order of their paths. AP-025 gives the manager's
    /// path. The chart is derived, so it may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn reports_of(&self, manager: &OrgChartKey, page: &PageRequest) -> Result<Page<OrgChart>, ReadError> {
        let key = OrgChart::primary_key(manager)?;
        // The path of everybody below begins with this path and the mark that starts the next segment.
        let query = ranges::eventual(Query::prefix(None, key.pk, format!("{}/", key.sk)));
        self.list(&ListPlan::all("AP-024", &self.layout, query), page).await
    }

    /// AP-025: an employee by ID, by GSI1, which may be stale.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn employee(&self, employee: &EmployeeId) -> Result<Option<EmployeeById>, ReadError> {
        let queries = EmployeeById::entries(&Fields::from([("EmployeeId", employee.as_str())]))?;
        let listing = EmployeeById::listing("AP-025", &self.layout, queries);
        users::first_of(self.list(&listing, &PageRequest::first(1)).await?)
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-020",
            title: "organization with its teams, one query, counters dropped",
            input: "OrgId, PageRequest",
            result: "OrganizationWithTeams: Organization, Page<Team>",
            order: "TeamId",
            sample: sample!(|queries| {
                let _page = queries.organization_with_teams(&"{OrgId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-021",
            title: "members of an organization, with names",
            input: "OrgId, PageRequest",
            result: "Page<Member>",
            order: "UserId",
            sample: sample!(|queries| {
                let _page = queries.members_of_organization(&"{OrgId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-022",
            title: "organizations of a user, with names",
            input: "UserId, PageRequest",
            result: "Page<Member>",
            order: "OrgId",
            sample: sample!(|queries| {
                for org in ["{OrgId}", "{OrgId 2}"] {
                    let key = MemberKey { org_id: org.into(), user_id: "{UserId}".into() };
                    queries.given(Member { key, ..Member::default() }.to_item(&queries.layout)?)?;
                }
                let _page = queries.organizations_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-023",
            title: "team by ID",
            input: "TeamId",
            result: "TeamById (projection), if there",
            order: "",
            sample: sample!(|queries| {
                queries.team(&"{TeamId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-024",
            title: "all direct and indirect reports of a manager",
            input: "OrgChartKey of the manager, PageRequest",
            result: "Page<OrgChart>",
            order: "Path",
            sample: sample!(|queries| {
                let path = EmployeePath::new(vec!["{Manager}".into()]);
                let manager = OrgChartKey { org_id: "{OrgId}".into(), path };
                let _page = queries.reports_of(&manager, &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-025",
            title: "employee by ID",
            input: "EmployeeId",
            result: "EmployeeById (projection), if there",
            order: "",
            sample: sample!(|queries| {
                queries.employee(&"{EmployeeId}".into()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projections_have_what_their_indexes_hold() {
        check::<TeamById>();
        check::<MemberOfUser>();
        check::<EmployeeById>();
    }
}

//! Groups with their members, and organizations with their teams, members, employees and managers.
//!
//! An employee is stored under their id and names their manager; D-21 derives the path. To find everybody above an
//! employee, a write reads `ManagerId` after `ManagerId`, consistently. The transaction of a hire or a move requires
//! that all of these are still as they were read, so of two moves that would form a loop together, one is refused.

use derive::{guard::Ask, query::Query, write::Write};
use keys::{fields::Fields, item, key::Key};
use store::Store;

use crate::{
    Queries,
    write_error::WriteError,
    writes::{
        Attempts, Sent,
        draft::{Draft, as_read, check, deletion, text, texts},
    },
};

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

// ---- Employees ----

/// Greatest depth of an employee, including the top and the employee. Source: the table's design.
pub const EMPLOYEE_DEPTH_MAX: usize = 27;

impl<S: Store> Queries<S> {
    /// WP-11: hires an employee below a manager, or at the top. Returns the key.
    ///
    /// The transaction requires that the id is free, and that everybody above is as they were read.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::NotFound`] for the manager; [`WriteError::EmployeeUnderItself`] if
    /// the new employee is above that manager; [`WriteError::TooDeep`].
    pub async fn hire(
        &self,
        org_id: &str,
        employee_id: &str,
        name: &str,
        manager_id: Option<&str>,
    ) -> Result<Key, WriteError> {
        let values = [("OrgId", org_id), ("EmployeeId", employee_id), ("Name", name)].into_iter();
        let values = texts(values.chain(manager_id.map(|id| ("ManagerId", id))));
        let (creation, mut attempts) = (self.creation("Employee", &self.now()?, values)?, self.attempts());
        let key = creation.key.clone();
        loop {
            let mut writes = vec![creation.clone()];
            if let Some(manager_id) = manager_id {
                writes.extend(attempts.managers_above(org_id, employee_id, manager_id).await?);
            }
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(key),
                Sent::Refused(positions) if positions.contains(&0) => {
                    return Err(WriteError::AlreadyExists { item: key });
                }
                Sent::Refused(_) => attempts.again(&key).await?,
            }
        }
    }

    /// WP-11: moves an employee with their whole team below another manager, or to the top.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the employee or the manager; [`WriteError::EmployeeUnderItself`] if the manager
    /// reports to the employee; [`WriteError::Unchanged`] if that is the manager already; [`WriteError::TooDeep`].
    pub async fn move_employee(
        &self,
        org_id: &str,
        employee_id: &str,
        manager_id: Option<&str>,
    ) -> Result<(), WriteError> {
        let (now, key, mut attempts) = (self.now()?, self.employee(org_id, employee_id)?, self.attempts());
        loop {
            let employee = attempts.existing(&key).await?;
            if item::text(&employee, "ManagerId") == manager_id {
                return Err(WriteError::Unchanged { item: key, attribute: "ManagerId" });
            }
            let draft = Draft::of(key.clone(), &now).asking(as_read("ManagerId", &employee));
            let (draft, fields) = match manager_id {
                Some(id) => (draft.set("ManagerId", text(id)), vec![("ManagerId", id)]),
                None => (draft.clear("ManagerId"), Vec::new()),
            };
            let mut writes = vec![self.indexed(draft, "Employee", "GSI2", &fields)?.write()];
            if let Some(manager_id) = manager_id {
                writes.extend(attempts.managers_above(org_id, employee_id, manager_id).await?);
            }
            if attempts.send(&writes).await? == Sent::Done {
                return Ok(());
            }
            attempts.again(&key).await?;
        }
    }

    /// WP-11: dismisses an employee without reports.
    ///
    /// The index shows the reports, and it may lag. So it may miss somebody who was hired or moved below the employee a
    /// moment ago; their `ManagerId` then names nobody. And it may still show somebody who was moved away a moment ago.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::HasReports`].
    pub async fn dismiss(&self, org_id: &str, employee_id: &str) -> Result<(), WriteError> {
        let (key, mut attempts) = (self.employee(org_id, employee_id)?, self.attempts());
        attempts.existing(&key).await?;
        let manager = Fields::from([("ManagerId", employee_id)]);
        for index in self.entity("Employee")?.indexes.iter().filter(|index| index.index == "GSI2") {
            let (pk, prefix) = (index.key.pk.build(&manager)?, index.key.sk.prefix(&manager)?);
            let reports = attempts.page(&Query::prefix(Some(&index.index), pk, prefix)).await?.items;
            let mut keys = reports.iter().filter_map(|item| self.schema.layout.key(item));
            // Another organization may have a manager with the same id.
            if keys.any(|report| report.pk == key.pk) {
                return Err(WriteError::HasReports { employee_id: employee_id.to_owned() });
            }
        }
        match attempts.send(&[deletion(key.clone())]).await? {
            Sent::Done => Ok(()),
            Sent::Refused(_) => Err(WriteError::NotFound { item: key }),
        }
    }

    fn employee(&self, org_id: &str, employee_id: &str) -> Result<Key, WriteError> {
        self.key("Employee", [("OrgId", org_id), ("EmployeeId", employee_id)])
    }
}

impl<S: Store> Attempts<'_, S> {
    /// Requires that the new manager and everybody above are as they were read, so that nobody reports to themselves.
    /// Refused if the employee is among them.
    async fn managers_above(
        &mut self,
        org_id: &str,
        employee_id: &str,
        manager_id: &str,
    ) -> Result<Vec<Write>, WriteError> {
        let (mut checks, mut next) = (Vec::new(), Some(manager_id.to_owned()));
        while let Some(id) = next {
            if id == employee_id {
                return Err(WriteError::EmployeeUnderItself { employee_id: id });
            }
            if checks.len() + 1 >= EMPLOYEE_DEPTH_MAX {
                let item = self.queries.employee(org_id, employee_id)?;
                return Err(WriteError::TooDeep { item, depth_max: EMPLOYEE_DEPTH_MAX });
            }
            let key = self.queries.employee(org_id, &id)?;
            let above = match self.existing(&key).await {
                // A manager further up does not exist, so nobody is above that.
                Err(WriteError::NotFound { .. }) if !checks.is_empty() => break,
                found => found?,
            };
            checks.push(check(key, vec![Ask::Present, as_read("ManagerId", &above)]));
            next = item::text(&above, "ManagerId").map(str::to_owned);
        }
        Ok(checks)
    }
}

//! Employees of an organization, and their managers.
//!
//! An employee is stored under their id and names their manager; D-21 derives the path. To find everybody above an
//! employee, a write reads `ManagerId` after `ManagerId`, consistently. The transaction of a hire or a move requires
//! that all of these are still as they were read, so of two moves that would form a loop together, one is refused.

use derive::{guard::Ask, query::Query, write::Write};
use keys::{fields::Fields, item, key::Key};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, as_read, check, deletion, text, texts},
};
use crate::{Queries, write_error::WriteError};

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

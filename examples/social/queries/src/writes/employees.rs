//! Employees of an organization, and their managers.
//!
//! An employee is stored under their id and names their manager; D-21 derives the path. To find everybody above an
//! employee, a write reads `ManagerId` after `ManagerId`, consistently. The transaction of a hire or a move requires
//! that all of these are still as they were read, so of two moves that would form a loop together, one is refused.

use derive::{guard::Ask, query::Query, write::Write};
use entities::{
    ids::{EmployeeId, OrgId},
    organizations::{Employee, EmployeeKey},
};
use keys::{
    entity::Entity,
    fields::Fields,
    item::{self, Item},
    key::Key,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, as_read, check, deletion, text},
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
        org_id: &OrgId,
        employee_id: &EmployeeId,
        name: &str,
        manager_id: Option<&EmployeeId>,
    ) -> Result<EmployeeKey, WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        let employee = Employee {
            key: EmployeeKey { org_id: org_id.clone(), employee_id: employee_id.clone() },
            name: Some(name.to_owned()),
            manager_id: manager_id.cloned(),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            path: None,
        };
        let creation = self.creation(&employee)?;
        let key = creation.key.clone();
        loop {
            let mut writes = vec![creation.clone()];
            if let Some(manager_id) = manager_id {
                writes.extend(attempts.managers_above(&employee.key, manager_id).await?);
            }
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(employee.key),
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
        org_id: &OrgId,
        employee_id: &EmployeeId,
        manager_id: Option<&EmployeeId>,
    ) -> Result<(), WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        let of = EmployeeKey { org_id: org_id.clone(), employee_id: employee_id.clone() };
        let key = Employee::primary_key(&of)?;
        loop {
            let employee = attempts.employee(&key).await?;
            if manager_of(&employee).as_ref() == manager_id {
                return Err(WriteError::Unchanged { item: key, attribute: "ManagerId" });
            }
            let draft = Draft::of::<Employee>(&of)?.asking(as_read("ManagerId", &employee));
            let (draft, fields) = match manager_id {
                Some(id) => (draft.set("ManagerId", text(id.as_str())), vec![("ManagerId", id.as_str())]),
                None => (draft.clear("ManagerId"), Vec::new()),
            };
            let draft = draft.indexed::<Employee>(&self.layout, "GSI2", &of, &fields)?;
            let mut writes = vec![draft.set("UpdatedAt", text(now.as_str())).write()];
            if let Some(manager_id) = manager_id {
                writes.extend(attempts.managers_above(&of, manager_id).await?);
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
    pub async fn dismiss(&self, org_id: &OrgId, employee_id: &EmployeeId) -> Result<(), WriteError> {
        let mut attempts = self.attempts();
        let key = Employee::primary_key(&EmployeeKey { org_id: org_id.clone(), employee_id: employee_id.clone() })?;
        attempts.employee(&key).await?;
        let manager = Fields::from([("ManagerId", employee_id.as_str())]);
        for index in Employee::definition().indexes.iter().filter(|index| index.index == "GSI2") {
            let (pk, prefix) = (index.key.pk.build(&manager)?, index.key.sk.prefix(&manager)?);
            let reports = attempts.page(&Query::prefix(Some(&index.index), pk, prefix)).await?.items;
            let mut keys = reports.iter().filter_map(|item| self.layout.key(item));
            // Another organization may have a manager with the same id.
            if keys.any(|report| report.pk == key.pk) {
                return Err(WriteError::HasReports { employee_id: employee_id.clone() });
            }
        }
        match attempts.send(&[deletion(key.clone())]).await? {
            Sent::Done => Ok(()),
            Sent::Refused(_) => Err(WriteError::NotFound { item: key }),
        }
    }
}

impl<S: Store> Attempts<'_, S> {
    async fn employee(&mut self, key: &Key) -> Result<Item, WriteError> {
        self.item(key).await?.ok_or_else(|| WriteError::NotFound { item: key.clone() })
    }

    /// Requires that the new manager and everybody above are as they were read, so that nobody reports to themselves.
    /// Refused if the employee is among them.
    async fn managers_above(
        &mut self,
        employee: &EmployeeKey,
        manager_id: &EmployeeId,
    ) -> Result<Vec<Write>, WriteError> {
        let (mut checks, mut next) = (Vec::new(), Some(manager_id.clone()));
        while let Some(id) = next {
            if id == employee.employee_id {
                return Err(WriteError::EmployeeUnderItself { employee_id: id });
            }
            if checks.len() + 1 >= EMPLOYEE_DEPTH_MAX {
                let item = Employee::primary_key(employee)?;
                return Err(WriteError::TooDeep { item, depth_max: EMPLOYEE_DEPTH_MAX });
            }
            let key = Employee::primary_key(&EmployeeKey { org_id: employee.org_id.clone(), employee_id: id })?;
            let above = match self.employee(&key).await {
                // A manager further up does not exist, so nobody is above that.
                Err(WriteError::NotFound { .. }) if !checks.is_empty() => break,
                found => found?,
            };
            checks.push(check(key, vec![Ask::Present, as_read("ManagerId", &above)]));
            next = manager_of(&above);
        }
        Ok(checks)
    }
}

fn manager_of(employee: &Item) -> Option<EmployeeId> {
    item::text(employee, "ManagerId").map(EmployeeId::from)
}

//! Employees: who works for an organization, and below whom.
//!
//! An employee's key is their place, so it changes when somebody above them moves. They are found by their id through
//! the index, which is late, and then read consistently by the key that it gives; when they are not there any more,
//! they moved in between, and are looked for again.
//!
//! A move changes `ManagerId` alone; the keys of the whole team follow by D-21. Until they have, the place in the key is
//! the old one, so whoever asks who is above somebody asks for `ManagerId`, one after the other. The transaction of a
//! move asks that all of these are still as they were read: of two moves that would make a loop together, one is refused.

use derive::{
    guard::Ask,
    query::Query,
    write::{Action, Write},
};
use entities::{
    ids::{EmployeeId, OrgId},
    organizations::{Employee, EmployeeKey, EmployeePath},
};
use keys::{
    entity::{Entity, EntityKey},
    item::{self, Item},
    key::Key,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, as_read, check, text, write},
};
use crate::{Queries, write_error::WriteError};

/// How deep an employee may be, the root and themselves included. Source: the table's design.
pub const EMPLOYEE_DEPTH_MAX: usize = 27;

/// An employee, read consistently.
struct Found {
    key: EmployeeKey,
    item: Item,
}

impl Found {
    fn manager_id(&self) -> Option<EmployeeId> {
        item::text(&self.item, "ManagerId").map(EmployeeId::from)
    }

    /// Where their manager is when nobody's move is under way.
    fn manager_key(&self) -> Option<EmployeeKey> {
        let (_, above) = self.key.path.ids().split_last()?;
        let path = EmployeePath::new(above.to_vec());
        (path.employee().is_some() && path.employee() == self.manager_id().as_ref())
            .then(|| EmployeeKey { org_id: self.key.org_id.clone(), path })
    }
}

impl<S: Store> Queries<S> {
    /// WP-11: hires an employee below a manager, or as a root. Gives their key, which holds their place.
    ///
    /// The transaction asks that the manager is where they were found. Somebody of the same id is looked for in the
    /// index, which is late: two who are hired under one id at the same moment, in different places, are both hired.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::NotFound`] for the manager; [`WriteError::TooDeep`].
    pub async fn hire(
        &self,
        org_id: &OrgId,
        employee_id: &EmployeeId,
        name: &str,
        manager_id: Option<&EmployeeId>,
    ) -> Result<EmployeeKey, WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        loop {
            let manager = match manager_id {
                Some(manager_id) => Some(attempts.employee(org_id, manager_id).await?),
                None => None,
            };
            let above = manager.as_ref().map(|found| found.key.path.ids()).unwrap_or_default();
            let path = EmployeePath::new(above.iter().chain([employee_id]).cloned().collect());
            let employee = Employee {
                key: EmployeeKey { org_id: org_id.clone(), path },
                name: Some(name.to_owned()),
                manager_id: manager_id.cloned(),
                created_at: Some(now.clone()),
                updated_at: Some(now.clone()),
            };
            let creation = self.creation(&employee)?;
            let key = creation.key.clone();
            if employee.key.path.depth() > EMPLOYEE_DEPTH_MAX {
                return Err(WriteError::TooDeep { item: key, depth_max: EMPLOYEE_DEPTH_MAX });
            }
            let others = attempts.places(org_id, employee_id).await?.into_iter().filter(|place| *place != key);
            if let Some((item, _)) = attempts.items(&others.collect::<Vec<_>>()).await?.pop() {
                return Err(WriteError::AlreadyExists { item });
            }
            let mut writes = vec![creation];
            if let Some(manager) = &manager {
                writes.push(check(Employee::primary_key(&manager.key)?, vec![Ask::Present]));
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

    /// WP-11: moves an employee, with their whole team, below another manager, or to be a root.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the employee or the manager; [`WriteError::EmployeeUnderItself`] when the manager
    /// reports to them; [`WriteError::Unchanged`] when they are there; [`WriteError::TooDeep`].
    pub async fn move_employee(
        &self,
        org_id: &OrgId,
        employee_id: &EmployeeId,
        manager_id: Option<&EmployeeId>,
    ) -> Result<(), WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        loop {
            let employee = attempts.employee(org_id, employee_id).await?;
            let key = Employee::primary_key(&employee.key)?;
            if employee.manager_id().as_ref() == manager_id {
                return Err(WriteError::Unchanged { item: key, attribute: "ManagerId" });
            }
            let draft = Draft::of::<Employee>(&employee.key)?.asking(as_read("ManagerId", &employee.item));
            let draft = match manager_id {
                Some(manager_id) => draft.set("ManagerId", text(manager_id.as_str())),
                None => draft.clear("ManagerId"),
            };
            let mut writes = vec![draft.set("UpdatedAt", text(now.as_str())).write()];
            if let Some(manager_id) = manager_id {
                writes.extend(attempts.managers_above(&employee, employee_id, manager_id).await?);
            }
            if attempts.send(&writes).await? == Sent::Done {
                return Ok(());
            }
            attempts.again(&key).await?;
        }
    }

    /// WP-11: dismisses an employee whom nobody reports to.
    ///
    /// Whoever is below them is looked for consistently. Somebody who is hired between that look and the deletion, and
    /// somebody who was moved below them and whose key has not followed yet, is missed: they keep a `ManagerId` of
    /// nobody, and can be moved. Somebody who was moved away and whose key has not followed yet still counts.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::HasReports`].
    pub async fn dismiss(&self, org_id: &OrgId, employee_id: &EmployeeId) -> Result<(), WriteError> {
        let mut attempts = self.attempts();
        loop {
            let employee = attempts.employee(org_id, employee_id).await?;
            let key = Employee::primary_key(&employee.key)?;
            let below = Query::prefix(None, key.pk.as_str(), format!("{}/", key.sk));
            if !attempts.page(&Query { limit: Some(1), ..below }).await?.items.is_empty() {
                return Err(WriteError::HasReports { employee_id: employee_id.clone() });
            }
            let asks = vec![Ask::Present, as_read("ManagerId", &employee.item)];
            if attempts.send(&[write(key.clone(), Action::Delete, asks)]).await? == Sent::Done {
                return Ok(());
            }
            attempts.again(&key).await?;
        }
    }
}

impl<S: Store> Attempts<'_, S> {
    /// Finds an employee by their id.
    async fn employee(&mut self, org_id: &OrgId, employee_id: &EmployeeId) -> Result<Found, WriteError> {
        loop {
            let places = self.places(org_id, employee_id).await?;
            let Some(first) = places.first().cloned() else {
                let key = alone(org_id, employee_id);
                return Err(WriteError::NotFound { item: Employee::primary_key(&key)? });
            };
            for (place, item) in self.items(&places).await? {
                if let Some(key) = Employee::parse_key(&place) {
                    return Ok(Found { key, item });
                }
            }
            self.again(&first).await?;
        }
    }

    /// Where the index has employees of this organization under this id.
    async fn places(&mut self, org_id: &OrgId, employee_id: &EmployeeId) -> Result<Vec<Key>, WriteError> {
        let key = alone(org_id, employee_id);
        let mut places = Vec::new();
        for index in &Employee::definition().indexes {
            let at = index.key.build(&key.fields())?;
            let found = self.page(&Query::prefix(Some(&index.index), at.pk, at.sk)).await?.items;
            places.extend(found.iter().filter_map(|item| self.layout().key(item)));
        }
        let partition = Employee::primary_key(&key)?.pk;
        places.retain(|place| place.pk == partition);
        Ok(places)
    }

    /// Asks of the new manager, and of everybody above them, that they are as they were read, so that nobody reports to
    /// themselves; refused when the one who is moved is among them.
    async fn managers_above(
        &mut self,
        employee: &Found,
        employee_id: &EmployeeId,
        manager_id: &EmployeeId,
    ) -> Result<Vec<Write>, WriteError> {
        let org_id = &employee.key.org_id;
        let (mut checks, mut next, mut guess) = (Vec::new(), Some(manager_id.clone()), None::<EmployeeKey>);
        while let Some(id) = next {
            if id == *employee_id {
                return Err(WriteError::EmployeeUnderItself { employee_id: employee_id.clone() });
            }
            if checks.len() + 1 >= EMPLOYEE_DEPTH_MAX {
                let item = Employee::primary_key(&employee.key)?;
                return Err(WriteError::TooDeep { item, depth_max: EMPLOYEE_DEPTH_MAX });
            }
            let above = match self.guessed(guess).await? {
                Some(above) => above,
                None => match self.employee(org_id, &id).await {
                    // Somebody further up is gone; nobody is above them.
                    Err(WriteError::NotFound { .. }) if !checks.is_empty() => break,
                    found => found?,
                },
            };
            let key = Employee::primary_key(&above.key)?;
            checks.push(check(key, vec![Ask::Present, as_read("ManagerId", &above.item)]));
            (next, guess) = (above.manager_id(), above.manager_key());
        }
        Ok(checks)
    }

    async fn guessed(&mut self, guess: Option<EmployeeKey>) -> Result<Option<Found>, WriteError> {
        let Some(key) = guess else { return Ok(None) };
        Ok(self.item(&Employee::primary_key(&key)?).await?.map(|item| Found { key, item }))
    }
}

/// The key of an employee as if they were a root: its index key is that of their id, whatever their place.
fn alone(org_id: &OrgId, employee_id: &EmployeeId) -> EmployeeKey {
    EmployeeKey { org_id: org_id.clone(), path: EmployeePath::new(vec![employee_id.clone()]) }
}

//! Groups and their members.

use entities::ids::{GroupId, UserId};
use queries::{Queries, write_error::WriteError};
use rand::Rng as _;
use store::Store;

use super::Application;

/// Groups that are made before anybody joins one.
const GROUPS_MIN: usize = 3;

/// Actions on groups.
#[derive(Clone, Debug)]
pub enum Groups {
    Create(GroupId, String),
    Rename(GroupId, String),
    Delete(GroupId),
    Join(UserId, GroupId, &'static str),
    ChangeRole(UserId, GroupId, &'static str),
    Leave(UserId, GroupId),
}

impl Application {
    /// The next action; the numbers are of 70.
    pub(super) fn of_groups(&mut self) -> (String, Groups) {
        if self.groups.len() < GROUPS_MIN {
            return self.create_group();
        }
        match self.chance.random_range(0..70) {
            0..=3 => self.create_group(),
            4..=13 => self.rename_group(),
            14 => self.delete_group(),
            15..=44 => self.join_group(),
            45..=54 => self.change_role(),
            _ => self.leave_group(),
        }
    }

    fn create_group(&mut self) -> (String, Groups) {
        let group_id = GroupId::from(self.new_id("g"));
        self.groups.push(group_id.clone());
        groups(group_id.as_str().to_owned(), Groups::Create(group_id, format!("Group {}", self.n_actions)))
    }

    fn rename_group(&mut self) -> (String, Groups) {
        let Some(group_id) = self.any(|app| &app.groups) else { return self.create_group() };
        let name = format!("Group {}, renamed", self.n_actions);
        groups(group_id.as_str().to_owned(), Groups::Rename(group_id, name))
    }

    fn delete_group(&mut self) -> (String, Groups) {
        let Some(group_id) = self.any(|app| &app.groups) else { return self.create_group() };
        groups(group_id.as_str().to_owned(), Groups::Delete(group_id))
    }

    fn join_group(&mut self) -> (String, Groups) {
        let Some(group_id) = self.any(|app| &app.groups) else { return self.create_group() };
        let (user_id, role) = (self.any_user(), self.role());
        self.memberships.push((user_id.clone(), group_id.clone()));
        groups(user_id.as_str().to_owned(), Groups::Join(user_id, group_id, role))
    }

    fn change_role(&mut self) -> (String, Groups) {
        let Some((user_id, group_id)) = self.any(|app| &app.memberships) else { return self.join_group() };
        let role = self.role();
        groups(user_id.as_str().to_owned(), Groups::ChangeRole(user_id, group_id, role))
    }

    fn leave_group(&mut self) -> (String, Groups) {
        let Some((user_id, group_id)) = self.any(|app| &app.memberships) else { return self.join_group() };
        groups(user_id.as_str().to_owned(), Groups::Leave(user_id, group_id))
    }

    pub(super) fn role(&mut self) -> &'static str {
        if self.happens(1, 5) { "admin" } else { "member" }
    }
}

fn groups(subject: String, act: Groups) -> (String, Groups) {
    (subject, act)
}

impl Groups {
    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), WriteError> {
        match self {
            Self::Create(group_id, name) => queries.create_group(&group_id, &name, None).await,
            Self::Rename(group_id, name) => queries.rename_group(&group_id, &name).await,
            Self::Delete(group_id) => queries.delete_group(&group_id).await.map(drop),
            Self::Join(user_id, group_id, role) => queries.join_group(&user_id, &group_id, role).await,
            Self::ChangeRole(user_id, group_id, role) => queries.change_role(&user_id, &group_id, role).await,
            Self::Leave(user_id, group_id) => queries.leave_group(&user_id, &group_id).await.map(drop),
        }
    }
}

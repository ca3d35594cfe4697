//! Users, and who follows whom.

use derive::query::Consistency;
use entities::{
    ids::UserId,
    people::{User, UserKey},
};
use keys::entity::Entity as _;
use queries::{
    Queries,
    write_error::WriteError,
    writes::{
        draft::Edit,
        users::{NewUser, ProfileEdit},
    },
};
use rand::Rng as _;
use store::Store;

use super::{Application, act_error::ActError, user_id};

/// Actions on users.
#[derive(Clone, Debug)]
pub enum People {
    SignUp(UserId, NewUser),
    Edit(UserId, ProfileEdit),
    Delete(UserId),
    /// One follows another, and perhaps the other way round too.
    Follow(UserId, UserId, bool),
    Unfollow(UserId, UserId),
}

impl Application {
    /// The next action; the numbers are of 270.
    pub(super) fn of_people(&mut self) -> (String, People) {
        match self.chance.random_range(0..270) {
            0..=49 => self.sign_up(),
            50..=99 => self.edit_profile(),
            100..=107 => self.delete_user(),
            108..=219 => self.follow(),
            _ => self.unfollow(),
        }
    }

    pub(super) fn sign_up(&mut self) -> (String, People) {
        let user_id = user_id(self.users.len());
        // Sometimes the address of another user.
        let taken = if self.happens(1, 20) { self.any(|app| &app.users) } else { None };
        let new = NewUser {
            name: format!("{}, who is new", user_id.as_str()),
            email: format!("{}@example.com", taken.as_ref().unwrap_or(&user_id).as_str()),
            avatar: Some(format!("https://example.com/{}.png", self.n_actions)),
        };
        self.users.push(user_id.clone());
        people(&user_id.clone(), People::SignUp(user_id, new))
    }

    fn edit_profile(&mut self) -> (String, People) {
        let user_id = self.any_user();
        let n = self.n_actions;
        let mut edit = ProfileEdit::default();
        match self.chance.random_range(0..6) {
            0..=2 => edit.name = Some(format!("{} the {n}th", user_id.as_str())),
            3 => edit.avatar = Edit::Set(format!("https://example.com/{n}.png")),
            4 => edit.avatar = Edit::Clear,
            _ => {
                let of = if self.happens(1, 4) { self.any_user() } else { user_id.clone() };
                edit.email =
                    Some(format!("{}@example.{}", of.as_str(), if n.is_multiple_of(2) { "org" } else { "com" }));
            }
        }
        people(&user_id.clone(), People::Edit(user_id, edit))
    }

    fn delete_user(&mut self) -> (String, People) {
        let user_id = self.any_user();
        people(&user_id.clone(), People::Delete(user_id))
    }

    fn follow(&mut self) -> (String, People) {
        let (one, other) = (self.any_user(), self.any_user());
        let back = self.happens(1, 2);
        self.follows.push((one.clone(), other.clone()));
        if back {
            self.follows.push((other.clone(), one.clone()));
        }
        people(&one.clone(), People::Follow(one, other, back))
    }

    fn unfollow(&mut self) -> (String, People) {
        let Some((one, other)) = self.any(|app| &app.follows) else { return self.follow() };
        people(&one.clone(), People::Unfollow(one, other))
    }
}

fn people(user_id: &UserId, act: People) -> (String, People) {
    (user_id.as_str().to_owned(), act)
}

impl People {
    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), ActError> {
        match self {
            Self::SignUp(user_id, new) => queries.create_user(&user_id, new).await?,
            Self::Edit(user_id, edit) => {
                let key = UserKey { user_id: user_id.clone() };
                let user = queries.user(&user_id, Consistency::Strong).await?;
                let item = User::primary_key(&key).map_err(WriteError::from)?;
                let user = user.ok_or(WriteError::NotFound { item })?;
                queries.update_profile(&user_id, user.version.unwrap_or(0), edit).await.map(drop)?;
            }
            Self::Delete(user_id) => queries.delete_user(&user_id).await.map(drop)?,
            Self::Follow(one, other, back) => {
                queries.follow(&one, &other).await?;
                if back {
                    queries.follow(&other, &one).await?;
                }
            }
            Self::Unfollow(one, other) => queries.unfollow(&one, &other).await.map(drop)?,
        }
        Ok(())
    }
}

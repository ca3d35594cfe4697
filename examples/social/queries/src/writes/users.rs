//! Users, with the claims of their email addresses.
//!
//! A claim is an item of its own under the address, so that its condition makes the address unique: a condition on a
//! profile cannot check another profile. Profile and claim change in one transaction.

use derive::{
    guard::Ask,
    write::{Action, Write},
};
use entities::{
    emails::{EmailClaim, EmailClaimKey, normalised},
    ids::UserId,
    people::{User, UserKey},
};
use keys::{
    entity::Entity,
    item::{self, Item},
    key::Key,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, Edit, as_read, check, is_user, number, text, write},
};
use crate::{Queries, write_error::WriteError};

/// The attributes of a new user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// Name as shown.
    pub name: String,
    /// Email address; stored in lower case without surrounding blanks.
    pub email: String,
    /// URL of the user's picture.
    pub avatar: Option<String>,
}

/// Changes of a profile; `None` leaves an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileEdit {
    /// Name as shown.
    pub name: Option<String>,
    /// Email address; stored in lower case without surrounding blanks.
    pub email: Option<String>,
    /// URL of their picture.
    pub avatar: Edit<String>,
}

/// The version of a new profile. An edit makes it one more; a profile that has none is at 0.
const VERSION_FIRST: i64 = 1;

impl<S: Store> Queries<S> {
    /// WP-01: creates a user together with the claim of their email.
    ///
    /// A claim that is this user's already, left over when they were deleted, is taken over.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] for a user's id that exists; [`WriteError::EmailTaken`].
    pub async fn create_user(&self, user_id: &UserId, new: NewUser) -> Result<(), WriteError> {
        let (now, email) = (self.now()?, normalised(&new.email));
        let user = User {
            key: UserKey { user_id: user_id.clone() },
            name: Some(new.name),
            email: Some(email.clone()),
            avatar: new.avatar,
            version: Some(VERSION_FIRST),
            created_at: Some(now.clone()),
            updated_at: Some(now.clone()),
            ..User::default()
        };
        let creation = self.creation(&user)?;
        let (mut attempts, mut asks) = (self.attempts(), vec![Ask::Absent]);
        loop {
            let claim = self.claiming(&email, user_id, &now, asks)?;
            let claim_key = claim.key.clone();
            match attempts.send(&[creation.clone(), claim]).await? {
                Sent::Done => return Ok(()),
                Sent::Refused(positions) if positions.contains(&0) => {
                    return Err(WriteError::AlreadyExists { item: creation.key });
                }
                Sent::Refused(_) => asks = attempts.claimable(&claim_key, user_id).await?,
            }
            attempts.again(&creation.key).await?;
        }
    }

    /// WP-02: edits a profile of this version; a new email moves the claim in the same transaction. Gives the new
    /// version.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::VersionConflict`] when it was edited since; [`WriteError::EmailTaken`].
    pub async fn update_profile(&self, user_id: &UserId, version: i64, edit: ProfileEdit) -> Result<i64, WriteError> {
        let (now, next) = (self.now()?, version.saturating_add(1));
        let key = UserKey { user_id: user_id.clone() };
        let stored = (version != 0).then(|| number(version));
        let draft = Draft::of::<User>(&key)?
            .asking(Ask::as_read("Version", stored.as_ref()))
            .set_some("Name", edit.name.map(text))
            .edit("Avatar", edit.avatar.map(text))
            .set("Version", number(next))
            .set("UpdatedAt", text(now.as_str()));
        let email = edit.email.as_deref().map(normalised);
        let mut attempts = self.attempts();
        loop {
            let mut writes = vec![draft.clone().write()];
            if let Some(email) = &email {
                let user = attempts.item(draft.key()).await?;
                let user = user.ok_or_else(|| WriteError::NotFound { item: draft.key().clone() })?;
                let draft = draft.clone().asking(as_read("Email", &user)).set("Email", text(email.as_str()));
                let draft = draft.indexed::<User>(&self.layout, "GSI1", &key, &[("Email", email)])?;
                writes = vec![draft.write()];
                writes.extend(self.moving_claim(&mut attempts, &user, email, user_id, &now).await?);
            }
            if attempts.send(&writes).await? == Sent::Done {
                return Ok(next);
            }
            let user = attempts.item(draft.key()).await?;
            let user = user.ok_or_else(|| WriteError::NotFound { item: draft.key().clone() })?;
            if !Ask::as_read("Version", stored.as_ref()).holds(Some(&user)) {
                return Err(WriteError::VersionConflict { user_id: user_id.clone(), version });
            }
            attempts.again(draft.key()).await?;
        }
    }

    /// WP-18: deletes a user's profile; returns false if it does not exist.
    ///
    /// What hangs on the user goes by the cascade D-29, the claim of the email included: until then the email is taken,
    /// for everybody but a new user of the same id. Where the cascade is switched off, all of it stays.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_user(&self, user_id: &UserId) -> Result<bool, WriteError> {
        self.delete(User::primary_key(&UserKey { user_id: user_id.clone() })?).await
    }

    fn claiming(&self, email: &str, user_id: &UserId, now: &str, asks: Vec<Ask>) -> Result<Write, WriteError> {
        let claim = EmailClaim {
            key: EmailClaimKey { email: email.to_owned() },
            user_id: Some(user_id.clone()),
            created_at: Some(now.to_owned()),
            updated_at: Some(now.to_owned()),
        };
        self.putting(&claim, asks)
    }

    /// The writes that move the claim from the stored address of a user to another one.
    async fn moving_claim(
        &self,
        attempts: &mut Attempts<'_, S>,
        user: &Item,
        email: &str,
        user_id: &UserId,
        now: &str,
    ) -> Result<Vec<Write>, WriteError> {
        let claim_key = |email: &str| EmailClaim::primary_key(&EmailClaimKey { email: email.to_owned() });
        let new = claim_key(email)?;
        let asks = attempts.claimable(&new, user_id).await?;
        let mut writes = if asks == [Ask::Absent] {
            vec![self.claiming(email, user_id, now, asks)?]
        } else {
            vec![check(new.clone(), asks)]
        };
        // A profile of another client may have an address that was never claimed, or is somebody else's claim.
        if let Some(old) = item::text(user, "Email").map(normalised).filter(|old| !old.is_empty()) {
            let old = claim_key(&old)?;
            let held = if old == new { None } else { attempts.item(&old).await? };
            if held.is_some_and(|claim| is_user("UserId", user_id).holds(Some(&claim))) {
                writes.push(write(old, Action::Delete, vec![is_user("UserId", user_id)]));
            }
        }
        Ok(writes)
    }
}

impl<S: Store> Attempts<'_, S> {
    /// On what condition this user may have a claim, as it stands.
    async fn claimable(&mut self, claim: &Key, user_id: &UserId) -> Result<Vec<Ask>, WriteError> {
        match self.item(claim).await? {
            None => Ok(vec![Ask::Absent]),
            Some(held) if is_user("UserId", user_id).holds(Some(&held)) => Ok(vec![is_user("UserId", user_id)]),
            Some(_) => Err(WriteError::EmailTaken { user_id: user_id.clone() }),
        }
    }
}

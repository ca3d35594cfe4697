//! Users, with the claims of their email addresses, and whom they follow.
//!
//! A claim is an item of its own under the address, so that its condition makes the address unique: a condition on a
//! profile cannot check another profile. Profile and claim change in one transaction.

use derive::{
    guard::Ask,
    write::{Action, Write},
};
use keys::{
    item::{self, Item},
    key::Key,
};
use store::Store;

use crate::{
    Queries,
    write_error::WriteError,
    writes::{
        Attempts, Sent,
        draft::{Draft, Edit, as_read, check, is_user, number, text, texts, write},
    },
};

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
    pub async fn create_user(&self, user_id: &str, new: NewUser) -> Result<(), WriteError> {
        let (now, email) = (self.now()?, normalised(&new.email));
        let values = texts([("UserId", user_id), ("Name", &new.name), ("Email", &email)]);
        let avatar = new.avatar.map(|avatar| ("Avatar", text(avatar)));
        let values = values.chain(avatar).chain([("Version", number(VERSION_FIRST))]);
        let creation = self.creation("User", &now, values)?;
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
    pub async fn update_profile(&self, user_id: &str, version: i64, edit: ProfileEdit) -> Result<i64, WriteError> {
        let (now, next) = (self.now()?, version.saturating_add(1));
        let stored = (version != 0).then(|| number(version));
        let draft = Draft::of(self.user(user_id)?, &now)
            .asking(Ask::as_read("Version", stored.as_ref()))
            .set_some("Name", edit.name.map(text))
            .edit("Avatar", edit.avatar.map(text))
            .set("Version", number(next));
        let email = edit.email.as_deref().map(normalised);
        let mut attempts = self.attempts();
        loop {
            let mut writes = vec![draft.clone().write()];
            if let Some(email) = &email {
                let user = attempts.existing(draft.key()).await?;
                let draft = draft.clone().asking(as_read("Email", &user)).set("Email", text(email.as_str()));
                let draft = self.indexed(draft, "User", "GSI1", &[("Email", email)])?;
                writes = vec![draft.write()];
                writes.extend(self.moving_claim(&mut attempts, &user, email, user_id, &now).await?);
            }
            if attempts.send(&writes).await? == Sent::Done {
                return Ok(next);
            }
            let user = attempts.existing(draft.key()).await?;
            if !Ask::as_read("Version", stored.as_ref()).holds(Some(&user)) {
                return Err(WriteError::VersionConflict { user_id: user_id.to_owned(), version });
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
    pub async fn delete_user(&self, user_id: &str) -> Result<bool, WriteError> {
        self.delete(self.user(user_id)?).await
    }

    fn user(&self, user_id: &str) -> Result<Key, WriteError> {
        self.key("User", [("UserId", user_id)])
    }

    fn claiming(&self, email: &str, user_id: &str, now: &str, asks: Vec<Ask>) -> Result<Write, WriteError> {
        self.putting("EmailClaim", now, texts([("Email", email), ("UserId", user_id)]), asks)
    }

    /// The writes that move the claim from the stored address of a user to another one.
    async fn moving_claim(
        &self,
        attempts: &mut Attempts<'_, S>,
        user: &Item,
        email: &str,
        user_id: &str,
        now: &str,
    ) -> Result<Vec<Write>, WriteError> {
        let claim_key = |email: &str| self.key("EmailClaim", [("Email", email)]);
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
            let stored = if old == new { None } else { attempts.item(&old).await? };
            if stored.is_some_and(|claim| is_user(user_id).holds(Some(&claim))) {
                writes.push(write(old, Action::Delete, vec![is_user(user_id)]));
            }
        }
        Ok(writes)
    }
}

impl<S: Store> Attempts<'_, S> {
    /// On what condition this user may have a claim, as it stands.
    async fn claimable(&mut self, claim: &Key, user_id: &str) -> Result<Vec<Ask>, WriteError> {
        match self.item(claim).await? {
            None => Ok(vec![Ask::Absent]),
            Some(stored) if is_user(user_id).holds(Some(&stored)) => Ok(vec![is_user(user_id)]),
            Some(_) => Err(WriteError::EmailTaken { user_id: user_id.to_owned() }),
        }
    }
}

/// The address in the form of a claim: without surrounding blanks, in lower case. Stored, so it is stable.
fn normalised(email: &str) -> String {
    email.trim().to_lowercase()
}

// ---- Follows ----

impl<S: Store> Queries<S> {
    /// WP-06: a user follows another. A second time changes nothing; returns true if they did not before.
    ///
    /// # Errors
    ///
    /// [`WriteError::SelfFollow`].
    pub async fn follow(&self, follower_id: &str, followee_id: &str) -> Result<bool, WriteError> {
        if follower_id == followee_id {
            return Err(WriteError::SelfFollow { user_id: follower_id.to_owned() });
        }
        let values = texts([("FollowerId", follower_id), ("FolloweeId", followee_id)]);
        self.send(self.creation("Follow", &self.now()?, values)?).await
    }

    /// WP-06: a user follows another no more. A second time changes nothing; returns true if they did before.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unfollow(&self, follower_id: &str, followee_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Follow", [("FollowerId", follower_id), ("FolloweeId", followee_id)])?).await
    }
}

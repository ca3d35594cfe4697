//! AP-001 to AP-003, AP-014 to AP-016: users and follows.

use derive::query::Consistency;
use entities::{
    emails::{EmailClaim, EmailClaimKey, normalised},
    ids::UserId,
    people::{Follow, FollowKey, Follower, User, UserKey},
};
use keys::{entity::Entity, fields::Fields};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`User`] in GSI1.
    UserByEmail of User by UserKey, "GSI1" {
        /// Name as shown.
        name: String = "Name",
        /// When the user joined.
        created_at: String = "CreatedAt",
    }
}

projection! {
    /// The projection of [`User`] in GSI2.
    RecentUser of User by UserKey, "GSI2" {
        /// Name as shown.
        name: String = "Name",
        /// When the user joined.
        created_at: String = "CreatedAt",
    }
}

impl<S: Store> Queries<S> {
    /// AP-001: a user by ID, consistent on request.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn user(&self, user: &UserId, consistency: Consistency) -> Result<Option<User>, ReadError> {
        self.one(&UserKey { user_id: user.clone() }, consistency).await
    }

    /// AP-002: a user by the email address that their profile has, by GSI1, which may be stale.
    ///
    /// If several users have one address, which only other clients cause, it gives the first by ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn user_by_email(&self, email: &str) -> Result<Option<UserByEmail>, ReadError> {
        let queries = UserByEmail::entries(&Fields::from([("Email", email)]))?;
        let listing = UserByEmail::listing("AP-002", &self.layout, queries);
        let page = self.list(&listing, &PageRequest::first(1)).await?;
        first_of(page)
    }

    /// AP-002: a user by the claim of their email address (trimmed, in lower case), consistently.
    ///
    /// `None` if nobody claims the address, or if the claiming user does not exist.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn user_by_claim(&self, email: &str) -> Result<Option<User>, ReadError> {
        let key = EmailClaimKey { email: normalised(email) };
        let claim = self.one::<EmailClaim>(&key, Consistency::Strong).await?;
        match claim.and_then(|claim| claim.user_id) {
            Some(user) => self.user(&user, Consistency::Strong).await,
            None => Ok(None),
        }
    }

    /// AP-003: all users, newest first, for an administrator.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn users_newest_first(&self, page: &PageRequest) -> Result<Page<RecentUser>, ReadError> {
        let queries = RecentUser::entries(&Fields::new())?.into_iter().map(ranges::descending).collect();
        self.merge(&RecentUser::listing("AP-003", &self.layout, queries), page).await
    }

    /// AP-014: the users whom a user follows, with names, by the followee's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn followees_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Follow>, ReadError> {
        let query = ranges::collection::<Follow>(&Fields::from([("FollowerId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-014", &self.layout, query), page).await
    }

    /// AP-015: the followers of a user, with names, by the follower's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn followers_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Follower>, ReadError> {
        let query = ranges::collection::<Follower>(&Fields::from([("FolloweeId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-015", &self.layout, query), page).await
    }

    /// AP-016: a follow of one user by another; `None` if there is none. Consistent, because it decides what the user
    /// may do next.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn follow_of(&self, follower: &UserId, followee: &UserId) -> Result<Option<Follow>, ReadError> {
        let key = FollowKey { follower_id: follower.clone(), followee_id: followee.clone() };
        self.one(&key, Consistency::Strong).await
    }
}

/// The only item of a page with one item; an unreadable item is an error.
pub(super) fn first_of<T>(page: Page<T>) -> Result<Option<T>, ReadError> {
    match (page.items.into_iter().next(), page.unreadable.into_iter().next()) {
        (None, Some(unreadable)) => Err(ReadError::Item { key: unreadable.key, source: unreadable.error }),
        (item, _) => Ok(item),
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    [users(), follows()].concat()
}

fn users() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-001",
            title: "user by ID; consistent on request",
            input: "UserId, Consistency",
            result: "User, if there",
            order: "",
            sample: sample!(|queries| {
                queries.user(&"{UserId}".into(), Consistency::Eventual).await?;
                queries.user(&"{UserId}".into(), Consistency::Strong).await?;
            }),
        },
        AccessPattern {
            id: "AP-002",
            title: "user by email: by GSI1, or consistently through the claim",
            input: "email",
            result: "UserByEmail (projection), or User; if there",
            order: "",
            sample: sample!(|queries| {
                queries.user_by_email("{Email}").await?;
                let claim = EmailClaim {
                    key: EmailClaimKey { email: normalised("{Email}") },
                    user_id: Some("{UserId}".into()),
                    ..EmailClaim::default()
                };
                queries.given(claim.to_item(&queries.layout)?)?;
                queries.user_by_claim("{Email}").await?;
            }),
        },
        AccessPattern {
            id: "AP-003",
            title: "all users, newest first (administrator)",
            input: "PageRequest",
            result: "Page<RecentUser> (projection)",
            order: "CreatedAt, UserId, descending; the suffixes merged",
            sample: sample!(|queries| {
                let _page = queries.users_newest_first(&sample_page()).await?;
            }),
        },
    ]
}

fn follows() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-014",
            title: "whom a user follows, with names",
            input: "UserId, PageRequest",
            result: "Page<Follow>",
            order: "FolloweeId",
            sample: sample!(|queries| {
                let _page = queries.followees_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-015",
            title: "followers of a user, with names",
            input: "UserId, PageRequest",
            result: "Page<Follower>",
            order: "FollowerId",
            sample: sample!(|queries| {
                let _page = queries.followers_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-016",
            title: "does A follow B",
            input: "FollowerId, FolloweeId",
            result: "Follow, if there",
            order: "",
            sample: sample!(|queries| {
                queries.follow_of(&"{FollowerId}".into(), &"{FolloweeId}".into()).await?;
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
        check::<UserByEmail>();
        check::<RecentUser>();
    }
}

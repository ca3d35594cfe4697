//! AP-017 to AP-019: groups and their members.

use derive::query::Consistency;
use entities::{
    groups::{GroupMember, Membership, MembershipKey},
    ids::{GroupId, UserId},
};
use keys::fields::Fields;
use store::Store;

use super::{listing::ListPlan, ranges};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

impl<S: Store> Queries<S> {
    /// AP-017: the groups of a user, with names, by the group's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn groups_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Membership>, ReadError> {
        let query = ranges::collection::<Membership>(&Fields::from([("UserId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-017", &self.layout, query), page).await
    }

    /// AP-018: the members of a group, with names, by the user's ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn members_of_group(&self, group: &GroupId, page: &PageRequest) -> Result<Page<GroupMember>, ReadError> {
        let query = ranges::collection::<GroupMember>(&Fields::from([("GroupId", group.as_str())]))?;
        self.list(&ListPlan::all("AP-018", &self.layout, query), page).await
    }

    /// AP-019: a user's membership of a group, with the role; `None` if there is none. Consistent, because it decides
    /// what the user may do.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn membership(&self, user: &UserId, group: &GroupId) -> Result<Option<Membership>, ReadError> {
        let key = MembershipKey { user_id: user.clone(), group_id: group.clone() };
        self.one(&key, Consistency::Strong).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-017",
            title: "groups of a user, with names",
            input: "UserId, PageRequest",
            result: "Page<Membership>",
            order: "GroupId",
            sample: sample!(|queries| {
                let _page = queries.groups_of(&"{UserId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-018",
            title: "members of a group, with names",
            input: "GroupId, PageRequest",
            result: "Page<GroupMember>",
            order: "UserId",
            sample: sample!(|queries| {
                let _page = queries.members_of_group(&"{GroupId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-019",
            title: "is U a member of G, with role",
            input: "UserId, GroupId",
            result: "Membership, if there",
            order: "",
            sample: sample!(|queries| {
                queries.membership(&"{UserId}".into(), &"{GroupId}".into()).await?;
            }),
        },
    ]
}

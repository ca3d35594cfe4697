//! Samples of the writes of users, follows, groups and organizations.

use entities::{
    emails::{EmailClaim, EmailClaimKey, normalised},
    people::{User, UserKey},
};
use keys::entity::Entity;

use super::write;
use crate::{
    pattern::{AccessPattern, sample},
    writes::users::{NewUser, ProfileEdit},
};

/// The patterns of this file.
pub(super) const PATTERNS: &[AccessPattern] = &[
    write(
        "WP-01",
        "create a user with the claim of their email",
        "UserId, NewUser",
        "nothing; refused: an existing ID, a taken email",
        sample!(|queries| {
            queries.create_user(&"{UserId}".into(), new_user()).await?;
        }),
    ),
    write(
        "WP-02",
        "edit a profile under its version",
        "UserId, version, ProfileEdit",
        "the new version; refused: another version, none there",
        sample!(|queries| {
            queries.given(profile().to_item(&queries.layout)?)?;
            let edit = ProfileEdit { name: Some("{Name}".to_owned()), ..ProfileEdit::default() };
            queries.update_profile(&"{UserId}".into(), 1, edit).await?;
        }),
    ),
    write(
        "WP-02",
        "edit a profile under its version, with a new email",
        "UserId, version, ProfileEdit",
        "the new version; refused: another version, none there, a taken email",
        sample!(|queries| {
            queries.given(profile().to_item(&queries.layout)?)?;
            queries.given(claim().to_item(&queries.layout)?)?;
            let edit = ProfileEdit { email: Some("{NewEmail}".to_owned()), ..ProfileEdit::default() };
            queries.update_profile(&"{UserId}".into(), 1, edit).await?;
        }),
    ),
    write(
        "WP-06",
        "follow",
        "FollowerId, FolloweeId",
        "was it new; refused: oneself",
        sample!(|queries| {
            queries.follow(&"{FollowerId}".into(), &"{FolloweeId}".into()).await?;
        }),
    ),
    write(
        "WP-06",
        "unfollow",
        "FollowerId, FolloweeId",
        "was it there",
        sample!(|queries| {
            queries.unfollow(&"{FollowerId}".into(), &"{FolloweeId}".into()).await?;
        }),
    ),
    write(
        "WP-07",
        "join a group",
        "UserId, GroupId, role",
        "nothing; refused: who is in it",
        sample!(|queries| {
            queries.join_group(&"{UserId}".into(), &"{GroupId}".into(), "{Role}").await?;
        }),
    ),
    write(
        "WP-07",
        "change a role in a group",
        "UserId, GroupId, role",
        "nothing; refused: who is not in it",
        sample!(|queries| {
            queries.join_group(&"{UserId}".into(), &"{GroupId}".into(), "{Role}").await?;
            queries.forget();
            queries.change_role(&"{UserId}".into(), &"{GroupId}".into(), "{Role}").await?;
        }),
    ),
    write(
        "WP-07",
        "leave a group",
        "UserId, GroupId",
        "was it there",
        sample!(|queries| {
            queries.leave_group(&"{UserId}".into(), &"{GroupId}".into()).await?;
        }),
    ),
    write(
        "WP-13",
        "create a group",
        "GroupId, name, description",
        "nothing; refused: an existing ID",
        sample!(|queries| {
            queries.create_group(&"{GroupId}".into(), "{Name}", Some("{Description}")).await?;
        }),
    ),
    write(
        "WP-13",
        "rename a group",
        "GroupId, name",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.create_group(&"{GroupId}".into(), "{Name}", None).await?;
            queries.forget();
            queries.rename_group(&"{GroupId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-13",
        "delete a group",
        "GroupId",
        "was it there",
        sample!(|queries| {
            queries.delete_group(&"{GroupId}".into()).await?;
        }),
    ),
    write(
        "WP-14",
        "create an organization",
        "OrgId, name",
        "nothing; refused: an existing ID",
        sample!(|queries| {
            queries.create_organization(&"{OrgId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-14",
        "rename an organization",
        "OrgId, name",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.create_organization(&"{OrgId}".into(), "{Name}").await?;
            queries.forget();
            queries.rename_organization(&"{OrgId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-14",
        "add a team",
        "OrgId, TeamId, name",
        "nothing; refused: an existing ID",
        sample!(|queries| {
            queries.add_team(&"{OrgId}".into(), &"{TeamId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-14",
        "rename a team",
        "OrgId, TeamId, name",
        "nothing; refused: none there",
        sample!(|queries| {
            queries.add_team(&"{OrgId}".into(), &"{TeamId}".into(), "{Name}").await?;
            queries.forget();
            queries.rename_team(&"{OrgId}".into(), &"{TeamId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-14",
        "remove a team",
        "OrgId, TeamId",
        "was it there",
        sample!(|queries| {
            queries.remove_team(&"{OrgId}".into(), &"{TeamId}".into()).await?;
        }),
    ),
    write(
        "WP-14",
        "add a member",
        "OrgId, UserId, role",
        "nothing; refused: who is one",
        sample!(|queries| {
            queries.add_member(&"{OrgId}".into(), &"{UserId}".into(), "{Role}").await?;
        }),
    ),
    write(
        "WP-14",
        "change a member's role",
        "OrgId, UserId, role",
        "nothing; refused: who is none",
        sample!(|queries| {
            queries.add_member(&"{OrgId}".into(), &"{UserId}".into(), "{Role}").await?;
            queries.forget();
            queries.change_member(&"{OrgId}".into(), &"{UserId}".into(), "{Role}").await?;
        }),
    ),
    write(
        "WP-14",
        "remove a member",
        "OrgId, UserId",
        "was it there",
        sample!(|queries| {
            queries.remove_member(&"{OrgId}".into(), &"{UserId}".into()).await?;
        }),
    ),
    write(
        "WP-18",
        "delete a user; the cascade D-29 does the rest",
        "UserId",
        "was it there",
        sample!(|queries| {
            queries.delete_user(&"{UserId}".into()).await?;
        }),
    ),
    write(
        "WP-19",
        "subscribe",
        "UserId, SubscriptionId, plan",
        "nothing; refused: an existing ID",
        sample!(|queries| {
            queries.subscribe(&"{UserId}".into(), &"{SubscriptionId}".into(), "{Plan}").await?;
        }),
    ),
    write(
        "WP-19",
        "unsubscribe",
        "UserId, SubscriptionId",
        "was it there",
        sample!(|queries| {
            queries.unsubscribe(&"{UserId}".into(), &"{SubscriptionId}".into()).await?;
        }),
    ),
];

fn new_user() -> NewUser {
    NewUser { name: "{Name}".to_owned(), email: "{Email}".to_owned(), avatar: None }
}

fn profile() -> User {
    User {
        key: UserKey { user_id: "{UserId}".into() },
        email: Some(normalised("{Email}")),
        version: Some(1),
        created_at: Some("{CreatedAt}".to_owned()),
        ..User::default()
    }
}

fn claim() -> EmailClaim {
    let key = EmailClaimKey { email: normalised("{Email}") };
    EmailClaim { key, user_id: Some("{UserId}".into()), ..EmailClaim::default() }
}

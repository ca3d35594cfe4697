//! WP-07, WP-13 and WP-14.

use expect_test::expect;
use keys::key::Key;
use store::Store;

use crate::writes::bed::{Bed, n, s};

pub(crate) async fn wp_07_a_user_joins_changes_role_and_leaves<S: Store>(bed: Bed<S>) {
    let (ada, group) = ("ada", "g1");
    bed.queries.join_group(ada, group, "member").await.unwrap();
    bed.set(&Key::new("USER#ada", "GROUP#g1"), [("GroupName", s("Poets"))]).await;
    bed.later();
    bed.queries.change_role(ada, group, "owner").await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / GROUP#g1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Membership
            GroupName = Poets
            JoinedAt = 2024-01-15T10:30:00.000Z
            Role = owner
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    assert!(bed.queries.leave_group(ada, group).await.unwrap());
    assert!(!bed.queries.leave_group(ada, group).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_07_who_is_in_cannot_join_and_who_is_out_has_no_role<S: Store>(bed: Bed<S>) {
    let (ada, bob, group) = ("ada", "bob", "g1");
    bed.queries.join_group(ada, group, "member").await.unwrap();
    let before = bed.items().await;
    bed.later();
    bed.refuses(
        bed.queries.join_group(ada, group, "owner").await,
        "USER#ada / GROUP#g1: there is one already; choose another id, or change that one",
    );
    bed.refuses(
        bed.queries.change_role(bob, group, "owner").await,
        "USER#bob / GROUP#g1: there is none; look for it again",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_13_a_group_is_created_renamed_and_deleted<S: Store>(bed: Bed<S>) {
    let group = "g1";
    bed.queries.create_group(group, "Poets", Some("Who write.")).await.unwrap();
    bed.set(&Key::new("GROUP#g1", "METADATA"), [("MemberCount", n(7))]).await;
    bed.later();
    bed.queries.rename_group(group, "Dead poets").await.unwrap();
    bed.holds(expect![[r#"
        GROUP#g1 / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            Description = Who write.
            EntityType = Group
            MemberCount = 7
            Name = Dead poets
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    assert!(bed.queries.delete_group(group).await.unwrap());
    assert!(!bed.queries.delete_group(group).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_13_a_group_that_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    bed.queries.create_group("g1", "Poets", None).await.unwrap();
    let before = bed.items().await;
    bed.refuses(
        bed.queries.create_group("g1", "Others", None).await,
        "GROUP#g1 / METADATA: there is one already; choose another id, or change that one",
    );
    bed.refuses(
        bed.queries.rename_group("g2", "Others").await,
        "GROUP#g2 / METADATA: there is none; look for it again",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_14_an_organization_is_created_and_renamed<S: Store>(bed: Bed<S>) {
    let acme = "acme";
    bed.queries.create_organization(acme, "Acme").await.unwrap();
    bed.set(&Key::new("ORG#acme", "METADATA"), [("TeamCount", n(2))]).await;
    bed.later();
    bed.queries.rename_organization(acme, "Acme & Sons").await.unwrap();
    bed.holds(expect![[r#"
        ORG#acme / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Organization
            Name = Acme & Sons
            TeamCount = 2
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
}

pub(crate) async fn wp_14_teams_and_members_come_change_and_go<S: Store>(bed: Bed<S>) {
    let (acme, team, ada) = ("acme", "t1", "ada");
    bed.queries.add_team(acme, team, "Kernel").await.unwrap();
    bed.queries.add_member(acme, ada, "engineer").await.unwrap();
    bed.set(&Key::new("ORG#acme", "MEMBER#ada"), [("UserName", s("Ada")), ("OrgName", s("Acme"))]).await;
    bed.later();
    bed.queries.rename_team(acme, team, "Core").await.unwrap();
    bed.queries.change_member(acme, ada, "lead").await.unwrap();
    bed.holds(expect![[r#"
        ORG#acme / MEMBER#ada
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Member
            GSI1PK = USER#ada
            GSI1SK = MEMBER#ORG#acme
            OrgName = Acme
            Role = lead
            UpdatedAt = 2024-01-15T10:30:01.000Z
            UserName = Ada
        ORG#acme / TEAM#t1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Team
            GSI1PK = TEAM#t1
            GSI1SK = TEAM
            Name = Core
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    assert!(bed.queries.remove_team(acme, team).await.unwrap());
    assert!(!bed.queries.remove_team(acme, team).await.unwrap());
    assert!(bed.queries.remove_member(acme, ada).await.unwrap());
    assert!(!bed.queries.remove_member(acme, ada).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_14_what_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    let (acme, other) = ("acme", "other");
    bed.queries.create_organization(acme, "Acme").await.unwrap();
    bed.queries.add_team(acme, "t1", "Kernel").await.unwrap();
    bed.queries.add_member(acme, "ada", "engineer").await.unwrap();
    let before = bed.items().await;
    let there = |item: &str| format!("{item}: there is one already; choose another id, or change that one");
    let none = |item: &str| format!("{item}: there is none; look for it again");
    bed.refuses(bed.queries.create_organization(acme, "B").await, &there("ORG#acme / METADATA"));
    bed.refuses(bed.queries.add_team(acme, "t1", "B").await, &there("ORG#acme / TEAM#t1"));
    bed.refuses(bed.queries.add_member(acme, "ada", "B").await, &there("ORG#acme / MEMBER#ada"));
    bed.refuses(bed.queries.rename_organization(other, "B").await, &none("ORG#other / METADATA"));
    bed.refuses(bed.queries.rename_team(other, "t1", "B").await, &none("ORG#other / TEAM#t1"));
    bed.refuses(bed.queries.change_member(acme, "bob", "B").await, &none("ORG#acme / MEMBER#bob"));
    assert_eq!(bed.items().await, before);
}

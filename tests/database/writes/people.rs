//! Users, posts and groups: WP-01 to WP-07, WP-13, WP-14, WP-17 and WP-18.

use expect_test::expect;
use keys::key::Key;
use queries::{
    write_error::WriteError,
    writes::{
        draft::Edit,
        posts::{NewPost, PostEdit},
        users::{NewUser, ProfileEdit},
    },
};
use serde_json::json;
use store::Store;

use crate::{
    s,
    writes::{Bed, n},
};

pub(crate) fn user(name: &str, email: &str) -> NewUser {
    NewUser { name: name.to_owned(), email: email.to_owned(), avatar: None }
}

fn email(email: &str) -> ProfileEdit {
    ProfileEdit { email: Some(email.to_owned()), ..ProfileEdit::default() }
}

async fn ada_and_bob<S: Store>(bed: &Bed<S>) {
    bed.queries.create_user("ada", user("Ada", "ada@example.org")).await.unwrap();
    bed.queries.create_user("bob", user("Bob", "bob@example.org")).await.unwrap();
}

pub(crate) async fn wp_01_a_user_is_created_with_the_claim_of_their_email<S: Store>(bed: Bed<S>) {
    let avatar = Some("https://example.org/ada.png".to_owned());
    let new = NewUser { avatar, ..user("Ada", " Ada@Example.org ") };
    bed.queries.create_user("ada", new).await.unwrap();
    bed.holds(expect![[r#"
        EMAIL#ada@example.org / CLAIM
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = EmailClaim
            UpdatedAt = 2024-01-15T10:30:00.000Z
            UserId = ada
        USER#ada / PROFILE
            Avatar = https://example.org/ada.png
            CreatedAt = 2024-01-15T10:30:00.000Z
            Email = ada@example.org
            EntityType = User
            GSI1PK = EMAIL#ada@example.org
            GSI1SK = USER#ada
            GSI2PK = USERS#00
            GSI2SK = 2024-01-15T10:30:00.000Z#ada
            Name = Ada
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Version = 1
    "#]])
        .await;
}

pub(crate) async fn wp_01_an_existing_id_is_refused<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let before = bed.items().await;
    bed.exists(bed.queries.create_user("ada", user("Eve", "eve@example.org")).await, "USER#ada / PROFILE");
    let same = bed.queries.create_user("ada", user("Eve", "ada@example.org")).await;
    assert!(matches!(same, Err(WriteError::AlreadyExists { .. })), "{same:?}");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_01_a_taken_email_is_refused_without_saying_it<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let before = bed.items().await;
    bed.refuses(
        bed.queries.create_user("eve", user("Eve", " ADA@example.org")).await,
        "user eve: the email is taken by another user; choose another",
    );
    bed.refuses(
        bed.queries.create_user("eve", user("Eve", "  ")).await,
        "User.Email is empty; a key value must not be",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_01_a_claim_that_is_left_of_the_same_user_is_taken_over<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    assert!(bed.queries.delete_user("ada").await.unwrap());
    bed.refuses(
        bed.queries.create_user("eve", user("Eve", "ada@example.org")).await,
        "user eve: the email is taken by another user; choose another",
    );
    bed.later();
    bed.queries.create_user("ada", user("Ada again", "ada@example.org")).await.unwrap();
    let user = bed.item(&Key::new("USER#ada", "PROFILE")).await.unwrap();
    assert_eq!(user.get("Name"), Some(&s("Ada again")));
}

pub(crate) async fn wp_02_a_profile_is_edited_under_its_version<S: Store>(bed: Bed<S>) {
    let ada = "ada";
    let new = NewUser { avatar: Some("a.png".to_owned()), ..user("Ada", "ada@example.org") };
    bed.queries.create_user(ada, new).await.unwrap();
    bed.set(&Key::new("USER#ada", "PROFILE"), [("FollowerCount", n(3)), ("Note", s("another client's"))]).await;
    bed.later();
    let edit = ProfileEdit { name: Some("Countess".to_owned()), ..ProfileEdit::default() };
    assert_eq!(bed.queries.update_profile(ada, 1, edit).await.unwrap(), 2);
    let edit = ProfileEdit { avatar: Edit::Clear, ..ProfileEdit::default() };
    assert_eq!(bed.queries.update_profile(ada, 2, edit).await.unwrap(), 3);
    bed.holds(expect![[r#"
        EMAIL#ada@example.org / CLAIM
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = EmailClaim
            UpdatedAt = 2024-01-15T10:30:00.000Z
            UserId = ada
        USER#ada / PROFILE
            CreatedAt = 2024-01-15T10:30:00.000Z
            Email = ada@example.org
            EntityType = User
            FollowerCount = 3
            GSI1PK = EMAIL#ada@example.org
            GSI1SK = USER#ada
            GSI2PK = USERS#00
            GSI2SK = 2024-01-15T10:30:00.000Z#ada
            Name = Countess
            Note = another client's
            UpdatedAt = 2024-01-15T10:30:01.000Z
            Version = 3
    "#]])
        .await;
}

pub(crate) async fn wp_02_a_profile_of_another_client_has_version_0<S: Store>(bed: Bed<S>) {
    bed.given("User", json!({ "UserId": "ada", "Email": "ada@example.org", "CreatedAt": "2024" })).await;
    assert_eq!(bed.queries.update_profile("ada", 0, email("new@example.org")).await.unwrap(), 1);
    bed.holds(expect![[r#"
        EMAIL#new@example.org / CLAIM
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = EmailClaim
            UpdatedAt = 2024-01-15T10:30:00.000Z
            UserId = ada
        USER#ada / PROFILE
            CreatedAt = 2024
            Email = new@example.org
            EntityType = User
            GSI1PK = EMAIL#new@example.org
            GSI1SK = USER#ada
            GSI2PK = USERS#00
            GSI2SK = 2024#ada
            UpdatedAt = 2024-01-15T10:30:00.000Z
            Version = 1
    "#]])
        .await;
}

pub(crate) async fn wp_02_an_old_version_is_refused<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let edit = |name: &str| ProfileEdit { name: Some(name.to_owned()), ..ProfileEdit::default() };
    bed.queries.update_profile("ada", 1, edit("Countess")).await.unwrap();
    let before = bed.items().await;
    let wanted = "user ada: version 1 is not the profile's any more; read it again";
    bed.refuses(bed.queries.update_profile("ada", 1, edit("Ada")).await, wanted);
    bed.refuses(bed.queries.update_profile("ada", 1, email("new@example.org")).await, wanted);
    bed.lacks(bed.queries.update_profile("eve", 1, edit("Eve")).await, "USER#eve / PROFILE");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_02_a_new_email_moves_the_claim<S: Store>(bed: Bed<S>) {
    bed.queries.create_user("ada", user("Ada", "ada@example.org")).await.unwrap();
    bed.set(&Key::new("USER#ada", "PROFILE"), [("PostCount", n(2))]).await;
    bed.later();
    bed.queries.update_profile("ada", 1, email("Countess@example.org")).await.unwrap();
    bed.holds(expect![[r#"
        EMAIL#countess@example.org / CLAIM
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = EmailClaim
            UpdatedAt = 2024-01-15T10:30:01.000Z
            UserId = ada
        USER#ada / PROFILE
            CreatedAt = 2024-01-15T10:30:00.000Z
            Email = countess@example.org
            EntityType = User
            GSI1PK = EMAIL#countess@example.org
            GSI1SK = USER#ada
            GSI2PK = USERS#00
            GSI2SK = 2024-01-15T10:30:00.000Z#ada
            Name = Ada
            PostCount = 2
            UpdatedAt = 2024-01-15T10:30:01.000Z
            Version = 2
    "#]])
        .await;
}

pub(crate) async fn wp_02_another_form_of_the_same_email_keeps_the_claim<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let claim = Key::new("EMAIL#ada@example.org", "CLAIM");
    let before = bed.item(&claim).await.unwrap();
    bed.later();
    bed.queries.update_profile("ada", 1, email("ADA@example.org")).await.unwrap();
    assert_eq!(bed.item(&claim).await, Some(before));
    assert_eq!(bed.items().await.len(), 4);
}

pub(crate) async fn wp_02_somebody_elses_claim_stays_where_it_is<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    bed.given("EmailClaim", json!({ "Email": "ada@example.org", "UserId": "eve" })).await;
    bed.queries.update_profile("ada", 1, email("new@example.org")).await.unwrap();
    let holder = bed.item(&Key::new("EMAIL#ada@example.org", "CLAIM")).await.unwrap();
    assert_eq!(holder.get("UserId"), Some(&s("eve")));
}

pub(crate) async fn wp_02_a_taken_email_is_refused_and_nothing_is_changed<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let before = bed.items().await;
    let edit = ProfileEdit { name: Some("Eve".to_owned()), ..email("Bob@example.org") };
    bed.refuses(
        bed.queries.update_profile("ada", 1, edit).await,
        "user ada: the email is taken by another user; choose another",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_06_a_follow_is_once<S: Store>(bed: Bed<S>) {
    let (ada, bob) = ("ada", "bob");
    assert!(bed.queries.follow(ada, bob).await.unwrap());
    bed.set(&Key::new("USER#ada", "FOLLOWS#bob"), [("FolloweeName", s("Bob"))]).await;
    bed.later();
    assert!(!bed.queries.follow(ada, bob).await.unwrap());
    bed.holds(expect![[r#"
        USER#ada / FOLLOWS#bob
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Follow
            FolloweeName = Bob
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.is_emptied_by(async || bed.queries.unfollow(ada, bob).await).await;
}

pub(crate) async fn wp_06_nobody_follows_themselves<S: Store>(bed: Bed<S>) {
    bed.refuses(bed.queries.follow("ada", "ada").await, "user ada: nobody follows themselves; choose another user");
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_18_a_user_is_deleted_and_nothing_else<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    bed.queries.follow("ada", "bob").await.unwrap();
    let before = bed.items().await;
    assert!(bed.queries.delete_user("ada").await.unwrap());
    assert!(!bed.queries.delete_user("ada").await.unwrap());
    let left: Vec<_> = before.into_iter().filter(|(key, _)| *key != Key::new("USER#ada", "PROFILE")).collect();
    assert_eq!(bed.items().await, left);
}

// ---- WP-03, WP-04, WP-05 and WP-17 ----

fn post() -> NewPost {
    NewPost { title: "Engines".to_owned(), content: Some("Of numbers.".to_owned()), is_published: false }
}

pub(crate) async fn wp_03_a_post_goes_from_draft_to_archive<S: Store>(bed: Bed<S>) {
    let key = bed.queries.create_post("ada", "p1", post()).await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / POST#2024-01-15T10:30:00.000Z#p1
            Content = Of numbers.
            EntityType = Post
            Status = draft
            Title = Engines
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.set(&Key::new("USER#ada", "POST#2024-01-15T10:30:00.000Z#p1"), [("Note", s("another client's"))]).await;
    bed.later();
    bed.queries.publish_post(&key).await.unwrap();
    bed.queries.publish_post(&key).await.unwrap();
    let edit = PostEdit { title: Some("Engines, revised".to_owned()), content: Edit::Clear };
    bed.queries.edit_post(&key, edit).await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / POST#2024-01-15T10:30:00.000Z#p1
            EntityType = Post
            Note = another client's
            Status = published
            Title = Engines, revised
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    bed.later();
    bed.queries.archive_post(&key).await.unwrap();
    bed.holds(expect![[r#"
        USER#ada / POST#2024-01-15T10:30:00.000Z#p1
            EntityType = Post
            Note = another client's
            Status = archived
            Title = Engines, revised
            UpdatedAt = 2024-01-15T10:30:02.000Z
    "#]])
        .await;
    bed.is_emptied_by(async || bed.queries.delete_post(&key).await).await;
}

pub(crate) async fn wp_03_a_post_that_is_not_there_is_refused<S: Store>(bed: Bed<S>) {
    let key = Key::new("USER#ada", "POST#2024#p1");
    let wanted = "USER#ada / POST#2024#p1";
    bed.lacks(bed.queries.publish_post(&key).await, wanted);
    bed.lacks(bed.queries.archive_post(&key).await, wanted);
    bed.lacks(bed.queries.edit_post(&key, PostEdit::default()).await, wanted);
    // The key of another entity's item is no post's.
    let comment = Key::new("POST#p1", "COMMENT#2024#c1");
    let wanted = "POST#p1 / COMMENT#2024#c1";
    bed.lacks(bed.queries.archive_post(&comment).await, wanted);
    bed.lacks(bed.queries.delete_post(&comment).await, wanted);
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_03_a_post_of_the_same_time_and_id_is_refused<S: Store>(bed: Bed<S>) {
    let new = NewPost { is_published: true, content: None, ..post() };
    bed.queries.create_post("ada", "p1", new).await.unwrap();
    let before = bed.items().await;
    bed.exists(bed.queries.create_post("ada", "p1", post()).await, "USER#ada / POST#2024-01-15T10:30:00.000Z#p1");
    assert_eq!(bed.items().await, before);
    assert_eq!(before.first().and_then(|(_, item)| item.get("Status")), Some(&s("published")));
}

pub(crate) async fn wp_04_a_comment_is_edited_and_deleted<S: Store>(bed: Bed<S>) {
    let key = bed.queries.comment("bob", "p1", "c1", "Indeed.").await.unwrap();
    bed.set(&Key::new("POST#p1", "COMMENT#2024-01-15T10:30:00.000Z#c1"), [("UserName", s("Bob"))]).await;
    bed.exists(bed.queries.comment("eve", "p1", "c1", "No.").await, "POST#p1 / COMMENT#2024-01-15T10:30:00.000Z#c1");
    bed.later();
    bed.queries.edit_comment(&key, "Indeed not.").await.unwrap();
    bed.holds(expect![[r#"
        POST#p1 / COMMENT#2024-01-15T10:30:00.000Z#c1
            EntityType = Comment
            GSI1PK = USER#bob
            GSI1SK = COMMENT#2024-01-15T10:30:00.000Z#c1
            Text = Indeed not.
            UpdatedAt = 2024-01-15T10:30:01.000Z
            UserId = bob
            UserName = Bob
    "#]])
        .await;
    bed.is_emptied_by(async || bed.queries.delete_comment(&key).await).await;
}

pub(crate) async fn wp_04_a_comment_that_is_not_there_is_refused<S: Store>(bed: Bed<S>) {
    let key = Key::new("POST#p1", "COMMENT#2024#c1");
    bed.lacks(bed.queries.edit_comment(&key, "x").await, "POST#p1 / COMMENT#2024#c1");
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_05_a_like_is_once<S: Store>(bed: Bed<S>) {
    let (bob, post) = ("bob", "p1");
    assert!(bed.queries.like(bob, post).await.unwrap());
    bed.later();
    assert!(!bed.queries.like(bob, post).await.unwrap());
    bed.holds(expect![[r#"
        USER#bob / LIKE#POST#p1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Like
            GSI1PK = POST#p1
            GSI1SK = LIKE#USER#bob
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    bed.is_emptied_by(async || bed.queries.unlike(bob, post).await).await;
}

pub(crate) async fn wp_17_a_view_expires<S: Store>(bed: Bed<S>) {
    let first = bed.queries.record_view("bob", "p1").await.unwrap();
    assert_eq!(bed.queries.record_view("bob", "p1").await.unwrap(), first);
    bed.later();
    bed.queries.record_view("bob", "p1").await.unwrap();
    bed.holds(expect![[r#"
        USER#bob / VIEW#2024-01-15T10:30:00.000Z#p1
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = View
            ExpiresAt = 1713090600
            UpdatedAt = 2024-01-15T10:30:00.000Z
        USER#bob / VIEW#2024-01-15T10:30:01.000Z#p1
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = View
            ExpiresAt = 1713090601
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
}

// ---- WP-07, WP-13 and WP-14 ----

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
    bed.is_emptied_by(async || bed.queries.leave_group(ada, group).await).await;
}

pub(crate) async fn wp_07_who_is_in_cannot_join_and_who_is_out_has_no_role<S: Store>(bed: Bed<S>) {
    let (ada, bob, group) = ("ada", "bob", "g1");
    bed.queries.join_group(ada, group, "member").await.unwrap();
    let before = bed.items().await;
    bed.later();
    bed.exists(bed.queries.join_group(ada, group, "owner").await, "USER#ada / GROUP#g1");
    bed.lacks(bed.queries.change_role(bob, group, "owner").await, "USER#bob / GROUP#g1");
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
    bed.is_emptied_by(async || bed.queries.delete_group(group).await).await;
}

pub(crate) async fn wp_13_a_group_that_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    bed.queries.create_group("g1", "Poets", None).await.unwrap();
    let before = bed.items().await;
    bed.exists(bed.queries.create_group("g1", "Others", None).await, "GROUP#g1 / METADATA");
    bed.lacks(bed.queries.rename_group("g2", "Others").await, "GROUP#g2 / METADATA");
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
    bed.is_emptied_by(async || bed.queries.remove_member(acme, ada).await).await;
}

pub(crate) async fn wp_14_what_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    let (acme, other) = ("acme", "other");
    bed.queries.create_organization(acme, "Acme").await.unwrap();
    bed.queries.add_team(acme, "t1", "Kernel").await.unwrap();
    bed.queries.add_member(acme, "ada", "engineer").await.unwrap();
    let before = bed.items().await;
    bed.exists(bed.queries.create_organization(acme, "B").await, "ORG#acme / METADATA");
    bed.exists(bed.queries.add_team(acme, "t1", "B").await, "ORG#acme / TEAM#t1");
    bed.exists(bed.queries.add_member(acme, "ada", "B").await, "ORG#acme / MEMBER#ada");
    bed.lacks(bed.queries.rename_organization(other, "B").await, "ORG#other / METADATA");
    bed.lacks(bed.queries.rename_team(other, "t1", "B").await, "ORG#other / TEAM#t1");
    bed.lacks(bed.queries.change_member(acme, "bob", "B").await, "ORG#acme / MEMBER#bob");
    assert_eq!(bed.items().await, before);
}

//! WP-01, WP-02, WP-06 and WP-18.

use expect_test::expect;
use keys::key::Key;
use queries::{
    write_error::WriteError,
    writes::{
        draft::Edit,
        users::{NewUser, ProfileEdit},
    },
};
use serde_json::json;
use store::Store;

use crate::writes::bed::{Bed, n, s};

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
    let again = bed.queries.create_user("ada", user("Eve", "eve@example.org")).await;
    bed.refuses(again, "USER#ada / PROFILE: there is one already; choose another id, or change that one");
    let same = bed.queries.create_user("ada", user("Eve", "ada@example.org")).await;
    assert!(matches!(same, Err(WriteError::AlreadyExists { .. })), "{same:?}");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_01_a_taken_email_is_refused_without_saying_it<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    let before = bed.items().await;
    let taken = bed.queries.create_user("eve", user("Eve", " ADA@example.org")).await;
    bed.refuses(taken, "user eve: the email is taken by another user; choose another");
    let none = bed.queries.create_user("eve", user("Eve", "  ")).await;
    bed.refuses(none, "User.Email is empty; a key value must not be");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_01_a_claim_that_is_left_of_the_same_user_is_taken_over<S: Store>(bed: Bed<S>) {
    ada_and_bob(&bed).await;
    assert!(bed.queries.delete_user("ada").await.unwrap());
    let other = bed.queries.create_user("eve", user("Eve", "ada@example.org")).await;
    bed.refuses(other, "user eve: the email is taken by another user; choose another");
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
    let none = bed.queries.update_profile("eve", 1, edit("Eve")).await;
    bed.refuses(none, "USER#eve / PROFILE: there is none; look for it again");
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
    let taken = bed.queries.update_profile("ada", 1, edit).await;
    bed.refuses(taken, "user ada: the email is taken by another user; choose another");
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
    assert!(bed.queries.unfollow(ada, bob).await.unwrap());
    assert!(!bed.queries.unfollow(ada, bob).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_06_nobody_follows_themselves<S: Store>(bed: Bed<S>) {
    let answer = bed.queries.follow("ada", "ada").await;
    bed.refuses(answer, "user ada: nobody follows themselves; choose another user");
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

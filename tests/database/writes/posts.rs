//! WP-03, WP-04, WP-05 and WP-17.

use expect_test::expect;
use keys::key::Key;
use queries::writes::{
    draft::Edit,
    posts::{NewPost, PostEdit},
};
use store::Store;

use crate::writes::bed::{Bed, s};

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
    assert!(bed.queries.delete_post(&key).await.unwrap());
    assert!(!bed.queries.delete_post(&key).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_03_a_post_that_is_not_there_is_refused<S: Store>(bed: Bed<S>) {
    let key = Key::new("USER#ada", "POST#2024#p1");
    let wanted = "USER#ada / POST#2024#p1: there is none; look for it again";
    bed.refuses(bed.queries.publish_post(&key).await, wanted);
    bed.refuses(bed.queries.archive_post(&key).await, wanted);
    bed.refuses(bed.queries.edit_post(&key, PostEdit::default()).await, wanted);
    // The key of another entity's item is no post's.
    let comment = Key::new("POST#p1", "COMMENT#2024#c1");
    let wanted = "POST#p1 / COMMENT#2024#c1: there is none; look for it again";
    bed.refuses(bed.queries.archive_post(&comment).await, wanted);
    bed.refuses(bed.queries.delete_post(&comment).await, wanted);
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_03_a_post_of_the_same_time_and_id_is_refused<S: Store>(bed: Bed<S>) {
    let new = NewPost { is_published: true, content: None, ..post() };
    bed.queries.create_post("ada", "p1", new).await.unwrap();
    let before = bed.items().await;
    let again = bed.queries.create_post("ada", "p1", post()).await;
    bed.refuses(
        again,
        "USER#ada / POST#2024-01-15T10:30:00.000Z#p1: there is one already; choose another id, or change that one",
    );
    assert_eq!(bed.items().await, before);
    assert_eq!(before.first().and_then(|(_, item)| item.get("Status")), Some(&s("published")));
}

pub(crate) async fn wp_04_a_comment_is_edited_and_deleted<S: Store>(bed: Bed<S>) {
    let key = bed.queries.comment("bob", "p1", "c1", "Indeed.").await.unwrap();
    bed.set(&Key::new("POST#p1", "COMMENT#2024-01-15T10:30:00.000Z#c1"), [("UserName", s("Bob"))]).await;
    let again = bed.queries.comment("eve", "p1", "c1", "No.").await;
    bed.refuses(
        again,
        "POST#p1 / COMMENT#2024-01-15T10:30:00.000Z#c1: there is one already; choose another id, or change that one",
    );
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
    assert!(bed.queries.delete_comment(&key).await.unwrap());
    assert!(!bed.queries.delete_comment(&key).await.unwrap());
    assert!(bed.items().await.is_empty());
}

pub(crate) async fn wp_04_a_comment_that_is_not_there_is_refused<S: Store>(bed: Bed<S>) {
    let key = Key::new("POST#p1", "COMMENT#2024#c1");
    bed.refuses(
        bed.queries.edit_comment(&key, "x").await,
        "POST#p1 / COMMENT#2024#c1: there is none; look for it again",
    );
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
    assert!(bed.queries.unlike(bob, post).await.unwrap());
    assert!(!bed.queries.unlike(bob, post).await.unwrap());
    assert!(bed.items().await.is_empty());
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

//! Posts, comments, likes, views and counts.

use std::sync::Arc;

use derive::query::{Consistency, Order};
use entities::{
    counter::Counter,
    ids::{PostId, UserId},
    organizations::{Organization, OrganizationKey},
    people::{User, UserKey},
    posts::{Comment, Like, Post, PostDetail, PostDetailKey, View},
};
use keys::number::Decimal;
use queries::{
    page::PageRequest,
    read_error::ReadError,
    reads::{
        counts::{ExactCount, ExactCounts},
        times::Times,
    },
};

use crate::patterns::{
    bed::{Bed, mapped},
    crowd::{TIMES, ids, in_order, whole},
};

type Held = Arc<Bed>;

fn users() -> Vec<UserId> {
    ids("u").into_iter().map(UserId::from).collect()
}

fn posts() -> Vec<PostId> {
    ids("p").into_iter().map(PostId::from).collect()
}

pub(crate) async fn ap_005_posts_of_a_user_newest_first_and_by_status(bed: Held) {
    for user in users() {
        for status in [None, Some("published"), Some("draft")] {
            let is_wanted = |it: &Post| {
                it.key.author_id == user && status.is_none_or(|status| it.status.as_deref() == Some(status))
            };
            let wanted = bed.crowd.reversed(is_wanted, |it| (it.key.created_at.clone(), it.key.post_id.clone()));
            let read = async |page| bed.queries.posts_of(&user, status, &page).await;
            bed.lists((&user, status), &wanted, read).await;
        }
        let none = bed.queries.posts_of(&user, Some("none"), &PageRequest::first(2)).await.unwrap();
        assert!(none.items.is_empty() && none.next.is_none(), "a page that finds nothing goes to the end");
    }
}

pub(crate) async fn ap_006_a_post_with_displays_or_with_exact_counts(bed: Held) {
    for post in posts() {
        let wanted = bed.crowd.only::<PostDetail>(|it| it.key.post_id == post);
        for consistency in [Consistency::Strong, Consistency::Eventual] {
            bed.same(&bed.queries.post(&post, consistency).await.unwrap().as_ref(), &Some(&wanted), &post);
        }
        let found = bed.queries.post_with_counts(&post).await.unwrap();
        bed.same(&found.post.as_ref(), &Some(&wanted), &post);
        let key = PostDetailKey { post_id: post };
        let counts = bed.queries.counts_of::<PostDetail>(&key).await.unwrap();
        bed.same(&named_counts(&found.counts), &named_counts(&counts), &key);
        bed.same(&found.counts.of("spread-count").value, &Some(39), &key);
    }
    bed.same(&bed.queries.post(&"p2".into(), Consistency::Strong).await.unwrap(), &None, "no post");
    bed.same(&bed.queries.post_with_counts(&"p2".into()).await.unwrap().post, &None, "no post");
}

pub(crate) async fn ap_007_recent_published_posts_of_all(bed: Held) {
    let is_published = |it: &PostDetail| it.status.as_deref() == Some("published");
    let newest = bed.crowd.reversed(is_published, |it| (it.created_at.clone(), it.key.post_id.clone()));
    assert!(newest.len() > 16);
    let wanted: Vec<_> =
        newest.into_iter().map(|it| (it.key, it.title, it.author_name, it.status, it.created_at)).collect();
    bed.lists("recent posts", &wanted, async |page| {
        let page = bed.queries.recent_posts(&page).await?;
        Ok(mapped(page, |it| (it.key, it.title, it.author_name, it.status, it.created_at)))
    })
    .await;
}

pub(crate) async fn ap_008_a_post_with_its_newest_comments(bed: Held) {
    for post in posts() {
        let wanted = bed.crowd.only::<PostDetail>(|it| it.key.post_id == post);
        let comments = newest_comments(&bed, &post);
        bed.asked();
        let found = bed.queries.post_with_comments(&post, &PageRequest::first(4)).await.unwrap();
        bed.same(&found.post, &Some(wanted), &post);
        bed.same(&found.comments.items, &comments[..3].to_vec(), &post);
        let read = async |page: PageRequest| {
            let found = bed.queries.post_with_comments(&post, &page).await?;
            // If the post exists, it is one of the page's items.
            let items = found.post.map(|_| None).into_iter().chain(found.comments.items.into_iter().map(Some));
            Ok(queries::page::Page { items: items.collect(), unreadable: vec![], next: found.comments.next })
        };
        let wanted: Vec<_> = std::iter::once(None).chain(comments.into_iter().map(Some)).collect();
        bed.lists(&post, &wanted, read).await;
    }
    let none = bed.queries.post_with_comments(&"p2".into(), &PageRequest::first(4)).await.unwrap();
    assert!(none.post.is_none() && none.comments.items.is_empty());
}

fn newest_comments(bed: &Bed, post: &PostId) -> Vec<Comment> {
    bed.crowd
        .reversed(|it: &Comment| it.key.post_id == *post, |it| (it.key.created_at.clone(), it.key.comment_id.clone()))
}

pub(crate) async fn ap_009_comments_of_a_post_in_either_order_between_two_times(bed: Held) {
    let time = |at: usize| Some(TIMES[at].to_owned());
    for post in posts() {
        for order in [Order::Ascending, Order::Descending] {
            for (from, to) in [
                (None, None),
                (time(0), time(3)),
                (time(1), time(2)),
                (time(0), Some("2024-01-15T10:30:00.001Z".to_owned())),
                (None, time(1)),
                (time(2), None),
                (Some("2024-01-15T10:30:00.000Y".to_owned()), Some("2024-01-15T10:30:00.002Z".to_owned())),
            ] {
                let is_within = |it: &Comment| {
                    from.as_ref().is_none_or(|from| it.key.created_at >= *from)
                        && to.as_ref().is_none_or(|to| it.key.created_at <= *to)
                };
                let mut newest = newest_comments(&bed, &post);
                newest.reverse();
                let wanted = in_order(newest.into_iter().filter(is_within).collect(), order);
                let times = Times { from: from.clone(), to: to.clone() };
                let read = async |page| bed.queries.comments_of_post(&post, &times, order, &page).await;
                bed.lists((&post, order, &from, &to), &wanted, read).await;
            }
        }
    }
    let post = PostId::from("p1");
    let ask = async |times: Times| {
        bed.queries.comments_of_post(&post, &times, Order::Ascending, &PageRequest::first(5)).await
    };
    let none = ask(Times::between("2024-01-15T11", "2024-01-15T12")).await.unwrap();
    assert!(none.items.is_empty() && none.next.is_none());
    assert!(matches!(ask(Times::between(TIMES[1], TIMES[0])).await, Err(ReadError::TimesReversed)));
    assert!(matches!(ask(Times::between("", TIMES[0])).await, Err(ReadError::Key(_))));
}

pub(crate) async fn ap_010_comments_of_a_user_newest_first(bed: Held) {
    for user in users() {
        let is_theirs = |it: &Comment| it.user_id.as_ref() == Some(&user);
        let newest = bed.crowd.reversed(is_theirs, |it| (it.key.created_at.clone(), it.key.comment_id.clone()));
        let wanted: Vec<_> = newest.into_iter().map(|it| (it.key, it.text)).collect();
        bed.lists(&user, &wanted, async |page| {
            Ok(mapped(bed.queries.comments_of_user(&user, &page).await?, |it| (it.key, it.text)))
        })
        .await;
    }
}

pub(crate) async fn ap_011_posts_that_a_user_likes(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.sorted(|it: &Like| it.key.user_id == user, |it| it.key.post_id.clone());
        bed.lists(&user, &wanted, async |page| bed.queries.likes_of(&user, &page).await).await;
    }
}

pub(crate) async fn ap_012_users_who_like_a_post(bed: Held) {
    for post in posts() {
        let likes = bed.crowd.sorted(|it: &Like| it.key.post_id == post, |it| it.key.user_id.clone());
        let wanted: Vec<_> = likes.into_iter().map(|it| it.key).collect();
        bed.lists(&post, &wanted, async |page| Ok(mapped(bed.queries.likes_of_post(&post, &page).await?, |it| it.key)))
            .await;
    }
}

pub(crate) async fn ap_013_does_a_user_like_a_post(bed: Held) {
    for user in users() {
        for post in posts() {
            let found = bed.queries.like_of(&user, &post).await.unwrap();
            bed.same(&found.map(|it| (it.key.user_id, it.key.post_id)), &Some((user.clone(), post.clone())), &user);
        }
        for none in ["p2", "q1", "p1%2523x", "p1#STRANGER"] {
            bed.same(&bed.queries.like_of(&user, &none.into()).await.unwrap(), &None, none);
        }
    }
}

/// Derivation, value and sum.
fn named_counts(counts: &ExactCounts) -> Vec<(String, ExactCount)> {
    assert!(counts.unreadable.is_empty());
    counts.iter().map(|(derivation, count)| (derivation.to_owned(), count.clone())).collect()
}

pub(crate) async fn ap_040_exact_counts_of_a_target_are_the_sums_of_its_shards(bed: Held) {
    for (at, user) in users().into_iter().enumerate() {
        let key = UserKey { user_id: user.clone() };
        let counts = bed.queries.counts_of::<User>(&key).await.unwrap();
        let count =
            |value: i64, sum: Option<&str>| ExactCount { value: Some(value), sum: sum.and_then(Decimal::parse) };
        let wanted = [
            ("plain-count", count(whole(5 + at), None)),
            ("spread-count", count(39, None)),
            ("spread-count~2", count(7, None)),
            ("summed", count(5, Some("0.3"))),
        ];
        bed.same(&named_counts(&counts), &wanted.map(|(name, count)| (name.to_owned(), count)).to_vec(), &user);
        bed.same(&counts.of("summed"), &count(5, Some("0.3")), &user);
        bed.same(&counts.of("no-count"), &count(0, None), &user);
        let n_counters = bed
            .crowd
            .sorted(|it: &Counter| it.key.target.pk == format!("USER#{user}", user = user.as_str()), |_| ())
            .len();
        assert!(n_counters == 7 || user.as_str().contains(['#', '%']), "{user:?}: {n_counters}");
    }
    let nobody = bed.queries.counts_of::<User>(&UserKey { user_id: "u2".into() }).await.unwrap();
    assert_eq!(nobody.iter().count(), 0);
    let org = OrganizationKey { org_id: "o1#x".into() };
    bed.same(&bed.queries.counts_of::<Organization>(&org).await.unwrap().of("plain-count").value, &Some(7), &org);
}

pub(crate) async fn ap_043_posts_that_a_user_looked_at_newest_first(bed: Held) {
    for user in users() {
        let is_theirs = |it: &View| it.key.user_id == user;
        let wanted = bed.crowd.reversed(is_theirs, |it| (it.key.viewed_at.clone(), it.key.post_id.clone()));
        bed.lists(&user, &wanted, async |page| bed.queries.views_of(&user, &page).await).await;
    }
}

//! Users, their collections, and groups.

use std::sync::Arc;

use derive::query::Consistency;
use entities::{
    carts::CartItem,
    groups::{GroupMember, Membership},
    ids::{PostId, ProductId, UserId},
    people::{Follow, Follower, User},
    posts::PostDetail,
    products::Product,
    subscriptions::Subscription,
    table::layout,
};
use keys::{entity::Entity, item::text};
use queries::reads::collection::{Collected, ItemKind};

use crate::patterns::{bed::Bed, crowd::ids};

type Held = Arc<Bed>;

fn users() -> Vec<UserId> {
    ids("u").into_iter().map(UserId::from).collect()
}

pub(crate) async fn ap_001_a_user_by_id_is_that_user_and_no_other(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.only::<User>(|other| other.key.user_id == user);
        for consistency in [Consistency::Strong, Consistency::Eventual] {
            bed.same(&bed.queries.user(&user, consistency).await.unwrap(), &Some(wanted.clone()), &user);
        }
    }
    for nobody in ["u2", "U1", "u1%2523x", "USER#u1"] {
        bed.same(&bed.queries.user(&nobody.into(), Consistency::Strong).await.unwrap(), &None, nobody);
    }
    let refused = bed.queries.user(&"".into(), Consistency::Strong).await.unwrap_err();
    assert_eq!(refused.to_string(), "User.UserId is empty; a key value must not be");
}

pub(crate) async fn ap_002_a_user_by_email_by_the_index_or_by_the_claim(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.only::<User>(|other| other.key.user_id == user);
        let email = wanted.email.clone().unwrap();
        let by_index = bed.queries.user_by_email(&email).await.unwrap().unwrap();
        bed.same(
            &(&by_index.key, by_index.name, by_index.created_at),
            &(&wanted.key, wanted.name.clone(), wanted.created_at.clone()),
            &email,
        );
        for written in [email.clone(), format!(" {} ", email.to_uppercase())] {
            bed.same(&bed.queries.user_by_claim(&written).await.unwrap().as_ref(), &Some(&wanted), written);
        }
    }
    for nobody in ["u1", "u2@example.org", "@example.org"] {
        assert!(bed.queries.user_by_email(nobody).await.unwrap().is_none(), "{nobody}");
        assert!(bed.queries.user_by_claim(nobody).await.unwrap().is_none(), "{nobody}");
    }
}

pub(crate) async fn ap_003_all_users_newest_first(bed: Held) {
    let by_time = |user: &User| (user.created_at.clone(), user.key.user_id.clone());
    let wanted: Vec<_> = bed
        .crowd
        .reversed(|_| true, by_time)
        .into_iter()
        .map(|user: User| (user.key, user.name, user.created_at))
        .collect();
    assert!(wanted.len() > 20);
    bed.lists("all users", &wanted, async |page| {
        let page = bed.queries.users_newest_first(&page).await?;
        Ok(crate::patterns::bed::mapped(page, |user| (user.key, user.name, user.created_at)))
    })
    .await;
}

pub(crate) async fn ap_004_a_whole_collection_and_chosen_kinds_of_it(bed: Held) {
    for user in users() {
        let pk = format!("USER#{}", keys::escape::value(user.as_str()));
        let of_type = |item: &&keys::item::Item| text(item, "EntityType").is_some_and(|name| name != "Stranger");
        let mut items: Vec<_> =
            bed.crowd.items.iter().filter(|item| text(item, "PK") == Some(&pk)).filter(of_type).collect();
        items.sort_by_key(|item| text(item, "SK").map(str::to_owned));
        let wanted: Vec<Collected> = items.into_iter().map(collected).collect();
        assert!(wanted.len() > 40);
        bed.lists(&user, &wanted, async |page| bed.queries.collection_of(&user, &page).await).await;
        bed.lists(&user, &wanted, async |page| bed.queries.kinds_of(&user, ItemKind::ALL, &page).await).await;
        let chosen = |item: &&Collected| matches!(item, Collected::User(_) | Collected::Like(_) | Collected::Follow(_));
        let wanted: Vec<Collected> = wanted.iter().filter(chosen).cloned().collect();
        let kinds = [ItemKind::User, ItemKind::Like, ItemKind::Follow, ItemKind::Like];
        bed.lists(&user, &wanted, async |page| bed.queries.kinds_of(&user, &kinds, &page).await).await;
    }
}

fn collected(item: &keys::item::Item) -> Collected {
    fn boxed<E: Entity>(item: &keys::item::Item) -> Box<E> {
        Box::new(E::from_item(&layout(), item).unwrap().unwrap())
    }
    match text(item, "EntityType").unwrap() {
        "User" => Collected::User(boxed(item)),
        "Post" => Collected::Post(boxed(item)),
        "Like" => Collected::Like(boxed(item)),
        "View" => Collected::View(boxed(item)),
        "Follow" => Collected::Follow(boxed(item)),
        "Follower" => Collected::Follower(boxed(item)),
        "Membership" => Collected::Membership(boxed(item)),
        "Order" => Collected::Order(boxed(item)),
        "Subscription" => Collected::Subscription(boxed(item)),
        "Counter" => Collected::Counter(boxed(item)),
        other => panic!("{other} in the collection of a user"),
    }
}

pub(crate) async fn ap_014_whom_a_user_follows(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.sorted(|it: &Follow| it.key.follower_id == user, |it| it.key.followee_id.clone());
        bed.lists(&user, &wanted, async |page| bed.queries.followees_of(&user, &page).await).await;
    }
}

pub(crate) async fn ap_015_the_followers_of_a_user(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.sorted(|it: &Follower| it.key.followee_id == user, |it| it.key.follower_id.clone());
        bed.lists(&user, &wanted, async |page| bed.queries.followers_of(&user, &page).await).await;
    }
}

pub(crate) async fn ap_016_does_one_user_follow_another(bed: Held) {
    let all: Vec<Follow> = bed.crowd.sorted(|_| true, |_| ());
    for follower in users() {
        for followee in users() {
            let is_it = |it: &&Follow| it.key.follower_id == follower && it.key.followee_id == followee;
            let found = bed.queries.follow_of(&follower, &followee).await.unwrap();
            bed.same(&found.as_ref(), &all.iter().find(is_it), (&follower, &followee));
        }
    }
}

pub(crate) async fn ap_017_the_groups_of_a_user(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.sorted(|it: &Membership| it.key.user_id == user, |it| it.key.group_id.clone());
        bed.lists(&user, &wanted, async |page| bed.queries.groups_of(&user, &page).await).await;
    }
}

pub(crate) async fn ap_018_the_members_of_a_group(bed: Held) {
    for group in ids("g") {
        let wanted =
            bed.crowd.sorted(|it: &GroupMember| it.key.group_id.as_str() == group, |it| it.key.user_id.clone());
        let id = group.clone().into();
        bed.lists(&group, &wanted, async |page| bed.queries.members_of_group(&id, &page).await).await;
    }
}

pub(crate) async fn ap_019_a_membership_with_its_role(bed: Held) {
    for group in ids("g") {
        let user = UserId::from("u1#x");
        let found = bed.queries.membership(&user, &group.clone().into()).await.unwrap().unwrap();
        bed.same(&found.role, &Some(format!("role of u1#x in {group}")), &group);
        bed.same(&bed.queries.membership(&"u2".into(), &group.clone().into()).await.unwrap(), &None, &group);
    }
    bed.same(&bed.queries.membership(&"u1".into(), &"g2".into()).await.unwrap(), &None, "no such group");
}

pub(crate) async fn ap_041_many_items_by_id_with_the_missing_ones_named(bed: Held) {
    // More keys than one call takes, some of them twice, in no order.
    let mut asked: Vec<UserId> = (0..120).rev().map(|n| UserId::from(format!("m{n}"))).collect();
    asked.extend(users());
    asked.extend(users());
    let found = bed.queries.users(&asked, Consistency::Strong).await.unwrap();
    let there: Vec<UserId> = (0..20).rev().map(|n| UserId::from(format!("m{n}"))).chain(users()).collect();
    bed.same(&found.items.iter().map(|user| user.key.user_id.clone()).collect(), &there, "users");
    let missing: Vec<UserId> = (20..120).rev().map(|n| UserId::from(format!("m{n}"))).collect();
    bed.same(&found.missing.into_iter().map(|key| key.user_id).collect(), &missing, "missing users");
    let whole: Vec<User> = there.iter().map(|id| bed.crowd.only::<User>(|user| user.key.user_id == *id)).collect();
    bed.same(&found.items, &whole, "whole users");

    let asked = ["p1", "p", "p1#x", "none"].map(PostId::from);
    let found = bed.queries.posts(&asked, Consistency::Eventual).await.unwrap();
    let wanted = asked[..3].iter().map(|id| bed.crowd.only::<PostDetail>(|post| post.key.post_id == *id)).collect();
    bed.same(&found.items, &wanted, "posts");
    bed.same(&found.missing.len(), &1, "missing posts");

    let asked = ["k1@tools#x", "k1@tools", "k1"].map(ProductId::from);
    let found = bed.queries.products(&asked, Consistency::Eventual).await.unwrap();
    let wanted = asked[..2].iter().map(|id| bed.crowd.only::<Product>(|it| it.key.product_id == *id)).collect();
    bed.same(&found.items, &wanted, "products");
    bed.same(&found.missing[0].product_id, &asked[2], "missing products");
    assert!(found.unreadable.is_empty());

    let none = bed.queries.users(&[], Consistency::Strong).await.unwrap();
    assert!(none.items.is_empty() && none.missing.is_empty());
}

pub(crate) async fn ap_044_subscriptions_of_a_user_and_items_of_a_cart(bed: Held) {
    for user in users() {
        let wanted = bed.crowd.sorted(|it: &Subscription| it.key.user_id == user, |it| it.key.subscription_id.clone());
        bed.lists(&user, &wanted, async |page| bed.queries.subscriptions_of(&user, &page).await).await;
        for cart in ["c", "c1", "c1#x"] {
            let in_cart = |it: &CartItem| it.key.user_id == user && it.key.cart_id.as_str() == cart;
            let wanted = bed.crowd.sorted(in_cart, |it| it.key.product_id.clone());
            let read = async |page| bed.queries.items_of_cart(&user, &cart.into(), &page).await;
            bed.lists((&user, cart), &wanted, read).await;
        }
    }
}

//! The crowd: items of every entity, with neighbours that a careless key would include.

use entities::{
    carts::{CartItem, CartItemKey},
    counter::Counter,
    emails::{EmailClaim, EmailClaimKey},
    files::{File, FileDetail, FileDetailKey, FileKey, Folder, FolderKey},
    groups::{Group, GroupKey, GroupMember, GroupMemberKey, Membership, MembershipKey},
    ids::{EmployeeId, OrgId},
    orders::{Order, OrderDetail, OrderDetailKey, OrderItem, OrderItemKey, OrderKey, status},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, OrgChart, OrgChartKey, Organization, OrganizationKey,
        Team, TeamKey,
    },
    people::{Follow, FollowKey, Follower, FollowerKey, User, UserKey},
    posts::{Comment, CommentKey, Like, LikeKey, Post, PostDetail, PostDetailKey, PostKey, View, ViewKey},
    products::{Product, ProductKey, Review, ReviewKey},
    sensors::{Grain, Reading, ReadingKey, Rollup, RollupKey},
    subscriptions::{Subscription, SubscriptionKey},
    table::layout,
};
use keys::{counter::CounterKey, entity::Entity, item::Item, key::Key, key_template::KeyField, number::Decimal};
use serde_dynamo::AttributeValue;

/// Times in order; the last was written by another client.
pub(crate) const TIMES: [&str; 4] =
    ["2024-01-15T10:30:00.000Z", "2024-01-15T10:30:00.001Z", "2024-01-16T00:00:00.000Z", "the other day"];

pub(crate) const CATEGORIES: [&str; 4] = ["tool", "tools", "tools#x", "tools/x"];

pub(crate) const ORDER_STATUSES: [&str; 5] =
    [status::PENDING, status::PAID, status::PACKED, status::SHIPPED, status::CANCELLED];

const POST_STATUSES: [&str; 3] = ["published", "draft", "archived"];

/// Days with readings; one day is left out.
pub(crate) const DAYS: [&str; 4] = ["2023-12-31", "2024-01-01", "2024-02-29", "2024-03-01"];

/// Ids that begin with each other or need escapes, in the order of their texts.
pub(crate) fn ids(letter: &str) -> Vec<String> {
    ["", "1", "1#x", "1%23x", "1%x", "1/x", "10"].map(|end| format!("{letter}{end}")).to_vec()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn time(at: usize) -> String {
    TIMES[at % TIMES.len()].to_owned()
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

pub(crate) fn whole(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}

/// All items of the table.
pub(crate) fn crowd() -> Vec<Item> {
    let mut items = Vec::new();
    people(&mut items);
    posts(&mut items);
    groups_and_organizations(&mut items);
    files(&mut items);
    products(&mut items);
    orders(&mut items);
    sensors(&mut items);
    counters(&mut items);
    strangers(&mut items);
    items
}

fn put<E: Entity>(items: &mut Vec<Item>, entity: &E) {
    items.push(entity.to_item(&layout()).unwrap());
}

fn people(items: &mut Vec<Item>) {
    let more = (0..20).map(|n| format!("m{n}"));
    for (at, id) in ids("u").into_iter().chain(more).enumerate() {
        let email = format!("{id}@Example.org");
        let claim = EmailClaimKey { email: entities::emails::normalised(&email) };
        put(items, &EmailClaim { key: claim, user_id: Some(id.clone().into()), ..EmailClaim::default() });
        put(
            items,
            &User {
                key: UserKey { user_id: id.clone().into() },
                name: Some(format!("name of {id}")),
                email: Some(email),
                avatar: Some(text("not projected")),
                created_at: Some(time(at * 3)),
                follower_count: Some(3),
                ..User::default()
            },
        );
    }
    for (at, user) in ids("u").iter().enumerate() {
        for (other_at, other) in ids("u").iter().enumerate().filter(|(_, other)| *other != user) {
            let key = FollowKey { follower_id: user.into(), followee_id: other.into() };
            put(items, &Follow { key, followee_name: Some(other.clone()), ..Follow::default() });
            let key = FollowerKey { followee_id: user.into(), follower_id: other.into() };
            put(items, &Follower { key, follower_name: Some(other.clone()), ..Follower::default() });
            let key = SubscriptionKey { user_id: user.into(), subscription_id: format!("s{other}").into() };
            put(items, &Subscription { key, plan: Some(text("gold")), ..Subscription::default() });
            for cart in ["c", "c1", "c1#x"] {
                let key = CartItemKey { user_id: user.into(), cart_id: cart.into(), product_id: other.into() };
                put(items, &CartItem { key, quantity: Some(whole(at + other_at)), ..CartItem::default() });
            }
        }
    }
}

fn posts(items: &mut Vec<Item>) {
    let users = ids("u");
    let more = (0..40).map(|n| format!("q{n}"));
    for (at, id) in ids("p").into_iter().chain(more).enumerate() {
        put(
            items,
            &PostDetail {
                key: PostDetailKey { post_id: id.clone().into() },
                author_id: Some(users[at % 7].clone().into()),
                created_at: Some(time(at)),
                title: Some(format!("title of {id}")),
                status: Some(text(POST_STATUSES[if at < 7 { 0 } else { at % 3 }])),
                author_name: Some(text("Ada")),
                comment_count: Some(4),
                ..PostDetail::default()
            },
        );
    }
    for (at, user) in users.iter().enumerate() {
        for (post_at, post) in ids("p").iter().enumerate() {
            let created_at = time(post_at);
            put(
                items,
                &Post {
                    key: PostKey { author_id: user.into(), created_at: created_at.clone(), post_id: post.into() },
                    content: Some(text("a body")),
                    status: Some(text(POST_STATUSES[post_at % 2])),
                    ..Post::default()
                },
            );
            put(items, &Like { key: LikeKey { user_id: user.into(), post_id: post.into() }, ..Like::default() });
            let key = ViewKey { user_id: user.into(), viewed_at: time(post_at + 1), post_id: post.into() };
            put(items, &View { key, expires_at: Some(1_900_000_000), ..View::default() });
            // On the post with this number, each by another user.
            let key =
                CommentKey { post_id: ids("p")[at].clone().into(), created_at, comment_id: format!("c{post}").into() };
            put(
                items,
                &Comment {
                    key,
                    user_id: Some(users[(at + post_at) % 7].clone().into()),
                    text: Some(format!("{at}, {post_at}")),
                    user_name: Some(text("not projected")),
                    ..Comment::default()
                },
            );
        }
    }
}

fn groups_and_organizations(items: &mut Vec<Item>) {
    for (group, org) in ids("g").iter().zip(ids("o")) {
        put(
            items,
            &Group { key: GroupKey { group_id: group.into() }, name: Some(text("a group")), ..Group::default() },
        );
        let key = OrganizationKey { org_id: org.clone().into() };
        put(items, &Organization { key, name: Some(org.clone()), team_count: Some(7), ..Organization::default() });
        for user in ids("u") {
            let role = Some(format!("role of {user} in {group}"));
            let key = MembershipKey { user_id: user.clone().into(), group_id: group.into() };
            put(
                items,
                &Membership { key, role: role.clone(), group_name: Some(group.clone()), ..Membership::default() },
            );
            let key = GroupMemberKey { group_id: group.into(), user_id: user.clone().into() };
            put(items, &GroupMember { key, role: role.clone(), ..GroupMember::default() });
            let key = MemberKey { org_id: org.clone().into(), user_id: user.clone().into() };
            put(items, &Member { key, role, org_name: Some(org.clone()), ..Member::default() });
            let key = TeamKey { org_id: org.clone().into(), team_id: format!("t{user}@{org}").into() };
            put(items, &Team { key, name: Some(format!("team {user}")), ..Team::default() });
        }
        for place in PLACES {
            let ids: Vec<EmployeeId> = place.iter().map(|id| format!("{id}@{org}").into()).collect();
            let manager_id = ids.iter().rev().nth(1).cloned();
            let (org_id, employee_id) = (OrgId::from(org.clone()), ids.last().cloned().unwrap());
            let path = EmployeePath::new(ids);
            let (name, text) = (Some(place.join(" of ")), Some(path.to_text()));
            let chart = OrgChart {
                key: OrgChartKey { org_id: org_id.clone(), path },
                employee_id: Some(employee_id.clone()),
                name: name.clone(),
                manager_id: manager_id.clone(),
                ..OrgChart::default()
            };
            put(items, &chart);
            let key = EmployeeKey { org_id, employee_id };
            put(items, &Employee { key, name, manager_id, path: text, ..Employee::default() });
        }
    }
}

/// Paths of employees; ids are unique over all organizations, so each contains its organization's id.
const PLACES: [&[&str]; 10] = [
    &["ceo"],
    &["ceo", "e"],
    &["ceo", "e", "a"],
    &["ceo", "e", "a", "b/c"],
    &["ceo", "e", "a", "b/c", "d"],
    &["ceo", "e", "z"],
    &["ceo", "e#x"],
    &["ceo", "e/x"],
    &["ceo", "e1"],
    &["ceo", "e1", "f"],
];

fn files(items: &mut Vec<Item>) {
    for folder in ids("f") {
        let key = FolderKey { folder_id: folder.clone().into() };
        put(items, &Folder { key, name: Some(text("a root")), file_count: Some(7), ..Folder::default() });
        for (at, file) in ids("x").iter().enumerate() {
            let key = FileKey { folder_id: folder.clone().into(), uploaded_at: time(at), file_id: file.into() };
            put(items, &File { key, name: Some(file.clone()), size_bytes: Some(9), ..File::default() });
            // Names that occur twice, that begin like others, or that need escapes.
            put(
                items,
                &Folder {
                    key: FolderKey { folder_id: format!("sub {file} of {folder}").into() },
                    name: Some(text(["a", "a b", "a#b", "b"][at % 4])),
                    parent_id: Some(folder.clone().into()),
                    path: Some(format!("/{folder}")),
                    ..Folder::default()
                },
            );
        }
    }
    for file in ids("x") {
        let key = FileDetailKey { file_id: file.clone().into() };
        put(items, &FileDetail { key, path: Some(format!("/of/{file}")), ..FileDetail::default() });
    }
}

fn products(items: &mut Vec<Item>) {
    let names = layout().index("GSI2").unwrap().clone();
    for category in CATEGORIES {
        for (at, product) in ids("k").iter().enumerate() {
            let entity = Product {
                key: ProductKey { product_id: format!("{product}@{category}").into() },
                name: Some(format!("name of {product}")),
                price: Some(decimal(&format!("{at}.50"))),
                category: Some(text(category)),
                inventory: Some(5),
                review_count: Some(whole(at)),
                rating_sum: Some(decimal(&(at * 4).to_string())),
                ..Product::default()
            };
            let mut item = entity.to_item(&layout()).unwrap();
            // Ripple makes this index key, and no writer does. The last product has sold nothing.
            if at < 6 {
                let units_sold = (at * 7 % 5 + 1).to_string();
                item.insert("UnitsSold".to_owned(), AttributeValue::N(units_sold));
                let key = Product::definition().indexes.iter().find(|index| index.index == "GSI2").unwrap();
                let fields = Product::definition().fields(&layout().key(&item).unwrap(), &item).unwrap();
                let key = key.key.build(&fields).unwrap();
                item.insert(names.pk.clone(), AttributeValue::S(key.pk));
                item.insert(names.sk.clone(), AttributeValue::S(key.sk));
            }
            items.push(item);
        }
    }
    for product in ids("k") {
        for (at, review) in ids("r").iter().enumerate() {
            let id = format!("{product}@tools").into();
            let key = ReviewKey { product_id: id, created_at: time(at), review_id: review.into() };
            let user_id = Some(ids("u")[at].clone().into());
            put(items, &Review { key, user_id, rating: Some(4), text: Some(text("good")), ..Review::default() });
        }
    }
}

fn orders(items: &mut Vec<Item>) {
    for (user_at, user) in ids("u").iter().enumerate() {
        for (at, order) in ids("o").iter().enumerate() {
            let id = format!("{order}@{user}");
            let status = Some(text(ORDER_STATUSES[(at + user_at) % 5]));
            let total = Some(decimal(&format!("{}.{}", (at * 5 + user_at * 3) % 11, at)));
            let key = OrderKey { user_id: user.into(), placed_at: time(at), order_id: id.clone().into() };
            put(items, &Order { key, status: status.clone(), total: total.clone(), ..Order::default() });
            let key = OrderDetailKey { order_id: id.clone().into() };
            put(items, &OrderDetail { key, user_id: Some(user.into()), status, total, ..OrderDetail::default() });
            for product in &ids("k")[..if at == 0 { 7 } else { 3 }] {
                put(
                    items,
                    &OrderItem {
                        key: OrderItemKey { order_id: id.clone().into(), product_id: product.into() },
                        product_name: Some(text("as bought")),
                        price: Some(decimal(&format!("{at}.25"))),
                        quantity: Some(2),
                        cancelled: at % 2 == 0,
                        ..OrderItem::default()
                    },
                );
            }
        }
    }
}

fn sensors(items: &mut Vec<Item>) {
    for sensor in ids("s") {
        for day in DAYS {
            for time in ["00:00:00.000", "10:30:00.000", "23:59:59.999"] {
                let at = format!("{day}T{time}Z");
                let key = ReadingKey { sensor_id: sensor.clone().into(), day: day.to_owned(), at };
                put(items, &Reading { key, value: Some(decimal("21.5")), ..Reading::default() });
            }
            let rollup = |grain, bucket: String| {
                let key = RollupKey { sensor_id: sensor.clone().into(), grain, bucket };
                Rollup { key, count: Some(3), sum: Some(decimal("64.5")), ..Rollup::default() }
            };
            put(items, &rollup(Grain::Day, day.to_owned()));
            put(items, &rollup(Grain::Hour, format!("{day}T00")));
            put(items, &rollup(Grain::Hour, format!("{day}T10")));
        }
    }
}

fn counters(items: &mut Vec<Item>) {
    let targets = [("USER#", "u", "PROFILE"), ("POST#", "p", "METADATA"), ("ORG#", "o", "METADATA")];
    let more = [("GROUP#", "g", "METADATA"), ("FOLDER#", "f", "METADATA"), ("PRODUCT#", "k", "METADATA")];
    for (start, letter, sk) in targets.into_iter().chain(more) {
        for (at, id) in ids(letter).iter().enumerate() {
            let target = Key::new(format!("{start}{}", keys::escape::value(id)), sk);
            for (derivation, satellite, value, sum) in [
                ("plain-count", 0, whole(5 + at), None),
                ("spread-count", 0, 1, None),
                ("spread-count", 3, -2, None),
                ("spread-count", 15, 40, None),
                ("spread-count~2", 1, 7, None),
                ("summed", 0, 2, Some("0.1")),
                ("summed", 1, 3, Some("0.2")),
            ] {
                let key = CounterKey { target: target.clone(), derivation: derivation.to_owned(), satellite };
                let sum = sum.and_then(Decimal::parse);
                put(items, &Counter { key, value: Some(value), sum });
            }
        }
    }
}

/// An item of an unknown entity, or without one, beside every third item: in the same collection and at the same places
/// of the indexes.
fn strangers(items: &mut Vec<Item>) {
    let beside: Vec<Item> = items.iter().step_by(3).cloned().collect();
    for (at, mut item) in beside.into_iter().enumerate() {
        let Some(AttributeValue::S(sk)) = item.get("SK").cloned() else { continue };
        item.insert("SK".to_owned(), AttributeValue::S(format!("{sk}#STRANGER")));
        item.remove("EntityType");
        if at % 2 == 0 {
            item.insert("EntityType".to_owned(), AttributeValue::S("Stranger".to_owned()));
        }
        items.push(item);
    }
}

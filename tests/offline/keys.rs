//! The stored keys of the shipped table.
//!
//! A changed key is a migration of data, so this file contains every entity's keys in full: a change of a template
//! shows up as a changed line here, and must be intended. Other tests check every key, whatever its values: it reads
//! back, it belongs to one entity only, and invalid values are refused by name.

use std::{collections::BTreeSet, fmt::Debug};

use entities::{
    carts::{CartItem, CartItemKey},
    claim::Claim,
    counter::Counter,
    emails::{EmailClaim, EmailClaimKey},
    files::{File, FileDetail, FileDetailKey, FileKey, Folder, FolderKey},
    groups::{Group, GroupKey, GroupMember, GroupMemberKey, Membership, MembershipKey},
    ids::{
        CartId, CommentId, EmployeeId, FileId, FolderId, GroupId, OrderId, OrgId, PostId, ProductId, ReviewId,
        SensorId, SubscriptionId, TeamId, UserId,
    },
    orders::{Order, OrderDetail, OrderDetailKey, OrderItem, OrderItemKey, OrderKey},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, OrgChart, OrgChartKey, Organization, OrganizationKey,
        Team, TeamKey,
    },
    people::{Follow, FollowKey, Follower, FollowerKey, User, UserKey},
    posts::{Comment, CommentKey, Like, LikeKey, Post, PostDetail, PostDetailKey, PostKey, View, ViewKey, status},
    products::{Product, ProductKey, Review, ReviewKey},
    sensors::{Grain, Reading, ReadingKey, Rollup, RollupKey},
    subscriptions::{Subscription, SubscriptionKey},
    table::{definitions, layout},
};
use expect_test::{Expect, expect};
use keys::{
    counter::CounterKey,
    entity::{Entity, KeyTemplate},
    fields::Fields,
    item::{Item, text},
    key::Key,
    number::{self, Decimal},
};
use proptest::{
    prelude::{Strategy, prop_assert_eq},
    prop_oneof, proptest,
};
use serde_dynamo::AttributeValue;

const AT: &str = "2024-01-15T10:30:00.000Z";

/// Checks the keys of an item, and that the item reads back as it was written.
#[track_caller]
fn check<E: Entity + Debug + PartialEq>(entity: &E, keys: &Expect) {
    let item = entity.to_item(&layout()).unwrap();
    keys.assert_eq(&rendered::<E>(&item));
    assert_eq!(E::from_item(&layout(), &item).unwrap().as_ref(), Some(entity));
}

/// One line for each key: the table's, then those of the indexes with the item.
fn rendered<E: Entity>(item: &Item) -> String {
    let part = |name: &str| text(item, name).map(str::to_owned);
    let definition = E::definition();
    let base = ("base".to_owned(), part("PK"), part("SK"));
    let indexes = layout().indexes.into_iter().map(|index| (index.name, part(&index.pk), part(&index.sk)));
    let mut lines = vec![format!("{} {}", definition.id, text(item, "EntityType").unwrap())];
    for (name, pk, sk) in [base].into_iter().chain(indexes) {
        if let (Some(pk), Some(sk)) = (pk, sk) {
            lines.push(format!("{name} {pk} / {sk}"));
        }
    }
    lines.join("\n") + "\n"
}

fn user(id: &str, email: &str) -> User {
    User {
        key: UserKey { user_id: UserId::from(id) },
        name: Some("Ada".into()),
        email: Some(email.into()),
        avatar: Some("https://pictures.example/ada.png".into()),
        version: Some(3),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        follower_count: Some(12),
        following_count: Some(1),
        post_count: Some(2),
        order_count: Some(1),
        lifetime_value: Some(decimal("1999.9")),
    }
}

#[test]
fn keys_of_a_user() {
    check(
        &user("ada", "ada@example.org"),
        &expect![[r#"
            E-01 User
            base USER#ada / PROFILE
            GSI1 EMAIL#ada@example.org / USER#ada
            GSI2 USERS#00 / 2024-01-15T10:30:00.000Z#ada
        "#]],
    );
}

#[test]
fn what_would_join_or_escape_is_escaped_in_every_key() {
    check(
        &user("50% off #1", "a#b%23@example.org"),
        &expect![[r#"
            E-01 User
            base USER#50%25 off %231 / PROFILE
            GSI1 EMAIL#a%23b%2523@example.org / USER#50%25 off %231
            GSI2 USERS#00 / 2024-01-15T10:30:00.000Z#50%25 off %231
        "#]],
    );
    check(
        &employee("100%", Some("c/e#o")),
        &expect![[r#"
            E-15 Employee
            base ORG#acme / EMPLOYEE#100%25
            GSI1 EMP#100%25 / EMP
            GSI2 MANAGER#c/e%23o / EMP#100%25
        "#]],
    );
    check(
        &chart(&["c/e#o", "100%"]),
        &expect![[r#"
            E-31 OrgChart
            base ORG#acme / EMP#/c%2Fe%23o/100%25
        "#]],
    );
}

#[test]
fn keys_of_a_post() {
    let post = Post {
        key: PostKey { author_id: UserId::from("ada"), created_at: AT.to_owned(), post_id: PostId::from("p1") },
        title: Some("On engines".into()),
        content: Some("It weaves algebraic patterns.".into()),
        status: Some(status::PUBLISHED.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &post,
        &expect![[r#"
            E-02 Post
            base USER#ada / POST#2024-01-15T10:30:00.000Z#p1
        "#]],
    );
}

#[test]
fn keys_of_a_post_detail() {
    let mut detail = PostDetail {
        key: PostDetailKey { post_id: PostId::from("p1") },
        author_id: Some(UserId::from("ada")),
        created_at: Some(AT.into()),
        title: Some("On engines".into()),
        status: Some(status::PUBLISHED.into()),
        updated_at: Some(AT.into()),
        claims: Some(vec![Claim { pk: "USER#ada".to_owned(), sk: format!("POST#{AT}#p1") }]),
        author_name: Some("Ada".into()),
        author_avatar: Some("https://pictures.example/ada.png".into()),
        comment_count: Some(4),
        like_count: Some(5),
        view_count: Some(6),
    };
    check(
        &detail,
        &expect![[r#"
            E-03 PostDetail
            base POST#p1 / METADATA
            GSI2 POSTS#03 / 2024-01-15T10:30:00.000Z#p1
        "#]],
    );
    detail.status = Some(status::DRAFT.into());
    check(
        &detail,
        &expect![[r#"
            E-03 PostDetail
            base POST#p1 / METADATA
        "#]],
    );
}

#[test]
fn keys_of_a_comment() {
    let comment = Comment {
        key: CommentKey { post_id: PostId::from("p1"), created_at: AT.to_owned(), comment_id: CommentId::from("c1") },
        user_id: Some(UserId::from("grace")),
        text: Some("Well put.".into()),
        updated_at: Some(AT.into()),
        user_name: Some("Grace".into()),
        user_avatar: Some("https://pictures.example/grace.png".into()),
    };
    check(
        &comment,
        &expect![[r#"
            E-04 Comment
            base POST#p1 / COMMENT#2024-01-15T10:30:00.000Z#c1
            GSI1 USER#grace / COMMENT#2024-01-15T10:30:00.000Z#c1
        "#]],
    );
}

#[test]
fn keys_of_a_like_and_a_view() {
    let (user_id, post_id) = (UserId::from("grace"), PostId::from("p1"));
    let like = Like {
        key: LikeKey { user_id: user_id.clone(), post_id: post_id.clone() },
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &like,
        &expect![[r#"
            E-05 Like
            base USER#grace / LIKE#POST#p1
            GSI1 POST#p1 / LIKE#USER#grace
        "#]],
    );
    let view = View {
        key: ViewKey { user_id, viewed_at: AT.to_owned(), post_id },
        expires_at: Some(1_707_906_600),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &view,
        &expect![[r#"
            E-06 View
            base USER#grace / VIEW#2024-01-15T10:30:00.000Z#p1
        "#]],
    );
}

#[test]
fn keys_of_a_follow_and_its_mirror() {
    let (grace, ada) = (UserId::from("grace"), UserId::from("ada"));
    let follow = Follow {
        key: FollowKey { follower_id: grace.clone(), followee_id: ada.clone() },
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        followee_name: Some("Ada".into()),
    };
    check(
        &follow,
        &expect![[r#"
            E-07 Follow
            base USER#grace / FOLLOWS#ada
        "#]],
    );
    let follower = Follower {
        key: FollowerKey { followee_id: ada, follower_id: grace },
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        follower_name: Some("Grace".into()),
    };
    check(
        &follower,
        &expect![[r#"
            E-08 Follower
            base USER#ada / FOLLOWER#grace
        "#]],
    );
}

#[test]
fn keys_of_a_group() {
    let group = Group {
        key: GroupKey { group_id: GroupId::from("g1") },
        name: Some("Analysts".into()),
        description: Some("Of engines".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        member_count: Some(2),
    };
    check(
        &group,
        &expect![[r#"
            E-09 Group
            base GROUP#g1 / METADATA
        "#]],
    );
}

#[test]
fn keys_of_a_membership_and_its_mirror() {
    let (user_id, group_id) = (UserId::from("ada"), GroupId::from("g1"));
    let membership = Membership {
        key: MembershipKey { user_id: user_id.clone(), group_id: group_id.clone() },
        role: Some("owner".into()),
        joined_at: Some(AT.into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        group_name: Some("Analysts".into()),
    };
    check(
        &membership,
        &expect![[r#"
            E-10 Membership
            base USER#ada / GROUP#g1
        "#]],
    );
    let member = GroupMember {
        key: GroupMemberKey { group_id, user_id },
        role: Some("owner".into()),
        joined_at: Some(AT.into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        user_name: Some("Ada".into()),
    };
    check(
        &member,
        &expect![[r#"
            E-11 GroupMember
            base GROUP#g1 / USER#ada
        "#]],
    );
}

#[test]
fn keys_of_an_organization_and_its_team() {
    let org_id = OrgId::from("acme");
    let organization = Organization {
        key: OrganizationKey { org_id: org_id.clone() },
        name: Some("Acme".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        team_count: Some(1),
        member_count: Some(2),
        employee_count: Some(3),
    };
    check(
        &organization,
        &expect![[r#"
            E-12 Organization
            base ORG#acme / METADATA
        "#]],
    );
    let team = Team {
        key: TeamKey { org_id, team_id: TeamId::from("t1") },
        name: Some("Rockets".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &team,
        &expect![[r#"
            E-13 Team
            base ORG#acme / TEAM#t1
            GSI1 TEAM#t1 / TEAM
        "#]],
    );
}

#[test]
fn keys_of_a_member() {
    let member = Member {
        key: MemberKey { org_id: OrgId::from("acme"), user_id: UserId::from("ada") },
        role: Some("admin".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        user_name: Some("Ada".into()),
        org_name: Some("Acme".into()),
    };
    check(
        &member,
        &expect![[r#"
            E-14 Member
            base ORG#acme / MEMBER#ada
            GSI1 USER#ada / MEMBER#ORG#acme
        "#]],
    );
}

fn employee(id: &str, manager: Option<&str>) -> Employee {
    Employee {
        key: EmployeeKey { org_id: OrgId::from("acme"), employee_id: EmployeeId::from(id) },
        name: Some("Ada".into()),
        manager_id: manager.map(EmployeeId::from),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        path: None,
    }
}

fn chart(ids: &[&str]) -> OrgChart {
    let path = EmployeePath::new(ids.iter().copied().map(EmployeeId::from).collect());
    OrgChart {
        employee_id: path.employee().cloned(),
        manager_id: path.manager().cloned(),
        key: OrgChartKey { org_id: OrgId::from("acme"), path },
        name: Some("Ada".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        claims: None,
    }
}

#[test]
fn keys_of_an_employee() {
    check(
        &employee("ada", Some("vp")),
        &expect![[r#"
            E-15 Employee
            base ORG#acme / EMPLOYEE#ada
            GSI1 EMP#ada / EMP
            GSI2 MANAGER#vp / EMP#ada
        "#]],
    );
    check(
        &employee("ceo", None),
        &expect![[r#"
            E-15 Employee
            base ORG#acme / EMPLOYEE#ceo
            GSI1 EMP#ceo / EMP
        "#]],
    );
    check(
        &chart(&["ceo", "vp", "ada"]),
        &expect![[r#"
            E-31 OrgChart
            base ORG#acme / EMP#/ceo/vp/ada
        "#]],
    );
}

#[test]
fn keys_of_a_counter() {
    let target = Key::new("USER#50%25", "PROFILE");
    let counter = Counter {
        key: CounterKey { target, derivation: "follower-count~2".to_owned(), satellite: 7 },
        value: Some(-3),
        sum: Some(decimal("-0.3")),
    };
    check(
        &counter,
        &expect![[r#"
            E-25 Counter
            base USER#50%25 / PROFILE#COUNT#follower-count~2#07
        "#]],
    );
}

#[test]
fn keys_of_a_folder() {
    let mut folder = Folder {
        key: FolderKey { folder_id: FolderId::from("f1") },
        name: Some("50% #1".into()),
        parent_id: Some(FolderId::from("top")),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        path: Some("/Home/50% #1".into()),
        file_count: Some(2),
        total_bytes: Some(Decimal::from(4096)),
    };
    check(
        &folder,
        &expect![[r#"
        E-16 Folder
        base FOLDER#f1 / METADATA
        GSI1 FOLDER#top / FOLDER#50%25 %231#f1
    "#]],
    );
    folder.parent_id = None;
    check(
        &folder,
        &expect![[r#"
        E-16 Folder
        base FOLDER#f1 / METADATA
    "#]],
    );
}

#[test]
fn keys_of_a_file_and_its_mirror() {
    let (folder_id, file_id) = (FolderId::from("f1"), FileId::from("a1"));
    let file = File {
        key: FileKey { folder_id: folder_id.clone(), uploaded_at: AT.to_owned(), file_id: file_id.clone() },
        name: Some("notes.txt".into()),
        size_bytes: Some(4096),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &file,
        &expect![[r#"
        E-17 File
        base FOLDER#f1 / FILE#2024-01-15T10:30:00.000Z#a1
    "#]],
    );
    let detail = FileDetail {
        key: FileDetailKey { file_id },
        folder_id: Some(folder_id),
        uploaded_at: Some(AT.into()),
        name: Some("notes.txt".into()),
        size_bytes: Some(4096),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        claims: Some(vec![Claim { pk: "FOLDER#f1".to_owned(), sk: format!("FILE#{AT}#a1") }]),
        path: Some("/Home/notes.txt".into()),
    };
    check(
        &detail,
        &expect![[r#"
        E-18 FileDetail
        base FILE#a1 / METADATA
    "#]],
    );
}

#[test]
fn keys_of_a_product() {
    let product = Product {
        key: ProductKey { product_id: ProductId::from("p1") },
        name: Some("Analytical engine".into()),
        price: Some(decimal("1999.9")),
        category: Some("engines".into()),
        inventory: Some(3),
        tags: ["brass", "steam"].map(str::to_owned).into(),
        view_count: Some(40),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        review_count: Some(2),
        rating_sum: Some(Decimal::from(9)),
        units_sold: Some(Decimal::from(17)),
    };
    check(
        &product,
        &expect![[r#"
        E-19 Product
        base PRODUCT#p1 / METADATA
        GSI1 CAT#engines / PRODUCT#p1
    "#]],
    );
}

#[test]
fn the_key_of_a_best_seller_is_made_of_its_display() {
    let key = |attributes: &[(&str, AttributeValue)]| {
        let key = Product::primary_key(&ProductKey { product_id: ProductId::from("p1") }).unwrap();
        let definition = Product::definition();
        let fields = definition.fields(&key, &attributes.iter().cloned().collect()).unwrap();
        let index = definition.indexes.iter().find(|index| index.derived).unwrap();
        let key = definition.index_key(index, &fields).map(|key| key.unwrap().to_string());
        format!("{} {}\n", index.index, key.unwrap_or_else(|error| error.to_string()))
    };
    let category = ("Category", AttributeValue::S("engines".into()));
    let sold = |text: &str| ("UnitsSold", AttributeValue::N(text.into()));
    expect![[r#"
        GSI2 BESTSELLERS#engines / 999999999982#p1
        GSI2 BESTSELLERS#engines / 999999999899#p1
        GSI2 Product.UnitsSold is not a whole number from 0 up
        GSI2 Product.UnitsSold does not fit in 12 digits
        GSI2 Product.UnitsSold is missing; the key needs it
        GSI2 Product.Category is missing; the key needs it
    "#]]
    .assert_eq(
        &[
            key(&[category.clone(), sold("17")]),
            key(&[category.clone(), sold("1E2")]),
            key(&[category.clone(), sold("1.5")]),
            key(&[category.clone(), sold("1E12")]),
            key(&[category]),
            key(&[sold("17")]),
        ]
        .concat(),
    );
}

#[test]
fn keys_of_a_review() {
    let review = Review {
        key: ReviewKey { product_id: ProductId::from("p1"), created_at: AT.to_owned(), review_id: "r1".into() },
        user_id: Some(UserId::from("grace")),
        rating: Some(5),
        text: Some("It computes.".into()),
        updated_at: Some(AT.into()),
        user_name: Some("Grace".into()),
    };
    check(
        &review,
        &expect![[r#"
        E-20 Review
        base PRODUCT#p1 / REVIEW#2024-01-15T10:30:00.000Z#r1
        GSI1 USER#grace / REVIEW#2024-01-15T10:30:00.000Z#r1
    "#]],
    );
}

#[test]
fn keys_of_an_order_and_its_mirror() {
    let (user_id, order_id) = (UserId::from("ada"), OrderId::from("o1"));
    let mut order = Order {
        key: OrderKey { user_id: user_id.clone(), placed_at: AT.to_owned(), order_id: order_id.clone() },
        status: Some(entities::orders::status::PAID.into()),
        total: Some(decimal("1999.9")),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &order,
        &expect![[r#"
        E-21 Order
        base USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
        GSI1 ORDERS#05 / 99999999800009#o1
        GSI2 ORDERS#paid#05 / 2024-01-15T10:30:00.000Z#o1
    "#]],
    );
    order.status = Some(entities::orders::status::SHIPPED.into());
    check(
        &order,
        &expect![[r#"
        E-21 Order
        base USER#ada / ORDER#2024-01-15T10:30:00.000Z#o1
        GSI1 ORDERS#05 / 99999999800009#o1
    "#]],
    );
    let detail = OrderDetail {
        key: OrderDetailKey { order_id },
        user_id: Some(user_id),
        placed_at: Some(AT.into()),
        status: Some(entities::orders::status::PAID.into()),
        total: Some(decimal("1999.9")),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        claims: Some(vec![Claim { pk: "USER#ada".to_owned(), sk: format!("ORDER#{AT}#o1") }]),
    };
    check(
        &detail,
        &expect![[r#"
        E-27 OrderDetail
        base ORDER#o1 / METADATA
    "#]],
    );
}

#[test]
fn keys_of_an_order_item() {
    let item = OrderItem {
        key: OrderItemKey { order_id: OrderId::from("o1"), product_id: ProductId::from("p1") },
        product_name: Some("Analytical engine".into()),
        price: Some(decimal("1999.9")),
        quantity: Some(1),
        cancelled: true,
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &item,
        &expect![[r#"
        E-22 OrderItem
        base ORDER#o1 / ITEM#p1
        GSI1 PRODUCT#p1 / ITEM#o1
    "#]],
    );
}

#[test]
fn keys_of_a_reading_and_its_roll_ups() {
    let sensor_id = SensorId::from("s1");
    let reading = Reading {
        key: ReadingKey { sensor_id: sensor_id.clone(), day: "2024-01-15".to_owned(), at: AT.to_owned() },
        value: Some(decimal("-21.57")),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &reading,
        &expect![[r#"
        E-23 Reading
        base SENSOR#s1#2024-01-15 / 2024-01-15T10:30:00.000Z
    "#]],
    );
    let rollup = |grain: Grain, bucket: &str| Rollup {
        key: RollupKey { sensor_id: sensor_id.clone(), grain, bucket: bucket.to_owned() },
        count: Some(2),
        sum: Some(decimal("-21.07")),
        min: Some(decimal("-21.57")),
        max: Some(decimal("0.5")),
    };
    check(
        &rollup(Grain::Hour, "2024-01-15T10"),
        &expect![[r#"
        E-24 Rollup
        base SENSOR#s1 / HOUR#2024-01-15T10
    "#]],
    );
    check(
        &rollup(Grain::Day, "2024-01-15"),
        &expect![[r#"
        E-24 Rollup
        base SENSOR#s1 / DAY#2024-01-15
    "#]],
    );
}

#[test]
fn keys_of_an_email_claim() {
    let claim = EmailClaim {
        key: EmailClaimKey { email: entities::emails::normalised(" Ada@Example.org") },
        user_id: Some(UserId::from("ada")),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &claim,
        &expect![[r#"
        E-26 EmailClaim
        base EMAIL#ada@example.org / CLAIM
    "#]],
    );
}

#[test]
fn keys_of_a_subscription_and_a_cart_item() {
    let subscription = Subscription {
        key: SubscriptionKey { user_id: UserId::from("ada"), subscription_id: SubscriptionId::from("s1") },
        plan: Some("yearly".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &subscription,
        &expect![[r#"
        E-28 Subscription
        base USER#ada / SUB#s1
    "#]],
    );
    let item = CartItem {
        key: CartItemKey { user_id: "ada".into(), cart_id: CartId::from("c1"), product_id: ProductId::from("p1") },
        quantity: Some(2),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    };
    check(
        &item,
        &expect![[r#"
        E-29 CartItem
        base USER#ada#CART#c1 / ITEM#p1
        GSI1 USER#ada / CART#c1#ITEM#p1
    "#]],
    );
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Any text that is not empty; every second one is full of separators and escape characters.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["(?s).{1,20}", "[#%/2F35$]{1,12}"]
}

/// Text for a part of a key: anything, and the parts of templates in any order.
fn key_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "(USER|POST|GROUP|ORG|FOLLOWS|FOLLOWER|LIKE|VIEW|COMMENT|MEMBER|TEAM|EMP|COUNT|PROFILE|METADATA)",
        "(FOLDER|FILE|PRODUCT|REVIEW|ORDER|ITEM|SENSOR|HOUR|DAY|EMAIL|CLAIM|SUB|CART)",
        "[#/%]",
        "(%23|%25|%2F|00|07|a)",
        "(?s).{0,3}",
    ];
    prop_oneof![".*", proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())]
}

#[track_caller]
fn reads_back<E: Entity>(key: &E::Key)
where
    E::Key: Debug + PartialEq,
{
    let primary = E::primary_key(key).unwrap();
    assert_eq!(E::parse_key(&primary).as_ref(), Some(key), "{primary}");
}

/// A value for every field of the template, in the field's form.
fn filled(template: &KeyTemplate, values: &[String]) -> Fields {
    let value = |name: &str, text: &str| match name {
        "Path" => format!("/{}", keys::escape::segment(text)),
        "Shard" => (text.len() % 100).to_string(),
        "UnitsSold" => text.len().to_string(),
        "Total" => number::canonical(&format!("{}E-2", text.len())).unwrap(),
        "Grain" => if text.len().is_multiple_of(2) { "HOUR" } else { "DAY" }.to_owned(),
        _ => text.to_owned(),
    };
    template.field_names().into_iter().zip(values).map(|(name, text)| (name, value(name, text))).collect()
}

proptest! {
    #[test]
    fn every_typed_key_reads_back(a in value(), b in value(), c in value(), satellite in 0u32..100) {
        let (user, post, group, org) = (UserId::from(&a), PostId::from(&b), GroupId::from(&b), OrgId::from(&b));
        let at = c.clone();
        reads_back::<User>(&UserKey { user_id: user.clone() });
        reads_back::<Post>(&PostKey { author_id: user.clone(), created_at: at.clone(), post_id: post.clone() });
        reads_back::<PostDetail>(&PostDetailKey { post_id: post.clone() });
        let comment_id = CommentId::from(&a);
        reads_back::<Comment>(&CommentKey { post_id: post.clone(), created_at: at.clone(), comment_id });
        reads_back::<Like>(&LikeKey { user_id: user.clone(), post_id: post.clone() });
        reads_back::<View>(&ViewKey { user_id: user.clone(), viewed_at: at, post_id: post });
        reads_back::<Follow>(&FollowKey { follower_id: user.clone(), followee_id: UserId::from(&b) });
        reads_back::<Follower>(&FollowerKey { followee_id: user.clone(), follower_id: UserId::from(&b) });
        reads_back::<Group>(&GroupKey { group_id: group.clone() });
        reads_back::<Membership>(&MembershipKey { user_id: user.clone(), group_id: group.clone() });
        reads_back::<GroupMember>(&GroupMemberKey { group_id: group, user_id: user.clone() });
        reads_back::<Organization>(&OrganizationKey { org_id: org.clone() });
        reads_back::<Team>(&TeamKey { org_id: org.clone(), team_id: TeamId::from(&a) });
        reads_back::<Member>(&MemberKey { org_id: org.clone(), user_id: user });
        let path = EmployeePath::new([&a, &b, &c].map(EmployeeId::from).to_vec());
        reads_back::<OrgChart>(&OrgChartKey { org_id: org.clone(), path });
        reads_back::<Employee>(&EmployeeKey { org_id: org, employee_id: EmployeeId::from(&a) });
        reads_back::<Counter>(&CounterKey { target: Key::new(a, b), derivation: c, satellite });
    }

    #[test]
    fn every_typed_key_of_files_and_of_trade_reads_back(a in value(), b in value(), at in value(), daily: bool) {
        let (user, product, order) = (UserId::from(&a), ProductId::from(&b), OrderId::from(&b));
        let (folder, file) = (FolderId::from(&a), FileId::from(&b));
        reads_back::<Folder>(&FolderKey { folder_id: folder.clone() });
        reads_back::<File>(&FileKey { folder_id: folder, uploaded_at: at.clone(), file_id: file.clone() });
        reads_back::<FileDetail>(&FileDetailKey { file_id: file });
        reads_back::<Product>(&ProductKey { product_id: product.clone() });
        let review_id = ReviewId::from(&a);
        reads_back::<Review>(&ReviewKey { product_id: product.clone(), created_at: at.clone(), review_id });
        reads_back::<Order>(&OrderKey { user_id: user.clone(), placed_at: at.clone(), order_id: order.clone() });
        reads_back::<OrderItem>(&OrderItemKey { order_id: order.clone(), product_id: ProductId::from(&a) });
        reads_back::<OrderDetail>(&OrderDetailKey { order_id: order });
        reads_back::<Reading>(&ReadingKey { sensor_id: SensorId::from(&a), day: b.clone(), at: at.clone() });
        let grain = if daily { Grain::Day } else { Grain::Hour };
        reads_back::<Rollup>(&RollupKey { sensor_id: SensorId::from(&a), grain, bucket: at.clone() });
        reads_back::<EmailClaim>(&EmailClaimKey { email: a });
        let subscription_id = SubscriptionId::from(&b);
        reads_back::<Subscription>(&SubscriptionKey { user_id: user.clone(), subscription_id });
        reads_back::<CartItem>(&CartItemKey { user_id: user, cart_id: CartId::from(at), product_id: product });
    }

    #[test]
    fn an_amount_of_38_digits_survives_its_item(digits in "-?[1-9][0-9]{0,36}[1-9]?", exponent in -130i32..88) {
        let text = number::canonical(&format!("{digits}E{exponent}")).unwrap();
        let key = ReadingKey { sensor_id: "s".into(), day: "d".to_owned(), at: "t".to_owned() };
        let reading = Reading { key, value: Decimal::parse(&text), ..Reading::default() };
        let item = reading.to_item(&layout()).unwrap();
        prop_assert_eq!(item.get("Value"), Some(&AttributeValue::N(text.clone())));
        let read = Reading::from_item(&layout(), &item).unwrap().unwrap();
        prop_assert_eq!(read.value.map(|value| value.to_string()), Some(text));
    }

    #[test]
    fn any_text_that_reads_as_a_key_makes_that_key_again_or_is_refused(pk in key_text(), sk in key_text()) {
        let key = Key::new(pk, sk);
        for definition in definitions() {
            let Some(fields) = definition.key.parse_key(&key) else { continue };
            let Ok(again) = definition.build(&fields) else { continue };
            prop_assert_eq!(definition.key.parse_key(&again), Some(fields), "{} {}", definition.name, key);
            // Another writer may leave a `%` unescaped; Ripple escapes it.
            if !key.to_string().contains('%') {
                prop_assert_eq!(&again, &key, "{}", definition.name);
            }
        }
        let counter = CounterKey::parse(&key);
        prop_assert_eq!(counter.is_some(), Counter::definition().key.parse_key(&key).is_some(), "{}", key);
        prop_assert_eq!(counter.clone(), Counter::parse_key(&key), "{}", key);
    }

    #[test]
    fn every_index_key_reads_back_as_far_as_it_can(values in proptest::collection::vec(value(), 3)) {
        for definition in definitions() {
            for index in &definition.indexes {
                let fields = filled(&index.key, &values);
                let key = index.key.build(&fields).unwrap();
                let read = index.key.parse_key(&key).unwrap();
                for (name, value) in read.iter() {
                    prop_assert_eq!(Some(value), fields.get(name), "{} {}", definition.name, key);
                }
            }
        }
    }

    #[test]
    fn a_key_is_of_one_entity_only(values in proptest::collection::vec(value(), 4)) {
        // A counter's target can be anything; here it is a key of this table.
        for definition in definitions().into_iter().filter(|definition| definition.name != Counter::NAME) {
            let target = definition.build(&filled(&definition.key, &values)).unwrap();
            prop_assert_eq!(of_form(&target), [definition.name.as_str()], "{}", target);
            let counter = CounterKey { target, derivation: values[0].clone(), satellite: 0 }.key().unwrap();
            prop_assert_eq!(of_form(&counter), [Counter::NAME], "{}", counter);
        }
    }
}

/// The entities with a form that matches this key.
fn of_form(key: &Key) -> Vec<&'static str> {
    let fits = definitions().into_iter().filter(|definition| definition.key.parse_key(key).is_some());
    fits.map(|definition| definition.name.as_str()).collect()
}

#[test]
fn an_empty_field_is_refused_by_name_in_every_key() {
    let values = ["a", "b", "c", "d"].map(str::to_owned);
    for definition in definitions() {
        for name in definition.key.field_names() {
            let mut fields = filled(&definition.key, &values);
            fields.insert(name, "");
            let error = definition.build(&fields).unwrap_err().to_string();
            assert_eq!(error, format!("{}.{name} is empty; a key value must not be", definition.name));
        }
    }
}

#[test]
fn a_key_that_is_too_long_is_refused_with_its_length_and_the_limit() {
    let id = |len: usize| UserId::from("x".repeat(len));
    let user = |len: usize| User::primary_key(&UserKey { user_id: id(len) }).map_err(|error| error.to_string());
    assert!(user(2_043).is_ok());
    assert_eq!(user(2_044), Err("User.UserId makes a key of 2049 bytes; the limit is 2048".to_owned()));
    let follow = |len: usize| {
        let key = FollowKey { follower_id: UserId::from("a"), followee_id: id(len) };
        Follow::primary_key(&key).map_err(|error| error.to_string())
    };
    assert!(follow(1_016).is_ok());
    assert_eq!(follow(1_017), Err("Follow.FolloweeId makes a key of 1025 bytes; the limit is 1024".to_owned()));
}

#[test]
fn an_item_whose_index_key_cannot_be_made_is_refused() {
    let refusal = |user: &User| user.to_item(&layout()).unwrap_err().to_string();
    assert_eq!(refusal(&user("ada", "")), "User.Email is empty; a key value must not be");
    let long = "x".repeat(2_048);
    assert_eq!(refusal(&user("ada", &long)), "User.Email makes a key of 2054 bytes; the limit is 2048");
    let without = User { email: None, ..user("ada", "") };
    assert_eq!(refusal(&without), "User.Email is missing; the key needs it");
}

/// The images of the captured records, with the file of each, without those that do not decode.
fn captured_images() -> Vec<(String, Item)> {
    let mut images = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/events")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let event: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for record in event["Records"].as_array().unwrap() {
            for image in ["OldImage", "NewImage"] {
                let image = record["dynamodb"][image].clone();
                if let Ok(item) = serde_json::from_value::<serde_dynamo::Item>(image) {
                    images.push((path.display().to_string(), item.into_inner().into_iter().collect()));
                }
            }
        }
    }
    images
}

#[test]
fn items_of_captured_records_have_the_keys_that_their_entities_make() {
    let mut known = BTreeSet::new();
    for (file, item) in captured_images() {
        let key = layout().key(&item).unwrap();
        let entity = text(&item, "EntityType");
        let Some(definition) = definitions().into_iter().find(|d| Some(d.name.as_str()) == entity) else { continue };
        let fields =
            definition.fields(&key, &item).unwrap_or_else(|| panic!("{file}: {key} is no {}", definition.name));
        for (name, value) in definition.index_attributes(&layout(), &fields) {
            assert_eq!(item.get(&name), value.as_ref(), "{file}: {name} of {key}");
        }
        known.insert(definition.name.as_str());
    }
    assert_eq!(known.into_iter().collect::<Vec<_>>(), ["Comment", "Follow", "Like", "Post", "User", "View"]);
}

#[test]
fn a_change_is_typed_by_its_entity_and_a_change_of_type_removes_and_inserts() {
    use keys::change::EntityChange;

    let layout = entities::table::layout();
    let item = |entity: &str, name: &str| {
        let text = |text: &str| serde_dynamo::AttributeValue::S(text.to_owned());
        keys::item::Item::from([
            ("PK".to_owned(), text("GROUP#g")),
            ("SK".to_owned(), text("METADATA")),
            ("EntityType".to_owned(), text(entity)),
            ("Name".to_owned(), text(name)),
        ])
    };
    let group = |name: &str| entities::groups::Group {
        key: entities::groups::GroupKey { group_id: "g".into() },
        name: Some(name.to_owned()),
        ..entities::groups::Group::default()
    };
    let typed = |old: Option<&keys::item::Item>, new: Option<&keys::item::Item>| {
        EntityChange::<entities::groups::Group>::from_images(&layout, old, new).unwrap()
    };
    let (one, other, foreign) = (item("Group", "One"), item("Group", "Other"), item("Gadget", "One"));
    assert_eq!(typed(None, Some(&one)), Some(EntityChange::Inserted(group("One"))));
    assert_eq!(
        typed(Some(&one), Some(&other)),
        Some(EntityChange::Modified { old: group("One"), new: group("Other") })
    );
    assert_eq!(typed(Some(&one), None), Some(EntityChange::Removed(group("One"))));
    assert_eq!(typed(Some(&one), Some(&foreign)), Some(EntityChange::Removed(group("One"))));
    assert_eq!(typed(Some(&foreign), Some(&one)), Some(EntityChange::Inserted(group("One"))));
    assert_eq!(typed(Some(&foreign), None), None);
    let mut misfit = one.clone();
    misfit.insert("SK".to_owned(), serde_dynamo::AttributeValue::S("ELSEWHERE".to_owned()));
    assert!(EntityChange::<entities::groups::Group>::from_images(&layout, None, Some(&misfit)).is_err());
}

//! The keys of the shipped table, as they are stored.
//!
//! A changed key is a migration of data, so every entity's keys stand here in full: a change of a template shows up
//! as a changed line of this file and has to be meant.
//! Beside them, what holds for every key whatever its values: it reads back, it is of one entity only, and what cannot
//! be kept is refused by name.

use std::{collections::BTreeSet, fmt::Debug};

use entities::{
    counter::Counter,
    groups::{Group, GroupKey, GroupMember, GroupMemberKey, Membership, MembershipKey},
    ids::{CommentId, EmployeeId, GroupId, OrgId, PostId, TeamId, UserId},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, Organization, OrganizationKey, Team, TeamKey,
    },
    people::{Follow, FollowKey, Follower, FollowerKey, User, UserKey},
    posts::{
        Claim, Comment, CommentKey, Like, LikeKey, Post, PostDetail, PostDetailKey, PostKey, View, ViewKey, status,
    },
    table::{definitions, layout},
};
use expect_test::{Expect, expect};
use keys::{
    counter::CounterKey,
    entity::{Entity, KeyTemplate},
    fields::Fields,
    item::{Item, text},
    key::Key,
};
use proptest::{
    prelude::{Strategy, prop_assert_eq},
    prop_oneof, proptest,
};

const AT: &str = "2024-01-15T10:30:00.000Z";

/// Holds the keys of an item, and that the item reads back as it was written.
#[track_caller]
fn check<E: Entity + Debug + PartialEq>(entity: &E, keys: &Expect) {
    let item = entity.to_item(&layout()).unwrap();
    keys.assert_eq(&rendered::<E>(&item));
    assert_eq!(E::from_item(&layout(), &item).unwrap().as_ref(), Some(entity));
}

/// One line a key: the table's, then those of the indexes that hold the item.
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
        lifetime_value: Some(1999),
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
    let path = EmployeePath::new(vec![EmployeeId::from("c/e#o"), EmployeeId::from("100%")]);
    check(
        &employee(path),
        &expect![[r#"
            E-15 Employee
            base ORG#acme / EMP#/c%2Fe%23o/100%25
            GSI1 EMP#100%25 / EMP
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

fn employee(path: EmployeePath) -> Employee {
    Employee {
        manager_id: path.manager().cloned(),
        key: EmployeeKey { org_id: OrgId::from("acme"), path },
        name: Some("Ada".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    }
}

#[test]
fn keys_of_an_employee() {
    let path = ["ceo", "vp", "ada"].map(EmployeeId::from).to_vec();
    check(
        &employee(EmployeePath::new(path)),
        &expect![[r#"
            E-15 Employee
            base ORG#acme / EMP#/ceo/vp/ada
            GSI1 EMP#ada / EMP
        "#]],
    );
}

#[test]
fn keys_of_a_counter() {
    let target = Key::new("USER#50%25", "PROFILE");
    let counter = Counter {
        key: CounterKey { target, derivation: "follower-count~2".to_owned(), shard: 7 },
        value: Some(-3),
        sum: None,
    };
    check(
        &counter,
        &expect![[r#"
            E-25 Counter
            base USER#50%25 / PROFILE#COUNT#follower-count~2#07
        "#]],
    );
}

/// Any text that is not empty, every other one full of what keys are joined and escaped with.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["(?s).{1,20}", "[#%/2F35$]{1,12}"]
}

/// Text for a part of a key: anything, and what the templates are made of in any order.
fn key_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "(USER|POST|GROUP|ORG|FOLLOWS|FOLLOWER|LIKE|VIEW|COMMENT|MEMBER|TEAM|EMP|COUNT|PROFILE|METADATA)",
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

/// A value for every field that the template needs, of the form that the field has.
fn filled(template: &KeyTemplate, values: &[String]) -> Fields {
    let value = |name: &str, text: &str| match name {
        "Path" => format!("/{}", keys::escape::segment(text)),
        "Shard" => (text.len() % 100).to_string(),
        _ => text.to_owned(),
    };
    template.field_names().into_iter().zip(values).map(|(name, text)| (name, value(name, text))).collect()
}

proptest! {
    #[test]
    fn every_typed_key_reads_back(a in value(), b in value(), c in value(), shard in 0u32..100) {
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
        reads_back::<Employee>(&EmployeeKey { org_id: org, path });
        reads_back::<Counter>(&CounterKey { target: Key::new(a, b), derivation: c, shard });
    }

    #[test]
    fn any_text_that_reads_as_a_key_makes_that_key_again_or_is_refused(pk in key_text(), sk in key_text()) {
        let key = Key::new(pk, sk);
        for definition in definitions() {
            let Some(fields) = definition.key.parse_key(&key) else { continue };
            let Ok(again) = definition.build(&fields) else { continue };
            prop_assert_eq!(definition.key.parse_key(&again), Some(fields), "{} {}", definition.name, key);
            // Another writer may leave a `%` as it is, which stands for itself; ours is escaped.
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
        // A counter may count about anything, so its target is a key of this table here.
        for definition in definitions().into_iter().filter(|definition| definition.name != Counter::NAME) {
            let target = definition.build(&filled(&definition.key, &values)).unwrap();
            prop_assert_eq!(of_form(&target), [definition.name.as_str()], "{}", target);
            let counter = CounterKey { target, derivation: values[0].clone(), shard: 0 }.key().unwrap();
            prop_assert_eq!(of_form(&counter), [Counter::NAME], "{}", counter);
        }
    }
}

/// Names of the entities whose form this key has.
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

/// The images of the captured records, with the file that each is from; those that do not decode are left out.
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
    use keys::change::Change;

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
        Change::<entities::groups::Group>::from_images(&layout, old, new).unwrap()
    };
    let (one, other, foreign) = (item("Group", "One"), item("Group", "Other"), item("Gadget", "One"));
    assert_eq!(typed(None, Some(&one)), Some(Change::Inserted(group("One"))));
    assert_eq!(typed(Some(&one), Some(&other)), Some(Change::Modified { old: group("One"), new: group("Other") }));
    assert_eq!(typed(Some(&one), None), Some(Change::Removed(group("One"))));
    assert_eq!(typed(Some(&one), Some(&foreign)), Some(Change::Removed(group("One"))));
    assert_eq!(typed(Some(&foreign), Some(&one)), Some(Change::Inserted(group("One"))));
    assert_eq!(typed(Some(&foreign), None), None);
    let mut misfit = one.clone();
    misfit.insert("SK".to_owned(), serde_dynamo::AttributeValue::S("ELSEWHERE".to_owned()));
    assert!(Change::<entities::groups::Group>::from_images(&layout, None, Some(&misfit)).is_err());
}

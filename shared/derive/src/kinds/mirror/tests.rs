use std::{collections::BTreeSet, sync::Arc};

use expect_test::{Expect, expect};
use serde_dynamo::AttributeValue;

use crate::{
    change::Change,
    derived::Items,
    fixture::{catalogue, derivations, effects, inserted, item, key_of, modified, removed, schema, table},
    refresh::{Look, Verdict},
    write::Action,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("mirror", change));
}

const FOLLOW: &str = "USER#ann / FOLLOWS#bob Follow CreatedAt=2024";
const FOLLOWER: &str = "USER#bob / FOLLOWER#ann Follower CreatedAt=2024 FollowerName=Ann";
const POST: &str = "USER#ann / POST#2024#p Post Title=x Content=long";
const DETAIL: &str = "POST#p / METADATA PostDetail Title=x Claims=CLAIMS:USER#ann/POST#2024#p";

#[test]
fn a_source_that_is_made_or_removed_rings_its_mirror() {
    check(
        &inserted(FOLLOW),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob
    "#]],
    );
    check(
        &removed(FOLLOW),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob
    "#]],
    );
}

#[test]
fn an_attribute_that_is_mirrored_rings() {
    check(
        &modified(FOLLOW, "USER#ann / FOLLOWS#bob Follow CreatedAt=2025"),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob
    "#]],
    );
    check(
        &modified(FOLLOW, &format!("{FOLLOW} Note=x")),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower) named USER#ann / FOLLOWS#bob
    "#]],
    );
}

#[test]
fn an_attribute_that_is_left_out_rings_nothing() {
    check(
        &modified(POST, "USER#ann / POST#2024#p Post Title=x Content=longer"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(POST, &format!("{POST} GSI1PK=a GSI1SK=b ExpiresAt=N:1")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(FOLLOW, &format!("{FOLLOW} FolloweeName=Bob")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_mirror_that_a_hand_makes_alters_or_deletes_rings_itself() {
    check(
        &removed(FOLLOWER),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower)
    "#]],
    );
    check(
        &modified(FOLLOWER, &format!("{FOLLOWER} Note=x")),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower)
    "#]],
    );
    check(
        &inserted(FOLLOWER),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower)
    "#]],
    );
    check(
        &modified(FOLLOWER, "USER#bob / FOLLOWER#ann Gadget"),
        &expect![[r#"
        follower-mirror: look USER#bob / FOLLOWER#ann (Follower)
    "#]],
    );
}

#[test]
fn what_other_derivations_write_into_a_mirror_rings_nothing() {
    check(
        &modified(FOLLOWER, "USER#bob / FOLLOWER#ann Follower CreatedAt=2024 FollowerName=Anna"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(DETAIL, &format!("{DETAIL} CommentCount=N:1 AuthorName=Ann")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_source_that_changes_its_key_rings_by_both_of_its_keys() {
    check(
        &removed(POST),
        &expect![[r#"
        post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p
    "#]],
    );
    check(
        &inserted("USER#bob / POST#2025#p Post Title=x"),
        &expect![[r#"
        post-detail: look POST#p / METADATA (PostDetail) named USER#bob / POST#2025#p
    "#]],
    );
}

#[test]
fn a_derived_attribute_that_stands_in_the_mirrors_key_rings_both_keys() {
    let vp = "ORG#o / EMPLOYEE#vp Employee Name=Vi ManagerId=ceo Path=/ceo/vp";
    check(
        &modified(vp, &vp.replace("/ceo/vp", "/cto/vp")),
        &expect![[r#"
            org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp
            org-chart: look ORG#o / EMP#/cto/vp (OrgChart) named ORG#o / EMPLOYEE#vp
        "#]],
    );
    check(
        &modified(vp, &vp.replace(" Path=/ceo/vp", "")),
        &expect![[r#"
            org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp
        "#]],
    );
    check(
        &inserted("ORG#o / EMPLOYEE#vp Employee Name=Vi ManagerId=ceo"),
        &expect![[r#"
            nothing
        "#]],
    );
    check(
        &modified(vp, &vp.replace("/ceo/vp", "vp")),
        &expect![[r#"
            org-chart: look ORG#o / EMP#/ceo/vp (OrgChart) named ORG#o / EMPLOYEE#vp
            org-chart: list Path is not a path: it starts with `/`, and no segment is empty or holds `#`
        "#]],
    );
}

#[test]
fn an_altered_list_of_claims_rings_with_all_that_either_image_names() {
    let stolen = "POST#p / METADATA PostDetail Title=x Claims=CLAIMS:USER#eve/POST#2024#p";
    check(
        &modified(DETAIL, stolen),
        &expect![[r#"
        post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p, named USER#eve / POST#2024#p
    "#]],
    );
    check(
        &modified(DETAIL, "POST#p / METADATA PostDetail Title=x Claims=N:1"),
        &expect![[r#"
        post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p
    "#]],
    );
    check(
        &removed(DETAIL),
        &expect![[r#"
        post-detail: look POST#p / METADATA (PostDetail) named USER#ann / POST#2024#p
    "#]],
    );
}

const DESK: &str = "DESK#d / METADATA Desk Place=hall Clerks=SS:ann,bob";

#[test]
fn a_source_has_a_mirror_for_each_member_and_a_member_that_comes_or_goes_rings_for_its_own() {
    check(
        &inserted(DESK),
        &expect![[r#"
            duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
            duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
        "#]],
    );
    check(
        &modified(DESK, "DESK#d / METADATA Desk Place=hall Clerks=SS:bob,cid,dan,bob"),
        &expect![[r#"
            duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
            duties: look CLERK#cid / DESK#d (Duty) named DESK#d / METADATA
            duties: look CLERK#dan / DESK#d (Duty) named DESK#d / METADATA
        "#]],
    );
    check(
        &modified(DESK, "DESK#d / METADATA Desk Place=yard Clerks=SS:bob"),
        &expect![[r#"
            duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
            duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
        "#]],
    );
}

#[test]
fn a_source_that_no_longer_meets_the_condition_rings_for_all_its_mirrors() {
    check(
        &modified(DESK, &format!("{DESK} Closed=BOOL:true")),
        &expect![[r#"
            duties: look CLERK#ann / DESK#d (Duty) named DESK#d / METADATA
            duties: look CLERK#bob / DESK#d (Duty) named DESK#d / METADATA
        "#]],
    );
    let closed = format!("{DESK} Closed=BOOL:true");
    check(&modified(&closed, &closed.replace("hall", "yard")), &expect!["nothing\n"]);
}

#[test]
fn members_that_no_key_can_hold_are_told() {
    check(
        &inserted("DESK#d / METADATA Desk Clerks=ann"),
        &expect![[r#"
            duties: list Clerks is S, and a list or a set of texts is wanted
        "#]],
    );
    check(
        &inserted("DESK#d / METADATA Desk Clerks=NS:1,2"),
        &expect![[r#"
            duties: list Clerks has a member that is N, and S is wanted
        "#]],
    );
    check(
        &inserted("DESK#d / METADATA Desk Clerks=SS:ann,"),
        &expect![[r#"
            duties: list Clerks has a member that is empty
        "#]],
    );
}

#[test]
fn what_dynamodb_writes_and_keys_of_undeclared_indexes_are_not_mirrored() {
    let mut schema = schema();
    schema.layout.undeclared_keys = Arc::new([(String::new(), ["gsi1pk".to_owned()].into())].into());
    let catalogue = catalogue(&schema);
    let follow = item("USER#ann / FOLLOWS#bob Follow Note=x gsi1pk=y aws:rep:updatetime=N:1");
    let key = key_of(&item(FOLLOWER));
    let derivations = [catalogue.position("follower-mirror").unwrap()].into();
    let look = Look { item: key.clone(), entity: "Follower".to_owned(), derivations, named: BTreeSet::new() };
    let mut items = Items::from([(key_of(&follow), follow)]);
    let Verdict::Write { write, .. } = table::decided(&schema, &catalogue, &look, &items) else { unreachable!() };
    let Action::Put(mut mirror) = write.action else { unreachable!() };
    assert_eq!(mirror.keys().collect::<Vec<_>>(), ["EntityType", "Note", "PK", "SK"]);
    // DynamoDB's attribute on the mirror stays, and attributes that were mirrored before are removed.
    mirror.insert("aws:rep:updatetime", AttributeValue::N("7".to_owned()));
    items.insert(key.clone(), mirror.clone());
    assert_eq!(table::decided(&schema, &catalogue, &look, &items), Verdict::InStep);
    mirror.insert("gsi1pk", AttributeValue::S("y".to_owned()));
    items.insert(key, mirror);
    let Verdict::Write { write, .. } = table::decided(&schema, &catalogue, &look, &items) else { unreachable!() };
    let Action::Update(update) = write.action else { unreachable!() };
    assert_eq!((update.set.len(), update.remove.into_iter().collect::<Vec<_>>()), (0, vec!["gsi1pk".to_owned()]));
}

#[test]
fn a_source_whose_mirror_has_too_long_a_key_in_an_index_is_unreadable() {
    let schema = schema();
    let derivations = derivations();
    let mirror = derivations.iter().find(|derivation| derivation.name == "post-detail").unwrap();
    let unreadable = |created: &str, status: &str| {
        let post = item(&format!("USER#ann / POST#{created}#p Post Status={status}"));
        let key = key_of(&post);
        mirror.unreadable(&schema, &schema.image(&key, &post).unwrap()).map(|why| why.to_string())
    };
    let longest = "2".repeat(1_024 - "#p".len());
    assert_eq!(unreadable(&longest, "published"), None);
    let longer = format!("{longest}2");
    assert_eq!(unreadable(&longer, "draft"), None, "it is not in the index");
    expect!["PostId makes a key of 1025 bytes; the limit is 1024, so the item is not in the index GSI2"]
        .assert_eq(&unreadable(&longer, "published").unwrap());
}

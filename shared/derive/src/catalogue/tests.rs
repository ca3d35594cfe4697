use expect_test::{Expect, expect};

use super::*;
use crate::{
    condition::Condition,
    declaration::{Count, FoundBy, Link, Mirror},
    fixture::{self, copy, count, derivations, display, ground, mirror, named, schema},
    kinds::{
        copy::Copy,
        display::{Display, Shows},
    },
};

fn check(schema: &Schema, derivations: Vec<Derivation>, wanted: &Expect) {
    wanted.assert_eq(&Catalogue::new(schema, derivations).unwrap_err().to_string());
}

fn count_only_if(attribute: &str) -> Count {
    let condition = Condition::is(attribute, "published");
    Count { condition, ..count("Post", "User", &[("UserId", "AuthorId")]) }
}

fn check_one(derivation: Derivation, wanted: &Expect) {
    check(&schema(), vec![derivation], wanted);
}

#[test]
fn a_derivation_comes_after_those_that_it_builds_on() {
    let mut backwards = derivations();
    backwards.reverse();
    let catalogue = Catalogue::new(&schema(), backwards).unwrap();
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    let at = |name: &str| names.iter().position(|other| *other == name);
    for (first, second) in [("follower-count", "follower-shown"), ("post-detail", "post-author")] {
        assert!(at(first) < at(second), "{names:?}");
    }
}

#[test]
fn a_circle_is_refused() {
    let name = |to: &str, target: &str, from: &str| {
        let copy = copy(target, ("UserId", to), None, (target, "UserId"));
        Copy { source: from.into(), attributes: vec![("Name".into(), to.into())], ..copy }
    };
    let entity = |name: &str| {
        let sk = if name == "A" { "A" } else { "B" };
        ground(name, ("USER#{UserId}", sk), &[], &["Name"])
    };
    let schema = Schema::new(fixture::schema().layout, [entity("A"), entity("B")]);
    let both = vec![named("a", name("Name", "A", "B")), named("b", name("Name", "B", "A"))];
    check(&schema, both, &expect!["derivations build on each other in a circle: a, b"]);
}

#[test]
fn a_kind_that_recurs_over_its_own_target_is_no_circle_and_any_other_is() {
    let path = || named("path", fixture::files::folder_path());
    assert!(Catalogue::new(&schema(), vec![path()]).is_ok());
    let own_name = |to: &str| Copy {
        source: "Folder".into(),
        target: "Folder".into(),
        link: Link::of(&[("FolderId", "ParentId")]),
        condition: Condition::Always,
        attributes: vec![("Path".into(), to.into())],
        found: fixture::files::folder_path().found,
    };
    check_one(named("a", own_name("Path")), &expect!["derivations build on each other in a circle: a"]);
    // Two that build on each other; one of them recurs.
    let schema = Schema::new(
        fixture::schema().layout,
        fixture::files::entities().map(|mut entity| {
            entity.derived_attributes.push("Name".into());
            entity
        }),
    );
    check(
        &schema,
        vec![path(), named("b", own_name("Name"))],
        &expect!["derivations build on each other in a circle: path, b"],
    );
}

#[test]
fn one_attribute_has_one_writer() {
    let one = display("follower-count", "User", "FollowerCount");
    let other = display("post-count", "User", "FollowerCount");
    check(
        &schema(),
        vec![named("one", one), named("other", other)],
        &expect!["derivations one and other both write User.FollowerCount"],
    );
}

#[test]
fn one_mirror_has_one_source() {
    let both = [("FolloweeId", "FolloweeId"), ("FollowerId", "FollowerId")];
    let one = || mirror("Follow", "Follower", &both);
    check(
        &schema(),
        vec![named("one", one()), named("other", one())],
        &expect!["derivations one and other both write Follower"],
    );
}

#[test]
fn one_name_is_one_derivations() {
    let one = || count("View", "User", &[("UserId", "UserId")]);
    check(&schema(), vec![named("one", one()), named("one", one())], &expect!["two derivations are called one"]);
}

#[test]
fn a_name_that_the_schema_does_not_know_is_refused() {
    check_one(
        named("a", count("Viev", "User", &[("UserId", "UserId")])),
        &expect!["derivation a: there is no entity Viev"],
    );
    check_one(
        named("a", count("View", "User", &[("UserId", "UserID")])),
        &expect!["derivation a: View has no field or attribute UserID"],
    );
    check_one(
        named("a", count("View", "User", &[("Id", "UserId")])),
        &expect!["derivation a: nothing gives UserId of the key of User"],
    );
    check_one(named("a", count_only_if("Sttaus")), &expect!["derivation a: Post has no attribute Sttaus"]);
    check_one(
        named("a", display("no-count", "User", "PostCount")),
        &expect!["derivation a: there is no count no-count"],
    );
    let sum = Display { shows: Shows::Sum, ..display("post-count", "User", "PostCount") };
    check(
        &schema(),
        vec![named("post-count", count("Post", "User", &[("UserId", "AuthorId")])), named("a", sum)],
        &expect!["derivation a: there is no sum of post-count"],
    );
    check_one(
        named("a", display("a", "User", "Followers")),
        &expect!["derivation a: User does not declare Followers as derived"],
    );
    let typo = Mirror { each: Some("Contents".into()), ..mirror("Post", "PostDetail", &[("PostId", "PostId")]) };
    check_one(named("a", typo), &expect!["derivation a: Post has no attribute Contents"]);
    let right = || copy("Comment", ("UserId", "UserName"), Some("GSI1"), ("Comment", "UserId"));
    let typo = Copy { attributes: vec![("Nmae".into(), "UserName".into())], ..right() };
    check_one(named("a", typo), &expect!["derivation a: User has no attribute Nmae"]);
    let typo = FoundBy { by: Link::of(&[("UserId", "Id")]), ..right().found };
    check_one(
        named("a", Copy { found: typo, ..right() }),
        &expect!["derivation a: the key of User has no Id, by which the targets would be found"],
    );
    check_one(
        named("a", mirror("Follow", "User", &[("UserId", "FolloweeId")])),
        &expect!["derivation a: User is not declared as derived"],
    );
    check_one(
        named("a", mirror("View", "Follower", &[("FolloweeId", "UserId"), ("FollowerId", "UserId")])),
        &expect!["derivation a: Follower does not declare Claims as derived"],
    );
    check_one(
        named("a", copy("Comment", ("UserId", "Text"), Some("GSI1"), ("Comment", "UserId"))),
        &expect!["derivation a: Comment does not declare Text as derived"],
    );
    check_one(
        named("a", copy("Comment", ("UserId", "UserName"), Some("GSI2"), ("Comment", "UserId"))),
        &expect!["derivation a: Comment is not in the index GSI2"],
    );
    check_one(
        named("a", copy("Comment", ("UserId", "UserName"), None, ("Comment", "UserId"))),
        &expect!["derivation a: nothing gives PostId of the key by which the targets are found"],
    );
}

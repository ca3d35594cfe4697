use expect_test::{Expect, expect};

use crate::{
    change::Change,
    fixture::{effects, inserted, modified, removed},
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("cascade", change));
}

#[test]
fn a_removal_starts_a_job_and_names_what_the_removed_item_held() {
    check(
        &removed("USER#ann / PROFILE User Name=Ann"),
        &expect![[r#"
        user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE
    "#]],
    );
    check(
        &removed("USER#ann / PROFILE User Email=Ann@X.org"),
        &expect![[r#"
        user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE, named EMAIL#ann@x.org / CLAIM as 0
    "#]],
    );
    check(
        &removed("USER#ann / PROFILE User Email=N:1"),
        &expect![[r#"
        user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE
    "#]],
    );
}

#[test]
fn a_source_and_its_mirror_start_one_each_with_all_keys_that_are_known() {
    check(
        &removed("USER#ann / POST#2024#p Post Title=x"),
        &expect![[r#"
        post-cascade: start POST#p / METADATA while absent POST#p / METADATA, USER#ann / POST#2024#p
    "#]],
    );
    let claims = "Claims=CLAIMS:USER#ann/POST#2024#p,USER#bob/POST#2025#p";
    check(
        &removed(&format!("POST#p / METADATA PostDetail {claims}")),
        &expect![[r#"
        post-cascade: start POST#p / METADATA while absent POST#p / METADATA, USER#ann / POST#2024#p, USER#bob / POST#2025#p
    "#]],
    );
}

#[test]
fn nothing_else_starts_one() {
    check(
        &inserted("USER#ann / PROFILE User Name=Ann"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified("USER#ann / PROFILE User Name=Ann", "USER#ann / PROFILE User Name=Anna"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &removed("USER#ann / PROFILE Gadget"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &removed("USER#ann / FOLLOWS#bob Follow"),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn an_item_of_which_only_the_type_changed_still_stands_there() {
    check(
        &modified("USER#ann / PROFILE User Name=Ann", "USER#ann / PROFILE Gadget Name=Ann"),
        &expect![[r#"
        nothing
    "#]],
    );
}

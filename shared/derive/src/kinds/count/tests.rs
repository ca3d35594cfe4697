use expect_test::{Expect, expect};

use crate::{
    catalogue::Catalogue,
    change::Change,
    declaration::Count,
    fixture::{count, effects, effects_in, expired, inserted, modified, named, removed, schema},
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("count", change));
}

const DRAFT: &str = "USER#ann / POST#2024#p Post Status=draft";
const PUBLISHED: &str = "USER#ann / POST#2024#p Post Status=published";
const WRITTEN: &str = "POST#p / COMMENT#c Comment UserId=ann";
const UNREADABLE: &str = "POST#p / COMMENT#c Comment UserId=N:1";
const SALE: &str = "SALE#s / METADATA Sale";

#[test]
fn an_insert_counts_for_the_target_that_its_key_names() {
    check(
        &inserted("USER#ann / FOLLOWS#bob Follow"),
        &expect![[r#"
        follower-count: +1 USER#bob / PROFILE
    "#]],
    );
}

#[test]
fn a_remove_takes_the_count_back() {
    check(
        &removed("USER#ann / FOLLOWS#bob Follow FolloweeName=Bob"),
        &expect![[r#"
        follower-count: -1 USER#bob / PROFILE
    "#]],
    );
}

#[test]
fn what_expires_is_taken_back_unless_it_stays() {
    let (schema, stays) =
        (schema(), Count { expired_stays: true, ..count("Follow", "User", &[("UserId", "FolloweeId")]) });
    let catalogue = Catalogue::new(&schema, vec![named("followers", stays)]).unwrap();
    let [taken, nothing] = ["followers: -1 USER#bob / PROFILE\n", "nothing\n"];
    let follow = "USER#ann / FOLLOWS#bob Follow";
    for (change, wanted) in [
        (expired(follow), nothing),
        (removed(follow), taken),
        (modified(follow, "USER#ann / FOLLOWS#bob Other"), taken),
        (inserted(follow), "followers: +1 USER#bob / PROFILE\n"),
    ] {
        assert_eq!(effects_in(&schema, &catalogue, "count", &change), wanted, "{change:?}");
    }
    check(&expired(follow), &expect!["follower-count: -1 USER#bob / PROFILE\n"]);
    let derived = catalogue.derivations().next().unwrap();
    assert!(derived.kind.is_history(), "what expired is gone, so the existing items are a lower bound");
}

#[test]
fn a_moved_foreign_key_takes_from_the_old_target_and_gives_to_the_new() {
    let comment = "POST#p / COMMENT#c Comment";
    check(
        &modified(&format!("{comment} UserId=ann"), &format!("{comment} UserId=bob")),
        &expect![[r#"
        writer-count: -1 USER#ann / PROFILE
        writer-count: +1 USER#bob / PROFILE
    "#]],
    );
    check(
        &modified(&format!("{comment} UserId=ann"), comment),
        &expect![[r#"
        writer-count: -1 USER#ann / PROFILE
    "#]],
    );
}

#[test]
fn a_condition_that_flips_gives_and_takes() {
    check(
        &modified(DRAFT, PUBLISHED),
        &expect![[r#"
        post-count: +1 USER#ann / PROFILE
    "#]],
    );
    check(
        &modified(PUBLISHED, DRAFT),
        &expect![[r#"
        post-count: -1 USER#ann / PROFILE
    "#]],
    );
    check(
        &inserted(DRAFT),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn an_unreadable_item_counts_as_absent_and_adds_up_when_it_is_corrected() {
    check(
        &modified(WRITTEN, UNREADABLE),
        &expect![[r#"
        writer-count: -1 USER#ann / PROFILE
        writer-count: list UserId is N, and `{UserId}` wants S
    "#]],
    );
    check(
        &modified(UNREADABLE, WRITTEN),
        &expect![[r#"
        writer-count: +1 USER#ann / PROFILE
        writer-count: take off the list
    "#]],
    );
    check(
        &removed(UNREADABLE),
        &expect![[r#"
        comment-count: -1 POST#p / METADATA
        writer-count: take off the list
    "#]],
    );
    check(
        &inserted(UNREADABLE),
        &expect![[r#"
        comment-count: +1 POST#p / METADATA
        writer-count: list UserId is N, and `{UserId}` wants S
    "#]],
    );
}

#[test]
fn an_attribute_of_another_type_than_the_condition_names_meets_it_as_dynamodb_says() {
    check(
        &modified(PUBLISHED, "USER#ann / POST#2024#p Post Status=N:1"),
        &expect![[r#"
        post-count: -1 USER#ann / PROFILE
    "#]],
    );
}

#[test]
fn a_history_count_takes_arrivals_only() {
    let view = "USER#ann / VIEW#p View";
    check(
        &inserted(view),
        &expect![[r#"
        view-count: +1 POST#p / METADATA
    "#]],
    );
    check(
        &removed(view),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(view, &format!("{view} Note=x")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified("USER#ann / VIEW#p Gadget", view),
        &expect![[r#"
        view-count: +1 POST#p / METADATA
    "#]],
    );
}

#[test]
fn in_a_history_count_an_item_that_comes_to_another_target_arrives_there_and_is_taken_from_none() {
    let sale = |product| format!("{SALE}{product}");
    check(
        &modified(&sale(" ProductId=a"), &sale(" ProductId=b")),
        &expect![[r#"
        sale-count: +1 PRODUCT#b / METADATA
    "#]],
    );
    check(
        &modified(&sale(" ProductId=a"), &sale("")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(&sale(""), &sale(" ProductId=a")),
        &expect![[r#"
        sale-count: +1 PRODUCT#a / METADATA
    "#]],
    );
    check(
        &modified(&sale(" ProductId=N:1"), &sale(" ProductId=a")),
        &expect![[r#"
        sale-count: +1 PRODUCT#a / METADATA
        sale-count: take off the list
    "#]],
    );
}

#[test]
fn a_change_of_type_is_a_removal_of_the_one_and_an_insert_of_the_other() {
    let [known, unknown, untyped] = ["Follow", "Gadget", "X=y"].map(|t| format!("USER#ann / FOLLOWS#bob {t}"));
    check(
        &modified(&known, &unknown),
        &expect![[r#"
        follower-count: -1 USER#bob / PROFILE
    "#]],
    );
    check(
        &modified(&untyped, &known),
        &expect![[r#"
        follower-count: +1 USER#bob / PROFILE
    "#]],
    );
    check(
        &modified(&unknown, &untyped),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn what_no_count_reads_counts_nothing() {
    check(
        &modified(PUBLISHED, &format!("{PUBLISHED} Title=x")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &inserted("JUNK / PROFILE User"),
        &expect![[r#"
        nothing
    "#]],
    );
}

const LINE: &str = "ORDER#o / LINE#1 Line";

/// Checks the effects of a change for the counts with a sum.
fn check_sum(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("count and sum", change));
}

#[test]
fn what_is_summed_is_added_with_the_count_and_taken_back_with_it() {
    let line = format!("{LINE} ProductId=p Quantity=N:1.50");
    check_sum(
        &inserted(&line),
        &expect![[r#"
        sold: +1 and N:1.5 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &removed(&line),
        &expect![[r#"
        sold: -1 and N:-1.5 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &inserted(&format!("{LINE} ProductId=p")),
        &expect![[r#"
        sold: +1 WARE#p / METADATA
    "#]],
    );
}

#[test]
fn an_amount_that_changed_is_a_difference_of_0_in_count() {
    let line = format!("{LINE} ProductId=p");
    check_sum(
        &modified(&format!("{line} Quantity=N:19.90"), &format!("{line} Quantity=N:25")),
        &expect![[r#"
        sold: +0 and N:5.1 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &modified(&format!("{line} Quantity=N:2"), &line),
        &expect![[r#"
        sold: +0 and N:-2 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &modified(&format!("{line} Quantity=N:2"), &format!("{line} Quantity=N:2.0 Note=x")),
        &expect![[r#"
        nothing
    "#]],
    );
    let [digits, less] = ["12345678901234567890123456789012345678", "12345678901234567890123456789012345677"];
    let [digits, less] = [digits, less].map(|digits| format!("{line} Quantity=N:0.{digits}"));
    check_sum(
        &modified(&less, &digits),
        &expect![[r#"
        sold: +0 and N:0.00000000000000000000000000000000000001 WARE#p / METADATA
    "#]],
    );
}

#[test]
fn a_moved_key_takes_the_old_amount_and_gives_the_new() {
    let [old, new] = ["p Quantity=N:2", "q Quantity=N:3"].map(|product| format!("{LINE} ProductId={product}"));
    check_sum(
        &modified(&old, &new),
        &expect![[r#"
        sold: -1 and N:-2 WARE#p / METADATA
        sold: +1 and N:3 WARE#q / METADATA
    "#]],
    );
}

#[test]
fn a_condition_that_flips_takes_and_gives_the_amount() {
    let line = format!("{LINE} ProductId=p Quantity=N:2");
    let cancelled = format!("{line} Status=cancelled");
    check_sum(
        &modified(&line, &format!("{line} Status=paid")),
        &expect![[r#"
        nothing
    "#]],
    );
    check_sum(
        &modified(&line, &cancelled),
        &expect![[r#"
        sold: -1 and N:-2 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &modified(&cancelled, &format!("{LINE} ProductId=p Quantity=N:5 Status=paid")),
        &expect![[r#"
        sold: +1 and N:5 WARE#p / METADATA
    "#]],
    );
    check_sum(
        &removed(&cancelled),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn an_amount_that_cannot_be_read_counts_as_absent_with_its_item() {
    let line = format!("{LINE} ProductId=p Quantity");
    check_sum(
        &inserted(&format!("{line}=many")),
        &expect![[r#"
        sold: list Quantity is S, and N is wanted
    "#]],
    );
    check_sum(
        &modified(&format!("{line}=N:2"), &format!("{line}=SS:2")),
        &expect![[r#"
        sold: -1 and N:-2 WARE#p / METADATA
        sold: list Quantity is SS, and N is wanted
    "#]],
    );
    check_sum(
        &modified(&format!("{line}=many"), &format!("{line}=N:2")),
        &expect![[r#"
        sold: +1 and N:2 WARE#p / METADATA
        sold: take off the list
    "#]],
    );
    let digits_39 = "1".repeat(39);
    check_sum(
        &inserted(&format!("{line}=N:{digits_39}")),
        &expect![[r#"
        sold: list Quantity is no number that DynamoDB holds
    "#]],
    );
    check_sum(
        &inserted(&format!("{line}=many Status=cancelled")),
        &expect![[r#"
        nothing
    "#]],
    );
    // A status that is not a text is not equal to `cancelled`.
    check_sum(
        &inserted(&format!("{line}=N:2 Status=N:1")),
        &expect![[r#"
        sold: +1 and N:2 WARE#p / METADATA
    "#]],
    );
}

#[test]
fn a_truth_that_excludes_does_so_only_when_it_is_true() {
    let line = format!("{LINE} ProductId=p");
    let [yes, no, text] = ["BOOL:true", "BOOL:false", "yes"].map(|truth| format!("{line} Cancelled={truth}"));
    check(
        &inserted(&yes),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(&line, &no),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(&no, &yes),
        &expect![[r#"
        kept: -1 WARE#p / METADATA
    "#]],
    );
    check(
        &modified(&yes, &text),
        &expect![[r#"
        kept: +1 WARE#p / METADATA
    "#]],
    );
    check(
        &modified(&text, &line),
        &expect![[r#"
        nothing
    "#]],
    );
}

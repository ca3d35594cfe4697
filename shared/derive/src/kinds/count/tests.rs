use expect_test::{Expect, expect};

use crate::{
    catalogue::Catalogue,
    change::Change,
    collection::CollectionCount,
    condition::Condition,
    declaration::Count,
    definition,
    derived::{Counts, Derived, Items},
    fixture::{count, effects, effects_in, expired, inserted, item, key_of, modified, named, removed, schema},
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
        writer-count: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
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
        writer-count: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
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

/// A count of desks for each of their clerks, with the sum of what `Place` is.
fn clerked() -> Count {
    Count {
        condition: Condition::not("Closed"),
        sum: Some("Place".into()),
        each: Some("Clerks".to_owned()),
        ..count("Desk", "User", &[("UserId", "Clerks")])
    }
}

/// Checks the effects of changes of a desk, from its attributes before and after; `None` where there is no desk.
#[track_caller]
fn check_each(count: Count, changes: &[(Option<&str>, Option<&str>, &str)]) {
    let (schema, of) = (schema(), if count.history { "history count and sum" } else { "count and sum" });
    let catalogue = Catalogue::new(&schema, vec![named("desks", count)]).unwrap();
    let desk = |attributes: &str| format!("DESK#d / METADATA Desk {attributes}");
    for (old, new, wanted) in changes {
        let change = match (old.map(desk), new.map(desk)) {
            (None, Some(new)) => inserted(&new),
            (Some(old), Some(new)) => modified(&old, &new),
            (old, _) => removed(&old.unwrap()),
        };
        let effects = effects_in(&schema, &catalogue, of, &change);
        let shown = effects.lines().map(|line| line.trim_start_matches("desks: ").replace(" / PROFILE", ""));
        assert_eq!(shown.collect::<Vec<_>>().join("; "), *wanted, "{old:?} to {new:?}");
    }
}

#[test]
fn an_item_counts_once_for_each_different_member() {
    let two = Some("Clerks=L:ann,bob Place=N:2");
    check_each(
        clerked(),
        &[
            (None, two, "+1 and N:2 USER#ann; +1 and N:2 USER#bob"),
            (two, None, "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob"),
            // The same members.
            (None, Some("Clerks=L:ann,ann"), "+1 USER#ann"),
            (two, Some("Clerks=SS:bob,ann Place=N:2"), "nothing"),
            (two, Some("Clerks=L:bob,ann,bob Place=N:2.0"), "nothing"),
            // Others.
            (two, Some("Clerks=L:cid,bob Place=N:2"), "-1 and N:-2 USER#ann; +1 and N:2 USER#cid"),
            (two, Some("Clerks=SS:ann Place=N:2"), "-1 and N:-2 USER#bob"),
            (Some("Clerks=SS:ann"), Some("Clerks=SS:ann,bob,cid"), "+1 USER#bob; +1 USER#cid"),
            (two, Some("Place=N:2"), "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob"),
            // Another amount, for those that stay; the old one is taken, and the new one given.
            (two, Some("Clerks=L:ann,bob Place=N:5"), "+0 and N:3 USER#ann; +0 and N:3 USER#bob"),
            (two, Some("Clerks=L:bob,cid Place=N:5"), "-1 and N:-2 USER#ann; +0 and N:3 USER#bob; +1 and N:5 USER#cid"),
            // The condition.
            (two, Some("Clerks=L:ann,bob Place=N:2 Closed=BOOL:true"), "-1 and N:-2 USER#ann; -1 and N:-2 USER#bob"),
            (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:bob"), "+1 USER#bob"),
            (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:bob Closed=BOOL:true"), "nothing"),
            // What does not decide.
            (two, Some("Clerks=L:ann,bob Place=N:2 Note=x"), "nothing"),
        ],
    );
}

#[test]
fn an_item_with_an_unreadable_member_counts_for_none() {
    let number = "list Clerks has a member that is N, and S is wanted";
    let long = format!("Clerks=L:ann,{}", "x".repeat(3_000));
    let too_long = "list Clerks makes a key of 3005 bytes; the limit is 2048";
    check_each(
        clerked(),
        &[
            (None, Some("Clerks=L:ann,N:1"), number),
            (Some("Clerks=SS:ann"), Some("Clerks=L:ann,N:1"), &format!("-1 USER#ann; {number}")),
            (Some("Clerks=L:ann,N:1"), Some("Clerks=L:ann,bob"), "+1 USER#ann; +1 USER#bob; take off the list"),
            (Some("Clerks=L:ann,N:1"), None, "take off the list"),
            (None, Some("Clerks=SS:ann,"), "list Clerks has a member that is empty"),
            (None, Some("Clerks=NS:1,2"), number),
            (None, Some("Clerks=ann"), "list Clerks is S, and a list or a set of texts is wanted"),
            (None, Some(&long), too_long),
            (None, Some("Clerks=SS:ann Place=hall"), "list Place is S, and N is wanted"),
            (None, Some("Clerks=L:ann,N:1 Closed=BOOL:true"), "nothing"),
        ],
    );
}

#[test]
fn a_member_whose_counter_cannot_be_stored_leaves_no_other_counter() {
    // A desk's group has its status in the sort key, in front of the counter's part.
    let group = Count {
        each: Some("Clerks".to_owned()),
        ..count("Desk", "StatusGroup", &[("DeskId", "DeskId"), ("Status", "Clerks")])
    };
    let schema = schema();
    let catalogue = Catalogue::new(&schema, vec![named("groups", group)]).unwrap();
    let desk = |clerks: &str| format!("DESK#d / METADATA Desk Clerks=L:{clerks}");
    let long = desk(&format!("ann,{}", "x".repeat(1_010)));
    let effects = |change: &Change| effects_in(&schema, &catalogue, "count", change);
    let why = "Clerks leads to a counter whose key makes a key of 1033 bytes; the limit is 1024";
    assert_eq!(effects(&inserted(&long)), format!("groups: list {why}\n"));
    let left = "groups: -1 DESK#d / STATUS#ann\n";
    assert_eq!(effects(&modified(&desk("ann"), &long)), format!("{left}groups: list {why}\n"));
    let given = "groups: +1 DESK#d / STATUS#ann\n";
    assert_eq!(effects(&modified(&long, &desk("ann"))), format!("{given}groups: take off the list\n"));
    let item = item(&long);
    let items = Items::from([(key_of(&item), item)]);
    let derivation = catalogue.derivations().next().unwrap();
    assert!(derivation.derive(&schema, &items, &Counts::new()).is_empty());
}

#[test]
fn in_a_history_each_member_that_comes_arrives() {
    let two = Some("Clerks=L:ann,bob Place=N:2");
    check_each(
        Count { history: true, ..clerked() },
        &[
            (None, two, "+1 and N:2 USER#ann; +1 and N:2 USER#bob"),
            (two, None, "nothing"),
            (two, Some("Clerks=SS:bob,cid Place=N:5"), "+1 and N:5 USER#cid"),
            (two, Some("Clerks=L:bob,ann Place=N:5"), "nothing"),
            (Some("Clerks=SS:ann Closed=BOOL:true"), Some("Clerks=SS:ann"), "+1 USER#ann"),
            (Some("Clerks=L:ann,N:1"), Some("Clerks=L:ann"), "+1 USER#ann; take off the list"),
        ],
    );
}

#[test]
fn an_item_in_its_own_list_counts_for_itself_and_the_definition_adds_up_all() {
    let schema = schema();
    let own = Count { each: Some("Clerks".to_owned()), ..count("Desk", "Desk", &[("DeskId", "Clerks")]) };
    let catalogue = Catalogue::new(&schema, vec![named("desks", own)]).unwrap();
    let derivation = catalogue.derivations().next().unwrap();
    let desks = ["d Desk Clerks=L:d,e,d", "e Desk Clerks=SS:d", "f Desk Clerks=L:d,N:1", "g Desk"];
    let items = desks.map(|desk| item(&format!("DESK#{}", desk.replacen(' ', " / METADATA ", 1))));
    let items: Items = items.into_iter().map(|item| (key_of(&item), item)).collect();
    let derived = derivation.derive(&schema, &items, &Counts::new()).into_iter().map(|part| match part {
        Derived::Count { target, tally, .. } => format!("{target}: {}", tally.count),
        other => panic!("{other:?}"),
    });
    assert_eq!(derived.collect::<Vec<_>>(), ["DESK#d / METADATA: 2", "DESK#e / METADATA: 1"]);
    let change = inserted("DESK#d / METADATA Desk Clerks=L:e,d");
    let wanted = "desks: +1 DESK#d / METADATA\ndesks: +1 DESK#e / METADATA\n";
    assert_eq!(effects_in(&schema, &catalogue, "count", &change), wanted);
}

#[test]
fn the_list_is_in_the_definition_and_leads_to_no_collection() {
    let schema = schema();
    let definition = |count: Count| definition::definition(&named("desks", count), &schema);
    let one = count("Desk", "User", &[("UserId", "Clerks")]);
    assert_eq!(definition(one.clone()), "count: Desk into USER#{Clerks} / PROFILE; reads Desk.Clerks");
    let each = Count { each: Some("Clerks".to_owned()), ..one };
    assert_eq!(
        definition(each.clone()),
        "count: Desk (for each member of Clerks) into USER#{Clerks} / PROFILE; reads Desk.Clerks"
    );
    let refused = |each: &str| {
        let count = Count { each: Some(each.to_owned()), ..count("Desk", "User", &[("UserId", "Clerks")]) };
        Catalogue::new(&schema, vec![named("desks", count)]).unwrap_err().to_string()
    };
    assert_eq!(refused("Clerk"), "derivation desks: Desk has no attribute Clerk");
    assert_eq!(refused("Place"), "derivation desks: each is Place, and no field of the key of User is a member of it");
    // Beside the desk are its groups.
    let group = count("Desk", "StatusGroup", &[("DeskId", "DeskId"), ("Status", "Clerks")]);
    for (each, is_beside) in [(None, true), (Some("Clerks".to_owned()), false)] {
        let catalogue = Catalogue::new(&schema, vec![named("groups", Count { each, ..group.clone() })]).unwrap();
        assert_eq!(!CollectionCount::all(&schema, &catalogue).is_empty(), is_beside);
    }
}

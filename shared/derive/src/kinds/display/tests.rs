use expect_test::{Expect, expect};

use keys::shown::shown_revision;

use super::{Display, Zero};
use crate::{
    change::Change,
    fixture::{display, effects, inserted, item, key_of, modified, removed, short, table::TestTable},
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("display", change));
}

const COUNTER: &str = "USER#bob / PROFILE#COUNT#follower-count#03 Counter";
const BOB: &str = "USER#bob / PROFILE User FollowerCount=N:12";

#[test]
fn a_counter_that_changed_rings_its_target() {
    check(
        &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:5")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &inserted(&format!("{COUNTER} Value=N:1")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &removed(&format!("{COUNTER} Value=N:1")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
}

#[test]
fn a_counter_whose_value_is_the_same_rings_nothing() {
    check(
        &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:4.0 Note=x")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_counter_of_another_derivation_rings_nothing() {
    check(
        &inserted("USER#bob / PROFILE#COUNT#writer-count#00 Counter Value=N:1"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &inserted("POST#p / METADATA#COUNT#view-count#00 Counter Value=N:1"),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_target_that_is_made_rings_for_each_of_its_displays() {
    check(
        &inserted(BOB),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
        post-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &removed(BOB),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_display_that_is_altered_or_dropped_rings() {
    check(
        &modified(BOB, "USER#bob / PROFILE User"),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &modified(BOB, "USER#bob / PROFILE User FollowerCount=many"),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &modified(BOB, &format!("{BOB} Name=Bob")),
        &expect![[r#"
        nothing
    "#]],
    );
}

/// The target with a display and its revision.
fn shown(count: u32, revision: &str, rest: &str) -> String {
    let key = key_of(&item("USER#bob / PROFILE User"));
    let revision = short(&shown_revision(&key, "FollowerCount", revision));
    format!("USER#bob / PROFILE User FollowerCount=N:{count} FollowerCount:rev={revision}{rest}")
}

/// The counting function writes the count with its revision, so no refresh is needed.
#[test]
fn a_later_revision_of_the_same_item_rings_nothing_and_whatever_else_shows_another_count_rings() {
    let requested = "follower-shown: look USER#bob / PROFILE (User)\n";
    let before = shown(1, "1705315200001", "");
    let of_another = "USER#bob / PROFILE User FollowerCount=N:5 FollowerCount:rev=N:1705315200005.1".to_owned();
    for (before, after, wanted) in [
        (before.as_str(), shown(2, "1705315200002", ""), "nothing\n"),
        // Only the revision changes, only the count changes, an earlier revision, and a first one at an unknown time.
        (&before, shown(1, "1705315200002", ""), requested),
        (&before, shown(2, "1705315200001", ""), requested),
        (&before, shown(3, "1705315100009", ""), requested),
        ("USER#bob / PROFILE User", shown(1, "1705315200001", ""), requested),
        // Another item's revision, and one together with an attribute of the application.
        (&before, of_another, requested),
        (&before, shown(2, "1705315200002", " Name=Bob"), requested),
    ] {
        assert_eq!(effects("display", &modified(before, &after)), wanted, "{after}");
    }
}

/// The counting function writes the first display soon after the counter's first revision. An older one may have been put
/// back by the application, with the item that it once read, when the counter is gone.
#[test]
fn a_first_revision_rings_nothing_if_it_is_recent() {
    const REVISION: u64 = 1_705_315_200_001;
    let (requested, limit_ms) = ("follower-shown: look USER#bob / PROFILE (User)\n", 10 * 60 * 1_000);
    let first = |rest: &str, created_ms| {
        let change = modified("USER#bob / PROFILE User", &shown(1, &REVISION.to_string(), rest));
        effects("display", &Change { created_ms: Some(created_ms), ..change })
    };
    // The time of a record is rounded down.
    for created_ms in [REVISION - 60_000, REVISION, REVISION + limit_ms] {
        assert_eq!(first("", created_ms), "nothing\n", "{created_ms}");
    }
    assert_eq!(first("", REVISION + limit_ms + 1), requested);
    assert_eq!(first(" Name=Bob", REVISION), requested);
}

/// A like and its removal in one batch, the first under watermarks of a counter that was created with receipts.
#[test]
fn a_counter_that_comes_to_have_a_revision_rings_though_it_comes_to_the_same() {
    let before = format!("{COUNTER} Value=N:4");
    check(
        &modified(&before, &format!("{before} Rev=N:1")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &modified(&format!("{before} Rev=N:1"), &format!("{before} Rev=N:2")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(&before, &format!("{before} Rev=N:1 Shown=BOOL:true")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_counter_that_cannot_be_read_is_listed() {
    check(
        &inserted(&format!("{COUNTER} Value=many")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
        follower-shown: list Value is not a whole number of type N
    "#]],
    );
}

/// Changes that cancel out raise the counter's revision and leave its value. The target has the revision of a counter
/// that is one item, so it must be refreshed, unless the counting function writes the display itself.
#[test]
fn a_later_revision_of_the_first_shard_rings_though_it_comes_to_the_same() {
    let first = |rest: &str| format!("USER#bob / PROFILE#COUNT#follower-count#00 Counter Value=N:4 {rest}");
    check(
        &modified(&first("Rev=N:1"), &first("Rev=N:2")),
        &expect![[r#"
        follower-shown: look USER#bob / PROFILE (User)
    "#]],
    );
    check(
        &modified(&first("Rev=N:1 Shown=BOOL:true"), &first("Rev=N:2 Shown=BOOL:true")),
        &expect![[r#"
        nothing
    "#]],
    );
}

const SOLD: &str = "WARE#p / METADATA#COUNT#sold#00 Counter";

#[test]
fn each_display_of_a_counter_is_rung_by_what_it_shows() {
    let before = format!("{SOLD} Value=N:4 Sum=N:19.90");
    check(
        &modified(&before, &format!("{SOLD} Value=N:5 Sum=N:19.9")),
        &expect![[r#"
            sold-count: look WARE#p / METADATA (Ware)
            sold-average: look WARE#p / METADATA (Ware)
            sold-exists: look WARE#p / METADATA (Ware)
        "#]],
    );
    check(
        &modified(&before, &format!("{SOLD} Value=N:4 Sum=N:25")),
        &expect![[r#"
            sold-sum: look WARE#p / METADATA (Ware)
            sold-average: look WARE#p / METADATA (Ware)
        "#]],
    );
    check(
        &inserted(&before),
        &expect![[r#"
            sold-count: look WARE#p / METADATA (Ware)
            sold-sum: look WARE#p / METADATA (Ware)
            sold-average: look WARE#p / METADATA (Ware)
            sold-exists: look WARE#p / METADATA (Ware)
        "#]],
    );
}

/// One of two shards is deleted. The other is then the whole counter, and its revision is that of each display.
#[test]
fn a_counter_of_nothing_that_goes_rings_each_display() {
    check(
        &removed("WARE#p / METADATA#COUNT#sold#01 Counter Value=N:0 Rev=N:1"),
        &expect![[r#"
            sold-count: look WARE#p / METADATA (Ware)
            sold-sum: look WARE#p / METADATA (Ware)
            sold-average: look WARE#p / METADATA (Ware)
            sold-exists: look WARE#p / METADATA (Ware)
        "#]],
    );
}

#[test]
fn a_counter_without_a_sum_can_be_read() {
    check(
        &inserted(&format!("{SOLD} Value=N:1")),
        &expect![[r#"
            sold-count: look WARE#p / METADATA (Ware)
            sold-sum: look WARE#p / METADATA (Ware)
            sold-average: look WARE#p / METADATA (Ware)
            sold-exists: look WARE#p / METADATA (Ware)
        "#]],
    );
    check(
        &inserted(&format!("{SOLD} Value=N:1 Sum=much")),
        &expect![[r#"
            sold-count: look WARE#p / METADATA (Ware)
            sold-sum: look WARE#p / METADATA (Ware)
            sold-sum: list Sum is no number of type N
            sold-average: look WARE#p / METADATA (Ware)
            sold-average: list Sum is no number of type N
            sold-exists: look WARE#p / METADATA (Ware)
        "#]],
    );
}

#[test]
fn existence_is_shown_while_the_count_is_above_zero() {
    let mut table = TestTable::new();
    let ware = item("WARE#p / METADATA Ware");
    let mut shown = |line: &str, is_there: bool| {
        let line = item(line);
        table.replace(key_of(&line), is_there.then_some(line));
        table.settle(&[0]);
        table.items[&key_of(&ware)].get("IsSold").map(short)
    };
    assert_eq!(shown("WARE#p / METADATA Ware", true), None);
    let [one, two] = ["ORDER#o / LINE#1 Line ProductId=p", "ORDER#o / LINE#2 Line ProductId=p"];
    let all = [(one, true), (two, true), (one, false), (two, false)].map(|(line, is_there)| shown(line, is_there));
    assert_eq!(all.map(Option::unwrap_or_default), ["Bool(true)", "Bool(true)", "Bool(true)", ""]);
}

#[test]
fn zero_is_always_there_where_the_declaration_says_so() {
    let wanted = Display { zero: Zero::Always, ..display("follower-count", "User", "FollowerCount") }.wanted(None);
    for (held, is_right) in [("", false), ("FollowerCount=N:0", true), ("FollowerCount=N:1", false)] {
        let held = item(&format!("USER#ann / PROFILE User {held}"));
        assert_eq!(wanted.is_held_by(Some(&held)), is_right, "{held:?}");
    }
}

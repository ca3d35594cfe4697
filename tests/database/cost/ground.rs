//! The price of touching the application's own items: a deletion by a cascade, and a move.

use derive::write::{Action, Table, Write};
use engine::ledger::LedgerKind;
use expect_test::{Expect, expect};
use keys::key::Key;
use store::Store as _;

use crate::cost::{ANN, BOB, Bed, POST};

/// The units of everything that follows from a removal or a put, including the jobs that it starts.
async fn check(given: &[&str], act: impl AsyncFnOnce(&Bed), wanted: Expect) {
    let mut bed = Bed::new(LedgerKind::Receipts);
    for item in given {
        bed.put(item);
    }
    bed.settle(1).await;
    act(&bed).await;
    let mut units = std::collections::BTreeMap::<String, f64>::new();
    loop {
        let (more, n_records) = bed.settle(1).await;
        for (part, more) in more {
            *units.entry(part).or_default() += more;
        }
        if n_records == 0 {
            break;
        }
        bed.functions[1].sweep(|_| true, u64::MAX).await.unwrap();
    }
    let lines: Vec<String> = units.iter().map(|(part, units)| format!("{part}: {units}\n")).collect();
    wanted.assert_eq(&lines.concat());
}

async fn delete(bed: &Bed, pk: &str, sk: &str) {
    let write = Write { table: Table::Main, key: Key::new(pk, sk), action: Action::Delete, guard: None };
    bed.store.write(&write).await.unwrap();
}

#[tokio::test]
async fn a_post_with_ten_comments_is_removed() {
    let comment = |n: usize| format!("POST#p / COMMENT#2024#c{n} : Comment Text=Yes");
    let comments: Vec<String> = (0..10).map(comment).collect();
    let mut given = vec![ANN, BOB, POST];
    given.extend(comments.iter().map(String::as_str));
    check(
        &given,
        async |bed| delete(bed, "USER#bob", "POST#2024#p").await,
        expect![[r#"
            comment-count: 20
            other items of the ledger: 12
            post-cascade: 38
            post-count: 2
            post-count-display: 1
            post-detail: 2
            receipt: 26
        "#]],
    )
    .await;
}

/// A 0 costs the write that the removal of the attribute would.
#[tokio::test]
async fn the_last_follow_is_removed() {
    check(
        &[ANN, BOB, "USER#ann / FOLLOWS#bob : Follow"],
        async |bed| delete(bed, "USER#ann", "FOLLOWS#bob").await,
        expect![[r#"
            follower-count: 2
            follower-count-display: 1
            follower-mirror: 1
            following-count: 2
            following-count-display: 1
            receipt: 2
        "#]],
    )
    .await;
}

/// An item that is put back while its count is zero gets its 0 again, for one write. Without counters it costs none.
#[tokio::test]
async fn a_user_is_put_back_whose_counts_are_zero() {
    let counter = |name: &str| format!("USER#ann / PROFILE#COUNT#{name}#00 : Counter Value=N:0");
    let given = [ANN.to_owned(), counter("follower-count"), counter("post-count")];
    for (n_given, wanted) in [
        (1, expect![""]),
        (
            3,
            expect![[r#"
                follower-count-display + post-count-display: 1
            "#]],
        ),
    ] {
        let given: Vec<&str> = given.iter().take(n_given).map(String::as_str).collect();
        check(&given, async |bed| bed.put(ANN), wanted).await;
    }
}

#[tokio::test]
async fn an_employee_moves_with_one_below_them() {
    let employee = |id: &str, manager: Option<&str>, path: &str| {
        let below = manager.map(|it| format!("ManagerId={it} GSI2PK=MANAGER#{it} GSI2SK=EMP#{id} "));
        let below = below.unwrap_or_default();
        format!("ORG#o / EMPLOYEE#{id} : Employee {below}GSI1PK=EMP#{id} GSI1SK=EMP{path}")
    };
    let given =
        [employee("a", None, ""), employee("b", None, ""), employee("c", Some("a"), ""), employee("d", Some("c"), "")];
    let moved = employee("c", Some("b"), " Path=/a/c");
    check(
        &given.each_ref().map(String::as_str),
        async |bed| bed.put(&moved),
        expect![[r#"
            employee-path: 4
            org-chart: 5
            other items of the ledger: 2
        "#]],
    )
    .await;
}

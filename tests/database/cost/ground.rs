//! What it costs to touch the application's own items: a deletion by a cascade, and a move.

use derive::write::{Action, Table, Write};
use expect_test::{Expect, expect};
use keys::key::Key;
use store::Store as _;

use crate::cost::{ANN, BOB, Bed, POST};

/// Units of what follows from a removal or a put, up to the end of the jobs that it starts.
async fn check(given: &[&str], act: impl AsyncFnOnce(&Bed), wanted: Expect) {
    let mut bed = Bed::new();
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
        bed.functions[1].sweep(|_| true).await.unwrap();
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
        post-cascade: 67
        post-count: 2
        post-count-display: 1
        post-detail: 2
        receipt: 26
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_employee_moves_with_one_below_them() {
    let given = [
        "ORG#o / EMP#/a : Employee GSI1PK=EMP#a GSI1SK=EMP",
        "ORG#o / EMP#/b : Employee GSI1PK=EMP#b GSI1SK=EMP",
        "ORG#o / EMP#/a/c : Employee ManagerId=a GSI1PK=EMP#c GSI1SK=EMP",
        "ORG#o / EMP#/a/c/d : Employee ManagerId=c GSI1PK=EMP#d GSI1SK=EMP",
    ];
    let moves = "ORG#o / EMP#/a/c : Employee ManagerId=b GSI1PK=EMP#c GSI1SK=EMP";
    check(
        &given,
        async |bed| bed.put(moves),
        expect![[r#"
            employee-count: 8
            employee-move: 12
            receipt: 20
        "#]],
    )
    .await;
}

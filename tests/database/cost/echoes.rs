//! Which of the records that follow from an action the deployed filters deliver to each function, and how many of them
//! ask for work: a call of DynamoDB.

use derive::family::Family;
use engine::ledger::LedgerKind;
use expect_test::expect;
use infra::mapping::{StreamTable, needed};
use stream::filter::Filters;
use support::record::{Window, event};

use crate::cost::{ANN, BOB, Bed, Clock as _, POST, SystemClock};

/// A comment, with this number as its id.
fn comment(n: usize) -> String {
    format!("POST#p / COMMENT#2024#{n} : Comment UserId=ann Text=Yes GSI1PK=USER#ann GSI1SK=COMMENT#2024#{n}")
}

/// The records that follow from an item, and by function those delivered and those that ask for work.
async fn line(action: &str, n_comments: usize, item: &str) -> String {
    let mut bed = Bed::new(LedgerKind::Watermarks);
    for item in [ANN, BOB, POST] {
        bed.put(item);
    }
    for n in 0..n_comments {
        bed.put(&comment(n));
    }
    bed.settle(1).await;
    bed.put(item);
    let catalogue = catalogue::catalogue(&bed.schema).unwrap();
    let table = StreamTable::all(&bed.schema).next().unwrap();
    let filters = [Family::Additive, Family::LevelTriggered]
        .map(|family| -> Filters { infra::mapping::filters(&needed(table, &catalogue, &[family])).unwrap() });
    let (mut n_records, mut counted) = (0, [[0, 0]; 2]);
    loop {
        let records = bed.store.take_records();
        if records.is_empty() {
            break;
        }
        for (key, old, new) in &records {
            n_records += 1;
            bed.n_records += 1;
            let record = bed.record(key, old.as_ref(), new.as_ref());
            let event =
                Window::of_shard("shardId-00000001573689847184-864758bb").around(&event(std::slice::from_ref(&record)));
            for ((function, filters), counted) in bed.functions.iter().zip(&filters).zip(&mut counted) {
                if !filters.matches(&record) {
                    continue;
                }
                function.handle(&event, SystemClock.now_ms() + 60_000).await.unwrap();
                let asks = !bed.requests.take().is_empty();
                *counted = [counted[0] + 1, counted[1] + usize::from(asks)];
            }
        }
    }
    let [aggregate, propagate] = counted.map(|[delivered, asking]| format!("{asking} of {delivered}"));
    format!(
        "{action}: {n_records} records, {} of them ours; aggregate {aggregate}, propagate {propagate}\n",
        n_records - 1
    )
}

#[tokio::test]
async fn of_the_records_that_are_delivered_so_many_ask_for_work() {
    let mut lines = String::new();
    for (action, n_comments, item) in [
        ("follow", 0, "USER#ann / FOLLOWS#bob : Follow"),
        ("like", 0, "USER#ann / LIKE#POST#p : Like GSI1PK=POST#p GSI1SK=LIKE#USER#ann"),
        ("comment", 0, comment(0).as_str()),
        ("post", 0, "USER#bob / POST#2025#q : Post Status=published Title=Hello"),
        ("rename of a user with 10 comments", 10, "USER#ann / PROFILE : User Name=Anna Avatar=a.png"),
    ] {
        lines.push_str(&line(action, n_comments, item).await);
    }
    expect![[r#"
        follow: 7 records, 6 of them ours; aggregate 1 of 2, propagate 3 of 7
        like: 3 records, 2 of them ours; aggregate 1 of 1, propagate 0 of 2
        comment: 4 records, 3 of them ours; aggregate 1 of 2, propagate 2 of 4
        post: 4 records, 3 of them ours; aggregate 1 of 1, propagate 2 of 4
        rename of a user with 10 comments: 11 records, 10 of them ours; aggregate 0 of 10, propagate 11 of 11
    "#]]
    .assert_eq(&lines);
}

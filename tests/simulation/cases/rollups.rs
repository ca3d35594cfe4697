//! Roll-ups and sums on single records, under either ledger: late readings, conflicts, values that cannot be applied.

use derive::{family::Family, write::Table};
use engine::{inspect::to_recount, ledger::LedgerKind, park::parked, redrive::Redriven};
use keys::key::Key;
use serde_json::json;
use store::faulty::Call;

use crate::cases::bed::{Bed, SHARD};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

fn bed(ledger: LedgerKind) -> Bed {
    Bed::new().under(ledger).running(Family::Additive)
}

/// A sensor reads a value in a minute after ten.
async fn read(bed: &Bed, minute: usize, value: &str) -> Key {
    let at = format!("2024-01-15T10:{minute:02}:00.000Z");
    bed.put("Reading", &[("SensorId", "s"), ("Day", "2024-01-15"), ("At", &at)], &[("Value", value)]).await
}

/// Count, sum, minimum and maximum of the hour and of the day.
fn buckets(bed: &Bed) -> [String; 2] {
    ["HOUR#2024-01-15T10", "DAY#2024-01-15"].map(|sk| {
        let key = Key::new("SENSOR#s", sk);
        ["Count", "Sum", "Min", "Max"].map(|name| bed.shown(&key, name)).join(" ")
    })
}

fn both(shown: &str) -> [String; 2] {
    [shown.to_owned(), shown.to_owned()]
}

#[tokio::test]
async fn a_reading_that_changes_later_or_goes_is_counted_as_late_and_applied_nowhere() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        let first = read(&bed, 1, "N:1.50").await;
        read(&bed, 2, "N:-2").await;
        let handled = bed.settle().await;
        assert!(handled.iter().all(|handled| handled.account.n_late_changes == 0));
        assert_eq!(buckets(&bed), both("2 -0.5 -2 1.5"));

        bed.calls();
        read(&bed, 2, "N:100").await;
        bed.delete(&first).await;
        let records = bed.records();
        let handled = bed.handle(&records).await;
        assert_eq!((handled.account.n_late_changes, handled.account.commits.len()), (2, 0));
        assert_eq!(bed.calls(), [""; 0], "what is late asks the store nothing");
        assert_eq!(buckets(&bed), both("2 -0.5 -2 1.5"));
        assert_eq!(bed.findings(), [""; 0]);
    }
}

#[tokio::test]
async fn a_bucket_that_another_writes_in_between_is_read_again() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        read(&bed, 1, "N:5").await;
        let mine = bed.records();
        read(&bed, 2, "N:1").await;
        read(&bed, 3, "N:9").await;
        let others = bed.records();
        let mut task = bed.start(&bed.event(&mine));
        // It has read the buckets, and sends their new values.
        while !bed.calls().iter().any(|call| call.contains("SENSOR")) {
            task.turn();
        }
        // The other batch is of another shard, where shards matter.
        let other = bed.event(&others).replace(SHARD, "shardId-2");
        assert_eq!(bed.try_handle(&other).await.unwrap().failed_from, None);
        let handled = task.finish().unwrap().unwrap();
        let n_sent = if ledger == LedgerKind::Receipts { 1 } else { 2 };
        assert_eq!((handled.failed_from, handled.account.n_retries), (None, n_sent), "{ledger}");
        assert_eq!(buckets(&bed), both("3 15 1 9"));
        assert_eq!(bed.handle(&mine).await.account.n_duplicates, 1);
    }
}

#[tokio::test]
async fn a_chunk_holds_no_more_buckets_than_a_transaction() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        for day in 1..=28 {
            for hour in 0..4 {
                let (day, at) = (format!("2024-01-{day:02}"), format!("2024-01-{day:02}T{hour:02}:00:00.000Z"));
                let fields = [("SensorId", "s"), ("Day", day.as_str()), ("At", &at)];
                bed.put("Reading", &fields, &[("Value", "N:1")]).await;
            }
        }
        let records = bed.records();
        assert_eq!(bed.handle(&records).await.failed_from, None);
        let n_buckets = bed.memory().snapshot(Table::Main).keys().filter(|key| key.pk == "SENSOR#s").count();
        assert_eq!((n_buckets, bed.findings().len()), (28 * 5, 0));
        let n_sent = bed.calls().iter().filter(|call| call.starts_with("transact")).count();
        let n_wanted = if ledger == LedgerKind::Receipts { 2..=6 } else { 0..=0 };
        assert!(n_wanted.contains(&n_sent), "{n_sent} transactions");
    }
}

#[tokio::test]
async fn a_reading_from_behind_the_horizon_lists_its_buckets_for_a_recount() {
    let mut bed = bed(LedgerKind::Receipts);
    read(&bed, 1, "N:1").await;
    let records = bed.records();
    bed.clock.advance(15 * 24 * 3_600_000);
    assert_eq!(bed.handle(&records).await.account.refused.len(), 1);
    let listed = to_recount(bed.memory()).await.unwrap().into_iter().filter_map(|entry| entry.target);
    let listed: Vec<String> = listed.map(|target| format!("{}: {}", target.derivation, target.item)).collect();
    assert_eq!(
        listed,
        ["readings-rollup: SENSOR#s / DAY#2024-01-15", "readings-rollup: SENSOR#s / HOUR#2024-01-15T10"]
    );
}

#[tokio::test]
async fn a_parked_reading_is_redriven_once_into_buckets_as_they_are_by_then() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        read(&bed, 1, "N:5").await;
        let mut records = bed.records();
        let whole = records[0].to_string();
        records[0]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
        bed.handle(&records).await;
        bed.put_true(&whole);
        bed.clock.advance(32 * 60_000);
        let change = parked(bed.memory()).await.unwrap().remove(0);
        read(&bed, 2, "N:7").await;
        let others = bed.records();

        // Another invocation writes the same buckets during the redrive.
        let (engine, deadline_ms) = (bed.engine(), bed.deadline_ms());
        let mut redrive = crate::executor::Task::new(&crate::executor::Gone::default(), async move {
            engine.redrive(&change, deadline_ms).await
        });
        bed.calls();
        while !bed.calls().iter().any(|call| call.contains("SENSOR")) {
            redrive.turn();
        }
        assert_eq!(bed.handle(&others).await.failed_from, None);
        assert!(matches!(redrive.finish(), Some(Ok(Redriven::Applied(_)))));
        assert_eq!(buckets(&bed), both("2 12 5 7"));
        assert_eq!(bed.parked(), [""; 0]);
    }
}

#[tokio::test]
async fn a_sum_that_no_number_holds_parks_the_change_that_passes_it_and_no_other() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        let of = |file: &'static str| [("FolderId", "f"), ("UploadedAt", "2024"), ("FileId", file)];
        bed.put("File", &of("large"), &[("SizeBytes", "N:1E38")]).await;
        bed.put("File", &of("small"), &[("SizeBytes", "N:0.5")]).await;
        bed.put("File", &of("round"), &[("SizeBytes", "N:2E38")]).await;
        let records = bed.records();
        let handled = bed.handle(&records).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1));
        let counter = Key::new("FOLDER#f", "METADATA#COUNT#folder-totals#00");
        assert_eq!(
            (bed.shown(&counter, "Value"), bed.shown(&counter, "Sum")),
            ("2".to_owned(), format!("3{}", "0".repeat(38)))
        );
    }
}

#[tokio::test]
async fn a_sum_that_only_changes_is_written_and_shown() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let order =
        bed.put("Order", &[("UserId", "ann"), ("PlacedAt", "2024"), ("OrderId", "o")], &[("Total", "N:19.90")]).await;
    bed.settle().await;
    let shown = |bed: &Bed| format!("{} {}", bed.shown(&user, "OrderCount"), bed.shown(&user, "LifetimeValue"));
    assert_eq!(shown(&bed), "1 19.9");
    bed.set(&order, "Total", "N:25").await;
    bed.settle().await;
    assert_eq!(shown(&bed), "1 25");
    bed.set(&order, "Status", "cancelled").await;
    bed.settle().await;
    assert_eq!(shown(&bed), "0 0", "what came down to zero is shown");
    assert_eq!(bed.findings(), [""; 0]);
}

#[tokio::test]
async fn buckets_are_read_together_and_consistently() {
    let mut bed = bed(LedgerKind::Receipts);
    read(&bed, 1, "N:5").await;
    let records = bed.records();
    bed.fails(|call| {
        if let Call::Get(Table::Main, keys) = call {
            assert_eq!(keys.len(), 2);
        }
        None
    });
    bed.handle(&records).await;
    assert_eq!(bed.calls().len(), 2, "one read, one transaction");
}

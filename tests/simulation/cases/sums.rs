//! Counts, sums and roll-ups of single records: limits of numbers and transactions, late readings, a counter that is busy, and
//! shows of counters that began anew.

use std::sync::{Arc, Mutex};

use derive::{
    family::Family,
    write::{Table, Write},
};
use engine::{
    ledger::{LedgerKind, watermarks::KEPT_MS},
    sweep::Bounds,
};
use keys::{item::Item, key::Key};
use store::faulty::{Call, Fault, Side};

use crate::cases::{
    bed::{Bed, LEDGERS},
    watermarks::counter,
};

fn bed(ledger: LedgerKind) -> Bed {
    Bed::new().under(ledger).running(Family::Additive)
}

// ---- Roll-ups ----

/// A sensor reads a value in a minute after ten.
async fn read(bed: &Bed, minute: usize, value: &str) -> Key {
    let at = format!("2024-01-15T10:{minute:02}:00.000Z");
    bed.put("Reading", &[("SensorId", "s"), ("Day", "2024-01-15"), ("At", &at)], &[("Value", value)]).await
}

#[tokio::test]
async fn a_reading_that_changes_later_or_goes_is_counted_as_late_and_applied_nowhere() {
    let buckets = |bed: &Bed| {
        ["HOUR#2024-01-15T10", "DAY#2024-01-15"].map(|sk| {
            let key = Key::new("SENSOR#s", sk);
            ["Count", "Sum", "Min", "Max"].map(|name| bed.shown(&key, name)).join(" ")
        })
    };
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        let first = read(&bed, 1, "N:1.50").await;
        read(&bed, 2, "N:-2").await;
        let handled = bed.settle().await;
        assert!(handled.iter().all(|handled| handled.account.n_late_changes == 0));
        assert_eq!(buckets(&bed), ["2 -0.5 -2 1.5"; 2]);

        bed.calls();
        read(&bed, 2, "N:100").await;
        bed.delete(&first).await;
        let records = bed.records();
        let handled = bed.handle(&records).await;
        assert_eq!((handled.account.n_late_changes, handled.account.commits.len()), (2, 0));
        assert_eq!(bed.calls(), [""; 0], "what is late asks the store nothing");
        assert_eq!(buckets(&bed), ["2 -0.5 -2 1.5"; 2]);
        assert_eq!(bed.findings(), [""; 0]);
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

// ---- Counters ----

#[tokio::test]
async fn a_sum_that_no_number_holds_parks_the_change_that_passes_it_and_no_other() {
    for ledger in LEDGERS {
        let mut bed = bed(ledger);
        for (file, size) in [("large", "N:1E38"), ("small", "N:0.5"), ("round", "N:2E38")] {
            let fields = [("FolderId", "f"), ("UploadedAt", "2024"), ("FileId", file)];
            bed.put("File", &fields, &[("SizeBytes", size)]).await;
        }
        let records = bed.records();
        let handled = bed.handle(&records).await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1));
        let counter = Key::new("FOLDER#f", "METADATA#COUNT#folder-totals#00");
        let held = ["Value", "Sum"].map(|name| bed.shown(&counter, name));
        assert_eq!(held, ["2".to_owned(), format!("3{}", "0".repeat(38))]);
    }
}

/// A user joins six groups in one batch, while another writer holds the counter of the third group: that is counted on
/// another item.
#[tokio::test]
async fn under_receipts_a_contended_counter_holds_up_nobody_else_of_its_transaction() {
    let mut bed = bed(LedgerKind::Receipts);
    let records = bed.joins(6).await;
    let groups: Vec<Key> = (0..6).map(counter).collect();
    let done: Arc<Mutex<Vec<Vec<usize>>>> = Arc::default();
    let (committed, mut n_left) = (Arc::clone(&done), 3);
    bed.fails(move |call| {
        let Call::Transact(transaction) = call else { return None };
        let place = |write: &Write| groups.iter().position(|group| *group == write.key);
        let counted: Vec<Option<usize>> = transaction.writes().iter().map(place).collect();
        if let Some(at) = counted.iter().position(|group| *group == Some(2)).filter(|_| n_left > 0) {
            n_left -= 1;
            return Some((Side::Before, Fault::Conflict(at)));
        }
        committed.lock().unwrap().push(counted.into_iter().flatten().collect());
        None
    });
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, handled.account.n_retries), (None, 1));
    assert_eq!(bed.counted("member-count"), 6);
    let done = done.lock().unwrap();
    assert_eq!(*done, [vec![0, 1, 3, 4, 5], Vec::new()], "all others at once, and it beside its busy counter");
}

/// The application puts an item over its newer version, by which a later counter's revisions look old.
#[tokio::test]
async fn an_old_item_that_is_put_back_after_its_counter_began_anew_is_corrected() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    let item = |bed: &Bed, key: &Key| bed.memory().snapshot(Table::Main).remove(key).unwrap();
    let put = async |bed: &mut Bed, item: Item| {
        bed.memory().put_raw(Table::Main, item).unwrap();
        bed.settle().await;
    };
    let joins = async |bed: &mut Bed, user: &str| {
        let membership = bed.put("Membership", &[("UserId", user), ("GroupId", "g")], &[]).await;
        bed.settle().await;
        membership
    };
    let group = bed.put("Group", &[("GroupId", "g")], &[]).await;
    let plain = item(&bed, &group);
    let members = [joins(&mut bed, "u1").await, joins(&mut bed, "u2").await];
    let old = item(&bed, &group);
    for member in members {
        bed.delete(&member).await;
        bed.settle().await;
    }
    let shown = item(&bed, &group);
    // The watermarks grow too old, and the counter of zero is collected.
    bed.clock.advance(KEPT_MS + 3 * 60_000);
    for _ in 0..3 {
        let bounds = Bounds { n_items_max: usize::MAX, deadline_ms: bed.deadline_ms() };
        bed.engine().sweep_slice(bounds, |_| true).await.unwrap();
        bed.settle().await;
    }
    assert!(!bed.memory().snapshot(Table::Main).keys().any(|key| key.sk.contains("member-count")), "it is collected");
    put(&mut bed, old.clone()).await;
    assert_eq!(bed.findings(), [""; 0], "nothing is counted");
    // It puts the item without a display, and then as it once was: with a first revision, of a counter that is gone.
    put(&mut bed, plain).await;
    put(&mut bed, old.clone()).await;
    assert_eq!(bed.findings(), [""; 0], "nothing is counted");
    put(&mut bed, shown).await;
    joins(&mut bed, "u9").await;
    assert_eq!(bed.shown(&group, "MemberCount"), "1");
    put(&mut bed, old).await;
    assert_eq!((bed.shown(&group, "MemberCount").as_str(), bed.findings()), ("1", Vec::new()));
}

/// The application puts the attributes of a group with five members over another one, with the display and its revision.
#[tokio::test]
async fn a_count_that_is_copied_from_another_item_is_corrected() {
    // Over an item with a lower count, and over one that was never counted; with and without another difference.
    for (n_members, name) in [(1, "other"), (1, "same"), (0, "other"), (0, "same")] {
        let mut bed = Bed::new().under(LedgerKind::Watermarks);
        let joins = async |bed: &mut Bed, user: usize, group: &str| {
            bed.put("Membership", &[("UserId", &format!("u{user}")), ("GroupId", group)], &[]).await;
        };
        let to = bed.put("Group", &[("GroupId", "to")], &[("Name", name)]).await;
        let from = bed.put("Group", &[("GroupId", "from")], &[("Name", "same")]).await;
        for (n, group) in [(n_members, "to"), (5, "from")] {
            for user in 0..n {
                joins(&mut bed, user, group).await;
                bed.settle().await;
            }
        }
        let mut copied = bed.memory().snapshot(Table::Main).remove(&from).unwrap();
        assert_eq!(bed.shown(&from, "MemberCount"), "5");
        copied.extend(bed.schema.layout.key_item(&to));
        bed.memory().put_raw(Table::Main, copied).unwrap();
        bed.settle().await;
        let right = (n_members.to_string(), Vec::<String>::new());
        assert_eq!((bed.shown(&to, "MemberCount"), bed.findings()), right, "{n_members} {name}");
        joins(&mut bed, 9, "to").await;
        bed.settle().await;
        assert_eq!(bed.shown(&to, "MemberCount"), (n_members + 1).to_string(), "{n_members} {name}");
    }
}

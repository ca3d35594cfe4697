//! Counts, sums and roll-ups of single records: limits of numbers and transactions, late readings, a counter that is busy,
//! shows of counters that began anew, and sums of the last hours.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use derive::{
    clock,
    family::Family,
    guard::Purpose,
    refresh::Look,
    write::{Table, Write},
};
use engine::{
    backoff::Patience,
    ledger::{LedgerKind, watermarks::KEPT_MS},
    sweep::Bounds,
};
use keys::{item::Item, key::Key};
use operate::verify::{
    AtRest, Scope, VerifyEvent, Why,
    run::{Limits, Verification},
    scan::WINDOW_BYTES,
};
use store::faulty::{Call, Fault, Side};

use crate::{
    actors::repairing::MemoryTallies,
    cases::{Bed, LEDGERS, verification::verified, watermarks::counter},
    world::EventList,
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
        let handled = bed.goes_on().await;
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
        assert_eq!(bed.goes_on().await.failed_from, None);
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
        let handled = bed.goes_on().await;
        assert_eq!((handled.failed_from, handled.account.parked.len()), (None, 1));
        let counter = Key::new("FOLDER#f", "METADATA#COUNT#folder-totals#00");
        let stored = ["Value", "Sum"].map(|name| bed.shown(&counter, name));
        assert_eq!(stored, ["2".to_owned(), format!("3{}", "0".repeat(38))]);
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
    let put = async |bed: &mut Bed, item: Item| {
        bed.memory().put_raw(Table::Main, item).unwrap();
        bed.settle().await;
    };
    let joins = async |bed: &mut Bed, user: &str| {
        bed.put_settled("Membership", &[("UserId", user), ("GroupId", "g")], &[]).await
    };
    let group = bed.put("Group", &[("GroupId", "g")], &[]).await;
    let plain = bed.item(&group).unwrap();
    let members = [joins(&mut bed, "u1").await, joins(&mut bed, "u2").await];
    let old = bed.item(&group).unwrap();
    for member in members {
        bed.delete_settled(&member).await;
    }
    let shown = bed.item(&group).unwrap();
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
        let mut copied = bed.item(&from).unwrap();
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

// ---- Sums of the last hours: what moves them when nothing is written ----

/// Songs with the sum of the last three hours. The application writes the buckets.
const SONGS: &str = r#"
[table]
partition-key = "PK"
sort-key = "SK"
type = "EntityType"

[entity.Song]
partition-key = "SONG#{song}"
sort-key = "SONG"
derived-attributes = ["plays"]

[entity.SongHour]
partition-key = "SONG#{song}"
sort-key = "HOUR#{hour}"
attributes = ["n"]

[derivation.plays]
kind = "window"
from = "SongHour"
into = "Song.plays"
bucket = "hour"
last = "3 hours"
sum = "n"
"#;

const HOUR_MS: u64 = 3_600_000;

/// A song with 5 plays in the current hour, 10 o'clock.
async fn song(bed: &Bed) -> Key {
    let song = bed.put("Song", &[("song", "s")], &[]).await;
    bed.put("SongHour", &[("song", "s"), ("hour", "2024-01-15T10")], &[("n", "N:5")]).await;
    song
}

async fn sweep(bed: &mut Bed) {
    bed.sweeper().search_again(bed.deadline_ms()).await.unwrap();
    bed.settle().await;
}

/// Four hours pass, in which nobody writes: is the sum 0 then, and 5 before?
pub(crate) async fn moves_by_itself(bed: Bed) -> bool {
    let mut bed = bed.declaring(SONGS);
    let song = song(&bed).await;
    bed.settle().await;
    assert_eq!(bed.shown(&song, "plays"), "5");
    bed.clock.advance(2 * HOUR_MS);
    sweep(&mut bed).await;
    assert_eq!(bed.shown(&song, "plays"), "5");
    bed.clock.advance(HOUR_MS);
    sweep(&mut bed).await;
    bed.shown(&song, "plays") == "0"
}

/// A function that is to move the clock stops before it does. Three seconds later it is another hour: others move the clock,
/// and refresh the song. What does the song show when the first one goes on?
pub(crate) async fn clock_is_set_back(bed: Bed) -> String {
    let mut bed = bed.declaring(SONGS);
    let song = song(&bed).await;
    bed.settle().await;
    bed.clock.advance(2 * HOUR_MS + 20 * 60_000 - 2_000);
    bed.set(&song, "plays", "N:7").await;
    let records = bed.records();
    let mut late = bed.start(&bed.event(&records));
    bed.stops_before(&mut late, Purpose::Clock);
    bed.clock.advance(3_000);
    bed.set_settled(&song, "plays", "N:8").await;
    assert_eq!(bed.shown(&song, "plays"), "0");
    late.finish().unwrap().unwrap();
    format!("the song shows {} plays", bed.shown(&song, "plays"))
}

/// The request to refresh the sum of a song.
fn look_at(bed: &Bed, song: &Key) -> Look {
    let (derivations, named) = (BTreeSet::from([bed.catalogue.called("plays").unwrap()]), BTreeSet::new());
    Look { item: song.clone(), entity: "Song".to_owned(), derivations, named }
}

#[tokio::test]
async fn an_engine_that_moved_the_clock_knows_the_hour_where_the_clock_is_deleted_or_a_text() {
    let bed = Bed::new().declaring(SONGS);
    let song = song(&bed).await;
    let engine = bed.engine();
    let refreshed = async || {
        let patience = Patience::new(&bed.clock, bed.deadline_ms());
        engine.bring_in_step(look_at(&bed, &song), patience).await.unwrap();
        bed.shown(&song, "plays")
    };
    assert_eq!(refreshed().await, "5");
    bed.set(&clock::key(), "Hour", "noon").await;
    bed.set(&song, "plays", "N:7").await;
    assert_eq!(refreshed().await, "5");
    bed.delete(&clock::key()).await;
    bed.set(&song, "plays", "N:7").await;
    assert_eq!(refreshed().await, "5");
}

#[tokio::test]
async fn a_sum_that_a_repair_wrote_first_moves_too() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger).declaring(SONGS);
        let song = song(&bed).await;
        drop(bed.records());
        let look = look_at(&bed, &song);
        let engine = bed.engine();
        assert!(engine.bring_in_step(look, Patience::new(&bed.clock, bed.deadline_ms())).await.unwrap());
        assert_eq!(bed.shown(&song, "plays"), "5");
        bed.clock.advance(4 * HOUR_MS);
        sweep(&mut bed).await;
        assert_eq!((bed.shown(&song, "plays").as_str(), bed.findings()), ("0", Vec::new()));
    }
}

#[tokio::test]
async fn a_sum_whose_records_are_lost_moves_after_a_verification() {
    let mut bed = Bed::new().declaring(SONGS);
    let song = song(&bed).await;
    bed.set(&song, "plays", "N:5").await;
    drop(bed.records());
    let (engine, mut tallies, mut events) = (bed.engine(), MemoryTallies::default(), EventList::default());
    let limits = Limits { segments: 1, wait_ms: 100, window_bytes: WINDOW_BYTES };
    let verification = Verification::new(&engine, &AtRest, &mut tallies, &mut events, limits, Scope::default());
    verification.noting_changes(true).run().await.unwrap();
    assert!(events.0.is_empty(), "the sum is right now: {:?}", events.0);
    bed.clock.advance(4 * HOUR_MS);
    sweep(&mut bed).await;
    assert_eq!((bed.shown(&song, "plays").as_str(), bed.findings()), ("0", Vec::new()));
}

#[tokio::test]
async fn a_bucket_that_begins_later_counts_from_then_on() {
    let mut bed = Bed::new().declaring(SONGS);
    let song = song(&bed).await;
    bed.put_settled("SongHour", &[("song", "s"), ("hour", "2024-01-15T12")], &[("n", "N:70")]).await;
    let mut shown = vec![bed.shown(&song, "plays")];
    for _ in 0..5 {
        bed.clock.advance(HOUR_MS);
        sweep(&mut bed).await;
        shown.push(bed.shown(&song, "plays"));
        assert_eq!(bed.findings(), Vec::<String>::new());
    }
    assert_eq!(shown, ["5", "5", "75", "70", "70", "0"]);
    assert_eq!(bed.ledger("AGAIN#"), Vec::new(), "no note is left");
}

#[tokio::test]
async fn a_bucket_is_noted_once_and_its_target_waits_for_the_sweep_when_it_has_left() {
    let mut bed = Bed::new().declaring(SONGS);
    let song = bed.put_settled("Song", &[("song", "s")], &[]).await;
    bed.put("SongHour", &[("song", "s"), ("hour", "2024-01-15T10")], &[("n", "N:5")]).await;
    let handled = bed.settle().await;
    let commits = handled.iter().flat_map(|handled| &handled.account.commits);
    let notes: Vec<f64> = commits.filter(|it| it.key.pk.starts_with("AGAIN#")).map(|it| it.units).collect();
    assert_eq!((notes, bed.ledger("AGAIN#").len()), (vec![1.0], 1));

    let plays = bed.catalogue.called("plays").unwrap();
    let engine = bed.engine();
    let waits = async |bed: &Bed| {
        let waiting = engine.what_is_under_way(Patience::new(&bed.clock, bed.deadline_ms())).await.unwrap();
        waiting.pending(&song, None, [], [&plays]).is_some()
    };
    assert!(!waits(&bed).await, "it is due in three hours");
    // Another song moves the clock past the end of the bucket.
    bed.clock.advance(3 * HOUR_MS);
    bed.put_settled("Song", &[("song", "t")], &[]).await;
    assert_eq!((bed.shown(&song, "plays").as_str(), bed.findings().len()), ("5", 1));
    assert!(waits(&bed).await, "what the sweep will move is no finding");
    sweep(&mut bed).await;
    assert_eq!((bed.shown(&song, "plays").as_str(), waits(&bed).await), ("0", false));
}

/// Nothing is written, and no sweep runs: is it said that the sum is an old one?
#[tokio::test]
async fn a_verification_says_that_nobody_moves_the_clock_or_that_it_is_wrong() {
    let mut bed = Bed::new().declaring(SONGS);
    let song = song(&bed).await;
    bed.settle().await;
    let reported = async |bed: &Bed| {
        let (events, _) = verified(bed, &AtRest).await;
        events
            .iter()
            .map(|event| match event {
                VerifyEvent::Undecided(found, Why::Overdue) => format!("{} waits", found.pk),
                VerifyEvent::Unreadable(found) => format!("{} {}", found.pk, found.why),
                event => format!("{event:?}"),
            })
            .collect::<Vec<_>>()
    };
    bed.clock.advance(3 * HOUR_MS);
    assert_eq!(reported(&bed).await, Vec::<String>::new(), "the sweep has an hour for it");
    bed.clock.advance(HOUR_MS);
    assert_eq!(reported(&bed).await, [format!("{} waits", song.pk)]);
    sweep(&mut bed).await;
    assert_eq!((bed.shown(&song, "plays").as_str(), reported(&bed).await), ("0", Vec::new()));
    bed.delete(&clock::key()).await;
    bed.set(&song, "plays", "N:7").await;
    let (events, _) = verified(&bed, &AtRest).await;
    assert!(matches!(&events[..], [VerifyEvent::Finding(found, _)] if found.pk == song.pk), "{events:?}");
    bed.settle().await;
    assert_eq!(bed.shown(&song, "plays"), "0", "the functions write the clock again");
    for (hour, what) in [("N:999999", "is in the future"), ("noon", "is not a number of hours since 1970")] {
        bed.set(&clock::key(), "Hour", hour).await;
        let all = reported(&bed).await;
        assert!(all.len() == 1 && all[0].starts_with("JOBS#CLOCK") && all[0].contains(what), "{all:?}");
    }
}

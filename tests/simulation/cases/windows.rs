//! Sums of the last hours: what moves them when nothing is written.

use std::collections::BTreeSet;

use derive::{clock, guard::Purpose, refresh::Look};
use engine::backoff::Patience;
use keys::key::Key;
use operate::verify::{
    AtRest, Scope, VerifyEvent, Why,
    run::{Limits, Verification},
    scan::WINDOW_BYTES,
};

use crate::{
    cases::{
        bed::{Bed, LEDGERS},
        verification::verified,
    },
    tallies::MemoryTallies,
    world::EventList,
};

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
    bed.set(&song, "plays", "N:8").await;
    bed.settle().await;
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
    bed.put("SongHour", &[("song", "s"), ("hour", "2024-01-15T12")], &[("n", "N:70")]).await;
    bed.settle().await;
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
    let song = bed.put("Song", &[("song", "s")], &[]).await;
    bed.settle().await;
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
    bed.put("Song", &[("song", "t")], &[]).await;
    bed.settle().await;
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

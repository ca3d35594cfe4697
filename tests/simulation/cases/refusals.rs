//! Changes that are refused, replayed, parked, redriven and discarded, under either ledger.

use std::collections::BTreeSet;

use derive::{family::Family, guard::Purpose, query::Query, write::Table};
use engine::{
    account::Target,
    batch::Handled,
    inspect::to_recount,
    ledger::LedgerKind,
    loss::{clear, marks},
    park::{ParkedChange, parked},
    record::Lane,
    redrive::{Origin, Redriven, discard::Discarded},
};
use keys::key::Key;
use operate::verify::{AtRest, VerifyEvent};
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};
use support::record::STREAM_ARN;

use crate::{
    caller::{Gone, Task},
    cases::{
        Bed, FOLLOW, LEDGERS, SHARD, comment, corrupt, event_id,
        verification::verified,
        watermarks::{bed, with_unreadable_first},
    },
};

const DAY_MS: u64 = 24 * 3_600_000;

/// The list of recounts, as `derivation: item, since event`.
async fn listed(bed: &Bed) -> Vec<String> {
    let shown = |target: Option<engine::account::Target>| match target {
        Some(target) => format!("{}: {}", target.derivation, target.item),
        None => "*".to_owned(),
    };
    let listed = to_recount(bed.memory()).await.unwrap().into_iter();
    listed.map(|entry| format!("{}, {}", shown(entry.target), entry.event_id)).collect()
}

/// An entry of that list.
fn since(target: &str, event: usize) -> String {
    format!("{target}, {}", event_id(event))
}

#[tokio::test]
async fn a_change_from_behind_the_horizon_is_never_applied_and_its_targets_are_listed() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        bed.put("Follow", &FOLLOW, &[]).await;
        let reading = [("SensorId", "s"), ("Day", "2024-01-15"), ("At", "2024-01-15T10:01:00.000Z")];
        bed.put("Reading", &reading, &[("Value", "N:1")]).await;
        let old = bed.records();
        bed.clock.advance(14 * DAY_MS + 1_000);
        bed.put("Follow", &[("FollowerId", "cleo"), ("FolloweeId", "dan")], &[]).await;
        let batch = [old, bed.records()].concat();
        for is_again in [false, true] {
            let handled = bed.handle(&batch).await;
            assert_eq!(handled.failed_from, None, "{ledger}");
            let refused: Vec<(usize, &str)> =
                handled.account.refused.iter().map(|refused| (refused.position.0, refused.why.as_str())).collect();
            let why = match ledger {
                LedgerKind::Receipts => "it is older than the ledger's horizon of 14 days",
                LedgerKind::Watermarks => "it is older than the ledger's horizon of 26 hours",
            };
            assert_eq!(refused, [(0, why), (1, why)], "{is_again}");
            let targets = [
                since("follower-count: USER#bob / PROFILE", 1),
                since("following-count: USER#ann / PROFILE", 1),
                since("readings-rollup: SENSOR#s / DAY#2024-01-15", 2),
                since("readings-rollup: SENSOR#s / HOUR#2024-01-15T10", 2),
            ];
            assert_eq!(listed(&bed).await, targets);
            assert_eq!((bed.counted("follower-count"), bed.counted("following-count")), (1, 1));
        }
    }
}

#[tokio::test]
async fn a_change_at_the_horizon_is_applied() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let records = bed.joins(1).await;
        bed.clock.advance(ledger.horizon_ms());
        bed.handle(&records).await;
        assert_eq!((bed.counted("member-count"), listed(&bed).await.len()), (1, 0));
    }
}

#[tokio::test]
async fn a_refused_change_that_cannot_be_listed_is_not_done_and_not_passed() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks).running(Family::Additive);
    let old = bed.joins(1).await;
    bed.clock.advance(15 * DAY_MS);
    let batch = [old, bed.memberships([("bob".into(), "g".into())]).await].concat();
    bed.writes_fail(Fault::Unanswered, |key| key.pk == "RECOUNT");
    assert_eq!(bed.handle(&batch).await.failed_from.as_deref(), Some("1001"));
    assert_eq!(bed.counted("member-count"), 0);
    bed.fails(|_| None);
    assert_eq!(bed.handle(&batch).await.failed_from, None);
    assert_eq!((bed.counted("member-count"), listed(&bed).await.len()), (1, 1));
}

#[tokio::test]
async fn a_record_that_does_not_say_when_it_was_made_is_parked_and_not_counted() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let mut records = bed.joins(2).await;
        records[0]["dynamodb"].as_object_mut().unwrap().remove("ApproximateCreationDateTime");
        let handled = bed.handle(&records).await;
        assert_eq!(handled.failed_from, None);
        assert_eq!(bed.parked(), [format!("PARKED#additive / {}#00", event_id(1))], "looking needs no age");
        assert!(handled.account.parked[0].cause.contains("ApproximateCreationDateTime"));
        assert_eq!(bed.counted("member-count"), 1);
        bed.clock.advance(32 * 60_000);
        bed.redrive_all().await;
        assert_eq!((bed.counted("member-count"), bed.parked().len()), (2, 0), "a redrive needs no age");
    }
}

/// Replays records of the shard under watermarks, and returns why each was refused.
async fn replayed(bed: &Bed, records: &[Value], was_given_up: bool) -> (Handled, Vec<String>) {
    let lane = Lane { stream_arn: Some(STREAM_ARN.to_owned()), shard: Some(SHARD.to_owned()) };
    let event = json!({ "Records": records }).to_string();
    let origin = Origin { lane, was_given_up };
    let handled = bed.engine().replay(&event, &origin, bed.deadline_ms()).await.unwrap();
    assert_eq!(handled.failed_from, None);
    let refused = handled.account.refused.iter().map(|refused| refused.why.clone()).collect();
    (handled, refused)
}

#[tokio::test]
async fn under_watermarks_nothing_that_is_replayed_is_applied() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks).running(Family::Additive);
    let records = bed.joins(2).await;
    bed.handle(&records[..1]).await;
    let (handled, refused) = replayed(&bed, &records[..1], false).await;
    assert_eq!((handled.account.n_duplicates, refused.len(), handled.account.commits.len()), (1, 0, 0), "it is in");

    let (handled, refused) = replayed(&bed, &records, false).await;
    assert_eq!(
        refused,
        [
            "it is not counted, and the stream still has it: nothing to do, if its shard is right and the function has not passed it"
        ]
    );
    assert_eq!(handled.account.refused[0].targets[0].derivation, "member-count");
    assert_eq!((handled.account.commits.len(), listed(&bed).await.len()), (0, 0), "it is named, and not listed");

    bed.clock.advance(DAY_MS);
    let (_, refused) = replayed(&bed, &records, false).await;
    assert_eq!(refused, ["it is not counted, and the stream does not have it any more"]);
    assert_eq!(listed(&bed).await, [since("member-count: GROUP#g1 / METADATA", 2)]);
    assert_eq!(bed.counted("member-count"), 1);
}

#[tokio::test]
async fn under_watermarks_a_record_that_was_given_up_is_refused_and_listed() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks).running(Family::Additive);
    let records = bed.joins(2).await;
    bed.handle(&records[..1]).await;
    let (_, refused) = replayed(&bed, &records, true).await;
    assert_eq!(
        refused,
        [
            "Lambda dropped it, and later records of its shard are counted",
            "Lambda dropped it, and no later record of its shard is counted"
        ]
    );
    let targets = [since("member-count: GROUP#g0 / METADATA", 1), since("member-count: GROUP#g1 / METADATA", 2)];
    assert_eq!((listed(&bed).await, bed.counted("member-count")), (targets.to_vec(), 1));
}

#[tokio::test]
async fn a_replay_rings_the_bells_all_the_same() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let records = bed.joins(1).await;
        replayed(&bed, &records, false).await;
        assert_eq!(
            bed.memory().snapshot(Table::Main).keys().filter(|key| key.pk == "GROUP#g0").count(),
            1 + usize::from(ledger == LedgerKind::Receipts)
        );
    }
}

#[tokio::test]
async fn a_replayed_record_that_does_not_decode_is_refused_and_listed_and_not_parked() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let mut records = bed.joins(1).await;
        let whole = records.clone();
        corrupt(&mut records[0], "NewImage");
        let (handled, refused) = replayed(&bed, &records, false).await;
        assert!(refused.len() == 1 && refused[0].starts_with("the record does not decode"), "{refused:?}");
        assert_eq!((handled.account.refused[0].id.clone(), bed.parked().len()), (event_id(1), 0));
        assert_eq!(listed(&bed).await, [since("*", 1)], "it may have counted anywhere");
        bed.handle(&whole).await;
        assert_eq!(bed.counted("member-count"), 1, "the stream brings it still");
    }
}

// ---- refused reads ----

const USERS: [&str; 5] = ["ann", "bob", "cleo", "dan", "eve"];

/// Reads of this item are refused, alone or beside others.
fn refuse_item(bed: &Bed, refused: &Key) {
    let refused = refused.clone();
    bed.reads_fail(Fault::Refused, move |key| *key == refused);
}

fn refuse_query(bed: &Bed, is_refused: impl Fn(&Query) -> bool + Send + 'static) {
    bed.fails(move |call| {
        let is_it = matches!(call, Call::Query(_, query) if is_refused(query));
        is_it.then_some((Side::Before, Fault::Refused))
    });
}

/// Each of the users follows somebody.
async fn follows(bed: &mut Bed) -> Vec<serde_json::Value> {
    for user in USERS {
        bed.put("Follow", &[("FollowerId", user), ("FolloweeId", "zoe")], &[]).await;
    }
    bed.records()
}

fn mirror(user: &str) -> Key {
    Key::new("USER#zoe", format!("FOLLOWER#{user}"))
}

#[tokio::test]
async fn an_item_that_cannot_be_read_is_parked_and_its_neighbours_are_written() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    let records = follows(&mut bed).await;
    refuse_item(&bed, &mirror("cleo"));
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from, None);
    assert_eq!(bed.parked(), [format!("PARKED#level-triggered / {}#00", event_id(3))]);
    let cause = &handled.account.parked[0].cause;
    assert!(cause.starts_with("BatchGetItem on USER#zoe / FOLLOWER#cleo: refused"), "{cause}");
    for user in USERS {
        assert_eq!(!bed.shown(&mirror(user), "EntityType").is_empty(), user != "cleo", "{user}");
    }
    bed.fails(|_| None);
    bed.redrive_all().await;
    bed.settle().await;
    assert_eq!((bed.shown(&mirror("cleo"), "EntityType").as_str(), bed.parked().len()), ("Follower", 0));
}

#[tokio::test]
async fn a_source_that_cannot_be_read_parks_what_is_derived_from_it_and_nothing_else() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    for user in USERS {
        bed.put("User", &[("UserId", user)], &[("Name", user)]).await;
    }
    bed.settle().await;
    let mut keys = Vec::new();
    for user in ["cleo", "ann"] {
        keys.push(bed.put("Comment", &comment(user), &[("UserId", user)]).await);
    }
    let records = bed.records();
    refuse_item(&bed, &Key::new("USER#cleo", "PROFILE"));
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.parked().len()), (None, 1), "{:?}", bed.parked());
    assert_eq!(handled.account.parked[0].position.0, 0);
    assert_eq!(keys.iter().map(|key| bed.shown(key, "UserName")).collect::<Vec<_>>(), ["", "ann"]);
}

#[tokio::test]
async fn an_item_to_list_that_cannot_be_read_holds_up_no_other() {
    let mut bed = Bed::new();
    let mut keys = Vec::new();
    for id in ["c", "d", "e"] {
        keys.push(bed.put("Comment", &comment(id), &[("UserId", "N:7")]).await);
    }
    let records = bed.records();
    let is_list = keys[1].clone();
    let mut n_gets = 0;
    // Lists come first; the looks that follow are not refused.
    bed.fails(move |call| {
        let is_it = matches!(call, Call::Get(_, keys) if keys.contains(&is_list));
        n_gets += usize::from(is_it);
        (is_it && n_gets < 4).then_some((Side::Before, Fault::Refused))
    });
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, bed.parked().len()), (None, 1), "{:?}", bed.parked());
    let mut listed: Vec<&Key> = handled.account.unreadable.iter().map(|listed| &listed.key).collect();
    listed.dedup();
    assert_eq!(listed, [&keys[0], &keys[2]]);
}

#[tokio::test]
async fn a_search_that_is_refused_parks_the_change_that_asks_for_it_and_no_other() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    for user in ["ann", "bob"] {
        bed.put("User", &[("UserId", user)], &[("Name", user)]).await;
        bed.put("Comment", &comment(user), &[("UserId", user)]).await;
    }
    bed.settle().await;
    for user in ["ann", "bob"] {
        bed.set(&Key::new(format!("USER#{user}"), "PROFILE"), "Name", "new").await;
    }
    let records = bed.records();
    refuse_query(&bed, |query| query.index.is_some() && query.pk.contains("ann"));
    let handled = bed.handle(&records).await;
    assert_eq!(
        (handled.failed_from, bed.parked()),
        (None, vec![format!("PARKED#level-triggered / {}#00", event_id(7))])
    );
    bed.fails(|_| None);
    bed.settle().await;
    let name = |user: &str| bed.shown(&Key::new("POST#p", format!("COMMENT#t#{user}")), "UserName");
    assert_eq!((name("ann"), name("bob")), ("ann".to_owned(), "new".to_owned()));
    bed.redrive_all().await;
    assert_eq!(name("ann"), "new");
}

#[tokio::test]
async fn a_verification_reports_what_cannot_be_read_and_decides_about_the_rest() {
    let mut bed = Bed::new();
    follows(&mut bed).await;
    bed.settle().await;
    for user in ["ann", "cleo"] {
        bed.delete(&mirror(user)).await;
    }
    refuse_item(&bed, &mirror("cleo"));
    let (events, _) = verified(&bed, &AtRest).await;
    let unreadable = events.iter().any(|event| {
        matches!(event, VerifyEvent::Unreadable(it) if it.sk == "FOLLOWER#cleo" && it.why.contains("cannot be read"))
    });
    let found = events.iter().any(|event| matches!(event, VerifyEvent::Finding(it, _) if it.sk == "FOLLOWER#ann"));
    assert!(unreadable && found, "{events:?}");
}

// ---- Parked changes that an operator discards: what is listed, and what a redelivered record does afterwards ----

/// Longer than a redrive or a discarding waits for an earlier invocation, in milliseconds.
const WAITED_MS: u64 = 32 * 60_000;

/// The counter of the users whom `ann` follows.
fn counter() -> Key {
    Key::new("USER#ann", "PROFILE#COUNT#following-count#00")
}

async fn one_parked(bed: &Bed) -> ParkedChange {
    let mut all = parked(bed.memory()).await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

async fn discards(bed: &Bed) -> Discarded {
    let change = one_parked(bed).await;
    bed.engine().discard(&change, bed.deadline_ms()).await.unwrap()
}

/// The counts to recount: derivation and item, `*` for any.
async fn recounts(bed: &Bed) -> Vec<String> {
    let listed = to_recount(bed.memory()).await.unwrap();
    let text = |target: &Target| format!("{} {}", target.derivation, target.item);
    listed.iter().map(|it| it.target.as_ref().map_or("*".to_owned(), text)).collect()
}

/// A follow is parked, because its counter has no number. Returns its record.
async fn parked_follow(bed: &mut Bed) -> Value {
    bed.set(&counter(), "EntityType", "Counter").await;
    bed.set_settled(&counter(), "Value", "many").await;
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    bed.handle_settled(&records).await;
    records[0].clone()
}

#[tokio::test]
async fn the_counts_of_a_discarded_change_are_listed_and_its_redelivered_record_adds_nothing() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let record = parked_follow(&mut bed).await;
        let change = one_parked(&bed).await;
        let lost = bed.engine().lost(&change, bed.deadline_ms()).await.unwrap();
        let following = "following-count USER#ann / PROFILE";
        // Under watermarks the other counter counts the change.
        let listed = match ledger {
            LedgerKind::Receipts => vec!["follower-count USER#bob / PROFILE", following],
            LedgerKind::Watermarks => vec![following],
        };
        let counts: Vec<String> = lost.counts.iter().map(|it| format!("{} {}", it.derivation, it.item)).collect();
        assert_eq!(counts, listed, "{ledger:?}");
        assert_eq!(discards(&bed).await, Discarded::Done);
        assert_eq!((bed.parked().len(), recounts(&bed).await), (0, listed.iter().map(|it| (*it).to_owned()).collect()));
        let again = bed.engine().discard(&change, bed.deadline_ms()).await.unwrap();
        assert_eq!(again, Discarded::Gone, "{ledger:?}");

        // The counter is corrected, and the record is redelivered.
        bed.set_settled(&counter(), "Value", "N:0").await;
        let before = bed.counted("follower-count");
        bed.handle(&[record]).await;
        assert_eq!((bed.counted("following-count"), bed.counted("follower-count")), (0, before), "{ledger:?}");
        assert_eq!(bed.parked(), [""; 0], "{ledger:?}");
    }
}

#[tokio::test]
async fn a_discarded_change_that_cannot_be_read_lists_any_count_once_nothing_can_count_it() {
    let mut bed = bed();
    let records = bed.joins(1).await;
    bed.handle(&with_unreadable_first(&records)).await;
    match discards(&bed).await {
        Discarded::Still { cause } => assert!(cause.ends_with("discard it in 31 min"), "{cause}"),
        other => panic!("{other:?}"),
    }
    bed.clock.advance(WAITED_MS);
    assert_eq!(discards(&bed).await, Discarded::Done);
    assert_eq!((bed.parked().len(), recounts(&bed).await), (0, vec!["*".to_owned()]));
    let n_counted = bed.counted("member-count");
    bed.handle(&records).await;
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (n_counted, 0), "it is an exception of its shard");
}

#[tokio::test]
async fn a_change_whose_counter_lost_its_watermark_stays_parked_while_the_stream_may_deliver_it() {
    let mut bed = Bed::new().under(LedgerKind::Watermarks);
    parked_follow(&mut bed).await;
    bed.delete_settled(&counter()).await;
    match discards(&bed).await {
        Discarded::Still { cause } => assert!(cause.contains("has lost its watermark"), "{cause}"),
        other => panic!("{other:?}"),
    }
    assert_eq!((bed.parked().len(), recounts(&bed).await), (1, Vec::new()));
    bed.clock.advance(27 * 3_600_000);
    assert_eq!(discards(&bed).await, Discarded::Done);
    assert_eq!(recounts(&bed).await, ["following-count USER#ann / PROFILE"]);
}

#[tokio::test]
async fn of_a_redrive_and_a_discarding_at_once_one_takes_the_change() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        parked_follow(&mut bed).await;
        bed.set_settled(&counter(), "Value", "N:0").await;
        let change = one_parked(&bed).await;
        let (engine, other, deadline_ms) = (bed.engine(), change.clone(), bed.deadline_ms());
        let mut discarding =
            Task::new(&Gone::default(), async move { engine.discard(&other, deadline_ms).await.unwrap() });
        bed.stops_before(&mut discarding, Purpose::StillParked);
        let redriven = bed.engine().redrive(&change, bed.deadline_ms()).await.unwrap();
        assert!(matches!(redriven, Redriven::Applied(_)), "{redriven:?}");
        assert_eq!(discarding.finish(), Some(Discarded::Gone), "{ledger:?}");
        assert_eq!((bed.counted("following-count"), recounts(&bed).await), (1, Vec::new()), "{ledger:?}");
    }
}

/// The mirror by which a cascade finds a follow is missing, because the change of the follow was discarded.
#[tokio::test]
async fn no_cascade_starts_after_a_discarded_change_until_a_verification() {
    let mut bed = Bed::new();
    let user = bed.put_settled("User", &[("UserId", "bob")], &[]).await;
    bed.put("Follow", &FOLLOW, &[]).await;
    let mut records = bed.records();
    corrupt(&mut records[0], "NewImage");
    bed.handle(&records).await;
    let n_parked = bed.parked().len();
    for change in parked(bed.memory()).await.unwrap() {
        assert_eq!(bed.engine().discard(&change, bed.deadline_ms()).await.unwrap(), Discarded::Done);
    }
    assert_eq!((n_parked, bed.parked().len()), (2, 0), "one of each family");
    bed.delete_settled(&user).await;
    let swept = bed.a_day_passes().await;
    assert_eq!((swept.n_blocked, swept.n_begun), (1, 0), "a verification has to find the missing mirror first");
    let left = marks(bed.memory()).await.unwrap();
    let families: BTreeSet<&str> = left.iter().map(|mark| mark.family.as_str()).collect();
    assert_eq!(families, BTreeSet::from(["level-triggered"]));
    for mark in &left {
        assert!(clear(bed.memory(), mark).await.unwrap());
    }
    assert_eq!(bed.a_day_passes().await.n_begun, 1);
}

#[tokio::test]
async fn a_cascade_is_lost_with_the_removal_that_would_start_it_and_not_once_it_has_started() {
    let mut bed = Bed::new();
    let user = bed.put_settled("User", &[("UserId", "ann")], &[]).await;
    bed.delete(&user).await;
    let records = bed.records();
    let mut unreadable = records.clone();
    corrupt(&mut unreadable[0], "OldImage");
    bed.handle(&unreadable).await;
    bed.put_true(&records[0].to_string());
    let all = parked(bed.memory()).await.unwrap();
    let change = all.iter().find(|change| change.counter.is_none() && change.family.to_string() == "level-triggered");
    let change = change.unwrap();
    let lost = bed.engine().lost(change, bed.deadline_ms()).await.unwrap();
    assert_eq!(lost.cascades, BTreeSet::from([("user-cascade".to_owned(), user.clone())]));
    assert!(lost.unknown.is_none() && lost.item.as_ref() == Some(&user), "{lost:?}");
    bed.handle(&records).await;
    let lost = bed.engine().lost(change, bed.deadline_ms()).await.unwrap();
    assert_eq!(lost.cascades, BTreeSet::new(), "its job exists");
}

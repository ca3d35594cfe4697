//! Changes that are refused, replayed, parked and redriven, under either ledger.

use derive::{family::Family, write::Table};
use engine::{
    batch::{Handled, replay::Origin},
    ledger::LedgerKind,
    park::{
        redrive::{ParkedChange, Redriven, parked},
        to_recount,
    },
    record::event::Lane,
};
use serde_json::{Value, json};
use store::faulty::{Call, Fault, Side};
use support::record::STREAM_ARN;

use crate::cases::bed::{Bed, SHARD, event_id};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];
const DAY_MS: u64 = 24 * 3_600_000;

/// The list of recounts, as `derivation: item, since event`.
async fn listed(bed: &Bed) -> Vec<String> {
    let shown = |target: Option<engine::count::Target>| match target {
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
async fn one_more_and_one_less_in_one_batch_are_two_changes_with_a_receipt_each() {
    let mut bed = Bed::new().running(Family::Additive);
    let key = bed.put("Membership", &[("UserId", "ann"), ("GroupId", "g")], &[]).await;
    bed.delete(&key).await;
    let records = bed.records();
    let handled = bed.handle(&records).await;
    let written: Vec<String> = handled.account.commits.iter().map(|commit| commit.key.pk.clone()).collect();
    assert_eq!(written, [1, 2].map(|number| format!("RECEIPT#{}", event_id(number))));
    for half in records.chunks(1) {
        assert_eq!(bed.handle(half).await.account.n_duplicates, 1);
    }
    assert_eq!(bed.memory().snapshot(Table::Main).len(), 0);
}

/// Once the cause was lost: the receipt was written, and the change was neither applied nor parked.
#[tokio::test]
async fn a_parking_that_meets_another_writer_stays_a_parking() {
    for (ledger, position) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(at, position)| (LEDGERS[at], position)) {
        let mut bed = Bed::new().under(ledger).running(Family::Additive);
        let mut records = bed.joins(3).await;
        let whole = records[1].clone();
        records[1]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
        let mut n_left = 2;
        bed.fails(move |call| {
            let Call::Transact(transaction) = call else { return None };
            let parks = transaction.writes().iter().any(|write| write.key.pk.starts_with("PARKED"));
            n_left -= usize::from(parks && n_left > 0);
            (parks && n_left > 0).then_some((Side::Before, Fault::Conflict(position)))
        });
        let handled = bed.handle(&records).await;
        assert_eq!((handled.failed_from, handled.account.n_retries), (None, 1));
        assert_eq!(bed.parked(), [format!("PARKED#additive / {}#00", event_id(2))], "{ledger}, {position}");
        assert_eq!(bed.counted("member-count"), 2);
        assert_eq!(bed.handle(&[whole]).await.account.n_duplicates, 1, "its proof is there");
    }
}

#[tokio::test]
async fn a_change_from_behind_the_horizon_is_never_applied_and_its_targets_are_listed() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
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
            assert_eq!(refused, [(0, why)], "{is_again}");
            let targets = ["follower-count: USER#bob / PROFILE", "following-count: USER#ann / PROFILE"]
                .map(|target| since(target, 1));
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
    bed.fails(|call| match call {
        Call::Write(write) if write.key.pk == "RECOUNT" => Some((Side::Before, Fault::Unanswered)),
        _ => None,
    });
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
    assert_eq!(refused, ["no watermark of its counters has passed it: the stream brings it"]);
    assert_eq!(handled.account.refused[0].targets[0].derivation, "member-count");
    assert_eq!((handled.account.commits.len(), listed(&bed).await.len()), (0, 0), "it is named, and not listed");

    bed.clock.advance(DAY_MS);
    let (_, refused) = replayed(&bed, &records, false).await;
    assert_eq!(refused, ["no watermark of its counters has passed it, and the stream does not hold it any more"]);
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
            "Lambda gave it up, and its counters' watermarks have passed it since",
            "Lambda gave it up, and no watermark of its counters has passed it"
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
        records[0]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
        let (handled, refused) = replayed(&bed, &records, false).await;
        assert!(refused.len() == 1 && refused[0].starts_with("the record does not decode"), "{refused:?}");
        assert_eq!((handled.account.refused[0].id.clone(), bed.parked().len()), (event_id(1), 0));
        assert_eq!(listed(&bed).await, [since("*", 1)], "it may have counted anywhere");
        bed.handle(&whole).await;
        assert_eq!(bed.counted("member-count"), 1, "the stream brings it still");
    }
}

/// A bed where the first of two changes is parked: its record does not decode, or its counter is no number.
async fn with_parked(ledger: LedgerKind) -> (Bed, ParkedChange) {
    let mut bed = Bed::new().under(ledger).running(Family::Additive);
    let counter = keys::key::Key::new("GROUP#g0", "METADATA#COUNT#member-count#00");
    bed.set(&counter, "Value", "many").await;
    bed.records();
    let records = bed.joins(2).await;
    bed.handle(&records).await;
    let change = parked(bed.memory()).await.unwrap().remove(0);
    (bed, change)
}

#[tokio::test]
async fn a_change_that_still_cannot_be_applied_stays_parked_and_one_that_can_is_applied_once() {
    for ledger in LEDGERS {
        let (bed, change) = with_parked(ledger).await;
        let Redriven::Still { cause } = bed.engine().redrive(&change, bed.deadline_ms()).await.unwrap() else {
            panic!("the counter is no number");
        };
        assert!(!cause.is_empty() && bed.parked().len() == 1, "{cause}");

        bed.delete(&keys::key::Key::new("GROUP#g0", "METADATA#COUNT#member-count#00")).await;
        assert!(matches!(bed.engine().redrive(&change, bed.deadline_ms()).await, Ok(Redriven::Applied(_))));
        assert!(matches!(bed.engine().redrive(&change, bed.deadline_ms()).await, Ok(Redriven::Gone)));
        assert_eq!((bed.counted("member-count"), bed.parked().len()), (2, 0));
    }
}

#[tokio::test]
async fn a_redrive_whose_answer_is_lost_applies_once() {
    let (bed, change) = with_parked(LedgerKind::Receipts).await;
    bed.delete(&keys::key::Key::new("GROUP#g0", "METADATA#COUNT#member-count#00")).await;
    let mut is_first = true;
    bed.fails(move |call| {
        let is_lost = matches!(call, Call::Transact(_)) && std::mem::take(&mut is_first);
        is_lost.then_some((Side::After, Fault::Unanswered))
    });
    assert!(matches!(bed.engine().redrive(&change, bed.deadline_ms()).await, Ok(Redriven::Gone)));
    assert_eq!((bed.counted("member-count"), bed.parked().len()), (2, 0));
}

#[tokio::test]
async fn a_level_triggered_redrive_looks_and_unparks() {
    let mut bed = Bed::new().running(Family::LevelTriggered);
    let mut records = bed.joins(1).await;
    let whole = records[0].to_string();
    records[0]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    let change = parked(bed.memory()).await.unwrap().remove(0);
    let Ok(Redriven::Still { cause }) = bed.engine().redrive(&change, bed.deadline_ms()).await else {
        panic!("it does not decode");
    };
    assert!(cause.starts_with("the record does not decode"), "{cause}");
    assert_eq!((bed.parked().len(), bed.memory().snapshot(Table::Main).len()), (1, 1));

    bed.put_true(&whole);
    let change = parked(bed.memory()).await.unwrap().remove(0);
    assert!(matches!(bed.engine().redrive(&change, bed.deadline_ms()).await, Ok(Redriven::Applied(_))));
    assert_eq!((bed.parked().len(), bed.memory().snapshot(Table::Main).len()), (0, 2), "the mirror is there");
    assert!(matches!(bed.engine().redrive(&change, bed.deadline_ms()).await, Ok(Redriven::Applied(_))));
}

//! Cascades where nobody knows how far the functions are: the sweep goes by its own pulse, as in Lambda.

use derive::write::Table;
use engine::{
    jobs::{
        ground::{
            held::HeldBy,
            sweep::{Swept, jobs},
        },
        pulse::PULSE_MS_MAX,
    },
    loss::{clear, marks},
};
use keys::key::Key;
use store::faulty::{Call, Fault, Side};

use crate::cases::bed::{Bed, INVOCATION_MS};

const HOUR_MS: u64 = 3_600 * 1_000;

/// A post is there with a comment, and the sweep has beaten since before it is removed. Returns the comment's key.
async fn moved_post(bed: &mut Bed) -> Key {
    let post = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];
    let post = bed.put("Post", &post, &[("Status", "published")]).await;
    let comment = bed.put("Comment", &[("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")], &[]).await;
    bed.settle().await;
    swept(bed).await;
    bed.settle().await;
    bed.delete(&post).await;
    bed.settle().await;
    comment
}

/// The post is put under another key.
async fn put_again(bed: &Bed) {
    let post = [("AuthorId", "bob"), ("CreatedAt", "t"), ("PostId", "p")];
    bed.put("Post", &post, &[("Status", "published")]).await;
}

async fn swept(bed: &Bed) -> Swept {
    bed.sweeper().sweep_by_pulse(bed.deadline_ms()).await.unwrap()
}

fn is_there(bed: &Bed, key: &Key) -> bool {
    bed.memory().snapshot(Table::Main).contains_key(key)
}

/// Why the jobs that wait are held.
async fn held_by(bed: &Bed) -> Vec<HeldBy> {
    let engine = bed.engine();
    let all = jobs(engine.store(), &bed.schema.layout).await.unwrap();
    let mut held: Vec<HeldBy> = engine.held_jobs(&all, true, bed.deadline_ms()).await.unwrap().into_values().collect();
    held.dedup();
    held
}

/// Each hour the sweep runs, and the functions handle all that is there.
async fn hours_pass(bed: &mut Bed, n_hours: u64) -> usize {
    let mut n_begun = 0;
    for _ in 0..n_hours {
        bed.clock.advance(HOUR_MS);
        n_begun += swept(bed).await.n_begun;
        bed.settle().await;
    }
    n_begun
}

/// A post is moved by a delete and a put. Between them its mapping is switched off, for more than a day, and the put is
/// trimmed. No batch comes in that time, so none comes late.
#[tokio::test]
async fn a_cascade_does_not_begin_after_a_day_in_which_no_function_was_at_work() {
    for by_pulse in [false, true] {
        let mut bed = Bed::new();
        let comment = moved_post(&mut bed).await;
        put_again(&bed).await;
        bed.records();
        bed.clock.advance(25 * HOUR_MS + 1);
        if !by_pulse {
            let swept = bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap();
            assert_eq!(swept.n_begun, 2, "time alone proves nothing");
            continue;
        }
        for _ in 0..3 {
            let swept = swept(&bed).await;
            assert_eq!((swept.n_begun, swept.n_held), (0, 2));
            assert!(matches!(held_by(&bed).await[..], [HeldBy::NoPulse(1..)]), "{:?}", held_by(&bed).await);
            bed.clock.advance(HOUR_MS);
        }
        // It is switched on again, and handles the last pulse.
        bed.settle().await;
        let found = marks(bed.engine().store()).await.unwrap();
        assert_eq!(found.len(), 2, "one for each family: {found:?}");
        assert_eq!(hours_pass(&mut bed, 30).await, 0);
        assert!(matches!(held_by(&bed).await[..], [HeldBy::PossibleLoss(_)]));
        assert!(is_there(&bed, &comment));

        // A repair makes the mirror, and the verify after it takes the marks away.
        bed.set(&Key::new("USER#bob", "POST#t#p"), "Status", "archived").await;
        bed.settle().await;
        for mark in found {
            let now = marks(bed.engine().store()).await.unwrap();
            assert!(now.contains(&mark) && clear(bed.engine().store(), &mark).await.unwrap());
        }
        hours_pass(&mut bed, 60).await;
        assert!(is_there(&bed, &comment), "its post is there");
    }
}

/// The record of the put is in a lane of its own, whose batch fails until the stream drops it; all other records, the pulses
/// among them, are handled.
#[tokio::test]
async fn a_lane_that_is_given_up_while_the_others_handle_each_pulse_holds_a_cascade() {
    let mut bed = Bed::new();
    let comment = moved_post(&mut bed).await;
    put_again(&bed).await;
    let lane = bed.records();
    assert_eq!((hours_pass(&mut bed, 21).await, marks(bed.engine().store()).await.unwrap()), (0, vec![]));
    bed.fails(|call| {
        let is_of_table = matches!(call, Call::Write(write) if write.table == Table::Main);
        is_of_table.then(|| (Side::Before, Fault::Throttle([0].into())))
    });
    bed.clock.advance(INVOCATION_MS + 1);
    assert!(bed.handle(&lane).await.failed_from.is_some());
    bed.fails(|_| None);
    // It is given up here.
    assert_eq!(hours_pass(&mut bed, 60).await, 0);
    assert!(matches!(held_by(&bed).await[..], [HeldBy::PossibleLoss(_)]), "{:?}", held_by(&bed).await);
    assert!(is_there(&bed, &comment), "its post is there");
}

#[tokio::test]
async fn a_cascade_begins_while_the_functions_handle_each_pulse() {
    let mut bed = Bed::new();
    let comment = moved_post(&mut bed).await;
    assert_eq!(hours_pass(&mut bed, 24).await, 0);
    assert_eq!(held_by(&bed).await, []);
    assert_eq!(hours_pass(&mut bed, 2).await, 2);
    hours_pass(&mut bed, 30).await;
    assert_eq!((is_there(&bed, &comment), marks(bed.engine().store()).await.unwrap()), (false, vec![]));
}

/// A pause that the stream outlasts proves no loss, and what came before is handled when the functions work again.
#[tokio::test]
async fn a_short_pause_holds_a_cascade_until_the_next_pulse() {
    let mut bed = Bed::new();
    moved_post(&mut bed).await;
    hours_pass(&mut bed, 24).await;
    bed.clock.advance(PULSE_MS_MAX + 1);
    let swept_in_pause = swept(&bed).await;
    assert_eq!((swept_in_pause.n_begun, swept_in_pause.n_held), (0, 2));
    bed.settle().await;
    assert_eq!(marks(bed.engine().store()).await.unwrap(), []);
    assert_eq!(hours_pass(&mut bed, 1).await, 2);
}

/// Of what was before the first pulse nothing is known, until the settling time is over once more.
#[tokio::test]
async fn a_cascade_of_a_removal_before_the_first_pulse_waits_for_the_settling_time() {
    let mut bed = Bed::new();
    let post = [("AuthorId", "ann"), ("CreatedAt", "t"), ("PostId", "p")];
    let post = bed.put("Post", &post, &[("Status", "published")]).await;
    bed.settle().await;
    bed.delete(&post).await;
    bed.settle().await;
    bed.clock.advance(30 * HOUR_MS);
    assert_eq!(swept(&bed).await.n_begun, 0);
    assert_eq!(held_by(&bed).await, [HeldBy::NoPulse(0)]);
    assert_eq!(hours_pass(&mut bed, 20).await, 0);
    assert!(matches!(held_by(&bed).await[..], [HeldBy::YoungPulse(_)]));
    assert_eq!(hours_pass(&mut bed, 8).await, 2);
}

#[tokio::test]
async fn a_function_that_derives_nothing_by_looking_proves_nothing_by_a_pulse() {
    let mut bed = Bed::new().running(derive::family::Family::Additive);
    assert_eq!(swept(&bed).await, Swept::default());
    bed.settle().await;
    assert_eq!(bed.ledger("PULSE").len(), 0);
}

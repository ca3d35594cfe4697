//! Scripts of the overlap that a step of the protocol is for, where random runs seldom or never meet it.

use derive::{family::Family, write::Table};
use engine::{ledger::LedgerKind, protocol::ProtocolStep};
use store::faulty::{Call, Fault, Side};

use crate::{
    cases::{
        bed::{Bed, SETTLED_MS},
        cascades::moved_before_a_day_without_functions,
        exceptions::{
            delivered_after_exceptions_expired, delivered_after_its_counter_was_deleted, delivered_ahead_of_the_clock,
            redriven_after_an_earlier_release, redriven_after_it_came_again, redriven_before_a_late_call_lands,
        },
        guards::counter_repair,
        hot,
        occupied::vacated,
        single_records, spread,
        verification::repaired_beside_a_held_change,
        watermarks::{
            self, collected_beside_one_more_and_one_less, redriven_beside_an_older_invocation,
            redriven_beside_another_release, redriven_without_a_watermark,
        },
        windows,
    },
    mutant::SCRIPTED_STEPS,
};

/// How each script ends: with the step, and without it.
#[tokio::test]
async fn a_script_ends_wrong_without_its_step() {
    for step in SCRIPTED_STEPS {
        let (with, without) = (ends(*step, None).await, ends(*step, Some(*step)).await);
        let wanted = match step {
            ProtocolStep::RedriveWait
            | ProtocolStep::RedriveWaitLate
            | ProtocolStep::OneReader
            | ProtocolStep::RepairOnce
            | ProtocolStep::WholeRange
            | ProtocolStep::RedriveMark
            | ProtocolStep::ExceptionsKept
            | ProtocolStep::LeaveUnsure
            | ProtocolStep::YoungWithoutMark
            | ProtocolStep::HomeStays
            | ProtocolStep::ParkedWhereItCounts
            | ProtocolStep::AsksSatellites
            | ProtocolStep::YoungerThanOthers => (1, 2),
            ProtocolStep::SpreadingRequests => (2, 1),
            ProtocolStep::ProvenIn => (2, 3),
            ProtocolStep::ZeroRevision => (0, 1),
            ProtocolStep::NotAhead => (0, 2),
            _ => (1, 0),
        };
        assert_eq!((with, without), wanted, "{step:?}: {}", step.prevents());
    }
}

async fn ends(step: ProtocolStep, left_out: Option<ProtocolStep>) -> i64 {
    let bed = Bed::new().without(left_out);
    let marked = || watermarks::bed().without(left_out);
    match step {
        ProtocolStep::RedriveWait => redriven_beside_an_older_invocation(marked()).await,
        ProtocolStep::RedriveWaitLate => redriven_before_a_late_call_lands(marked()).await,
        ProtocolStep::OneReader | ProtocolStep::LeaveUnsure => redriven_beside_another_release(marked()).await,
        ProtocolStep::YoungWithoutMark => redriven_without_a_watermark(marked()).await.0,
        ProtocolStep::YoungerThanOthers => redriven_after_an_earlier_release(marked()).await,
        ProtocolStep::RedriveMark => delivered_after_its_counter_was_deleted(marked()).await,
        ProtocolStep::WholeRange => redriven_after_it_came_again(marked()).await,
        ProtocolStep::ExceptionsKept => delivered_after_exceptions_expired(marked()).await,
        ProtocolStep::ZeroRevision => collected_beside_one_more_and_one_less(marked()).await,
        ProtocolStep::ProvenIn => repaired_beside_a_held_change(bed.under(LedgerKind::Watermarks)).await,
        ProtocolStep::RepairOnce => repaired_again(&bed),
        ProtocolStep::LookupKey => renamed_before_it_is_found(bed).await,
        ProtocolStep::Vacated => i64::from(vacated(bed).await),
        ProtocolStep::SettleAgain => put_back_beside_a_cascade(bed).await,
        ProtocolStep::BackAndForth => single_records::comes_to_rest(left_out).await,
        ProtocolStep::NotAhead => delivered_ahead_of_the_clock(bed.running(Family::Additive)).await,
        ProtocolStep::Later => i64::from(windows::moves_by_itself(bed).await),
        ProtocolStep::StillFound => moved_before_the_index_follows(bed.lagging()).await,
        ProtocolStep::SpreadingRequests => spread::ends_before_it_shows(bed.under(LedgerKind::Watermarks)).await,
        ProtocolStep::HotWithFlag => hot::ends_before_it_shows(bed.under(LedgerKind::Watermarks)).await,
        ProtocolStep::PulseGap => moved_before_a_day_without_functions(bed).await,
        ProtocolStep::ParkedWhereItCounts => spread::parked_after_its_home_spread(marked()).await,
        ProtocolStep::HomeStays => spread::comes_again_after_its_home_went(marked()).await,
        ProtocolStep::AsksSatellites => spread::redriven_although_a_satellite_counts_it(marked()).await,
        _ => panic!("{step:?} has no script"),
    }
}

/// The answer of a repair is lost, and it is sent again: how often its one comment is counted.
fn repaired_again(bed: &Bed) -> i64 {
    let mut n_lost = 0;
    bed.fails(move |call| {
        let is_lost = matches!(call, Call::Transact(_)) && n_lost == 0;
        n_lost += u32::from(is_lost);
        is_lost.then_some((Side::After, Fault::Unanswered))
    });
    counter_repair(bed, "run").finish();
    bed.counted("comment-count")
}

/// A user is renamed while the index does not show one of the user's comments: does the comment have the new name at last?
async fn renamed_before_it_is_found(mut bed: Bed) -> i64 {
    let ann = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let id = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];
    let comment = bed.put("Comment", &id, &[("UserId", "ann")]).await;
    bed.set(&comment, "GSI1PK", "elsewhere").await;
    bed.settle().await;
    bed.set(&ann, "Name", "Anna").await;
    bed.settle().await;
    bed.set(&comment, "GSI1PK", "USER#ann").await;
    bed.settle().await;
    i64::from(bed.shown(&comment, "UserName") == "Anna")
}

/// A post comes back under another key while the cascade of its removal lists its comments, and nobody has handled the
/// record of that: is the comment there?
async fn put_back_beside_a_cascade(mut bed: Bed) -> i64 {
    let key = |author: &'static str| [("AuthorId", author), ("CreatedAt", "2024-01-15T10:30:00.000Z"), ("PostId", "p")];
    let post = bed.put("Post", &key("ann"), &[("Status", "published")]).await;
    let id = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];
    let comment = bed.put("Comment", &id, &[("UserId", "ann")]).await;
    bed.settle().await;
    bed.delete(&post).await;
    bed.settle().await;
    bed.clock.advance(SETTLED_MS);
    bed.put("Post", &key("bob"), &[("Status", "published")]).await;
    let held = bed.records();
    bed.sweep().await;
    bed.settle().await;
    let is_there = bed.has(&comment);
    bed.handle(&held).await;
    i64::from(is_there)
}

/// A member moves from a removed user to another one while the index does not follow: is it there after the cascade?
async fn moved_before_the_index_follows(mut bed: Bed) -> i64 {
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let [moved, left] = [("o", "ann"), ("q", "ann")].map(|(org, user)| [("OrgId", org), ("UserId", user)]);
    let [moved, left] = [bed.put("Member", &moved, &[]).await, bed.put("Member", &left, &[]).await];
    bed.settle().await;
    bed.index_follows();
    bed.delete(&user).await;
    bed.set(&moved, "GSI1PK", "USER#bob").await;
    bed.settle().await;
    bed.two_days_pass().await;
    let items = bed.memory().snapshot(Table::Main);
    assert!(!items.contains_key(&left), "nothing was deleted");
    i64::from(items.contains_key(&moved))
}

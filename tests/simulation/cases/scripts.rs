//! Guards and steps of the protocol whose overlap random runs seldom or never meet, one script each.
//!
//! The first writer stops just before its guarded write, the second one writes, and the first continues. Each script runs
//! twice: as it is, and with a service that does not send the guard or does not take the step. Then it must end wrong.

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, guard::Purpose, write::Table};
use engine::{
    batch::{HandleError, Handled},
    clock::Clock as _,
    jobs::JobOrder,
    ledger::{LedgerKind, claim, watermarks::KEPT_MS},
    limits::FanOutLimits,
    loss::{POSSIBLE_LOSS_MS, clear, marks},
    protocol::ProtocolStep,
    publishing::begin,
    registry::{Hold, RegistryWatch},
    sweep::{Bounds, Slice},
};
use expect_test::expect_file;
use keys::{counter::CounterKey, key::Key, value::whole_number};
use operate::{
    repair::remedy::{Repaired, Repairing},
    verify::Finding,
};
use store::faulty::{Call, Fault, Side};

use crate::{
    caller::{Gone, Task},
    cases::{
        Bed, COMMENT, SETTLED_MS, SHARD,
        cascades::moved_before_a_day_without_functions,
        comment, corrupt,
        exceptions::{
            delivered_after_exceptions_expired, delivered_after_its_counter_was_deleted, delivered_ahead_of_the_clock,
            redriven_after_an_earlier_release, redriven_after_it_came_again, redriven_before_a_late_call_lands,
        },
        single_records::{self, vacated, waits_again_before_the_entry_goes},
        spread, sums,
        verification::repaired_beside_a_held_change,
        watermarks::{
            self, collected_beside_one_more_and_one_less, redriven_beside_an_older_invocation,
            redriven_beside_another_release, redriven_without_a_watermark,
        },
    },
    items::n,
    mutant::{Mutant, SCRIPTED, SCRIPTED_STEPS},
};

/// How long an item differs before it has drifted, in milliseconds.
const DRIFT_WAIT_MS: u64 = 900_000;

/// How each script ends: with the guard, and without it.
#[tokio::test]
async fn a_script_ends_wrong_without_its_guard() {
    let mut ends = Vec::new();
    for purpose in SCRIPTED {
        ends.push(both_ends(*purpose).await);
    }
    expect_file!["guards.txt"].assert_eq(&ends.concat());
}

#[test]
fn each_purpose_has_a_script_or_is_searched_for() {
    for purpose in Purpose::ALL {
        let is_searched_for = Mutant::all().contains(&Mutant::Unguarded(*purpose));
        assert_ne!(is_searched_for, SCRIPTED.contains(purpose), "{purpose:?}");
    }
}

async fn both_ends(purpose: Purpose) -> String {
    let (with, without) = (end(purpose, Bed::new()).await, end(purpose, Bed::new().unguarded(purpose)).await);
    assert_ne!(with, without, "{purpose:?} prevents nothing here");
    format!("{purpose:?}\n    with it    {with}\n    without it {without}\n")
}

/// How the script of a purpose ends.
async fn end(purpose: Purpose, bed: Bed) -> String {
    match purpose {
        Purpose::LedgerKind => ledger_kind(&bed).await,
        Purpose::NewJob => new_job(bed).await,
        Purpose::MirrorType => mirror_type(bed).await,
        Purpose::KeyWait => format!("the mirror is created: {}", waits_again_before_the_entry_goes(bed).await),
        Purpose::OwnerAbsent => owner_absent(bed).await,
        Purpose::StillTheirs => still_theirs(bed).await,
        Purpose::OldWatermark => old_watermark(bed).await,
        Purpose::Spread => spread::with_another_number(bed).await,
        Purpose::Exception => exception(bed).await,
        Purpose::Shown => shown(bed).await,
        Purpose::Wait => wait(bed).await,
        Purpose::IndexKeys => index_keys(&bed).await,
        Purpose::CounterType => counter_type(&bed),
        Purpose::RepairRight => repair_right(&bed),
        Purpose::StillZero => still_zero(bed).await,
        Purpose::DroppedCounter => dropped_counter(&bed).await,
        Purpose::Listed => listed(bed).await,
        Purpose::LossMark => loss_mark(bed).await,
        Purpose::Registry => registry(&bed).await,
        Purpose::SweepRound => sweep_round(bed).await,
        Purpose::Clock => sums::clock_is_set_back(bed).await,
        Purpose::Suspect => suspect(bed).await,
        _ => panic!("{purpose:?} has no script"),
    }
}

/// A task that can be stopped.
fn task<T>(future: impl Future<Output = T> + 'static) -> Task<T> {
    Task::new(&Gone::default(), future)
}

/// A user comes back just before what belonged to the user is deleted.
async fn owner_absent(mut bed: Bed) -> String {
    let (subscription, mut deleting) = at_deletion(&mut bed, Purpose::OwnerAbsent).await;
    bed.put("User", &[("UserId", "ann")], &[]).await;
    deleting.finish().unwrap().unwrap();
    let is_there = bed.has(&subscription);
    format!("the subscription of a user who came back is {}", if is_there { "there" } else { "deleted" })
}

/// The application writes a subscription just before it is deleted with its user.
async fn still_theirs(mut bed: Bed) -> String {
    let (subscription, mut deleting) = at_deletion(&mut bed, Purpose::StillTheirs).await;
    bed.set(&subscription, "Plan", "yearly").await;
    deleting.finish().unwrap().unwrap();
    let is_there = bed.has(&subscription);
    format!("the subscription that was just written is {}", if is_there { "there" } else { "deleted" })
}

/// The subscription of a removed user, and an invocation that stops just before it deletes it, by this guard.
async fn at_deletion(bed: &mut Bed, purpose: Purpose) -> (Key, Task<Result<Handled, HandleError>>) {
    let subscription = bed.removed_user().await;
    // It lists what belongs to the user, and waits for the second time.
    bed.days_pass(1).await;
    bed.a_day_passes().await;
    let records = bed.records();
    let mut deleting = bed.start(&bed.event(&records));
    bed.stops_before(&mut deleting, purpose);
    (subscription, deleting)
}

/// A counter's watermark moves while a function of another shard takes it for old.
async fn old_watermark(bed: Bed) -> String {
    let mut bed = bed.under(LedgerKind::Watermarks).running(Family::Additive);
    let first = bed.memberships([("ann".into(), "g".into())]).await;
    bed.handle(&first).await;
    bed.clock.advance(KEPT_MS + 3 * 60_000);
    let others = bed.memberships([("bob".into(), "g".into())]).await;
    let mut other = bed.start(&bed.event(&others).replace(SHARD, "shardId-other"));
    bed.stops_before(&mut other, Purpose::OldWatermark);
    let more = bed.memberships([("cleo".into(), "g".into())]).await;
    bed.handle(&more).await;
    other.finish().unwrap().unwrap();
    bed.handle(&more).await;
    format!("{} of 3 members are counted", bed.counted("member-count"))
}

/// What one function counted is to be shown when another has shown a later count. Nobody has handled the group's record yet.
async fn shown(bed: Bed) -> String {
    let mut bed = bed.under(LedgerKind::Watermarks);
    let group = bed.put_settled("Group", &[("GroupId", "g")], &[]).await;
    let first = bed.memberships([("ann".into(), "g".into())]).await;
    let mut one = bed.start(&bed.event(&first).replace(SHARD, "shardId-other"));
    bed.stops_before(&mut one, Purpose::Shown);
    let second = bed.memberships([("bob".into(), "g".into())]).await;
    bed.handle(&second).await;
    one.finish().unwrap().unwrap();
    format!("the group shows {} of 2 members", bed.shown(&group, "MemberCount"))
}

/// The call that parks a record lands when another has parked it and an operator has redriven it.
async fn exception(bed: Bed) -> String {
    let mut bed = bed.under(LedgerKind::Watermarks).running(Family::Additive);
    let mut records = bed.memberships([("ann".into(), "g".into())]).await;
    let whole = records[0].to_string();
    corrupt(&mut records[0], "NewImage");
    bed.fails(|call| matches!(call, Call::Transact(_)).then_some((Side::Before, Fault::Late)));
    assert!(bed.start(&bed.event(&records)).finish().is_none(), "it dies");
    bed.fails(|_| None);
    bed.handle(&records).await;
    for is_landed in [false, true] {
        if is_landed {
            bed.land();
        }
        bed.put_true(&whole);
        bed.clock.advance(32 * 60_000);
        bed.redrive_all().await;
    }
    format!("{} of 1 members is counted", bed.counted("member-count"))
}

/// Two functions start on an empty ledger, each configured for another kind.
async fn ledger_kind(bed: &Bed) -> String {
    let (store, layout) = (bed.store(), bed.schema.layout.clone());
    let mut first = task(async move { claim(&store, &layout, LedgerKind::Receipts).await.is_ok() });
    bed.stops_before(&mut first, Purpose::LedgerKind);
    let second = claim(&bed.store(), &bed.schema.layout, LedgerKind::Watermarks).await.is_ok();
    let n_started = [first.finish().unwrap(), second].into_iter().filter(|is_started| *is_started).count();
    format!("{n_started} of 2 functions start")
}

/// An invocation times out as it begins a job, and its write lands late. The next attempt begins the job before that.
async fn new_job(bed: Bed) -> String {
    let limits = FanOutLimits {
        direct_max: 2,
        page_items: 2,
        page_ms: 0,
        page_ms_max: 0,
        page_beside_ms: 0,
        ..FanOutLimits::default()
    };
    let mut bed = bed.fanning(limits);
    let mut follows = Vec::new();
    for (number, bob) in (0..9).flat_map(|number| ["bob", "rob"].map(|bob| (number, bob))) {
        bed.put("User", &[("UserId", bob)], &[("Name", "first")]).await;
        let fields = [("FollowerId", &*format!("u{number}")), ("FolloweeId", bob)];
        follows.push(bed.put("Follow", &fields, &[]).await);
    }
    bed.settle().await;
    let named = |bed: &Bed, user: &str, name| {
        let follows = follows.iter().filter(|follow| follow.sk.ends_with(user));
        follows.filter(|follow| bed.shown(follow, "FolloweeName") == name).count()
    };
    assert_eq!((named(&bed, "bob", "first"), named(&bed, "rob", "first")), (9, 9));

    let bob = Key::new("USER#bob", "PROFILE");
    begun_twice(&mut bed, &bob).await;
    bed.goes_on().await;
    assert_eq!(named(&bed, "bob", "second"), 2, "the first page is done");
    // Bob takes his old name. The second page finds that name, which its follows hold already.
    let records = bed.records();
    bed.set(&bob, "Name", "first").await;
    let mut page = bed.start(&bed.event(&records));
    bed.stops_before(&mut page, Purpose::Job);
    // The job must continue to the end, and then from the start.
    bed.set(&bob, "Name", "third").await;
    bed.goes_on().await;
    bed.land();
    bed.goes_on().await;
    page.finish();
    bed.settle().await;

    begun_twice(&mut bed, &Key::new("USER#rob", "PROFILE")).await;
    let engine = bed.engine();
    let jobs = engine::jobs::sweep::jobs(engine.store(), &engine.schema().layout);
    let [job] = &*jobs.await.unwrap() else { panic!("it is the only job") };
    bed.engine().order(job, JobOrder::Pause, bed.deadline_ms()).await.unwrap();
    bed.land();
    bed.settle().await;
    let (n_third, n_second) = (named(&bed, "bob", "third"), named(&bed, "rob", "second"));
    format!("{n_third} of 9 follows have the newest name, and {n_second} the name of a fan-out that was paused")
}

/// A user is renamed. The first attempt dies while its write that begins the job is late, and the second begins the job.
async fn begun_twice(bed: &mut Bed, user: &Key) {
    bed.set(user, "Name", "second").await;
    let records = bed.records();
    let renamed = bed.event(&records);
    bed.writes_fail(Fault::Late, |key| key.pk.starts_with("JOBS#"));
    assert!(bed.start(&renamed).finish().is_none());
    bed.fails(|_| None);
    bed.try_handle(&renamed).await.unwrap();
}

/// A follow goes while its mirror is about to be made, changed or removed, and the application takes the mirror's key.
async fn mirror_type(mut bed: Bed) -> String {
    let mut kept = Vec::new();
    for what in ["made", "changed", "removed"] {
        let fields = [("FollowerId", what), ("FolloweeId", "bob")];
        if what != "made" {
            bed.put_settled("Follow", &fields, &[]).await;
        }
        let follow = bed.put("Follow", &fields, &[("Note", "new")]).await;
        if what == "removed" {
            bed.settle().await;
            bed.delete(&follow).await;
        }
        let records = bed.records();
        let mut late = bed.start(&bed.event(&records));
        bed.stops_before(&mut late, Purpose::MirrorType);
        bed.delete(&follow).await;
        let mirror = Key::new("USER#bob", format!("FOLLOWER#{what}"));
        let gadget = bed.put_raw(&mirror, "Gadget", []);
        late.finish();
        bed.settle().await;
        kept.push(bed.item(&mirror) == Some(gadget));
    }
    format!("the application's items at a mirror that is made, changed, removed are there: {kept:?}")
}

/// Two sweepers start a cascade whose first wait is over.
async fn wait(mut bed: Bed) -> String {
    let subscription = bed.removed_user().await;
    bed.clock.advance(SETTLED_MS);
    let engine = bed.sweeper();
    let mut late = task(async move { engine.sweep(|_| true, u64::MAX).await.unwrap() });
    bed.stops_before(&mut late, Purpose::Wait);
    assert_eq!(bed.sweep().await.n_begun, 1);
    // It lists what belongs to the user, and waits for the second time.
    bed.settle().await;
    late.finish();
    bed.settle().await;
    let is_there = bed.has(&subscription);
    format!("the subscription is {} before the second wait is over", if is_there { "there" } else { "deleted" })
}

/// A repair of an item, by a finding of this derivation.
fn repair(bed: &Bed, derivation: &str, key: &Key) -> Task<Repaired> {
    let (derivation, Key { pk, sk }) = (derivation.to_owned(), key.clone());
    let finding = Finding { derivation, pk, sk, stored: None, derived: None, flaw: None };
    let (engine, deadline_ms) = (bed.engine(), bed.deadline_ms());
    task(async move { Repairing::new(&engine).repair(&finding, "run", deadline_ms).await.unwrap() })
}

/// The application renames a folder while its index keys are repaired.
async fn index_keys(bed: &Bed) -> String {
    let put = async |name| bed.put("Folder", &[("FolderId", "f")], &[("Name", name), ("ParentId", "top")]).await;
    let folder = put("old").await;
    bed.set(&folder, "GSI1SK", "by hand").await;
    let mut repair = repair(bed, "index keys", &folder);
    bed.stops_before(&mut repair, Purpose::IndexKeys);
    put("new").await;
    repair.finish();
    format!("the folder {} stands at {}", bed.shown(&folder, "Name"), bed.shown(&folder, "GSI1SK"))
}

/// The counter of a post's comments.
fn comment_counter() -> Key {
    let target = Key::new("POST#p", "METADATA");
    CounterKey::home(target, "comment-count").key().unwrap()
}

/// A run that repairs it, since one comment is not counted.
fn counter_repair(bed: &Bed, run: &'static str) -> Task<Repaired> {
    let Key { pk, sk } = comment_counter();
    let derived = Some([("Value".to_owned(), n("1"))].into_iter().collect());
    let finding = Finding { derivation: "comment-count".to_owned(), pk, sk, stored: None, derived, flaw: None };
    let (engine, deadline_ms) = (bed.engine(), bed.deadline_ms());
    task(async move {
        let repairing = Repairing::new(&engine);
        repairing.begin_repair(run, deadline_ms).await.unwrap();
        repairing.repair(&finding, run, deadline_ms).await.unwrap()
    })
}

/// Two runs found that a comment is not counted.
fn repair_right(bed: &Bed) -> String {
    let mut one = counter_repair(bed, "one");
    bed.stops_before(&mut one, Purpose::RepairRight);
    counter_repair(bed, "two").finish();
    one.finish();
    format!("{} of 1 comments is counted", bed.counted("comment-count"))
}

/// The application takes the key of a counter while a repair adds to it.
fn counter_type(bed: &Bed) -> String {
    let counter = comment_counter();
    let mut repair = counter_repair(bed, "run");
    bed.stops_before(&mut repair, Purpose::CounterType);
    bed.put_raw(&counter, "Gadget", []);
    let is_done = repair.finish() == Some(Repaired::Done);
    format!("the repair is done: {is_done}; under the counter's key is a {}", bed.shown(&counter, "EntityType"))
}

/// An instance of the old version still counts while a counter of a dropped derivation is deleted.
async fn dropped_counter(bed: &Bed) -> String {
    let mut derivations = catalogue::derivations();
    let comments = derivations.iter().find(|derivation| derivation.name == "comment-count").unwrap();
    derivations.push(Derivation { name: "old-count".to_owned(), ..comments.clone() });
    let old = Catalogue::new(&bed.schema, derivations).unwrap();
    begin(&bed.store(), &bed.schema, &old, bed.clock.now_ms()).await.unwrap();
    let new = bed.engine().watching(RegistryWatch::publishing(0, Hold::default()));
    new.publish(bed.deadline_ms()).await.unwrap();
    let target = Key::new("POST#p", "METADATA");
    let counter = CounterKey::home(target, "old-count").key().unwrap();
    bed.put_raw(&counter, "Counter", [("Value", n("3"))]);
    let mut repair = repair(bed, "old-count", &counter);
    bed.stops_before(&mut repair, Purpose::DroppedCounter);
    bed.set(&counter, "Value", "N:4").await;
    repair.finish();
    format!("the counter says '{}'", bed.shown(&counter, "Value"))
}

/// An item is mended while it is listed as unreadable.
async fn listed(mut bed: Bed) -> String {
    let key = bed.put("Comment", &comment("c"), &[("UserId", "N:7")]).await;
    let records = bed.records();
    let mut late = bed.start(&bed.event(&records));
    bed.stops_before(&mut late, Purpose::Listed);
    bed.set_settled(&key, "UserId", "ann").await;
    late.finish();
    bed.settle().await;
    format!("{} readable items are listed as unreadable", bed.ledger("UNREADABLE").len())
}

/// A late batch arrives during a verification that will find nothing.
async fn loss_mark(mut bed: Bed) -> String {
    let late_batch = async |bed: &mut Bed, id| {
        bed.put("Comment", &comment(id), &[]).await;
        let records = bed.records();
        bed.clock.advance(POSSIBLE_LOSS_MS);
        bed.handle(&records).await;
    };
    late_batch(&mut bed, "c").await;
    let before = marks(&bed.store()).await.unwrap();
    late_batch(&mut bed, "d").await;
    for mark in &before {
        clear(&bed.store(), mark).await.unwrap();
    }
    format!("{} of {} marks are left", marks(&bed.store()).await.unwrap().len(), before.len())
}

/// Two instances register. One may run on longer without looking at the registry.
async fn registry(bed: &Bed) -> String {
    begin(&bed.store(), &bed.schema, &bed.catalogue, bed.clock.now_ms()).await.unwrap();
    let holding = |hold_ms| bed.engine().watching(RegistryWatch::publishing(1_000, Hold { hold_ms, margin_ms: 0 }));
    let (short, long, deadline_ms) = (holding(2_000), holding(60_000), bed.deadline_ms());
    let mut short = task(async move { short.publish(deadline_ms).await.unwrap() });
    bed.stops_before(&mut short, Purpose::Registry);
    long.publish(deadline_ms).await.unwrap();
    short.finish();
    let run_on_ms = bed.ledger("CATALOGUE").into_iter();
    let run_on_ms: Vec<i64> = run_on_ms.filter_map(|item| item.get("HoldMs").and_then(whole_number)).collect();
    format!("an instance may run on for {run_on_ms:?} milliseconds, by family")
}

/// A run of the sweep.
fn sweep(bed: &Bed, n_items_max: usize) -> Task<Slice> {
    let (engine, clock) = (bed.sweeper(), bed.clock.clone());
    let bounds = Bounds { n_items_max, deadline_ms: bed.deadline_ms() };
    let is_past = move |noted_at_ms| clock.now_ms() - noted_at_ms >= DRIFT_WAIT_MS;
    task(async move { engine.sweep_slice(bounds, is_past).await.unwrap() })
}

/// A member joins while the group's counter of zero is deleted.
async fn still_zero(mut bed: Bed) -> String {
    let member = bed.put_settled("Membership", &[("UserId", "ann"), ("GroupId", "g")], &[]).await;
    bed.delete_settled(&member).await;
    let mut sweep = sweep(&bed, usize::MAX);
    bed.stops_before(&mut sweep, Purpose::StillZero);
    let joined = bed.memberships([("bob".into(), "g".into())]).await;
    bed.handle(&joined).await;
    sweep.finish();
    format!("{} of 1 members is counted", bed.counted("member-count"))
}

/// Comments of a post, all right.
async fn commented(bed: &mut Bed) -> Vec<Key> {
    let mut comments = Vec::new();
    for id in ["a", "b", "c", "d"] {
        comments.push(bed.put("Comment", &comment(id), &[]).await);
    }
    bed.settle().await;
    comments
}

/// A run of the sweep has read the first item when another one ends the round.
async fn sweep_round(mut bed: Bed) -> String {
    let comments = commented(&mut bed).await;
    let mut late = sweep(&bed, 1);
    bed.stops_before(&mut late, Purpose::SweepRound);
    assert!(sweep(&bed, usize::MAX).finish().unwrap().round_ms.is_some());
    late.finish();
    bed.set(&comments[0], "UserName", "by hand").await;
    let second = sweep(&bed, usize::MAX).finish().unwrap();
    assert!(second.round_ms.is_some());
    let n_items = bed.memory().snapshot(Table::Main).len();
    format!("the next round compares {} of {n_items} items and notes {} suspects", second.n_items, second.n_suspects)
}

/// A run of the sweep finds that a suspect is in step, and then another run finds that it differs again.
async fn suspect(mut bed: Bed) -> String {
    let comments = commented(&mut bed).await;
    let last = comments.last().unwrap();
    bed.set(last, "UserName", "by hand").await;
    assert_eq!(sweep(&bed, usize::MAX).finish().unwrap().n_suspects, 1);
    bed.clock.advance(DRIFT_WAIT_MS);
    bed.put("Comment", &comment("d"), &[]).await;
    let mut late = sweep(&bed, 1);
    bed.stops_before(&mut late, Purpose::Suspect);
    bed.set(last, "UserName", "by another hand").await;
    assert_eq!(sweep(&bed, 1).finish().unwrap().n_suspects, 1);
    late.finish();
    bed.clock.advance(DRIFT_WAIT_MS);
    let is_reported = |slice: Slice, key: &Key| slice.drifts.iter().any(|drift| drift.item == *key);
    let again = is_reported(sweep(&bed, 1).finish().unwrap(), last);

    // Every round finds this one, and each round is shorter than the waiting time.
    assert!(sweep(&bed, usize::MAX).finish().unwrap().round_ms.is_some());
    bed.set(&comments[0], "UserName", "by hand").await;
    for wait_ms in [DRIFT_WAIT_MS - 1, 1] {
        assert!(sweep(&bed, usize::MAX).finish().unwrap().round_ms.is_some());
        bed.clock.advance(wait_ms);
    }
    let steady = is_reported(sweep(&bed, usize::MAX).finish().unwrap(), &comments[0]);
    format!("what differs again is reported in time: {again}; what differs all the time: {steady}")
}

// ---- Steps ----

/// How each script ends: with the step, and without it.
#[tokio::test]
async fn a_script_ends_wrong_without_its_step() {
    for step in SCRIPTED_STEPS {
        let (with, without) = (step_ends(*step, None).await, step_ends(*step, Some(*step)).await);
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

async fn step_ends(step: ProtocolStep, left_out: Option<ProtocolStep>) -> i64 {
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
        ProtocolStep::Later => i64::from(sums::moves_by_itself(bed).await),
        ProtocolStep::StillFound => moved_before_the_index_follows(bed.lagging()).await,
        ProtocolStep::SpreadingRequests => spread::ends_before_it_shows(bed.under(LedgerKind::Watermarks)).await,
        ProtocolStep::HotWithFlag => spread::ends_while_hot(bed.under(LedgerKind::Watermarks)).await,
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
    let comment = bed.put("Comment", &COMMENT, &[("UserId", "ann")]).await;
    bed.set_settled(&comment, "GSI1PK", "elsewhere").await;
    bed.set_settled(&ann, "Name", "Anna").await;
    bed.set_settled(&comment, "GSI1PK", "USER#ann").await;
    i64::from(bed.shown(&comment, "UserName") == "Anna")
}

/// A post comes back under another key while the cascade of its removal lists its comments, and nobody has handled the
/// record of that: is the comment there?
async fn put_back_beside_a_cascade(mut bed: Bed) -> i64 {
    let key = |author: &'static str| [("AuthorId", author), ("CreatedAt", "2024-01-15T10:30:00.000Z"), ("PostId", "p")];
    let post = bed.put("Post", &key("ann"), &[("Status", "published")]).await;
    let comment = bed.put_settled("Comment", &COMMENT, &[("UserId", "ann")]).await;
    bed.delete_settled(&post).await;
    bed.clock.advance(SETTLED_MS);
    bed.put("Post", &key("bob"), &[("Status", "published")]).await;
    let stored = bed.records();
    bed.sweep().await;
    bed.settle().await;
    let is_there = bed.has(&comment);
    bed.handle(&stored).await;
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
    bed.set_settled(&moved, "GSI1PK", "USER#bob").await;
    bed.days_pass(2).await;
    let items = bed.memory().snapshot(Table::Main);
    assert!(!items.contains_key(&left), "nothing was deleted");
    i64::from(items.contains_key(&moved))
}

//! Single verifications: what is reported as undecided or unproven, and what is found beside differences.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use derive::write::Table;
use engine::{ledger::LedgerKind, limits::FanOutLimits, record::event::Lane};
use operate::verify::{
    AtRest, Extent, Finding, Following, Nothing, Retained, Scope, ShardRecords, VerifyEvent, Why,
    run::{Limits, Verification},
    scan::WINDOW_BYTES,
};

use keys::{item::Item, key::Key};
use operate::repair::remedy::{Repaired, Repairing};
use serde_json::Value;
use store::memory::MemoryStore;
use support::{clock::ManualClock, record::STREAM_ARN};

use crate::{
    cases::bed::{Bed, SHARD, without_new_image},
    tallies::MemoryTallies,
    world::{AllAtOnce, EventList},
};

/// Functions with this progress, and a record that arrives again and again.
struct Beside {
    is_handled: Option<bool>,
    record: Option<String>,
}

impl Following for Beside {
    fn records(&self) -> Vec<ShardRecords> {
        self.record.iter().map(|record| of_shard(vec![record.clone()])).collect()
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        self.is_handled
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(Nothing)
    }
}

/// Records of the shard that all records are of.
fn of_shard(records: Vec<String>) -> ShardRecords {
    let lane = Lane { stream_arn: Some(STREAM_ARN.to_owned()), shard: Some(SHARD.to_owned()) };
    ShardRecords { lane: Arc::new(lane), records }
}

pub(super) async fn verified(bed: &Bed, following: &dyn Following) -> (Vec<VerifyEvent>, Extent) {
    verified_in(bed, following, WINDOW_BYTES).await
}

/// The same with windows of this size.
async fn verified_in(bed: &Bed, following: &dyn Following, window_bytes: usize) -> (Vec<VerifyEvent>, Extent) {
    let (engine, mut tallies, mut events) = (bed.engine(), MemoryTallies::default(), EventList::default());
    let limits = Limits { segments: 1, wait_ms: 100, window_bytes };
    let verification = Verification::new(&engine, following, &mut tallies, &mut events, limits, Scope::default());
    let extent = verification.run().await.unwrap();
    drop(verification);
    (events.0, extent)
}

/// Ann follows Bob, and her following count is set to this value.
async fn followed(counted: &str) -> (Bed, String) {
    let mut bed = Bed::new();
    for id in ["ann", "bob"] {
        bed.put("User", &[("UserId", id)], &[("Name", id)]).await;
    }
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    let records = bed.records();
    let record = records.last().unwrap().to_string();
    bed.handle(&records).await;
    bed.settle().await;
    bed.set(&Key::new("USER#ann", "PROFILE#COUNT#following-count#00"), "Value", counted).await;
    (bed, record)
}

#[tokio::test]
async fn a_mirror_that_two_living_items_claim_is_a_flaw() {
    let mut bed = Bed::new();
    for author in ["ann", "bob"] {
        let key = [("AuthorId", author), ("CreatedAt", "2024-01-15T10:30:00.000Z"), ("PostId", "p")];
        bed.put("Post", &key, &[("Status", "published")]).await;
    }
    bed.settle().await;
    let (events, extent) = verified(&bed, &AtRest).await;
    let flaws: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            VerifyEvent::Finding(finding, _) if finding.pk == "POST#p" => finding.flaw.as_deref(),
            _ => None,
        })
        .collect();
    assert!(extent.is_proven);
    assert_eq!(flaws.len(), 1, "{events:?}");
    assert!(flaws[0].starts_with("several items claim it, and the last of them has it: USER#ann"), "{flaws:?}");
}

#[tokio::test]
async fn an_item_whose_path_a_parked_removal_above_it_would_change_waits() {
    let mut bed = Bed::new();
    let above = bed.put("Employee", &[("OrgId", "o"), ("EmployeeId", "m")], &[]).await;
    bed.put("Employee", &[("OrgId", "o"), ("EmployeeId", "c")], &[("ManagerId", "m")]).await;
    bed.settle().await;
    bed.delete(&above).await;
    let mut records = bed.records();
    let whole = records[0].clone();
    records[0]["dynamodb"]["OldImage"] = serde_json::json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    bed.settle().await;
    // It can be read again since then, and waits for a redrive.
    bed.put_true(&whole.to_string());
    let (events, _) = verified(&bed, &AtRest).await;
    for sk in ["EMPLOYEE#c", "EMP#/m"] {
        let of_it = |event: &&VerifyEvent| matches!(event, VerifyEvent::Waiting(it) | VerifyEvent::Finding(it, _) if it.sk == sk);
        let of_it: Vec<&VerifyEvent> = events.iter().filter(of_it).collect();
        assert!(matches!(of_it[..], [VerifyEvent::Waiting(_)]), "{sk}: {events:?}");
    }
}

#[tokio::test]
async fn a_count_that_is_equal_while_its_sources_change_all_the_time_is_unproven() {
    let (bed, record) = followed("N:1").await;
    let (events, _) = verified(&bed, &Beside { is_handled: Some(true), record: Some(record) }).await;
    let unproven =
        events.iter().filter(|event| matches!(event, VerifyEvent::Unproven(it) if it.derivation == "following-count"));
    assert_eq!(unproven.count(), 1, "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, VerifyEvent::Finding(..))), "{events:?}");
}

#[tokio::test]
async fn nothing_is_decided_and_nothing_proven_while_the_functions_are_behind_or_nobody_knows() {
    let (bed, _) = followed("N:7").await;
    for (is_handled, wanted) in [(Some(false), Why::Behind), (None, Why::Unknown)] {
        let (events, extent) = verified(&bed, &Beside { is_handled, record: None }).await;
        let whys: Vec<Why> = events
            .iter()
            .filter_map(|event| match event {
                VerifyEvent::Undecided(finding, why) if finding.derivation == "following-count" => Some(*why),
                _ => None,
            })
            .collect();
        assert_eq!((whys, extent.is_proven), (vec![wanted], false), "{events:?}");
    }
    let (events, extent) = verified(&bed, &Beside { is_handled: Some(true), record: None }).await;
    let found =
        events.iter().any(|event| matches!(event, VerifyEvent::Finding(it, _) if it.derivation == "following-count"));
    assert_eq!((found, extent.is_proven), (true, true), "{events:?}");
}

/// A follow has the name of a user who is gone. The mirror that leads to it is made only now, and its record will correct
/// the name.
#[tokio::test]
async fn a_copy_is_undecided_while_the_mirror_by_which_it_is_found_changes() {
    let (mut bed, _) = followed("N:1").await;
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "gone")], &[("FolloweeName", "Gone")]).await;
    bed.records();
    let mirror = bed.put("Follower", &[("FollowerId", "ann"), ("FolloweeId", "gone")], &[]).await;
    let record = bed.records().pop().unwrap().to_string();
    let of_name = |events: Vec<VerifyEvent>| -> Vec<VerifyEvent> {
        let is_it = |event: &VerifyEvent| matches!(event, VerifyEvent::Finding(it, _) | VerifyEvent::Undecided(it, _) if it.derivation == "followee-name");
        events.into_iter().filter(is_it).collect()
    };
    let (events, _) = verified(&bed, &Beside { is_handled: Some(true), record: Some(record) }).await;
    let told = of_name(events);
    assert!(matches!(told[..], [VerifyEvent::Undecided(_, Why::Changing)]), "{mirror} {told:?}");
    let (events, _) = verified(&bed, &Beside { is_handled: Some(true), record: None }).await;
    let told = of_name(events);
    assert!(matches!(&told[..], [VerifyEvent::Finding(it, _)] if it.sk == follow.sk), "{told:?}");
}

/// From the first comparison on, somebody else begins to follow with every look at the stream, and none is counted yet.
/// Time passes between the rounds of the verification.
struct Newcomers {
    clock: ManualClock,
    record: String,
    n_seen: AtomicUsize,
}

impl Following for Newcomers {
    fn records(&self) -> Vec<ShardRecords> {
        let nth = match self.n_seen.load(Ordering::Relaxed) {
            0 => return Vec::new(),
            _ => self.n_seen.fetch_add(1, Ordering::Relaxed),
        };
        vec![of_shard(vec![self.record.replace("ann", &format!("newcomer{nth}"))])]
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        self.n_seen.fetch_max(1, Ordering::Relaxed);
        self.clock.advance(1_000);
        Some(true)
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(Nothing)
    }
}

#[tokio::test]
async fn what_only_began_while_counts_were_compared_is_not_undecided() {
    let (bed, record) = followed("N:7").await;
    let newcomers = Newcomers { clock: bed.clock.clone(), record, n_seen: AtomicUsize::new(0) };
    let (events, _) = verified(&bed, &newcomers).await;
    assert!(newcomers.n_seen.load(Ordering::Relaxed) > 3, "somebody wrote meanwhile");
    // Whom all of them follow is counted all the time.
    let undecided =
        |event: &&VerifyEvent| matches!(event, VerifyEvent::Undecided(it, _) if it.derivation == "following-count");
    assert_eq!(events.iter().find(undecided), None);
    let found =
        events.iter().any(|event| matches!(event, VerifyEvent::Finding(it, _) if it.derivation == "following-count"));
    assert!(found, "{events:?}");
}

/// A post's cascade deletes its counter, and views outlive their post: so what the views show is no bound.
#[tokio::test]
async fn a_view_count_is_never_reported_and_its_display_is_compared_with_it() {
    let mut bed = Bed::new();
    let post = [("AuthorId", "ann"), ("CreatedAt", "2024-01-15T10:30:00.000Z"), ("PostId", "p")];
    bed.put("Post", &post, &[("Status", "published")]).await;
    for at in ["2024-01-15T11:00:00.000Z", "2024-01-15T12:00:00.000Z"] {
        bed.put("View", &[("UserId", "bob"), ("ViewedAt", at), ("PostId", "p")], &[]).await;
    }
    bed.settle().await;
    assert_eq!(bed.shown(&Key::new("POST#p", "METADATA"), "ViewCount"), "2");
    let counters = bed.memory().snapshot(Table::Main).into_keys();
    let counters: Vec<Key> = counters.filter(|key| key.sk.contains("#COUNT#view-count#")).collect();
    for value in ["N:1", "N:9"] {
        bed.set(&counters[0], "Value", value).await;
        let (events, extent) = verified(&bed, &AtRest).await;
        let found = events.iter().filter_map(|event| match event {
            VerifyEvent::Finding(finding, _) => Some(finding.derivation.as_str()),
            _ => None,
        });
        assert_eq!(found.collect::<Vec<_>>(), ["view-count-display"], "{events:?}");
        assert!(extent.is_proven);
    }
}

/// The real AWS: the functions' progress is what somebody typed, and what the stream still holds can be read again.
struct OnAws {
    retained: Vec<String>,
}

impl OnAws {
    fn holding(records: &[Value]) -> Self {
        Self { retained: records.iter().map(ToString::to_string).collect() }
    }
}

impl Following for OnAws {
    fn records(&self) -> Vec<ShardRecords> {
        Vec::new()
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        Some(true)
    }

    fn is_typed(&self) -> bool {
        true
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(AllAtOnce(vec![of_shard(self.retained.clone())]))
    }
}

/// What a repair finds of following counts, and what it does.
async fn repaired(bed: &Bed, following: &dyn Following, run: &str) -> Vec<String> {
    let engine = bed.engine();
    let (repairing, deadline_ms) = (Repairing::new(&engine), engine.clock().now_ms() + 60_000);
    repairing.begin_repair(run, deadline_ms).await.unwrap();
    let mut done = Vec::new();
    for event in verified(bed, following).await.0 {
        match event {
            VerifyEvent::Finding(finding, _) if finding.derivation == "following-count" => {
                let repaired = repairing.repair(&finding, run, deadline_ms).await.unwrap();
                done.push(if repaired == Repaired::Done { "added".to_owned() } else { format!("{repaired:?}") });
            }
            VerifyEvent::Undecided(finding, why) if finding.derivation == "following-count" => {
                done.push(why.to_string());
            }
            _ => {}
        }
    }
    done
}

/// The brake holds one shard, and the others are handled within a second. The operator reads an iterator age that is
/// small, and repairs; then the shard catches up.
#[tokio::test]
async fn a_count_of_which_a_change_is_held_is_not_repaired_whatever_age_is_typed() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        held_and_repaired(Bed::new().under(ledger)).await;
    }
}

/// The records of two follows, the first of them handled, and the record of the second.
async fn follows_of_which_one_is_held(bed: &mut Bed) -> (Vec<Value>, Vec<Value>) {
    for id in ["ann", "bob", "cat"] {
        bed.put("User", &[("UserId", id)], &[("Name", id)]).await;
    }
    bed.settle().await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    let mut all = bed.records();
    bed.handle(&all).await;
    bed.settle().await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "cat")], &[]).await;
    let held = bed.records();
    all.extend(held.clone());
    (all, held)
}

/// How many of the two follows are counted when a repair runs before the second is handled.
pub(crate) async fn repaired_beside_a_held_change(mut bed: Bed) -> i64 {
    let (all, held) = follows_of_which_one_is_held(&mut bed).await;
    repaired(&bed, &OnAws::holding(&all), "early").await;
    bed.handle(&held).await;
    bed.settle().await;
    bed.counted("following-count")
}

async fn held_and_repaired(mut bed: Bed) {
    let (all, held) = follows_of_which_one_is_held(&mut bed).await;
    let done = repaired(&bed, &OnAws::holding(&all), "early").await;
    assert_eq!(done, ["a change of it that the stream still holds is not known to be counted"]);
    bed.handle(&held).await;
    bed.settle().await;
    assert_eq!(bed.counted("following-count"), 2, "each follow counts once");

    // All is in now, and what is wrong is found by the same way.
    assert_eq!(repaired(&bed, &OnAws::holding(&all), "late").await, [""; 0]);
    bed.set(&Key::new("USER#ann", "PROFILE#COUNT#following-count#00"), "Value", "N:7").await;
    assert_eq!(repaired(&bed, &OnAws::holding(&all), "last").await, ["added"]);
    assert_eq!(bed.counted("following-count"), 2);
}

/// The record of a follow is damaged so that not even its key can be read, and it is parked for good.
#[tokio::test]
async fn what_may_be_of_anything_holds_findings_for_a_day_and_repairs_of_counts_for_good() {
    let (mut bed, _) = followed("N:7").await;
    bed.put("Follow", &[("FollowerId", "cat"), ("FolloweeId", "bob")], &[]).await;
    let mut records = bed.records();
    let damaged = &mut records.last_mut().unwrap()["dynamodb"];
    damaged["Keys"] = serde_json::json!({"PK": {"Q": 1}});
    damaged["NewImage"] = serde_json::json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    bed.settle().await;
    assert_eq!(bed.parked().len(), 2, "once by each family");
    assert_eq!(repaired(&bed, &AtRest, "early").await, [""; 0], "all waits");
    bed.clock.advance(24 * 3_600 * 1_000);
    let refused = repaired(&bed, &AtRest, "late").await;
    assert!(refused.iter().all(|why| why.contains("Refused") && why.contains("not even the key can be read")));
    assert_eq!(refused.len(), 2, "of ann, and of cat, whose follow is the parked one: {refused:?}");
}

/// The record of a counter cannot be decoded. Its key still names the counter.
#[tokio::test]
async fn a_display_waits_for_a_parked_change_of_its_counter_that_does_not_decode() {
    let (mut bed, _) = followed("N:7").await;
    let mut records = bed.records();
    records.iter_mut().for_each(without_new_image);
    bed.handle(&records).await;
    let of = |events: &[VerifyEvent]| {
        let is_display = |it: &Finding| it.derivation == "following-count-display";
        let of_display = |event: &&VerifyEvent| matches!(event, VerifyEvent::Waiting(it) | VerifyEvent::Finding(it, _) if is_display(it));
        events.iter().filter(of_display).cloned().collect::<Vec<_>>()
    };
    let (events, _) = verified(&bed, &AtRest).await;
    assert!(matches!(of(&events)[..], [VerifyEvent::Waiting(_)]), "{events:?}");
    bed.forget("PARKED").await;
    let (events, _) = verified(&bed, &AtRest).await;
    assert!(matches!(of(&events)[..], [VerifyEvent::Finding(..)]), "{events:?}");
}

/// A user's copies are searched for again, since an index may lag. What no index is asked for does not wait for that.
#[tokio::test]
async fn a_search_that_is_to_be_made_again_holds_only_what_it_may_find() {
    let (mut bed, _) = followed("N:1").await;
    let comment = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];
    let comment = bed.put("Comment", &comment, &[("UserId", "ann")]).await;
    bed.settle().await;
    bed.set(&Key::new("USER#ann", "PROFILE"), "Name", "Anna").await;
    bed.settle().await;
    assert!(!bed.ledger("AGAIN#").is_empty(), "the comments of ann are searched for again");
    let follower = Key::new("USER#bob", "FOLLOWER#ann");
    for key in [&comment, &follower] {
        assert!(["UserName", "FollowerName"].into_iter().any(|name| bed.shown(key, name) == "Anna"), "{key}");
    }
    bed.set(&comment, "UserName", "Wrong").await;
    bed.set(&follower, "FollowerName", "Wrong").await;
    let (events, _) = verified(&bed, &AtRest).await;
    let of = |key: &Key| {
        events
            .iter()
            .find(|event| matches!(event, VerifyEvent::Waiting(it) | VerifyEvent::Finding(it, _) if it.sk == key.sk))
    };
    assert!(matches!(of(&comment), Some(VerifyEvent::Waiting(_))), "{events:?}");
    assert!(matches!(of(&follower), Some(VerifyEvent::Finding(..))), "{events:?}");
}

/// A search of a fan-out finds items that exist. One that is missing is made for its source, and waits for no fan-out.
#[tokio::test]
async fn a_mirror_that_is_missing_is_found_beside_a_fan_out_to_it() {
    let limits = FanOutLimits { direct_max: 2, page_items: 2, page_ms: 0, ..FanOutLimits::default() };
    let mut bed = Bed::new().fanning(limits);
    let author = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    for id in ["p1", "p2", "p3", "p4"] {
        let key = [("AuthorId", "ann"), ("CreatedAt", "2024-01-15T10:30:00.000Z"), ("PostId", id)];
        bed.put("Post", &key, &[("Status", "published")]).await;
    }
    bed.settle().await;
    bed.set(&author, "Name", "Anna").await;
    let renamed = bed.records();
    bed.handle(&renamed).await;
    let missing = Key::new("POST#p4", "METADATA");
    bed.delete(&missing).await;
    let (events, _) = verified(&bed, &AtRest).await;
    let of = |pk: &str| {
        let is_of = |it: &Finding| it.pk == pk && it.sk == "METADATA";
        events.iter().find(|event| matches!(event, VerifyEvent::Waiting(it) | VerifyEvent::Finding(it, _) if is_of(it)))
    };
    assert!(matches!(of("POST#p3"), Some(VerifyEvent::Waiting(_))), "{events:?}");
    assert!(matches!(of(&missing.pk), Some(VerifyEvent::Finding(..))), "{events:?}");
}

/// A page of the table, several pages, and the whole of it are looked at together.
#[tokio::test]
async fn the_same_is_found_whatever_is_looked_at_together() {
    let (mut bed, _) = followed("N:7").await;
    let comment = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];
    let comment = bed.put("Comment", &comment, &[("UserId", "ann")]).await;
    let orphan = [("FolloweeId", "bob"), ("FollowerId", "cat")];
    bed.settle().await;
    bed.put("Follower", &orphan, &[]).await;
    bed.records();
    bed.set(&comment, "UserName", "Wrong").await;
    bed.set(&Key::new("USER#bob", "PROFILE"), "FollowerCount", "N:9").await;
    let mut all = Vec::new();
    for window_bytes in [1, 1_000, WINDOW_BYTES] {
        let (events, extent) = verified_in(&bed, &AtRest, window_bytes).await;
        let text = |Finding { derivation, pk, sk, .. }: &Finding| format!("{derivation}  {pk} / {sk}");
        let found = events.iter().filter_map(|event| match event {
            VerifyEvent::Finding(finding, _) => Some(text(finding)),
            VerifyEvent::Waiting(finding) => Some(format!("waiting: {}", text(finding))),
            _ => None,
        });
        let mut found: Vec<String> = found.collect();
        found.sort_unstable();
        all.push((found, extent));
    }
    assert!(all.iter().all(|found| *found == all[0]), "{all:?}");
    expect_test::expect![[r#"
        follower-count-display  USER#bob / PROFILE
        follower-mirror  USER#bob / FOLLOWER#cat
        following-count  USER#ann / PROFILE#COUNT#following-count#00
        waiting: comment-author  POST#p / COMMENT#t#c
    "#]]
    .assert_eq(&(all[0].0.join("\n") + "\n"));
}

/// The functions write a counter when they are asked whether all is handled, and the stream shows that.
struct HandledLast<'a> {
    store: &'a MemoryStore,
    /// The counter as it is written, and its record, until then.
    last: Mutex<Option<(Item, String)>>,
    records: Mutex<Vec<String>>,
}

impl Following for HandledLast<'_> {
    fn records(&self) -> Vec<ShardRecords> {
        let records = std::mem::take(&mut *self.records.lock().unwrap());
        if records.is_empty() { Vec::new() } else { vec![of_shard(records)] }
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        self.records.lock().unwrap().is_empty()
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        if let Some((counter, record)) = self.last.lock().unwrap().take() {
            self.store.put_raw(Table::Main, counter).unwrap();
            self.records.lock().unwrap().push(record);
        }
        Some(true)
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        Box::new(Nothing)
    }
}

/// What the scan read of a counter is not what it holds when its changes are handled.
#[tokio::test]
async fn a_counter_is_compared_as_the_functions_left_it_and_not_as_it_was_scanned() {
    let counter = Key::new("USER#ann", "PROFILE#COUNT#following-count#00");
    for (scanned, handled, n_found) in [("N:1", "N:7", 1), ("N:7", "N:1", 0)] {
        let (mut bed, _) = followed(scanned).await;
        bed.records();
        bed.set(&counter, "Value", handled).await;
        let record = bed.records().last().unwrap().to_string();
        let last = bed.memory().snapshot(Table::Main).remove(&counter).unwrap();
        bed.set(&counter, "Value", scanned).await;
        let memory = bed.memory();
        let following =
            HandledLast { store: memory, last: Mutex::new(Some((last, record))), records: Mutex::default() };
        let (events, extent) = verified(&bed, &following).await;
        let found = events
            .iter()
            .filter(|event| matches!(event, VerifyEvent::Finding(it, _) if it.derivation == "following-count"));
        assert_eq!((found.count(), extent.is_proven), (n_found, true), "{events:?}");
    }
}

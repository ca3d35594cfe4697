//! Single verifications and repairs: what is reported as undecided or unproven, what is found beside differences, and
//! operators whose manifest is not that of the functions.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use derive::{
    catalogue::Catalogue, derivation::Derivation, family::Family, guard::Purpose, schema::Schema, write::Table,
};
use engine::{
    batch::Engine,
    clock::Clock as _,
    limits::FanOutLimits,
    publishing::begin,
    record::Lane,
    redrive::waiting::PendingWork,
    registry::{Hold, RegistryWatch},
};
use keys::{item::Item, key::Key};
use operate::{
    repair::remedy::{Repaired, Repairing},
    verify::{
        AtRest, Extent, Finding, Following, Nothing, Retained, Scope, ShardRecords, VerifyEvent, Why,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
    },
};
use serde_json::Value;
use store::{Store, memory::MemoryStore};
use support::{clock::ManualClock, record::STREAM_ARN};

use crate::{
    actors::repairing::MemoryTallies,
    caller::{Gone, Task},
    cases::{Bed, COMMENT, FOLLOW, LEDGERS, SHARD, corrupt},
    world::{AllAtOnce, EventList},
};

/// Functions with this progress.
struct Beside {
    is_handled: Option<bool>,
    /// A record that arrives again and again.
    record: Option<String>,
    /// From the first comparison on, somebody else begins to follow with every look at the stream, and time passes between the
    /// rounds of the verification.
    newcomers: Option<(ManualClock, AtomicUsize)>,
    /// What the stream still holds, where the progress is what somebody typed, as on AWS.
    retained: Option<Vec<String>>,
}

impl Beside {
    fn new(is_handled: Option<bool>, record: Option<&str>) -> Self {
        Self { is_handled, record: record.map(str::to_owned), newcomers: None, retained: None }
    }

    fn on_aws(holding: &[Value]) -> Self {
        let retained = Some(holding.iter().map(ToString::to_string).collect());
        Self { retained, ..Self::new(Some(true), None) }
    }
}

impl Following for Beside {
    fn records(&self) -> Vec<ShardRecords> {
        let Some(mut record) = self.record.clone() else { return Vec::new() };
        if let Some((_, n_seen)) = &self.newcomers {
            match n_seen.load(Ordering::Relaxed) {
                0 => return Vec::new(),
                nth => record = record.replace("ann", &format!("newcomer{nth}")),
            }
            n_seen.fetch_add(1, Ordering::Relaxed);
        }
        vec![of_shard(vec![record])]
    }

    fn has_given(&self, _moment_ms: u64) -> bool {
        true
    }

    fn is_handled(&self, _moment_ms: u64) -> Option<bool> {
        if let Some((clock, n_seen)) = &self.newcomers {
            n_seen.fetch_max(1, Ordering::Relaxed);
            clock.advance(1_000);
        }
        self.is_handled
    }

    fn is_typed(&self) -> bool {
        self.retained.is_some()
    }

    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        let Some(retained) = &self.retained else { return Box::new(Nothing) };
        Box::new(AllAtOnce(vec![of_shard(retained.clone())]))
    }
}

/// Records of the shard that all records are of.
fn of_shard(records: Vec<String>) -> ShardRecords {
    let lane = Lane { stream_arn: Some(STREAM_ARN.to_owned()), shard: Some(SHARD.to_owned()) };
    ShardRecords { lane: Arc::new(lane), records }
}

pub(super) async fn verified(bed: &Bed, following: &dyn Following) -> (Vec<VerifyEvent>, Extent) {
    let (engine, mut tallies, mut events) = (bed.engine(), MemoryTallies::default(), EventList::default());
    let limits = Limits { segments: 1, wait_ms: 100, window_bytes: WINDOW_BYTES };
    let verification = Verification::new(&engine, following, &mut tallies, &mut events, limits, Scope::default());
    let extent = verification.run().await.unwrap();
    verification.report_overdue().await.unwrap();
    drop(verification);
    (events.0, extent)
}

/// How a verification reports this derivation, or the items with this sort key: `found`, `unproven`, what it waits for, or
/// why it is undecided.
fn told(events: &[VerifyEvent], name: &str) -> Vec<String> {
    let of = events.iter().filter_map(|event| match event {
        VerifyEvent::Finding(it, _) => Some((&it.derivation, Some(&it.sk), "found".to_owned())),
        VerifyEvent::Waiting(it, pending) => {
            let for_what = match pending {
                PendingWork::Parked => "parked",
                PendingWork::Sweep { .. } => "sweep",
                PendingWork::Job { is_paused: false, .. } => "job",
                PendingWork::Job { is_paused: true, .. } => "paused job",
            };
            Some((&it.derivation, Some(&it.sk), for_what.to_owned()))
        }
        VerifyEvent::Undecided(it, why) => Some((&it.derivation, Some(&it.sk), format!("{why:?}"))),
        VerifyEvent::Unproven(it) => Some((&it.derivation, None, "unproven".to_owned())),
        _ => None,
    });
    let is_meant = |derivation: &str, sk: Option<&String>| derivation == name || sk.is_some_and(|sk| sk == name);
    of.filter(|(derivation, sk, _)| is_meant(derivation, *sk)).map(|(.., how)| how).collect()
}

/// Ann follows Bob, and her following count is set to this value.
async fn followed(counted: &str) -> (Bed, String) {
    let mut bed = Bed::new();
    for id in ["ann", "bob"] {
        bed.put("User", &[("UserId", id)], &[("Name", id)]).await;
    }
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    let record = records.last().unwrap().to_string();
    bed.handle_settled(&records).await;
    bed.set(&Key::new("USER#ann", "PROFILE#COUNT#following-count#00"), "Value", counted).await;
    (bed, record)
}

#[tokio::test]
async fn a_count_that_is_equal_while_its_sources_change_all_the_time_is_unproven() {
    let (bed, record) = followed("N:1").await;
    let (events, _) = verified(&bed, &Beside::new(Some(true), Some(&record))).await;
    assert_eq!(told(&events, "following-count"), ["unproven"]);
    assert!(!events.iter().any(|event| matches!(event, VerifyEvent::Finding(..))), "{events:?}");
}

#[tokio::test]
async fn nothing_is_decided_and_nothing_proven_while_the_functions_are_behind_or_nobody_knows() {
    let (bed, _) = followed("N:7").await;
    for (is_handled, wanted) in [(Some(false), "Behind"), (None, "Unknown"), (Some(true), "found")] {
        let (events, extent) = verified(&bed, &Beside::new(is_handled, None)).await;
        assert_eq!(told(&events, "following-count"), [wanted], "{events:?}");
        assert_eq!(extent.is_proven, is_handled == Some(true));
    }
}

/// A follow has the name of a user who is gone. The mirror that leads to it is made only now, and its record will correct
/// the name.
#[tokio::test]
async fn a_copy_is_undecided_while_the_mirror_by_which_it_is_found_changes() {
    let (mut bed, _) = followed("N:1").await;
    let gone = [("FollowerId", "ann"), ("FolloweeId", "gone")];
    bed.put("Follow", &gone, &[("FolloweeName", "Gone")]).await;
    bed.records();
    bed.put("Follower", &gone, &[]).await;
    let record = bed.records().pop().unwrap().to_string();
    for (record, wanted) in [(Some(&*record), format!("{:?}", Why::Changing)), (None, "found".to_owned())] {
        let (events, _) = verified(&bed, &Beside::new(Some(true), record)).await;
        assert_eq!(told(&events, "followee-name"), [wanted], "{events:?}");
    }
}

#[tokio::test]
async fn what_only_began_while_counts_were_compared_is_not_undecided() {
    let (bed, record) = followed("N:7").await;
    let newcomers = Some((bed.clock.clone(), AtomicUsize::new(0)));
    let beside = Beside { newcomers, ..Beside::new(Some(true), Some(&record)) };
    let (events, _) = verified(&bed, &beside).await;
    assert!(beside.newcomers.unwrap().1.load(Ordering::Relaxed) > 3, "somebody wrote meanwhile");
    // Whom all of them follow is counted all the time.
    let told = told(&events, "following-count");
    assert!(told.contains(&"found".to_owned()), "{events:?}");
    assert!(told.iter().all(|how| how == "found" || how == "unproven" || how == "parked"), "{events:?}");
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
    for ledger in LEDGERS {
        held_and_repaired(Bed::new().under(ledger)).await;
    }
}

/// The records of two follows, the first of them handled, and the record of the second.
async fn follows_of_which_one_is_held(bed: &mut Bed) -> (Vec<Value>, Vec<Value>) {
    for id in ["ann", "bob", "cat"] {
        bed.put("User", &[("UserId", id)], &[("Name", id)]).await;
    }
    bed.settle().await;
    bed.put("Follow", &FOLLOW, &[]).await;
    let mut all = bed.records();
    bed.handle_settled(&all).await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "cat")], &[]).await;
    let stored = bed.records();
    all.extend(stored.clone());
    (all, stored)
}

/// How many of the two follows are counted when a repair runs before the second is handled.
pub(crate) async fn repaired_beside_a_held_change(mut bed: Bed) -> i64 {
    let (all, stored) = follows_of_which_one_is_held(&mut bed).await;
    repaired(&bed, &Beside::on_aws(&all), "early").await;
    bed.handle_settled(&stored).await;
    bed.counted("following-count")
}

async fn held_and_repaired(mut bed: Bed) {
    let (all, stored) = follows_of_which_one_is_held(&mut bed).await;
    let done = repaired(&bed, &Beside::on_aws(&all), "early").await;
    assert_eq!(done, ["the ledger does not prove that a change of it, which the stream still has, is counted"]);
    bed.handle_settled(&stored).await;
    assert_eq!(bed.counted("following-count"), 2, "each follow counts once");

    // All is in now, and what is wrong is found by the same way.
    assert_eq!(repaired(&bed, &Beside::on_aws(&all), "late").await, [""; 0]);
    bed.set(&Key::new("USER#ann", "PROFILE#COUNT#following-count#00"), "Value", "N:7").await;
    assert_eq!(repaired(&bed, &Beside::on_aws(&all), "last").await, ["added"]);
    assert_eq!(bed.counted("following-count"), 2);
}

/// The record of a follow is damaged so that not even its key can be read, and it is parked for good.
#[tokio::test]
async fn what_may_be_of_anything_holds_findings_for_a_day_and_repairs_of_counts_for_good() {
    let (mut bed, _) = followed("N:7").await;
    bed.put("Follow", &[("FollowerId", "cat"), ("FolloweeId", "bob")], &[]).await;
    let mut records = bed.records();
    let damaged = records.last_mut().unwrap();
    corrupt(damaged, "Keys");
    corrupt(damaged, "NewImage");
    bed.handle_settled(&records).await;
    assert_eq!(bed.parked().len(), 2, "once by each family");
    assert_eq!(repaired(&bed, &AtRest, "early").await, [""; 0], "all waits");
    bed.clock.advance(24 * 3_600 * 1_000);
    let refused = repaired(&bed, &AtRest, "late").await;
    assert!(refused.iter().all(|why| why.contains("Refused") && why.contains("its key cannot be read")));
    assert_eq!(refused.len(), 2, "of ann, and of cat, whose follow is the parked one: {refused:?}");
}

/// The record of a counter cannot be decoded. Its key still names the counter.
#[tokio::test]
async fn a_display_waits_for_a_parked_change_of_its_counter_that_does_not_decode() {
    let (mut bed, _) = followed("N:7").await;
    let mut records = bed.records();
    for record in &mut records {
        corrupt(record, "NewImage");
    }
    bed.handle(&records).await;
    for wanted in ["parked", "found"] {
        let (events, _) = verified(&bed, &AtRest).await;
        assert_eq!(told(&events, "following-count-display"), [wanted], "{events:?}");
        bed.forget("PARKED").await;
    }
}

/// A bucket's count becomes a text after its only reading is gone.
#[tokio::test]
async fn a_bucket_with_a_text_is_found_although_it_has_no_reading() {
    let mut bed = Bed::new();
    let fields = [("SensorId", "s"), ("Day", "2024-01-15"), ("At", "2024-01-15T10:01:00.000Z")];
    let reading = bed.put_settled("Reading", &fields, &[("Value", "N:1")]).await;
    bed.delete_settled(&reading).await;
    bed.set(&Key::new("SENSOR#s", "DAY#2024-01-15"), "Count", "many").await;
    drop(bed.records());
    let (events, _) = verified(&bed, &AtRest).await;
    assert_eq!(told(&events, "readings-rollup"), ["found"], "{events:?}");
}

/// A user's copies are searched for again, since an index may lag. What no index is asked for does not wait for that.
#[tokio::test]
async fn a_search_that_is_to_be_made_again_holds_only_what_it_may_find() {
    let (mut bed, _) = followed("N:1").await;
    let comment = bed.put_settled("Comment", &COMMENT, &[("UserId", "ann")]).await;
    bed.set_settled(&Key::new("USER#ann", "PROFILE"), "Name", "Anna").await;
    assert!(!bed.ledger("AGAIN#").is_empty(), "the comments of ann are searched for again");
    let follower = Key::new("USER#bob", "FOLLOWER#ann");
    for key in [&comment, &follower] {
        assert!(["UserName", "FollowerName"].into_iter().any(|name| bed.shown(key, name) == "Anna"), "{key}");
    }
    bed.set(&comment, "UserName", "Wrong").await;
    bed.set(&follower, "FollowerName", "Wrong").await;
    let (events, _) = verified(&bed, &AtRest).await;
    assert_eq!([&comment.sk, &follower.sk].map(|sk| told(&events, sk)), [["sweep"], ["found"]], "{events:?}");
}

/// A search of a fan-out finds items that exist. One that is missing is made for its source, and waits for no fan-out.
#[tokio::test]
async fn a_mirror_that_is_missing_is_found_beside_a_fan_out_to_it() {
    let limits = FanOutLimits { direct_max: 2, page_items: 2, page_ms: 0, page_ms_max: 0, ..FanOutLimits::default() };
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
        let is_of = |event: &&VerifyEvent| matches!(event, VerifyEvent::Waiting(it, _) | VerifyEvent::Finding(it, _) if it.pk == pk && it.sk == "METADATA");
        told(&events.iter().filter(is_of).cloned().collect::<Vec<_>>(), "METADATA")
    };
    assert_eq!([of("POST#p3")[0].as_str(), &of("POST#p4")[0]], ["job", "found"], "{events:?}");
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
    for (scanned, handled, wanted) in [("N:1", "N:7", &["found"][..]), ("N:7", "N:1", &[])] {
        let (mut bed, _) = followed(scanned).await;
        bed.records();
        bed.set(&counter, "Value", handled).await;
        let record = bed.records().last().unwrap().to_string();
        let last = bed.item(&counter).unwrap();
        bed.set(&counter, "Value", scanned).await;
        let store = bed.memory();
        let following = HandledLast { store, last: Mutex::new(Some((last, record))), records: Mutex::default() };
        let (events, extent) = verified(&bed, &following).await;
        assert_eq!(told(&events, "following-count"), wanted, "{events:?}");
        assert!(extent.is_proven);
    }
}

/// An item whose list is a number has wrong keys of an index too: both are reported.
#[tokio::test]
async fn wrong_index_keys_are_found_on_an_item_that_another_derivation_cannot_read() {
    let bed = Bed::new().declaring(
        r#"
[table]
partition-key = "PK"
sort-key = "SK"
type = "EntityType"

[index.GSI1]
partition-key = "GSI1PK"
sort-key = "GSI1SK"

[entity.Tag]
partition-key = "TAG#{tag}"
sort-key = "TAG"
derived-attributes = ["uses"]

[entity.Visit]
partition-key = "VISIT#{visit}"
sort-key = "VISIT"
attributes = ["doctor", "tags"]

[entity.Visit.index.GSI1]
partition-key = "DOCTOR#{doctor}"
sort-key = "VISIT#{visit}"

[derivation.uses]
kind = "count"
from = "Visit"
into = "Tag.uses"
each = "tags"
link = { tag = "tags" }
"#,
    );
    let visit = bed.put("Visit", &[("visit", "v")], &[("doctor", "d"), ("tags", "N:1")]).await;
    let reported = async || {
        let (events, _) = verified(&bed, &AtRest).await;
        let name = |event: &VerifyEvent| match event {
            VerifyEvent::Finding(found, _) => found.derivation.clone(),
            VerifyEvent::Unreadable(found) => format!("unreadable by {}", found.derivation),
            event => format!("{event:?}"),
        };
        events.iter().map(name).collect::<BTreeSet<_>>()
    };
    let unreadable = "unreadable by uses".to_owned();
    assert_eq!(reported().await, BTreeSet::from([unreadable.clone()]));
    bed.set(&visit, "GSI1PK", "DOCTOR#e").await;
    assert_eq!(reported().await, BTreeSet::from(["index keys".to_owned(), unreadable]));
}

// ---- Operators whose manifest is not that of the functions: a repair of index keys refuses to write ----

/// The shipped catalogue without this derivation, or with this one counting another way.
fn lacking(bed: &Bed, name: &str) -> Arc<Catalogue> {
    let mut derivations = catalogue::derivations();
    derivations.retain(|derivation| derivation.name != name);
    Arc::new(Catalogue::new(&bed.schema, derivations).unwrap())
}

fn otherwise(bed: &Bed, name: &str, like: &str) -> Arc<Catalogue> {
    let mut derivations = catalogue::derivations();
    let like = derivations.iter().find(|derivation| derivation.name == like).unwrap().clone();
    derivations.retain(|derivation| derivation.name != name);
    derivations.push(Derivation { name: name.to_owned(), ..like });
    Arc::new(Catalogue::new(&bed.schema, derivations).unwrap())
}

/// An operator's engine with this catalogue.
fn operator(bed: &Bed, catalogue: &Arc<Catalogue>) -> Engine<impl Store + use<>> {
    operator_with(bed, &bed.schema, catalogue)
}

fn operator_with(bed: &Bed, schema: &Arc<Schema>, catalogue: &Arc<Catalogue>) -> Engine<impl Store + use<>> {
    let (schema, clock) = (Arc::clone(schema), Arc::new(bed.clock.clone()));
    let families = vec![Family::Additive, Family::LevelTriggered];
    let engine = Engine::new(schema, Arc::clone(catalogue), families, bed.store(), clock);
    engine.watching(RegistryWatch::reading(0))
}

async fn registered(bed: &Bed) {
    begin(&bed.store(), &bed.schema, &bed.catalogue, bed.clock.now_ms()).await.unwrap();
}

/// A folder with an index key that somebody wrote by hand.
async fn folder(bed: &Bed) -> Key {
    let folder = bed.put("Folder", &[("FolderId", "f")], &[("Name", "docs"), ("ParentId", "top")]).await;
    bed.set(&folder, "GSI1SK", "by hand").await;
    folder
}

pub(super) async fn index_keys_repaired<S: Store>(engine: &Engine<S>, key: &Key, deadline_ms: u64) -> Repaired {
    let Key { pk, sk } = key.clone();
    let finding = Finding { derivation: "index keys".to_owned(), pk, sk, stored: None, derived: None, flaw: None };
    Repairing::new(engine).repair(&finding, "run", deadline_ms).await.unwrap()
}

#[tokio::test]
async fn a_repair_sets_no_index_keys_with_a_catalogue_that_is_not_that_of_the_functions() {
    let bed = Bed::new();
    registered(&bed).await;
    let folder = folder(&bed).await;
    for wrong in [lacking(&bed, "comment-author"), otherwise(&bed, "like-count", "comment-count")] {
        let repaired = index_keys_repaired(&operator(&bed, &wrong), &folder, bed.deadline_ms()).await;
        let Repaired::Refused { why } = repaired else { panic!("{repaired:?}") };
        assert!(why.ends_with("repair with their version and manifest"), "{why}");
        assert_eq!(bed.shown(&folder, "GSI1SK"), "by hand");
    }
    // Nothing is written into an order, so no derivation shows the template of its key.
    let entities = bed.schema.entities().cloned().map(|mut definition| {
        definition.indexes.retain(|_| definition.name != "Order");
        definition
    });
    let schema = Arc::new(Schema::new(bed.schema.layout.clone(), entities));
    let repaired = index_keys_repaired(&operator_with(&bed, &schema, &bed.catalogue), &folder, bed.deadline_ms()).await;
    let Repaired::Refused { why } = repaired else { panic!("{repaired:?}") };
    assert_eq!(why, "the functions have other index keys of Order: repair with their version and manifest");
    let repaired = index_keys_repaired(&operator(&bed, &bed.catalogue), &folder, bed.deadline_ms()).await;
    assert_eq!(repaired, Repaired::Done);
    assert_ne!(bed.shown(&folder, "GSI1SK"), "by hand");
}

/// A deployment comes between the look at the registry and the write.
#[tokio::test]
async fn a_repair_sets_no_index_keys_when_the_functions_have_changed_since_it_asked() {
    let bed = Bed::new();
    registered(&bed).await;
    let folder = folder(&bed).await;
    let (engine, key, deadline_ms) = (operator(&bed, &bed.catalogue), folder.clone(), bed.deadline_ms());
    let mut repair = Task::new(&Gone::default(), async move { index_keys_repaired(&engine, &key, deadline_ms).await });
    bed.stops_before(&mut repair, Purpose::IndexKeys);
    let deployed = operator(&bed, &lacking(&bed, "comment-author"));
    let deployed = deployed.watching(RegistryWatch::publishing(0, Hold::default()));
    deployed.publish(bed.deadline_ms()).await.unwrap();
    let repaired = repair.finish().unwrap();
    assert!(matches!(repaired, Repaired::Refused { .. }), "{repaired:?}");
    assert_eq!(bed.shown(&folder, "GSI1SK"), "by hand");
}

//! Single records and batches: past defects, and changes that cannot be applied.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    catalogue::Catalogue,
    change::Sight,
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    effect::{Effect, RefreshRequest},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    part::Reach,
    position::RecordAt,
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};
use engine::{batch::Engine, park::parked, protocol::ProtocolStep};
use keys::key::Key;
use serde_json::json;
use store::Store;

use crate::{cases::bed::Bed, items::s};

const FOLLOW: [(&str, &str); 2] = [("FollowerId", "ann"), ("FolloweeId", "bob")];
const COMMENT: [(&str, &str); 3] = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];

#[tokio::test]
async fn an_old_record_in_the_batch_does_not_speak_for_the_item_as_it_is() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let comment = bed.put("Comment", &COMMENT, &[("UserId", "ann")]).await;
    let records = bed.records();
    bed.handle(&records).await;
    let old = bed.records(); // The comment, with the name.
    bed.delete(&user).await;
    bed.settle().await;
    assert_eq!(bed.shown(&comment, "UserName"), "");

    bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let batch = [old, bed.records()].concat();
    bed.handle(&batch).await;
    assert_eq!(bed.shown(&comment, "UserName"), "Ann");
}

#[tokio::test]
async fn a_rename_that_misses_an_item_reaches_it_when_the_way_there_is_made_again() {
    let mut bed = Bed::new();
    let user = bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    bed.settle().await;
    bed.delete(&Key::new("USER#bob", "FOLLOWER#ann")).await;
    let deleted = bed.records();
    bed.set(&user, "Name", "Robert").await;
    bed.settle().await;
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Bob", "the rename finds it through the Follower");
    bed.handle(&deleted).await;
    bed.settle().await;
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Robert");
}

#[tokio::test]
async fn a_record_that_does_not_decode_is_parked_and_its_neighbours_are_applied() {
    let mut bed = Bed::new();
    for id in ["ann", "bob", "cleo"] {
        bed.put("Like", &[("UserId", id), ("PostId", "p")], &[]).await;
    }
    let mut records = bed.records();
    records[1]["dynamodb"]["NewImage"] = json!({"PK": {"Q": 1}});
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from, None);
    let cause = "the record does not decode: a value is missing or not of the form of a stream record, at column";
    assert!(
        handled.account.parked.iter().all(|parked| parked.position == RecordAt(1) && parked.cause.starts_with(cause))
    );
    assert_eq!(
        bed.parked(),
        [
            "PARKED#additive / 00000000000000000000000000000002#00",
            "PARKED#level-triggered / 00000000000000000000000000000002#00"
        ]
    );
    let findings = bed.findings();
    assert!(findings.len() == 1 && findings[0].starts_with("like-count: POST#p"), "{findings:?}");

    bed.handle(&records).await;
    bed.settle().await;
    assert_eq!(bed.parked().len(), 2, "what is parked is parked once");
}

/// A kind that panics at users with one name.
#[derive(Debug)]
struct Panics;

impl Kind for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, _schema: &Schema) -> Result<Reach, String> {
        Ok(Reach::default())
    }

    fn entities(&self) -> Vec<&str> {
        vec!["User"]
    }

    fn plan(&self, _schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let name = sight.entity("User").1.and_then(|image| image.attribute("Name").cloned());
        assert_ne!(name, Some(s("Bob")), "not him");
        Vec::new()
    }

    fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
        None
    }

    fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
        Vec::new()
    }
}

impl Refresh for Panics {
    fn target(&self) -> &'static str {
        "User"
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, _schema: &Schema, _target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        Computed::Attributes(Vec::new())
    }
}

#[tokio::test]
async fn a_record_on_which_a_kind_panics_is_parked_and_its_neighbours_are_applied() {
    let schema = catalogue::schema();
    let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "panics", Panics)]].concat();
    let mut bed = Bed::with(schema.clone(), Catalogue::new(&schema, derivations).unwrap());
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let records = bed.records();
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from, None);
    // The assertion quotes the name, which must not come into a log.
    let cause = "planning it panicked: its message may hold values; the log says where";
    assert!(handled.account.parked.iter().all(|parked| parked.position == RecordAt(1) && parked.cause == cause));
    assert_eq!(
        bed.parked(),
        [
            "PARKED#additive / 00000000000000000000000000000002#00",
            "PARKED#level-triggered / 00000000000000000000000000000002#00"
        ]
    );
    bed.settle().await;
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Bob", "the follow requests it for itself");
}

#[tokio::test]
async fn a_counter_that_cannot_be_added_to_parks_the_changes_that_count_there_and_no_others() {
    let mut bed = Bed::new();
    let counter = Key::new("USER#ann", "PROFILE#COUNT#following-count#00");
    bed.set(&counter, "EntityType", "Counter").await;
    bed.set(&counter, "Value", "many").await;
    bed.settle().await;

    bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "cleo")], &[]).await;
    let all = bed.settle().await;
    let parked: BTreeSet<RecordAt> =
        all.iter().flat_map(|handled| &handled.account.parked).map(|p| p.position).collect();
    assert_eq!(parked, BTreeSet::from([0, 2].map(RecordAt)));
    assert_eq!(bed.shown(&counter, "Value"), "many");
    let parked = bed.parked();
    assert!(parked.iter().all(|key| key.starts_with("PARKED#additive")), "{parked:?}");
    // Both changes are parked whole, with what they would have added elsewhere.
    assert_eq!(bed.findings().len(), 3, "{:?}", bed.findings());
}

#[tokio::test]
async fn while_the_store_stays_away_the_response_names_the_lowest_record_that_is_not_done() {
    let mut bed = Bed::new();
    bed.stay_away(true);
    bed.set(&Key::new("JUNK", "1"), "Colour", "red").await;
    bed.put("Team", &[("OrgId", "o"), ("TeamId", "t")], &[]).await;
    bed.put("Follow", &FOLLOW, &[]).await;
    let records = bed.records();
    let handled = bed.handle(&records).await;
    assert_eq!(handled.failed_from.as_deref(), Some("1002"), "nothing is to be done for the first");
    assert_eq!(handled.account.undone.keys().copied().collect::<Vec<_>>(), [1, 2].map(RecordAt));

    bed.stay_away(false);
    let handled = bed.handle(&records[1..]).await;
    assert_eq!(handled.failed_from, None);
    bed.settle().await;
    assert_eq!(bed.findings(), [""; 0]);
}

#[tokio::test]
async fn an_item_that_is_none_of_ours_is_not_deleted_from_a_mirrors_key() {
    let mut bed = Bed::new();
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    bed.settle().await;
    let mirror = Key::new("USER#bob", "FOLLOWER#ann");
    bed.set(&mirror, "EntityType", "Gadget").await;
    bed.delete(&follow).await;
    bed.settle().await;
    assert_eq!(bed.shown(&mirror, "EntityType"), "Gadget");
}

// ---- An item that is written back and forth ----

/// Batches after which a stream that is not quiet is taken for one without end.
const BATCHES_MAX: usize = 60;

/// A kind that looks at every user, and wants what this says.
#[derive(Debug)]
struct OfUsers(fn(&Schema, &RefreshTarget<'_>) -> Computed);

impl Kind for OfUsers {
    fn name(&self) -> &'static str {
        "of-users"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, _schema: &Schema) -> Result<Reach, String> {
        Ok(Reach::default())
    }

    fn entities(&self) -> Vec<&str> {
        vec!["User"]
    }

    fn plan(&self, _schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let request = |image: &Image<'_>| RefreshRequest {
            item: image.key.clone(),
            entity: "User".to_owned(),
            named: Vec::new(),
        };
        sight.entity("User").1.map(|image| Effect::Look(request(image))).into_iter().collect()
    }

    fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
        None
    }

    fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
        Vec::new()
    }
}

impl Refresh for OfUsers {
    fn target(&self) -> &'static str {
        "User"
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        self.0(schema, target)
    }
}

/// What a deployment does that wants one value on every user.
fn wants(value: &'static str) -> Arc<Catalogue> {
    let schema = catalogue::schema();
    let kind = OfUsers(if value == "one" { wants_one } else { wants_other });
    let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "sides", kind)]].concat();
    Arc::new(Catalogue::new(&schema, derivations).unwrap())
}

fn wants_one(_schema: &Schema, _target: &RefreshTarget<'_>) -> Computed {
    side("one")
}

fn wants_other(_schema: &Schema, _target: &RefreshTarget<'_>) -> Computed {
    side("other")
}

fn side(value: &str) -> Computed {
    Computed::Attributes(vec![Wanted { name: "Side".to_owned(), value: Some(s(value)), zero_is_absent: false }])
}

/// Two deployments read one stream, and each undoes what the other writes.
#[tokio::test]
async fn two_deployments_that_want_different_values_of_an_item_stop_and_name_it() {
    let mut bed = Bed::new();
    let mut engines = Vec::new();
    for value in ["one", "other"] {
        bed.catalogue = wants(value);
        engines.push(bed.engine());
    }
    bed.put("User", &[("UserId", "ann")], &[]).await;
    let mut causes = BTreeSet::new();
    let mut is_quiet = false;
    for _ in 0..BATCHES_MAX {
        let records = bed.records();
        is_quiet = records.is_empty();
        for engine in engines.iter().filter(|_| !is_quiet) {
            let handled = engine.handle(&bed.event(&records), bed.deadline_ms()).await.unwrap();
            assert_eq!(handled.failed_from, None);
            causes.extend(handled.account.parked.into_iter().map(|parked| parked.cause));
        }
    }
    assert!(is_quiet, "they write on");
    assert!(causes.iter().any(|cause| cause.contains("USER#ann / PROFILE is written back and forth")), "{causes:?}");
    let follow = bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.settle().await;
    assert_eq!(bed.shown(&Key::new("USER#ann", "PROFILE"), "FollowingCount"), "1", "{follow}");
}

/// What two derivations that disagree do: each time a user is looked at, it wants the other one of two values.
fn disagrees(_schema: &Schema, target: &RefreshTarget<'_>) -> Computed {
    let is_one = target.item.and_then(|item| item.get("Side")) == Some(&s("one"));
    let value = Some(s(if is_one { "other" } else { "one" }));
    Computed::Attributes(vec![Wanted { name: "Side".to_owned(), value, zero_is_absent: false }])
}

fn disagreeing() -> Bed {
    let schema = catalogue::schema();
    let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "sides", OfUsers(disagrees))]].concat();
    let catalogue = Catalogue::new(&schema, derivations).unwrap();
    Bed::with(schema, catalogue)
}

/// Delivers everything to one process until the stream is quiet; how many batches that takes, and the causes of what is
/// parked.
async fn goes_on<S: Store>(bed: &mut Bed, engine: &Engine<S>) -> (usize, BTreeSet<String>) {
    let mut causes = BTreeSet::new();
    for n_batches in 0..BATCHES_MAX {
        let records = bed.records();
        if records.is_empty() {
            return (n_batches, causes);
        }
        let handled = engine.handle(&bed.event(&records), bed.deadline_ms()).await.unwrap();
        assert_eq!(handled.failed_from, None);
        causes.extend(handled.account.parked.into_iter().map(|parked| parked.cause));
    }
    (BATCHES_MAX, causes)
}

/// Derivations disagree about a user: does the stream come to rest?
pub(crate) async fn comes_to_rest(left_out: Option<ProtocolStep>) -> i64 {
    let mut bed = disagreeing().without(left_out);
    bed.put("User", &[("UserId", "ann")], &[]).await;
    let engine = bed.engine();
    i64::from(goes_on(&mut bed, &engine).await.0 < BATCHES_MAX)
}

#[tokio::test]
async fn an_item_that_is_written_back_and_forth_is_stopped_named_and_parked() {
    let mut bed = disagreeing();
    let engine = bed.engine();
    let user = bed.put("User", &[("UserId", "ann")], &[]).await;
    let (n_batches, causes) = goes_on(&mut bed, &engine).await;
    assert!(n_batches < BATCHES_MAX);
    let cause = "the item USER#ann / PROFILE is written back and forth, 16 times in a row, here by sides: it is not written any \
                 more; see that only one derivation, of one deployment, and nobody else decides what it is, and redrive this \
                 change";
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), [cause]);
    assert_eq!(parked(bed.memory()).await.unwrap().len(), 1);
    // What others ask of it is still done.
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    assert!(goes_on(&mut bed, &engine).await.0 < BATCHES_MAX);
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
}

#[tokio::test]
async fn an_application_that_changes_an_item_often_stops_nothing() {
    let mut bed = Bed::new();
    let engine = bed.engine();
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let follow = bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
    for n in 0..200 {
        // The whole item is put without what is derived, and what its copy comes from changes to and fro.
        bed.put("Follow", &[("FollowerId", "bob"), ("FolloweeId", "ann")], &[]).await;
        bed.set(&user, "Name", ["Ann", "Anna"][n % 2]).await;
        if n % 3 > 0 {
            let (n_batches, causes) = goes_on(&mut bed, &engine).await;
            assert!(n_batches < BATCHES_MAX && causes.is_empty(), "{causes:?}");
        }
    }
    goes_on(&mut bed, &engine).await;
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Anna");
    assert_eq!(bed.findings(), Vec::<String>::new());
}

// ---- A kind that panics while an item is looked at ----

/// Panics when the user is Bob.
fn panics_at_bob(schema: &Schema, target: &RefreshTarget<'_>) -> Computed {
    let name = target.image(schema).and_then(|image| image.attribute("Name").cloned());
    assert_ne!(name, Some(s("Bob")), "not him");
    Computed::Attributes(Vec::new())
}

#[tokio::test]
async fn a_record_whose_look_panics_is_parked_and_its_neighbours_are_applied() {
    let schema = catalogue::schema();
    let derivations =
        [catalogue::derivations(), vec![Derivation::new("D-00", "panics", OfUsers(panics_at_bob))]].concat();
    let mut bed = Bed::with(schema.clone(), Catalogue::new(&schema, derivations).unwrap());
    bed.put("Follow", &[("FollowerId", "ann"), ("FolloweeId", "bob")], &[]).await;
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let all = bed.settle().await;
    assert!(all.iter().all(|handled| handled.failed_from.is_none()));
    let causes: BTreeSet<String> =
        all.iter().flat_map(|handled| &handled.account.parked).map(|parked| parked.cause.clone()).collect();
    assert!(
        !causes.is_empty() && causes.iter().all(|cause| cause.contains("panicked: its message may hold values")),
        "{causes:?}"
    );
    assert!(bed.parked().iter().all(|key| key.starts_with("PARKED#level-triggered")), "{:?}", bed.parked());
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
}

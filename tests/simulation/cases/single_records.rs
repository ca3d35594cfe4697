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
use store::Store;

use crate::{
    cases::bed::{Bed, event_id},
    items::s,
};

const FOLLOW: [(&str, &str); 2] = [("FollowerId", "ann"), ("FolloweeId", "bob")];

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

// ---- An item that is written back and forth ----

/// Batches after which a stream that is not quiet is taken for one without end.
const BATCHES_MAX: usize = 60;

/// A kind that looks at every user, and wants what this says. It may panic when it plans.
#[derive(Debug)]
struct OfUsers {
    plans: fn(&Image<'_>),
    computes: fn(&Schema, &RefreshTarget<'_>) -> Computed,
}

impl OfUsers {
    fn wanting(computes: fn(&Schema, &RefreshTarget<'_>) -> Computed) -> Self {
        Self { plans: |_| (), computes }
    }

    /// The shipped derivations, and this one.
    fn beside(self, schema: &Schema) -> Catalogue {
        let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "sides", self)]].concat();
        Catalogue::new(schema, derivations).unwrap()
    }
}

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
        let Some(image) = sight.entity("User").1 else { return Vec::new() };
        (self.plans)(image);
        vec![Effect::Look(RefreshRequest { item: image.key.clone(), entity: "User".to_owned(), named: Vec::new() })]
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
        (self.computes)(schema, target)
    }
}

fn side(value: &str) -> Computed {
    Computed::Attributes(vec![Wanted { name: "Side".to_owned(), value: Some(s(value)), zero_is_absent: false }])
}

/// Two deployments read one stream, and each undoes what the other writes.
#[tokio::test]
async fn two_deployments_that_want_different_values_of_an_item_stop_and_name_it() {
    let mut bed = Bed::new();
    let mut engines = Vec::new();
    for kind in [OfUsers::wanting(|_, _| side("one")), OfUsers::wanting(|_, _| side("other"))] {
        bed.catalogue = Arc::new(kind.beside(&bed.schema));
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
    side(if is_one { "other" } else { "one" })
}

fn disagreeing() -> Bed {
    let schema = catalogue::schema();
    let catalogue = OfUsers::wanting(disagrees).beside(&schema);
    Bed::with(schema, catalogue)
}

/// Delivers everything to one process until the stream is quiet; how many batches that takes, and the causes of what is parked.
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

// ---- A kind that panics ----

/// Ann follows Bob, whose name makes a kind panic. Returns what is parked after their batch and at last, and the causes.
async fn panicking(kind: OfUsers) -> ([Vec<String>; 2], BTreeSet<String>) {
    let schema = catalogue::schema();
    let catalogue = kind.beside(&schema);
    let mut bed = Bed::with(schema, catalogue);
    let follow = bed.put("Follow", &FOLLOW, &[]).await;
    bed.put("User", &[("UserId", "bob")], &[("Name", "Bob")]).await;
    let user = bed.put("User", &[("UserId", "ann")], &[("Name", "Ann")]).await;
    let records = bed.records();
    let mut all = vec![bed.handle(&records).await];
    let first = bed.parked();
    all.extend(bed.settle().await);
    assert!(all.iter().all(|handled| handled.failed_from.is_none()));
    assert_eq!(bed.shown(&user, "FollowingCount"), "1");
    assert_eq!(bed.shown(&follow, "FolloweeName"), "Bob", "the follow requests it for itself");
    let parked = all.into_iter().flat_map(|handled| handled.account.parked);
    ([first, bed.parked()], parked.map(|parked| parked.cause).collect())
}

/// The assertion quotes the name, which must not come into a log.
fn not_bob(image: &Image<'_>) {
    assert_ne!(image.attribute("Name"), Some(&s("Bob")), "not him");
}

#[tokio::test]
async fn a_record_on_which_a_kind_panics_is_parked_and_its_neighbours_are_applied() {
    let kind = OfUsers { plans: not_bob, computes: |_, _| Computed::Attributes(Vec::new()) };
    let ([first, _], causes) = panicking(kind).await;
    let cause = "planning it panicked: its message may hold values; the log says where";
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), [cause]);
    assert_eq!(first, ["additive", "level-triggered"].map(|family| format!("PARKED#{family} / {}#00", event_id(2))));
}

#[tokio::test]
async fn a_record_whose_look_panics_is_parked_and_its_neighbours_are_applied() {
    let kind = OfUsers::wanting(|schema, target| {
        target.image(schema).iter().for_each(not_bob);
        Computed::Attributes(Vec::new())
    });
    let ([_, parked], causes) = panicking(kind).await;
    let is_told = |cause: &String| cause.contains("panicked: its message may hold values");
    assert!(!causes.is_empty() && causes.iter().all(is_told), "{causes:?}");
    assert!(parked.iter().all(|key| key.starts_with("PARKED#level-triggered")), "{parked:?}");
}

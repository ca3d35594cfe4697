//! An item that Ripple's own writes change back and forth.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue,
    change::Sight,
    derivation::Derivation,
    derived::{Counts, Derived, Items},
    effect::{Bell, Effect},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    part::Reach,
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources},
    write::Wanted,
};
use engine::{batch::Engine, park::redrive::parked, protocol::ProtocolStep};
use store::Store;

use crate::{cases::bed::Bed, items::s};

/// Batches after which a stream that is not quiet is taken for one without end.
const BATCHES_MAX: usize = 60;

/// What two derivations that disagree do: each time a user is looked at, it wants the other one of two values.
#[derive(Debug)]
struct Disagrees;

impl Kind for Disagrees {
    fn name(&self) -> &'static str {
        "disagrees"
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
        let bell = |image: &Image<'_>| Bell { item: image.key.clone(), entity: "User".to_owned(), named: Vec::new() };
        sight.entity("User").1.map(|image| Effect::Look(bell(image))).into_iter().collect()
    }

    fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
        None
    }

    fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
        Vec::new()
    }
}

impl Refresh for Disagrees {
    fn target(&self) -> &'static str {
        "User"
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, _schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        let is_one = target.item.and_then(|item| item.get("Side")) == Some(&s("one"));
        let value = Some(s(if is_one { "other" } else { "one" }));
        Computed::Attributes(vec![Wanted { name: "Side".to_owned(), value, zero_is_absent: false }])
    }
}

fn disagreeing() -> Bed {
    let schema = catalogue::schema();
    let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "sides", Disagrees)]].concat();
    let catalogue = Catalogue::new(&schema, derivations).unwrap();
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
    let cause = "Ripple's own writes change the item USER#ann / PROFILE back and forth, 16 times in a row, by sides: it is not \
                 written any more; see that only one of them decides what it is, and redrive this change";
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

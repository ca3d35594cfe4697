//! A kind that panics while an item is looked at.

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
};

use crate::{cases::bed::Bed, items::s};

/// Looks at every user, and panics when it is Bob.
#[derive(Debug)]
struct PanicsAtBob;

impl Kind for PanicsAtBob {
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

impl Refresh for PanicsAtBob {
    fn target(&self) -> &'static str {
        "User"
    }

    fn sources(&self, _schema: &Schema, _target: &RefreshTarget<'_>) -> Vec<Source> {
        Vec::new()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, _sources: &Sources) -> Computed {
        let name = target.image(schema).and_then(|image| image.attribute("Name").cloned());
        assert_ne!(name, Some(s("Bob")), "not him");
        Computed::Attributes(Vec::new())
    }
}

#[tokio::test]
async fn a_record_whose_look_panics_is_parked_and_its_neighbours_are_applied() {
    let schema = catalogue::schema();
    let derivations = [catalogue::derivations(), vec![Derivation::new("D-00", "panics", PanicsAtBob)]].concat();
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

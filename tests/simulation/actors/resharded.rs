//! Counters whose number of shards changes while they count: up, down, and back, function by function.
//!
//! A deployment gives the functions another catalogue, one after the other, and those that run already run on with the
//! old one. Which shards a counter has is said by its items alone, so all of them may write at once.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use derive::{
    catalogue::Catalogue,
    declaration::{count::Count, link::Link, predicate::Predicate},
    derivation::Derivation,
};

use crate::scene::Scene;

/// What the sharded counters may come to have instead of the shipped numbers: fewer, more, and one.
const NUMBERS: [u32; 3] = [3, 40, 1];

/// Of a hundred engines that begin, how many are the first of another deployment.
const CHANGES_PERCENT: usize = 3;

static DEPLOYED: LazyLock<Vec<Arc<Catalogue>>> =
    LazyLock::new(|| NUMBERS.into_iter().map(|n_shards| Arc::new(with_shards(n_shards))).collect());

/// Which catalogue is deployed in a run: 0 is the shipped one.
#[derive(Debug, Default)]
pub(crate) struct Deployed(AtomicUsize);

impl Deployed {
    /// The catalogue of an engine that begins now; sometimes it is another than the one before had.
    pub(crate) fn catalogue(&self, scene: &Scene) -> Arc<Catalogue> {
        if !scene.is_healed() && scene.chance.percent(CHANGES_PERCENT) {
            let at = scene.chance.below(1 + NUMBERS.len());
            if self.0.swap(at, Ordering::Relaxed) != at {
                scene.count("resharded");
                scene.trace.note(|| format!("from now on the sharded counters have {} shards", shown(at)));
            }
        }
        let at = self.0.load(Ordering::Relaxed);
        at.checked_sub(1).map_or_else(|| Arc::clone(&scene.catalogue), |at| Arc::clone(&DEPLOYED[at]))
    }
}

fn shown(at: usize) -> String {
    at.checked_sub(1).map_or_else(|| "as many as are shipped".to_owned(), |at| NUMBERS[at].to_string())
}

/// The shipped counters that have several shards, with this number of them.
fn sharded(n_shards: u32) -> [Derivation; 3] {
    let count = |source: &str, target: &str, link: (&str, &str)| Count {
        source: source.to_owned(),
        predicate: Predicate::Always,
        target: target.to_owned(),
        link: Link::of(&[link]),
        sum: None,
        n_shards,
        history: source == "View",
    };
    let post = ("PostId", "PostId");
    [
        Derivation::new("D-02", "follower-count", count("Follow", "User", ("UserId", "FolloweeId"))),
        Derivation::new("D-07", "like-count", count("Like", "PostDetail", post)),
        Derivation::new("D-08", "view-count", count("View", "PostDetail", post)),
    ]
}

/// The shipped catalogue, its sharded counters with this number of shards.
pub(crate) fn with_shards(n_shards: u32) -> Catalogue {
    let mut derivations = catalogue::derivations();
    for other in sharded(n_shards) {
        let at = derivations.iter().position(|shipped| shipped.name == other.name).unwrap();
        derivations[at] = other;
    }
    Catalogue::new(&catalogue::schema(), derivations).unwrap()
}

#[test]
fn the_shipped_counters_that_are_hot_have_shards_and_only_their_number_differs_here() {
    let schema = catalogue::schema();
    let shipped = catalogue::derivations();
    let outline = |derivation: &Derivation| derivation.kind.outline(&schema);
    for (name, n_shards) in [("follower-count", 8), ("like-count", 16), ("view-count", 16)] {
        let shipped = shipped.iter().find(|derivation| derivation.name == name).unwrap();
        assert_eq!(outline(shipped).counts.unwrap().1, n_shards, "{name}");
        let here = sharded(n_shards).into_iter().find(|derivation| derivation.name == name).unwrap();
        assert_eq!(format!("{here:?}"), format!("{shipped:?}"));
    }
    let n_sharded = shipped.iter().filter(|derivation| outline(derivation).counts.is_some_and(|(_, n)| n > 1)).count();
    assert_eq!(n_sharded, sharded(1).len(), "these are all");
}

//! Counters whose number of shards changes while they count: up, down, and back, function by function.
//!
//! A deployment gives the functions another catalogue, one after the other, and running instances keep the old one. The
//! items of a counter alone show its shards, so all of them may write at once.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use derive::{
    catalogue::Catalogue,
    condition::Condition,
    declaration::{Count, Link},
    derivation::Derivation,
};

use crate::{chance::Chance, deployed};

/// Other numbers of shards than the shipped ones: fewer, more, and one.
const NUMBERS: [u32; 3] = [3, 40, 1];

/// Of a hundred engines that start, how many are the first of a new deployment.
const CHANGES_PERCENT: usize = 3;

static DEPLOYED: LazyLock<Vec<Arc<Catalogue>>> =
    LazyLock::new(|| NUMBERS.into_iter().map(|n_shards| Arc::new(with_shards(n_shards))).collect());

/// Which catalogue is deployed in a run: 0 is the shipped one.
#[derive(Debug, Default)]
pub(crate) struct Sharding(AtomicUsize);

impl Sharding {
    /// An engine starts, and sometimes it is the first of another deployment. Describes the number of shards then.
    pub(crate) fn changes(&self, chance: &Chance) -> Option<String> {
        if !chance.percent(CHANGES_PERCENT) {
            return None;
        }
        let at = chance.below(1 + NUMBERS.len());
        (self.0.swap(at, Ordering::Relaxed) != at).then(|| shown(at))
    }

    /// The deployed catalogue; `None` when it is the shipped one.
    pub(crate) fn catalogue(&self) -> Option<Arc<Catalogue>> {
        let at = self.0.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Arc::clone(&DEPLOYED[at]))
    }
}

fn shown(at: usize) -> String {
    at.checked_sub(1).map_or_else(|| "as many as are shipped".to_owned(), |at| NUMBERS[at].to_string())
}

/// The shipped counters that have several shards, with this number of them.
fn sharded(n_shards: u32) -> [Derivation; 3] {
    let count = |source: &str, target: &str, link: (&str, &str)| Count {
        source: source.to_owned(),
        condition: Condition::Always,
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
    let mut derivations = deployed::derivations();
    for other in sharded(n_shards) {
        let at = derivations.iter().position(|shipped| shipped.name == other.name).unwrap();
        derivations[at] = other;
    }
    Catalogue::new(&deployed::schema(), derivations).unwrap()
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

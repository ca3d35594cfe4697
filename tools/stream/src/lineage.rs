//! Decides which shards may be read now: parents before children.
//!
//! Pure. A shard waits until its parent is drained or no longer listed. A listing does not show whether a shard is
//! closed; only reading the shard to its end does (see [`crate::source::ListedShard`]).

use std::collections::BTreeMap;

use crate::checkpoint::Position;
use crate::mapping::StartingPosition;
use crate::source::{IteratorAt, ListedShard};

/// The known shards of a stream.
#[derive(Debug)]
pub(crate) struct Lineage {
    starting_position: StartingPosition,
    /// False during the first listing. Only shards of that listing may start at the newest record.
    has_listed: bool,
    shards: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    parent: Option<String>,
    is_listed: bool,
    state: ShardState,
}

#[derive(Debug, PartialEq, Eq)]
enum ShardState {
    Waiting(IteratorAt),
    Running,
    Drained,
}

impl Lineage {
    pub(crate) fn new(starting_position: StartingPosition) -> Self {
        Self { starting_position, has_listed: false, shards: BTreeMap::new() }
    }

    /// The new shards of a listing. Their positions must be loaded.
    pub(crate) fn unknown<'a>(&self, listed: &'a [ListedShard]) -> Vec<&'a ListedShard> {
        listed.iter().filter(|shard| !self.shards.contains_key(&shard.id)).collect()
    }

    /// Adds a shard with its position. `is_followed` means that the parent has a position: the mapping has read this
    /// stream before and must not skip to the newest record.
    pub(crate) fn enter(&mut self, shard: &ListedShard, position: Option<Position>, is_followed: bool) {
        let state = match position {
            Some(Position::Ended) => ShardState::Drained,
            Some(Position::After(sequence_number)) => ShardState::Waiting(IteratorAt::After(sequence_number)),
            None if self.starting_position == StartingPosition::Latest && !self.has_listed && !is_followed => {
                ShardState::Waiting(IteratorAt::Latest)
            }
            None => ShardState::Waiting(IteratorAt::TrimHorizon),
        };
        self.shards.insert(shard.id.clone(), Known { parent: shard.parent.clone(), is_listed: true, state });
    }

    /// Applies a complete listing, after its unknown shards were entered. Removes the shards that are no longer listed,
    /// except those that are still being read.
    pub(crate) fn listed(&mut self, listed: &[ListedShard]) {
        self.has_listed = true;
        for (id, known) in &mut self.shards {
            known.is_listed = listed.iter().any(|shard| shard.id == *id);
        }
        self.shards.retain(|_, known| known.is_listed || known.state == ShardState::Running);
    }

    /// Starts the shards that may be read now. Returns each with its start position.
    pub(crate) fn start_ready(&mut self) -> Vec<(String, IteratorAt)> {
        let is_ready = |known: &Known| match (&known.state, &known.parent) {
            (ShardState::Waiting(_), Some(parent)) => {
                self.shards.get(parent).is_none_or(|parent| parent.state == ShardState::Drained)
            }
            (ShardState::Waiting(_), None) => true,
            _ => false,
        };
        let ids: Vec<String> =
            self.shards.iter().filter(|(_, known)| is_ready(known)).map(|(id, _)| id.clone()).collect();
        ids.into_iter().filter_map(|id| self.start(&id).map(|at| (id, at))).collect()
    }

    fn start(&mut self, id: &str) -> Option<IteratorAt> {
        let known = self.shards.get_mut(id)?;
        match std::mem::replace(&mut known.state, ShardState::Running) {
            ShardState::Waiting(at) => Some(at),
            other => {
                known.state = other;
                None
            }
        }
    }

    /// Marks a shard as read to its end.
    pub(crate) fn drained(&mut self, id: &str) {
        if let Some(known) = self.shards.get_mut(id) {
            known.state = ShardState::Drained;
        }
    }

    /// Removes a shard that was not found when it was read. If it is listed again, it starts at its checkpoint.
    pub(crate) fn lost(&mut self, id: &str) {
        self.shards.remove(id);
    }

    /// The shards that may still have records to deliver.
    pub(crate) fn undrained(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().filter(|(_, known)| known.state != ShardState::Drained).map(|(id, _)| id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Lineage;
    use crate::checkpoint::Position;
    use crate::mapping::StartingPosition;
    use crate::source::{IteratorAt, ListedShard};

    fn shard(id: &str, parent: Option<&str>) -> ListedShard {
        ListedShard { id: id.to_owned(), parent: parent.map(str::to_owned) }
    }

    fn list(lineage: &mut Lineage, shards: &[ListedShard]) -> Vec<(String, IteratorAt)> {
        for shard in lineage.unknown(shards) {
            lineage.enter(shard, None, false);
        }
        lineage.listed(shards);
        lineage.start_ready()
    }

    fn names(started: &[(String, IteratorAt)]) -> Vec<&str> {
        started.iter().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn children_wait_until_their_parent_is_drained() {
        let mut lineage = Lineage::new(StartingPosition::TrimHorizon);
        let shards = [shard("a", None), shard("b", Some("a")), shard("c", Some("a")), shard("d", Some("b"))];
        assert_eq!(names(&list(&mut lineage, &shards)), ["a"]);
        assert_eq!(names(&lineage.start_ready()), [""; 0]);
        lineage.drained("a");
        assert_eq!(names(&lineage.start_ready()), ["b", "c"]);
        lineage.drained("c");
        assert_eq!(names(&lineage.start_ready()), [""; 0]);
        lineage.drained("b");
        assert_eq!(names(&lineage.start_ready()), ["d"]);
        assert_eq!(lineage.undrained().collect::<Vec<_>>(), ["d"]);
    }

    #[test]
    fn a_child_starts_when_its_parent_is_trimmed_but_not_while_it_is_still_read() {
        let mut lineage = Lineage::new(StartingPosition::TrimHorizon);
        assert_eq!(names(&list(&mut lineage, &[shard("b", Some("trimmed")), shard("c", Some("b"))])), ["b"]);
        assert_eq!(names(&list(&mut lineage, &[shard("c", Some("b"))])), [""; 0]);
        lineage.lost("b");
        assert_eq!(names(&lineage.start_ready()), ["c"]);
    }

    #[test]
    fn a_position_says_where_a_shard_starts() {
        let mut lineage = Lineage::new(StartingPosition::Latest);
        lineage.enter(&shard("a", None), Some(Position::Ended), false);
        lineage.enter(&shard("b", Some("a")), Some(Position::After("42".to_owned())), true);
        assert_eq!(lineage.start_ready(), [("b".to_owned(), IteratorAt::After("42".to_owned()))]);
    }

    #[test]
    fn only_a_shard_that_was_there_first_and_follows_nothing_starts_at_the_newest_record() {
        let mut lineage = Lineage::new(StartingPosition::Latest);
        let (fresh, followed, later) = (shard("a", None), shard("b", Some("gone")), shard("c", None));
        lineage.enter(&fresh, None, false);
        lineage.enter(&followed, None, true);
        lineage.listed(&[fresh.clone(), followed.clone()]);
        lineage.enter(&later, None, false);
        lineage.listed(&[fresh, followed, later]);
        let starts: Vec<_> = lineage.start_ready().into_iter().map(|(_, at)| at).collect();
        assert_eq!(starts, [IteratorAt::Latest, IteratorAt::TrimHorizon, IteratorAt::TrimHorizon]);
    }
}
